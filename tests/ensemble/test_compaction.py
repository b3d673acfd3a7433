"""Compacting runs: no leak, no dependence on threads or stops, what is known is found."""

import hashlib
import itertools
import json
from contextlib import closing, contextmanager
from dataclasses import replace

import numpy as np
import pytest
from closing import FEW, closing_trees
from command import error_of, json_of, peak_kb, srs_ooc
from forest_reference import add_shares, decode_tree
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from stores import make_store, noise_table

import srs_ooc as package
from srs_ooc.base.errors import BudgetError, RunError
from srs_ooc.base.text import MB
from srs_ooc.ensemble import compaction
from srs_ooc.ensemble.compaction import (
    SIZES,
    Curve,
    Records,
    compact,
    held_out_score,
    nest_run,
    pooled_order,
    share_explained,
    sizes_up_to,
)
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.ledger import FOLDS_FOLDER
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.verdict import candidates_of
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block
from srs_ooc.trees.saved import decode_trees

N_ROWS, N_FEATURES = 90, 160
N_TREES = 25
HERE = Request(memory_mb=512, threads=1)


@pytest.fixture(autouse=True, scope="module")
def _few_trees():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "N_TREES", N_TREES)
        closing_trees(patch, FEW)
        yield


@contextmanager
def run_of(folder, values, labels, *, q=40, exclude=None, iterations=150, **given):
    """A run that is done, and where it was made."""
    store = Store.open(make_store(folder / "t.zarr", values, labels))
    asked = {"subspace_size": str(q), "seed": 3, **given}
    request = Request(options=asked, exclude_file=exclude, iterations=iterations)
    with run_on(store, folder / "a.run", request) as made:
        yield made


@contextmanager
def run_on(store, run, request):
    with closing(open_or_create(store, run, request)) as ledger:
        work_on(ledger, store, request)
        yield ledger, Plan.of_run(ledger, store, HERE)


