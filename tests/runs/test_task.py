"""What a run learns from is read once; a permuted target changes nothing else."""

import contextlib
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from command import error_of, json_of
from command import srs_ooc as command
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB
from srs_ooc.evidence.rank_tests import Contrast, strongest_contrasts
from srs_ooc.runs.feature_tests import target_of
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.run_memory import TrainingShape
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import Request, settle
from srs_ooc.runs.spec import Options
from srs_ooc.runs.task import Task, training_response
from srs_ooc.store.store import Store

N_ROWS, N_FEATURES = 60, 20
ROWS = np.arange(0, N_ROWS, 2, dtype=np.int32)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("task") / "t.zarr"
    values, labels = noise_table(N_ROWS, N_FEATURES)
    rows = np.arange(N_ROWS)
    srs_ooc.ingest(
        values.T, path, target=labels, weights=1.0 + rows % 7, strata=rows // 30, groups=rows // 2
    )
    return Store.open(path)


@pytest.mark.parametrize("rows", [None, ROWS])
def test_it_holds_the_training_rows(store, rows):
    task = Task.of(store, Inputs(None, rows), exchanges=True)
    kept = slice(None) if rows is None else rows
    assert task.n_rows == len(np.arange(N_ROWS)[kept])
    for name in ("target", "weights", "strata", "groups"):
        np.testing.assert_array_equal(getattr(task, name), getattr(store, name)()[kept])


@pytest.mark.parametrize("rows", [None, ROWS])
def test_no_array_is_a_map_of_the_store(store, rows):
    """A map of a file that is cut short kills the process."""
    task = Task.of(store, Inputs(None, rows), exchanges=True)
    for array in (task.target, task.weights, task.strata, task.groups):
        assert array.flags.owndata


def test_strata_and_groups_are_read_only_where_rows_trade_places(store):
    task = Task.of(store, Inputs())
    assert task.strata is task.groups is None
    assert task.weights is not None


@given(seed=st.integers(0, 2**32 - 1), balanced=st.booleans())
def test_a_permuted_target_moves_labels_and_leaves_weights(store, seed, balanced):
    order = np.random.default_rng(seed).permutation(N_ROWS).astype(np.int32)
    task = Task.of(store, Inputs(), "none", exchanges=True)
    permuted = task.permuted(order)
    before, after = training_response(task), training_response(permuted)
    np.testing.assert_array_equal(after.labels, before.labels[order])
    np.testing.assert_array_equal(after.channels, before.channels)
    assert permuted.strata is task.strata
    assert permuted.groups is task.groups
    if balanced:  # weights of classes go with the labels
        plain = Task(task.inputs, N_FEATURES, task.classes, "balanced", task.target)
        np.testing.assert_array_equal(
            training_response(plain.permuted(order)).channels,
            training_response(plain).channels[:, order],
        )


def test_features_left_out_are_left_out(store):
    task = Task.of(store, Inputs(np.array([3, 5], np.uint32)))
    left = np.setdiff1d(np.arange(N_FEATURES), [3, 5])
    np.testing.assert_array_equal(task.inputs.candidates(N_FEATURES), left)
    assert Task.of(store, Inputs()).inputs.candidates(N_FEATURES) is None


def test_strata_that_hold_the_target_are_refused(tmp_path):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    srs_ooc.ingest(values.T, tmp_path / "t.zarr", target=labels, strata=labels)
    task = Task.of(Store.open(tmp_path / "t.zarr"), Inputs(), exchanges=True)
    with pytest.raises(UsageError, match="all have the same one"):
        task.check_exchangeable(spec_by_default())


def spec_by_default():
    shape = TrainingShape(N_ROWS, N_FEATURES, N_FEATURES, 2, 1)
    return settle(Options(), shape, "", 4000 * MB)


# A row a group: whole groups trade places, and so p-values are those of all their arrangements.


def task_of(target, classes, groups, strata=None):
    kind = np.int32 if classes else np.float64
    strata = None if strata is None else np.asarray(strata, np.int32)
    groups = np.asarray(groups, np.int32)
    return Task(Inputs(), 1, classes, "none", np.asarray(target, kind), None, strata, groups)


