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
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import UsageError
from srs_ooc.evidence.rank_tests import Contrast, contrasts_log_p, strongest_contrasts
from srs_ooc.runs.feature_tests import target_of
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.request import Request
from srs_ooc.runs.run_memory import TrainingShape
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import settle
from srs_ooc.runs.task import Task
from srs_ooc.runs.training import training_response
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
    task = Task.of(store, rows, exchanges=True)
    kept = slice(None) if rows is None else rows
    assert task.n_rows == len(np.arange(N_ROWS)[kept])
    for name in ("target", "weights", "strata", "groups"):
        np.testing.assert_array_equal(getattr(task, name), getattr(store, name)()[kept])


@pytest.mark.parametrize("rows", [None, ROWS])
def test_no_array_is_a_map_of_the_store(store, rows):
    """A map of a file that is cut short kills the process."""
    task = Task.of(store, rows, exchanges=True)
    for array in (task.target, task.weights, task.strata, task.groups):
        assert array.flags.owndata


def test_strata_and_groups_are_read_only_where_rows_trade_places(store):
    task = Task.of(store)
    assert task.strata is task.groups is None
    assert task.weights is not None


@given(seed=st.integers(0, 2**32 - 1), balanced=st.booleans())
def test_a_permuted_target_moves_labels_and_leaves_weights(store, seed, balanced):
    order = np.random.default_rng(seed).permutation(N_ROWS).astype(np.int32)
    task = Task.of(store, exchanges=True)
    permuted = replace(task, target=task.target[order])
    before, after = training_response(task), training_response(permuted)
    np.testing.assert_array_equal(after.labels, before.labels[order])
    np.testing.assert_array_equal(after.channels, before.channels)
    if balanced:  # weights of classes go with the labels
        plain = Task(None, task.classes, "balanced", task.target)
        permuted = replace(plain, target=plain.target[order])
        np.testing.assert_array_equal(
            training_response(permuted).channels,
            training_response(plain).channels[:, order],
        )


def test_features_left_out_are_left_out():
    left = np.setdiff1d(np.arange(N_FEATURES), [3, 5])
    inputs = Inputs(np.array([3, 5], np.uint32))
    np.testing.assert_array_equal(inputs.candidates(N_FEATURES), left)
    assert Inputs().candidates(N_FEATURES) is None


def test_strata_that_hold_the_target_are_refused(tmp_path):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    srs_ooc.ingest(values.T, tmp_path / "t.zarr", target=labels, strata=labels)
    task = Task.of(Store.open(tmp_path / "t.zarr"), exchanges=True)
    with pytest.raises(UsageError, match="all have the same one"):
        task.check_exchangeable(spec_by_default())


def spec_by_default():
    shape = TrainingShape(N_ROWS, N_FEATURES, N_FEATURES, 2, 1)
    return settle(Request(memory_mb=4000), shape, {})


# A row a group: whole groups trade places, and so p-values are those of all their arrangements.


def task_of(target, classes, groups, strata=None):
    kind = np.int32 if classes else np.float64
    strata = None if strata is None else np.asarray(strata, np.int32)
    groups = np.asarray(groups, np.int32)
    columns = {"groups": ["who"]} | ({} if strata is None else {"strata": ["plate, old"]})
    target = np.asarray(target, kind)
    return Task(None, classes, "none", target, None, strata, groups, row_columns=columns)


def test_a_group_has_the_class_of_its_rows():
    by_group = task_of([2, 0, 2, 0, 1], ("a", "b", "c"), [7, 3, 7, 5, 6]).by_group()
    assert by_group.classes == ("a", "b", "c")
    assert by_group.target.tolist() == [0, 0, 1, 2]
    assert by_group.groups is None
    assert len(set(by_group.strata.tolist())) == 1  # whatever their size
    assert by_group.untested == (Contrast.SPREAD,)
    assert not by_group.note


def test_of_two_classes_that_differ_within_groups_the_rows_of_the_second_count():
    task = task_of([0, 2, 2, 2, 0, 0], ("a", "b", "c"), [0, 0, 1, 1, 2, 2])
    assert task.by_group().is_regression
    assert task.by_group().target.tolist() == [1, 2, 0]
    assert "differs within 1 of 3 groups" in task.by_group().note


def sized(cases, controls):
    """Groups of as many rows as said, of either class."""
    sizes = [*cases, *controls]
    of_group = np.repeat([1, 0], (len(cases), len(controls)))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return task_of(of_group[groups], ("a", "b"), groups)