def again(table, tmp_path):
    """The same run once more, in another folder."""
    ledger, site = table
    asked = {"subspace_size": "40", "seed": ledger.spec.run.seed}
    iterations = ledger.progress().iteration
    return run_on(site.store, tmp_path / "b.run", Request(options=asked, iterations=iterations))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A run on four features that decide the classes, each with two near copies, and noise."""
    values, labels = noise_table(N_ROWS, N_FEATURES, n_relevant=4)
    rng = np.random.default_rng(8)
    for copy in range(8):
        values[10 + copy] = values[copy % 4] + 0.1 * rng.standard_normal(N_ROWS)
    with run_of(tmp_path_factory.mktemp("run"), values, labels) as made:
        yield made


def sources(site, stored):
    """Return the numbers of features in the source."""
    positions = site.store.array("positions").view(np.uint32)
    return [int(positions[feature]) for feature in stored]


def group(source):
    """Return which of the four deciding features a feature is, or is near to; None if noise."""
    return source % 4 if source < 4 else (source - 10) % 4 if 10 <= source < 18 else None


def test_one_of_each_cluster_is_kept_and_names_its_stand_ins(table):
    ledger, site = table
    (_, chosen, n_selected), nested = candidates_of(ledger, N_FEATURES), nest_run(ledger, site)
    assert nested.n_selected == n_selected
    order = sources(site, nested.order)
    assert len(set(order)) == len(order)
    first = [group(source) for source in order[:4]]
    assert sorted(first, key=str) == [0, 1, 2, 3]
    selected = sources(site, chosen)
    assert sorted(order[: len(selected)]) == sorted(selected)
    n_representatives = len(selected) - 8
    assert all(group(source) is not None for source in order[n_representatives : len(selected)])
    for feature, source in zip(nested.order[:4], order, strict=False):
        others = sources(site, nested.stand_ins[str(feature)])
        assert {group(other) for other in others} == {group(source)}
        assert len(others) == 2


def test_a_pooled_order_is_by_the_product_of_ranks():
    first, second = np.array([7, 3, 9, 1], np.uint32), np.array([9, 7, 1, 3], np.uint32)
    # 7: 1 x 2, 3: 2 x 4, 9: 3 x 1, 1: 4 x 3
    assert pooled_order(first, second).tolist() == [7, 9, 3, 1]


def found_of(result):
    return result.order, result.members, result.n_selected_within, result.held_out.scores.tolist()


@pytest.mark.slow
def test_a_compaction_does_not_depend_on_stops_or_threads(table, tmp_path):
    ledger, site = table
    whole = compact(ledger, site, 3, 1)
    assert whole is not None
    with again(table, tmp_path) as (other, _):
        for stop in itertools.count(1):
            countdown = itertools.count(-(3**stop))
            here = replace(site, watch=lambda _, c=countdown: next(c) != 0)
            stopping = here.asked(memory_mb=600, threads=1 + stop % 3)
            found = compact(other, stopping, 3, 1)
            if found is not None:
                break
    assert stop > 5
    assert found_of(found) == found_of(whole)


def test_a_cap_that_cannot_hold_all_stages_is_refused_whatever_is_kept(
    table, tmp_path, monkeypatch
):
    ledger, site = table
    compact(ledger, site, 2, 1)
    for cap_mb in (1, 60):
        with pytest.raises(BudgetError, match="smallest cap"):
            compact(ledger, site.asked(memory_mb=cap_mb), 2, 1)
    monkeypatch.setattr(compaction, "held_out_nbytes", lambda *_: 300 * MB)
    with again(table, tmp_path) as (ledger, site):
        with pytest.raises(BudgetError, match="smallest cap"):
            compact(ledger, site.asked(memory_mb=300), 2, 1)
        assert not ledger.has_meta(Records(ledger, 2).whole)


@pytest.mark.slow
def test_more_repeats_go_on_from_those_that_are_there(table):
    ledger, site = table
    before = compact(ledger, site, 3, 1)
    after = compact(ledger, site, 3, 2)
    assert len(after.held_out.scores) == 6
    assert len(after.members) == after.held_out.smallest()
    assert len(compact(ledger, site, 3, 2, max_features=7).members) == 7
    assert len(compact(ledger, site, 3, 2, max_features=10_000).members) == len(after.order)
    first = dict(zip(before.held_out.sizes, before.held_out.scores.T, strict=True))
    for size, scores in zip(after.held_out.sizes, after.held_out.scores.T, strict=True):
        np.testing.assert_array_equal(scores[:3], first[size])


@pytest.mark.slow
def test_noise_predicts_rows_held_out_no_better_than_chance(tmp_path):
    """The best 1 of 160 features fits 90 rows at about 0.65; with a leak all of them would."""
    rng = np.random.default_rng(4)
    values = rng.standard_normal((N_FEATURES, N_ROWS))
    with run_of(tmp_path, values, np.arange(N_ROWS) % 2, iterations=60) as (ledger, site):
        found = compact(ledger, site, 3, 2)
    assert found.n_selected == 0
    assert 0.35 < found.held_out.means.mean() < 0.6
    assert found.held_out.means.max() < 0.65


def test_scores_are_those_of_the_trees_walked_one_by_one(table, monkeypatch):
    _, site = table
    trees = []
    decoded = decode_trees

    def noted(data, *ends, **kind):
        trees.append(decode_tree(data))
        return decoded(data, *ends, **kind)

    monkeypatch.setattr(compaction, "decode_trees", noted)
    rows = np.arange(0, N_ROWS, 3, dtype=np.int32)
    train = np.setdiff1d(np.arange(N_ROWS, dtype=np.int32), rows)
    target = np.asarray(site.store.target(), np.int32)[rows]
    features = np.array([9, 80, 3, 44], np.uint32)
    part = site.variant(site.spec, Inputs(None, train))
    with Resources.of(compaction.small(part, saves=True)) as parts:
        score = held_out_score(parts, rows, target, features, 77)
        block = Block(4, len(rows), 1, tiled=False)
        parts.source.columns.gather(np.sort(features), block, rows)
    codes = dict(zip(sorted(features.tolist()), block.as_columns(4), strict=True))
    right = 0
    for row in range(len(rows)):
        shares = [0.0, 0.0]
        for tree in trees:
            goes = lambda node, row=row: node.sends_left(int(codes[node.feature][row]), 255)  # noqa: E731
            add_shares(tree, goes, shares)
        right += int(np.argmax(shares)) == target[row]
    assert len(trees) == N_TREES
    assert score == right / len(rows)


def test_the_variance_explained_is_one_less_the_share_left():
    target = np.array([1.0, 2.0, 3.0, 6.0])
    assert share_explained(target, target) == 1.0
    assert share_explained(target, np.full(4, 3.0)) == 0.0
    assert share_explained(np.ones(3), np.zeros(3)) == 0.0


def test_a_run_of_another_judge_is_compacted_too(tmp_path):
    values, labels = noise_table(N_ROWS, 60)
    with run_of(tmp_path, values, labels, judge="probe") as (ledger, site):
        found = compact(ledger, site, 2, 1)
    assert set(sources(site, found.order[:3])) == {0, 1, 2}


def test_a_run_that_is_not_done_is_refused(tmp_path):
    values, labels = noise_table(N_ROWS, 60)
    store = Store.open(make_store(tmp_path / "t.zarr", values, labels))
    request = Request(options={"subspace_size": "20"}, iterations=50)
    with (
        closing(open_or_create(store, tmp_path / "a.run", request)) as ledger,
        pytest.raises(RunError, match="expected a run that is done"),
    ):
        compact(ledger, Plan.of_run(ledger, store, HERE))


@pytest.mark.slow
def test_the_command_says_sizes_the_set_and_its_stand_ins(tmp_path):
    values, labels = noise_table(150, 80)
    values[20] = values[0] + 0.05 * np.random.default_rng(1).standard_normal(150)
    store = make_store(tmp_path / "t.zarr", values, labels)
    run = tmp_path / "a.run"
    srs_ooc("run", store, "--out", run, "--iterations", 100)
    few = ("--folds", 2, "--repeats", 1)
    whole = json_of("compact", run, "--json", *few)
    assert [record["features"] for record in whole["curve"]][:3] == [1, 2, 3]
    assert len(whole["features"]) == whole["chosen"]
    named = json_of("compact", run, "--json", "--max-features", 3, *few)
    assert {record["name"] for record in named["features"]} <= {"f0", "f1", "f2", "f20"}
    twins = [m for m in named["features"] if m["name"] in ("f0", "f20")]
    assert [len(member["stand_ins"]) for member in twins] == [1]
    table = srs_ooc("compact", run, *few).stdout
    assert "Scores are of the rows held out." in table
    header, *lines = srs_ooc("compact", run, "--csv", "--max-features", 3, *few).stdout.split()
    assert header == "rank,name,n_stand_ins,stand_ins"
    assert len(lines) == 3
    message = error_of("compact", run, "--folds", 151, "--repeats", 1)
    assert "found 151 folds of 150" in message
    assert json.loads(json.dumps(whole)) == whole


@pytest.mark.slow
def test_the_command_names_the_score_of_numbers(tmp_path):
    values = np.random.default_rng(5).standard_normal((120, 40))
    package.ingest(values, tmp_path / "t.zarr", target=values[:, 0] + values[:, 1])
    srs_ooc("run", tmp_path / "t.zarr", "--iterations", 60)
    said = srs_ooc("compact", tmp_path / "t.run", "--folds", 2, "--repeats", 1).stdout
    assert "Scores (R squared: variance explained) are of the rows held out." in said


def test_excluded_features_never_come_back(tmp_path):
    (tmp_path / "out").write_text("f0\nf7\n")
    table, out = noise_table(N_ROWS, 60), np.isin(stored_positions(60), [0, 7])
    with run_of(tmp_path, *table, q=20, exclude=tmp_path / "out", iterations=60) as (ledger, site):
        assert ledger.inputs.excluded is not None
        found = compact(ledger, site, 2, 1)
    assert not set(np.flatnonzero(out).tolist()) & set(found.order)


@pytest.mark.slow
def test_numbers_are_predicted_and_groups_held_out_whole(tmp_path):
    """Rows of a group are all but equal: one held out without the others would be known."""
    rng = np.random.default_rng(5)
    centers = rng.standard_normal((60, 40))
    values = np.repeat(centers, 4, axis=0) + 0.01 * rng.standard_normal((240, 40))
    groups = np.repeat(np.arange(60), 4)
    for name, target in (
        ("signal", values[:, 0] + values[:, 1]),
        ("noise", np.repeat(rng.standard_normal(60), 4) + 0.001 * rng.standard_normal(240)),
    ):
        store, run = (tmp_path / f"{name}.{end}" for end in ("zarr", "run"))
        package.ingest(values, store, target=target, groups=groups, task="regression")
        with run_on(Store.open(store), run, Request(options={}, iterations=100)) as (ledger, site):
            found = compact(ledger, site, 2, 1)
        best = found.held_out.means.max()
        assert best > 0.5 if name == "signal" else best < 0.3, (name, best)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_rows", "n_features", "q"),
    [
        pytest.param(40, 60_000, 2000, marks=pytest.mark.campaign),
        (20_000, 8, 4),
    ],
)
def test_the_smallest_cap_that_works_holds(tmp_path, n_rows, n_features, q):
    store = make_store(tmp_path / "t.zarr", *noise_table(n_rows, n_features))
    run = tmp_path / "a.run"
    asked = ("--q", q, "--iterations", 20, "--max-depth", 2)
    srs_ooc("run", store, "--out", run, *asked)
    few = ("--folds", 2, "--repeats", 1)
    cap = int(error_of("compact", run, *few, "--memory-mb", 20).split()[-1].rstrip("."))
    assert 56 < cap < 150
    peak = peak_kb("compact", run, *few, "--memory-mb", cap)
    assert peak * 1024 < cap * 1_000_000


@pytest.mark.slow
def test_a_run_on_samples_of_the_rows_is_compacted_on_all_rows(tmp_path):
    values, labels = noise_table(90, 30)
    values[:3] += 2 * labels
    store, run = make_store(tmp_path / "t.zarr", values, labels), tmp_path / "a.run"
    srs_ooc("run", store, "--out", run, "--iterations", 40, "--row-sample", 30)
    said = srs_ooc("compact", run, "--folds", 2, "--repeats", 1).stdout
    assert "features selected from all rows" in said


@pytest.mark.few(1)
@pytest.mark.parametrize("option", ["scores", "validation_rows"])
def test_a_run_that_cannot_be_repeated_without_some_rows_is_refused_by_name(tmp_path, option):
    values, labels = noise_table(60, 30)
    store, run = make_store(tmp_path / "t.zarr", values, labels), tmp_path / "a.run"
    file = tmp_path / "file"
    if option == "scores":
        file.write_text("name,score\n" + "".join(f"f{i},{i + 1}\n" for i in range(30)))
        method = ("--method", "less", "--judge", "probe", "--q", 8)
    else:
        file.write_text("".join(f"{i}\n" for i in range(1, 61, 4)))
        method = ("--method", "prs", "--q", 20)
    srs_ooc("run", store, "--out", run, "--iterations", 20, *method, "--with", f"{option}={file}")
    assert f"without the rows that are held out, found one with {option}" in error_of(
        "compact", run
    )
    assert not (run / FOLDS_FOLDER).exists()


tables = st.integers(1, 6).flatmap(
    lambda n: st.lists(st.lists(st.floats(0, 1), min_size=n, max_size=n), min_size=1, max_size=6)
)


@given(tables)
def test_the_choice_is_the_smallest_within_one_standard_error_of_the_best(scores):
    scores = np.array(scores)
    sizes = [2 * i + 1 for i in range(scores.shape[1])]
    curve = Curve(sizes, scores)
    chosen = sizes.index(curve.smallest())
    best = curve.best
    bar = curve.means[best] - curve.errors[best]
    assert curve.means[chosen] >= bar
    assert np.all(curve.means[:chosen] < bar)
    assert chosen <= best


def test_errors_are_those_of_the_mean_over_folds():
    curve = Curve([1, 2], np.array([[0.5, 1.0], [0.7, 1.0], [0.9, 1.0]]))
    np.testing.assert_allclose(curve.errors, [0.2 / np.sqrt(3), 0.0])
    np.testing.assert_array_equal(Curve([1], np.array([[0.5]])).errors, [0.0])


def test_the_interval_is_that_of_folds_that_share_rows_and_no_less_than_wilsons():
    """The first by scipy's t, the second by its interval of a share."""
    scores = np.array([[0.5], [0.7], [0.9], [0.7], [0.7], [0.8]])
    curve = Curve([4], scores, n_parts=3)
    variance = scores.var(ddof=1) * (1 / 6 + 1 / 2)
    expected = stats.t.interval(0.95, 5, scores.mean(), np.sqrt(variance))
    np.testing.assert_allclose(curve.interval(4), [expected[0], min(expected[1], 1)])
    perfect = Curve([1], np.ones((10, 1)))
    wilson = stats.binomtest(60, 60).proportion_ci(method="wilson")
    np.testing.assert_allclose(perfect.interval(1, 60), wilson, rtol=1e-4)
    assert perfect.interval(1) == (1.0, 1.0)
    assert Curve([1], np.array([[0.5]])).interval(1, 60) is None
    low, high = Curve([1], np.array([[0.1], [0.9]])).interval(1, 10)
    assert (low, high) == (0.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "shift"), [(30, 0.0), (60, 1.0), (120, 5.0)])