def test_a_group_has_the_class_of_its_rows():
    by_group = task_of([2, 0, 2, 0, 1], ("a", "b", "c"), [7, 3, 7, 5, 6]).by_group()
    assert by_group.classes == ("a", "b", "c")
    assert by_group.target.tolist() == [0, 0, 1, 2]
    assert by_group.groups is None
    assert len(set(by_group.strata[:3].tolist())) == 1  # of one row each
    assert by_group.strata[3] not in by_group.strata[:3]


def test_of_two_classes_that_differ_within_groups_the_rows_of_the_second_count():
    task = task_of([0, 2, 2, 2, 0, 0], ("a", "b", "c"), [0, 0, 1, 1, 2, 2])
    assert task.by_group().is_regression
    assert task.by_group().target.tolist() == [1, 2, 0]


def test_more_classes_that_differ_within_groups_are_refused():
    task = task_of([0, 1, 2, 2], ("a", "b", "c"), [0, 0, 1, 1])
    with pytest.raises(UsageError, match=r"found 3 classes that differ within groups.*--strata"):
        task.by_group()


ROW = np.arange(N_ROWS)


@pytest.mark.parametrize(
    ("target", "groups", "expected"),
    [
        (ROW % 3, ROW // 3, "give that column as --strata, not --groups"),
        (ROW // 2 % 2 ^ ROW % 2, ROW // 2, "give that column as --strata, not --groups"),
        (ROW > 20, np.repeat(range(4), (5, 10, 20, 25)), "all have the same one"),
        (ROW // 15 % 2, ROW // 15, r"at least 10 ways.* found 6"),
    ],
    ids=["three classes within groups", "pairs", "of different sizes", "few"],
)
def test_groups_that_cannot_be_tested_are_refused_with_what_to_do(target, groups, expected):
    """Pairs have one row of each class, in whatever order."""
    classes = tuple("abc"[: int(max(target)) + 1])
    shape = TrainingShape(N_ROWS, N_FEATURES, N_FEATURES, len(classes), 1, has_groups=True)
    spec = settle(Options(), shape, "", 4000 * MB)
    with pytest.raises(UsageError, match=expected):
        task_of(target, classes, groups).check_exchangeable(spec)


def test_numbers_of_a_group_are_added_whatever_the_order_of_its_rows():
    numbers = [0.1, 0.2, 0.3, 1e16, 0.3, 1e16, 0.2, 0.1]
    found = task_of(numbers, (), [0, 0, 0, 0, 1, 1, 1, 1]).by_group().target
    assert found.tolist() == [math.fsum(numbers[:4])] * 2


@st.composite
def small_grouped_tables(draw):
    """A column with ties and missing values, a target, and rows of up to seven groups in strata."""
    groups = draw(st.lists(st.integers(0, 6), min_size=7, max_size=14))
    n = len(groups)

    def of_each(most):
        return np.array(draw(st.lists(st.integers(0, most), min_size=n, max_size=n)))

    strata = of_each(1) if draw(st.booleans()) else None
    pure = draw(st.booleans())
    target = of_each(1)[groups] if pure else of_each(1)
    return of_each(4).astype(np.uint8), task_of(target, ("a", "b"), groups, strata)


def arrangements(task):
    """Where each row takes its value from, for all exchanges of groups of one size and strata."""
    strata = np.zeros(task.n_rows, int) if task.strata is None else task.strata
    members = [np.flatnonzero(task.groups == group) for group in np.unique(task.groups)]
    members = [rows[np.argsort(strata[rows], kind="stable")] for rows in members]
    alike = {}
    for number, rows in enumerate(members):
        alike.setdefault(tuple(strata[rows].tolist()), []).append(number)
    for orders in itertools.product(*(itertools.permutations(of) for of in alike.values())):
        source = np.arange(task.n_rows)
        for numbers, order in zip(alike.values(), orders, strict=True):
            for to, of in zip(numbers, order, strict=True):
                source[members[to]] = members[of]
        yield source


MISSING = 4


def p_values_by_group(columns, task, **options):
    """P-values of some columns, each tested on one row a group."""
    units, target = task.exchangeability(in_order=False), target_of(task.by_group())
    codes = units.mean_ranks(columns, MISSING)
    return 10 ** -strongest_contrasts(codes, units.missing_code, target, **options)[0]


@examples(60)
@given(small_grouped_tables())
def test_p_values_are_valid_over_all_exchanges_of_whole_groups(table):
    """Of all arrangements of the column's blocks at most a share p has p-values of at most p."""
    column, task = table
    columns = np.array([column[source] for source in arrangements(task)][:5040])
    found = np.sort(p_values_by_group(columns, task, exactly=True))
    shares = np.arange(1, len(found) + 1) / len(found)
    last = np.append(np.diff(found) > 1e-9 * found[1:], True)
    assert np.all(shares[last] <= found[last] * (1 + 1e-9))


@examples(60)
@given(small_grouped_tables())
def test_of_groups_of_one_size_the_p_value_is_the_share_of_exchanges_as_far_out(table):
    column, task = table
    task = replace(task, strata=None, groups=np.arange(task.n_rows, dtype=np.int32) // 2)
    task = replace(task, target=(task.groups % 2).astype(np.int32))
    column = column[: task.n_rows // 2 * 2]
    if task.n_rows % 2 or len(set(column.tolist())) == 1:
        return
    ranks = stats.rankdata(np.where(column == MISSING, np.nan, column), nan_policy="omit")
    means = np.array([np.nanmean(pair) if (pair == pair).any() else np.nan
                      for pair in ranks.reshape(-1, 2)])  # fmt: skip
    known = ~np.isnan(means)
    scores, is_second = stats.rankdata(means[known].round(9)), np.arange(len(means))[known] % 2 == 1
    distances = [
        abs(scores[list(drawn)].sum() - scores.mean() * is_second.sum())
        for drawn in itertools.combinations(range(len(scores)), int(is_second.sum()))
    ]
    own = abs(scores[is_second].sum() - scores.mean() * is_second.sum())
    expected = np.mean(np.array(distances) >= own - 1e-9)
    found = p_values_by_group(column[None], task, exactly=True, only=Contrast.LOCATION)
    assert found[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_the_target_is_read_once_for_all_stages_of_a_run(tmp_path, monkeypatch):
    """Screen, closing stage, tests and effects."""
    values, labels = noise_table(N_ROWS, N_FEATURES)
    store = Store.open(make_store(tmp_path / "t.zarr", values, labels))
    options = Options(subspace_size="10", seed=3)
    request = Request(options, iterations=20, memory_mb=4000, threads=1)
    with contextlib.closing(open_or_create(store, tmp_path / "t.run", request)) as ledger:
        reads, read = [], Store.target

        def counted(self):
            reads.append(self)
            return read(self)

        monkeypatch.setattr(Store, "target", counted)
        work_on(ledger, store, request)
        assert ledger.read_arrays("verdict") is not None
    assert len(reads) == 1


# Weights of classes and of rows: what is refused, and how.


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """Two classes, and weights of rows that leave little room for others."""
    folder = tmp_path_factory.mktemp("responses")
    rows = [f"{i % 7},{i % 3},{'1e300' if i % 2 else '1e-300'},{'ab'[i % 2]}" for i in range(40)]
    (folder / "t.csv").write_text("x,y,w,group\n" + "\n".join(rows) + "\n")
    command("ingest", "t.csv", "t.zarr", "--weights", "w", cwd=folder)
    return folder / "t.zarr"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("weights", "parts"),
    [
        ("b=1e300", ["finite", "1e+300 times 1e+300", "nearer to 1"]),
        ("a=1e-300", ["1e-300 times 1e-300"]),
        ("a=2,a=3", ["each class once", "'a'"]),
        ("a=0", ["above 0", "'a=0'", "--rows"]),
        ("z=2", ["'z=2'", "a, b"]),
    ],
)
def test_class_weights_that_make_no_weight_are_refused(weighted, tmp_path, weights, parts):
    message = error_of("run", weighted, "--out", tmp_path / "r", "--class-weight", weights)
    assert all(part in message for part in parts), message


@pytest.mark.slow
def test_weights_of_any_size_are_taken(weighted, tmp_path):
    """Those of class b are 10^600 times those of class a: importances are numbers all the same."""
    run = tmp_path / "r"
    command("run", weighted, "--out", run, "--iterations", 3, "--judge", "positive")
    assert json_of("status", run, "--json")["iterations"] == 3
    importance = {row["name"]: row["importance"] for row in json_of("features", run, "--json")}
    assert set(importance) == {"x", "y"}
    assert all(0 < value < math.inf for value in importance.values()), importance