@pytest.mark.parametrize(
    ("cases", "controls", "classes", "untested"),
    [
        ([4] * 9, [4] * 9, [18], ()),
        ([1, 2, 9, 4, 6], [1, 3, 8, 5, 7], [10], (Contrast.SPREAD,)),
        ([2] * 9 + [8], [8] * 9 + [2], [10, 10], ()),
        ([2] * 9 + [9], [8] * 9 + [3], [10, 10], (Contrast.SPREAD, Contrast.ABSENCE)),
        ([1, 19] * 9, [5, 6] * 9, [9, 9, 18], (Contrast.SPREAD, Contrast.ABSENCE)),
        ([8] * 9 + [9], [15] * 9 + [9], [2, 9, 9], ()),
    ],
    ids=["one size", "unrelated", "two sizes", "two octaves", "by spread", "in one octave"],
)
def test_groups_trade_places_within_octaves_where_the_target_goes_with_their_size(
    cases, controls, classes, untested
):
    by_group = sized(cases, controls).by_group()
    assert sorted(np.bincount(by_group.strata).tolist()) == classes
    assert by_group.untested == untested
    assert ("sizes of groups go with the target" in by_group.note) == (len(classes) > 1)
    codes = np.random.default_rng(0).permutation(len(by_group.target)).astype(np.uint8)[None]
    codes[0, :2] = 99
    log_p = contrasts_log_p(codes, 99, target_of(by_group))[0]
    assert np.isnan(log_p[list(untested)]).all()
    assert not np.isnan(log_p[Contrast.LOCATION])


def test_numbers_go_with_the_size_of_groups_too():
    sizes = np.repeat(np.arange(1, 13), 2)
    groups, shuffled = np.repeat(np.arange(24), sizes), np.random.default_rng(1).permutation(24)
    for target, note, n_strata in [
        (sizes + shuffled / 100, "groups of their size. ", 12),
        (np.frexp(sizes)[1] + shuffled / 100, "groups of about their size ", 4),
        (shuffled, "", 1),
    ]:
        by_group = task_of(target[groups], (), groups).by_group()
        assert note in by_group.note
        assert bool(note) == bool(by_group.note)
        assert len(set(by_group.strata.tolist())) == n_strata


def test_sizes_that_tell_the_target_are_refused_with_what_to_do():
    task = sized([1, 2, 3] * 4, range(10, 20))
    message = r"distinguished.* Sizes of groups go with the target.*--rows to do without; or"
    with pytest.raises(UsageError, match=message):
        task.check_exchangeable(spec_by_default())
    sized([1, 2, 3, 5, 7, 9, 11], [4, 6, 8, 10, 12, 13]).check_exchangeable(spec_by_default())


def test_more_classes_that_differ_within_groups_are_refused():
    task = task_of([0, 1, 2, 2], ("a", "b", "c"), [0, 0, 1, 1])
    with pytest.raises(UsageError, match=r"found 3 classes that differ within groups.*--strata"):
        task.by_group()


ROW = np.arange(N_ROWS)