def test_the_interval_holds_the_accuracy_on_new_rows(n, shift):
    """Of a nearest-mean rule on all rows, whose accuracy on new ones is known; 5 folds, twice."""
    rng, held, n_tables = np.random.default_rng(7), 0, 400
    mean, y = np.zeros(10), np.arange(n) % 2
    mean[0] = shift
    for _ in range(n_tables):
        x = rng.standard_normal((n, 10)) + mean * y[:, None]

        def rule(rows, x=x):
            means = [x[rows & (y == k)].mean(axis=0) for k in (0, 1)]
            way = means[1] - means[0]
            return way, way @ (means[0] + means[1]) / 2

        scores = []
        for _ in range(2):
            folds = np.empty(n, int)
            for k in (0, 1):
                folds[y == k] = rng.permutation(np.arange(np.count_nonzero(y == k)) % 5)
            for fold in range(5):
                (way, bar), out = rule(folds != fold), folds == fold
                scores.append([np.mean((x[out] @ way > bar) == y[out])])
        way, bar = rule(np.ones(n, bool))
        unit = np.linalg.norm(way)
        truth = stats.norm.cdf([(way @ mean - bar) / unit, bar / unit]).mean()
        low, high = Curve([1], np.array(scores)).interval(1, n)
        held += low <= truth <= high
    assert held >= stats.binom.ppf(0.001, n_tables, 0.95)