@pytest.mark.parametrize(
    ("target", "groups", "expected"),
    [
        (ROW % 3, ROW // 3, "again with `--strata who` in place of `--groups who`."),
        (ROW // 2 % 2 ^ ROW % 2, ROW // 2, "with `--strata who` in place of `--groups who`; or"),
        (ROW > 20, np.repeat(range(4), (5, 10, 20, 25)), "all have the same one"),
        (ROW // 15 % 2, ROW // 15, r"at least 10 ways.* found 6"),
    ],
    ids=["three classes within groups", "pairs", "of different sizes", "few"],
)
def test_groups_that_cannot_be_tested_are_refused_with_what_to_do(target, groups, expected):
    """Pairs have one row of each class, in whatever order."""
    classes = tuple("abc"[: int(max(target)) + 1])
    shape = TrainingShape(N_ROWS, N_FEATURES, N_FEATURES, len(classes), 1, has_groups=True)
    spec = settle(Request(memory_mb=4000), shape, {})
    with pytest.raises(UsageError, match=expected):
        task_of(target, classes, groups).check_exchangeable(spec)


def test_the_remedy_names_the_strata_that_were_given_too():
    task = task_of([0, 1, 2, 2], ("a", "b", "c"), [0, 0, 1, 1], [0, 0, 1, 1])
    expected = """--strata '"plate, old",who'` in place of `--groups who`"""
    with pytest.raises(UsageError, match=expected):
        task.by_group()


def test_numbers_of_a_group_are_added_whatever_the_order_of_its_rows():
    numbers = [0.1, 0.2, 0.3, 1e16, 0.3, 1e16, 0.2, 0.1]
    found = task_of(numbers, (), [0, 0, 0, 0, 1, 1, 1, 1]).by_group().target
    assert found.tolist() == [math.fsum(numbers[:4])] * 2


@st.composite
def small_grouped_tables(draw, *, pure):
    """A column with ties and missing values, a target, and rows of up to seven groups in strata."""
    groups = draw(st.lists(st.integers(0, 6), min_size=7, max_size=14))
    n = len(groups)

    def of_each(most):
        return np.array(draw(st.lists(st.integers(0, most), min_size=n, max_size=n)))

    strata = of_each(1) if draw(st.booleans()) else None
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
    tested = task.by_group()
    codes, missing_code = tested.units.mean_ranks(columns, MISSING), tested.units.missing_code
    return 10 ** -strongest_contrasts(codes, missing_code, target_of(tested), **options)[0]


def filled(target, places, values):
    """A target with other values in some places."""
    out = np.array(target)
    out[places] = values
    return tuple(out.tolist())


def check_shares(p_values, most=1.0):
    """Of all arrangements at most ``most`` times a share p has p-values of at most p."""
    found = np.sort(p_values)
    shares = np.arange(1, len(found) + 1) / len(found)
    last = np.append(np.diff(found) > 1e-9 * found[1:], True)
    assert np.all(shares[last] <= most * found[last] * (1 + 1e-9))


@examples(60)
@given(small_grouped_tables(pure=False))
def test_p_values_are_valid_over_all_exchanges_of_whole_groups(table):
    """Of the column's blocks, where the target differs within groups."""
    column, task = table
    assume(any(len(set(task.target[task.groups == group])) > 1 for group in set(task.groups)))
    columns = np.array([column[source] for source in arrangements(task)][:5040])
    check_shares(p_values_by_group(columns, task, exactly=True))


@examples(60)
@given(small_grouped_tables(pure=True))
def test_p_values_are_valid_over_all_targets_of_whole_groups_of_any_size(table):
    """A tenth and a hundredth more where sizes decide which groups trade places."""
    column, task = table
    units = task.exchangeability("any")
    number, target = np.unique(task.groups, return_inverse=True)[1], units.spans(task.target)[0]
    targets = {tuple(target)}
    for numbers in (np.flatnonzero(units.classes == c) for c in set(units.classes.tolist())):
        of_class = set(itertools.permutations(target[numbers].tolist()))
        targets = {filled(one, numbers, of) for one in targets for of in of_class}
    tasks = [replace(task, target=np.array(one, np.int32)[number]) for one in sorted(targets)]
    found = [p_values_by_group(column[None], one, exactly=True)[0] for one in tasks]
    check_shares(found, 1.11 if any(one.by_group().note for one in tasks) else 1.0)


@examples(60)
@given(small_grouped_tables(pure=True))
def test_of_groups_of_one_size_the_p_value_is_the_share_of_exchanges_as_far_out(table):
    column, task = table
    task = replace(task, strata=None, groups=np.arange(task.n_rows, dtype=np.int32) // 2)
    task = replace(task, target=(task.groups % 2).astype(np.int32))
    column = column[: task.n_rows // 2 * 2].copy()
    column[1::2][column[1::2] == MISSING] = 0  # of a pair both are known, or neither is
    column[1::2][column[::2] == MISSING] = MISSING
    if task.n_rows % 2 or len(set(column.tolist())) == 1:
        return
    ranks = stats.rankdata(np.where(column == MISSING, np.nan, column), nan_policy="omit")
    means = np.array([np.nanmean(pair) if (pair == pair).any() else np.nan
                      for pair in ranks.reshape(-1, 2)])  # fmt: skip
    known = ~np.isnan(means)
    scores, is_second = stats.rankdata(means[known].round(9)), np.arange(len(means))[known] % 2 == 1
    if len(set(scores.tolist())) == 3:  # they have the joint test besides
        return
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
    options = {"subspace_size": "10", "seed": 3}
    request = Request(options=options, iterations=20, memory_mb=4000, threads=1)
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


@pytest.mark.campaign
@pytest.mark.parametrize("n_groups", [40, 100])
@pytest.mark.parametrize("kind", ["numbers", "ones of 3%", "counts", "half missing"])
@pytest.mark.parametrize("gap", [0.0, 0.2, 0.4, 0.7])
def test_the_level_holds_where_sizes_go_with_the_target_a_little(n_groups, kind, gap):
    """Between what the tests of sizes see always and what they never see no theorem says so."""
    ratios, n_alike, steps = [], 0, np.array([0.05, 0.01, 0.001])
    for seed in range(3000, 3150):
        rng = np.random.default_rng([seed, n_groups, int(10 * gap), len(kind)])
        classes = rng.permutation(np.arange(n_groups) % 2)
        sizes = np.exp(rng.normal(1.2 + gap * classes, 0.8)).round().clip(1, 30).astype(int)
        groups = np.repeat(np.arange(n_groups), sizes)
        values = 0.3**0.5 * rng.normal(size=(200, n_groups))[:, groups]
        values += 0.7**0.5 * rng.normal(size=values.shape)
        codes = {
            "numbers": lambda v=values: v.argsort(axis=1).argsort(axis=1),
            "ones of 3%": lambda v=values: v > 1.88,
            "counts": lambda v=values, rng=rng: rng.poisson(np.exp(v - 1)),
            "half missing": lambda v=values, rng=rng: np.where(
                rng.random(v.shape) < 0.5, 65535, v.argsort(axis=1).argsort(axis=1)
            ),
        }[kind]()
        task = task_of(classes[groups], ("a", "b"), groups).by_group()
        n_alike += bool(task.note)
        means = task.units.mean_ranks(codes.astype(np.uint16), 65535)
        strengths = strongest_contrasts(means, task.units.missing_code, target_of(task))[0]
        ratios.append((10.0 ** -strengths[:, None] <= steps * (1 + 1e-9)).mean(axis=0) / steps)
    found, errors = np.mean(ratios, axis=0), np.std(ratios, axis=0) / 150**0.5
    print(n_groups, kind, gap, f"{n_alike / 150:.2f}", found.round(2), errors.round(2))
    assert (found <= 1.05 + 3 * errors).all()