def test_the_smallest_size_within_a_standard_error_of_the_best_is_chosen():
    assert Curve([1, 5, 9], np.array([[0.5, 0.8, 1.0]] * 2)).smallest() == 9
    assert Curve([1, 5, 9], np.array([[0.5, 0.8, 0.9], [0.5, 0.85, 0.8]])).smallest() == 5


@given(st.integers(1, 400), st.integers(1, 400))
def test_sizes_tried_reach_what_there_is_and_what_is_asked(most, asked):
    sizes = sizes_up_to(most, asked)
    assert sizes == sorted(set(sizes))
    assert min(asked, most) in sizes
    assert sizes[-1] == max(min(most, SIZES[-1]), min(asked, most))


# Rows that are named, or the last ones, are held out once.


def held(tmp_path, name, values, labels, rows):
    """The set, and what is kept of the rows held out."""
    (tmp_path / name).mkdir()
    with run_of(tmp_path / name, values, labels) as (ledger, site):
        small = compact(ledger, site, held_out=rows)
        split = hashlib.sha256(rows.tobytes()).hexdigest()[:16]
        return small, ledger.meta(Records(ledger, split).of_fold(0, 0))


@pytest.mark.slow
def test_targets_of_rows_held_out_have_no_part_in_the_sets_and_all_in_the_scores(tmp_path):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    rows = np.arange(60, N_ROWS, dtype=np.int32)
    flipped = labels.copy()
    flipped[rows] = 1 - flipped[rows]
    (one, first), (_, second) = (
        held(tmp_path, name, values, of, rows) for name, of in (("a", labels), ("b", flipped))
    )
    assert first["order"] == second["order"]
    assert first["n_selected"] == second["n_selected"]
    for size, score in first["scores"].items():
        assert score + second["scores"][size] == pytest.approx(1)
    assert one.n_selected_within == [first["n_selected"]]
    assert [size.error for size in one.sizes] == [0.0] * len(one.sizes)


@pytest.mark.slow
def test_the_command_holds_out_rows_of_a_file_or_the_last_ones(tmp_path):
    values, labels = noise_table(N_ROWS, 30)
    days = np.random.default_rng(0).permutation(N_ROWS)
    columns = [f"f{j}" for j in range(30)]
    lines = [
        ",".join([f"r{i}", *map(repr, row), str(day), str(label)])
        for i, (row, day, label) in enumerate(zip(values.T.tolist(), days, labels, strict=True))
    ]
    (tmp_path / "t.csv").write_text("\n".join([",".join(["id", *columns, "day", "y"]), *lines]))
    srs_ooc("ingest", tmp_path / "t.csv", tmp_path / "t.zarr", "--row-ids", "id",
            "--covariates", "day")  # fmt: skip
    srs_ooc("run", tmp_path / "t.zarr", "--iterations", 60)
    run, last = tmp_path / "t.run", np.flatnonzero(days >= 72)
    (tmp_path / "rows.txt").write_text("\n".join(f"r{i}" for i in last))
    by_time = srs_ooc("compact", run, "--time-split", "day").stdout
    assert f"where {len(last)} rows were held out" in by_time
    named = json_of("compact", run, "--held-out-rows", tmp_path / "rows.txt", "--json")
    timed = json_of("compact", run, "--time-split", "day", "--json")
    assert named == timed
    same = package.compact(run, held_out_rows=tmp_path / "rows.txt")
    assert same.names == [feature["name"] for feature in named["features"]]
    (tmp_path / "bad.txt").write_text("r1\nnobody\n")
    bad = "--held-out-rows", tmp_path / "bad.txt"
    assert "expected every line to be a row id" in error_of("compact", run, *bad)
    found = error_of("compact", run, "--time-split", "f3")
    assert "expected a covariate of numbers (day), found 'f3'" in found
    assert "Leave one out" in error_of("compact", run, *bad, "--time-split", "day")
    (tmp_path / "all.txt").write_text("\n".join(f"r{i}" for i in range(N_ROWS)))
    everybody = "--held-out-rows", tmp_path / "all.txt"
    assert "expected rows to hold out and rows to train on" in error_of("compact", run, *everybody)


@pytest.mark.slow
def test_a_group_is_held_out_whole_or_not_at_all(tmp_path):
    values, labels = noise_table(N_ROWS, 30)
    package.ingest(
        values.T, tmp_path / "t.zarr", target=labels, groups=np.arange(N_ROWS) // 3,
        covariates={"day": np.arange(N_ROWS) // 3 * 3.0},
    )  # fmt: skip
    run = package.run(tmp_path / "t.zarr", iterations=40).run
    (tmp_path / "rows.txt").write_text("1\n")
    found = error_of("compact", run, "--held-out-rows", tmp_path / "rows.txt")
    assert "expected whole groups to hold out" in found
    assert "18 rows were held out" in srs_ooc("compact", run, "--time-split", "day").stdout
