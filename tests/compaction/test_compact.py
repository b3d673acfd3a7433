"""Compacting runs: no leak, no dependence on threads or stops, what is known is found."""

import itertools
import json

import numpy as np
import pytest
from closing import FEW, closing_trees
from command import error_of, json_of, peak_kb, srs_ooc
from forest_reference import add_shares, decode_tree
from stores import make_store, noise_table

import srs_ooc as package
from srs_ooc.base.errors import RunError
from srs_ooc.ensemble import fold_runs
from srs_ooc.ensemble.compaction import compact
from srs_ooc.ensemble.fold_runs import (
    Site,
    held_out_score,
    nest_run,
    pooled_order,
    share_explained,
    small_parts,
)
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.runs.inputs import Inputs, inputs_of, spec_of
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.runs.verification import verify_run
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block
from srs_ooc.trees.saved import decode_trees

N_ROWS, N_FEATURES = 90, 160
N_TREES = 25


@pytest.fixture(autouse=True, scope="module")
def _few_trees():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold_runs, "N_TREES", N_TREES)
        closing_trees(patch, FEW)
        yield


def run_of(folder, values, labels, *, iterations=150, **given):
    store = Store.open(make_store(folder / "t.zarr", values, labels))
    asked = Options(subspace_size="40", seed=3, **(given or {"judge": "decoy", "decoys": 1}))
    return run_on(store, folder / "a.run", Request(asked, iterations=iterations))


def run_on(store, run, request):
    ledger = open_or_create(store, run, request)
    work_on(ledger, store, request)
    return ledger, Site(store, 512, 1, lambda _: True)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A run on four features that decide the classes, each with two near copies, and noise."""
    values, labels = noise_table(N_ROWS, N_FEATURES, n_relevant=4)
    rng = np.random.default_rng(8)
    for copy in range(8):
        values[10 + copy] = values[copy % 4] + 0.1 * rng.standard_normal(N_ROWS)
    ledger, site = run_of(tmp_path_factory.mktemp("run"), values, labels)
    yield ledger, site
    ledger.close()


def sources(site, stored):
    """Return the numbers of features in the source."""
    positions = site.store.array("positions").view(np.uint32)
    return [int(positions[feature]) for feature in stored]


def family(source):
    """Return which of the four deciding features a feature is, or is near to; None if noise."""
    return source % 4 if source < 4 else (source - 10) % 4 if 10 <= source < 18 else None


def test_one_of_each_cluster_is_kept_and_names_its_stand_ins(table):
    ledger, site = table
    candidates, nested = nest_run(ledger, site)
    order = sources(site, nested.order)
    assert len(set(order)) == len(order)
    first = [family(source) for source in order[:4]]
    assert sorted(first, key=str) == [0, 1, 2, 3]
    selected = sources(site, candidates.features[candidates.is_selected])
    assert sorted(order[: len(selected)]) == sorted(selected)
    n_representatives = len(selected) - 8
    assert all(family(source) is not None for source in order[n_representatives : len(selected)])
    for feature, source in zip(nested.order[:4], order, strict=False):
        others = sources(site, nested.stand_ins(int(feature)))
        assert {family(other) for other in others} == {family(source)}
        assert len(others) == 2


def test_a_pooled_order_is_by_the_product_of_ranks():
    first, second = np.array([7, 3, 9, 1], np.uint32), np.array([9, 7, 1, 3], np.uint32)
    # 7: 1 x 2, 3: 2 x 4, 9: 3 x 1, 1: 4 x 3
    assert pooled_order(first, second).tolist() == [7, 9, 3, 1]


def found_of(result):
    curve = result.curve
    return result.order, result.stand_ins, result.n_selected_within, curve.scores.tolist()


@pytest.mark.slow
def test_a_compaction_does_not_depend_on_stops_or_threads(table, tmp_path):
    ledger, site = table
    whole = compact(ledger, site, 3, 1)
    assert whole is not None
    other, _ = _copied(ledger, site, tmp_path)
    for stop in itertools.count(1):
        countdown = itertools.count(-(3**stop))
        stopping = Site(site.store, 600, 1 + stop % 3, lambda _, c=countdown: next(c) != 0)
        again = compact(other, stopping, 3, 1)
        if again is not None:
            break
    other.close()
    assert stop > 5
    assert found_of(again) == found_of(whole)


@pytest.mark.slow
def test_damage_to_what_a_compaction_keeps_is_an_error_not_another_result(table):
    ledger, site = table
    assert compact(ledger, site, 3, 1) is not None
    n_looked_at = 0
    for file in sorted((ledger.run / "compact").rglob("*.json")):
        data = file.read_bytes()
        for at in range(0, len(data), 1 + len(data) // 60):
            file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            with pytest.raises(RunError, match="as it was written"):
                verify_run(ledger.run)
            n_looked_at += 1
        with pytest.raises(RunError, match="as it was written"):
            compact(ledger, site, 3, 1)
        file.write_bytes(data)
    assert n_looked_at > 100
    files = verify_run(ledger.run).files
    assert sum(count for what, count in files.items() if "compactions" in what) >= 4


def _copied(ledger, site, tmp_path):
    """The same run once more, in another folder."""
    spec = spec_of(ledger)
    request = Request(
        Options(judge="decoy", decoys=1, subspace_size="40", seed=spec.seed),
        iterations=ledger.progress().iteration,
    )
    other = open_or_create(site.store, tmp_path / "b.run", request)
    work_on(other, site.store, request)
    return other, site


@pytest.mark.slow
def test_what_decides_the_classes_is_found_by_a_handful(table):
    ledger, site = table
    found = compact(ledger, site, 3, 1)
    assert 3 <= found.curve.smallest() <= 8
    assert found.curve.means.max() > 0.8
    assert len(found.n_selected_within) == len(found.curve.scores) == 3


def test_a_size_asked_for_later_is_scored_without_selecting_again(table):
    ledger, site = table
    before = compact(ledger, site, 3, 1)
    stages = []

    def watch(step):
        stages.append(step.stage)
        return True

    watching = Site(site.store, 512, 1, watch)
    after = compact(ledger, watching, 3, 1, max_features=17)
    assert 17 in after.curve.sizes
    assert set(stages) == {f"fold {i} of 3, scoring" for i in (1, 2, 3)}
    kept = [after.curve.sizes.index(size) for size in before.curve.sizes]
    np.testing.assert_array_equal(after.curve.scores[:, kept], before.curve.scores)


@pytest.mark.slow
def test_more_repeats_go_on_from_those_that_are_there(table):
    ledger, site = table
    before = compact(ledger, site, 3, 1)
    after = compact(ledger, site, 3, 2)
    assert len(after.curve.scores) == 6
    assert after.chosen(7) == 7
    assert after.chosen(10_000) == len(after.order)
    assert after.chosen() == after.curve.smallest()
    first = dict(zip(before.curve.sizes, before.curve.scores.T, strict=True))
    for size, scores in zip(after.curve.sizes, after.curve.scores.T, strict=True):
        np.testing.assert_array_equal(scores[:3], first[size])


@pytest.mark.slow
def test_noise_predicts_rows_held_out_no_better_than_chance(tmp_path):
    """The best 1 of 160 features fits 90 rows at about 0.65; with a leak all of them would."""
    rng = np.random.default_rng(4)
    values = rng.standard_normal((N_FEATURES, N_ROWS))
    ledger, site = run_of(tmp_path, values, np.arange(N_ROWS) % 2, iterations=60)
    found = compact(ledger, site, 3, 2)
    ledger.close()
    assert found.n_selected == 0
    assert 0.35 < found.curve.means.mean() < 0.6
    assert found.curve.means.max() < 0.65


def test_scores_are_those_of_the_trees_walked_one_by_one(table, monkeypatch):
    ledger, site = table
    trees = []
    decoded = decode_trees

    def noted(data, *ends, **kind):
        trees.append(decode_tree(data))
        return decoded(data, *ends, **kind)

    monkeypatch.setattr(fold_runs, "decode_trees", noted)
    rows = np.arange(0, N_ROWS, 3, dtype=np.int32)
    train = np.setdiff1d(np.arange(N_ROWS, dtype=np.int32), rows)
    target = np.asarray(site.store.target(), np.int32)[rows]
    features = np.array([9, 80, 3, 44], np.uint32)
    with small_parts(spec_of(ledger), Inputs(None, train), site, 0, saves=True) as parts:
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
    ledger, site = run_of(tmp_path, values, labels, judge="probe")
    found = compact(ledger, site, 2, 1)
    ledger.close()
    assert set(sources(site, found.order[:3])) == {0, 1, 2}


def test_a_run_that_is_not_done_is_refused(tmp_path):
    values, labels = noise_table(N_ROWS, 60)
    store = Store.open(make_store(tmp_path / "t.zarr", values, labels))
    request = Request(Options(judge="decoy", decoys=1, subspace_size="20"), iterations=50)
    ledger = open_or_create(store, tmp_path / "a.run", request)
    with pytest.raises(RunError, match="expected a run that is done"):
        compact(ledger, Site(store, 512, 1, lambda _: True))
    ledger.close()


@pytest.mark.slow
def test_a_damaged_record_is_refused_by_name(table, tmp_path):
    ledger, site = table
    other, _ = _copied(ledger, site, tmp_path)
    compact(other, site, 2, 1)
    record = next((tmp_path / "b.run").glob("compact/*/repeat-1-fold-2.json"))
    record.write_text('{"repeat": 0, "fold"')
    with pytest.raises(RunError, match=r"fold-2\.json: expected a record as it was written"):
        compact(other, site, 2, 1)
    other.close()


@pytest.mark.slow
def test_the_command_says_sizes_the_set_and_its_stand_ins(tmp_path):
    values, labels = noise_table(150, 80)
    values[20] = values[0] + 0.05 * np.random.default_rng(1).standard_normal(150)
    store = make_store(tmp_path / "t.zarr", values, labels)
    run = tmp_path / "a.run"
    srs_ooc("run", store, "--out", run, "--iterations", 100, "--decoys", 1)
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


def test_excluded_features_never_come_back(tmp_path):
    values, labels = noise_table(N_ROWS, 60)
    store = Store.open(make_store(tmp_path / "t.zarr", values, labels))
    (tmp_path / "out").write_text("f0\nf7\n")
    request = Request(
        Options(judge="decoy", decoys=1, subspace_size="20"), tmp_path / "out", iterations=60
    )
    ledger = open_or_create(store, tmp_path / "a.run", request)
    work_on(ledger, store, request)
    site = Site(store, 512, 1, lambda _: True)
    assert inputs_of(ledger).excluded is not None
    out = set(np.flatnonzero(np.isin(stored_positions(60), [0, 7])).tolist())
    found = compact(ledger, site, 2, 1)
    ledger.close()
    assert not out & set(found.order)


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
        ledger, site = run_on(Store.open(store), run, Request(Options(), iterations=100))
        found = compact(ledger, site, 2, 1)
        ledger.close()
        best = found.curve.means.max()
        assert best > 0.5 if name == "signal" else best < 0.3, (name, best)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_rows", "n_features", "q"),
    [
        pytest.param(40, 60_000, 2000, marks=pytest.mark.slow),
        (20_000, 8, 4),
    ],
)
def test_the_smallest_cap_that_works_holds(tmp_path, n_rows, n_features, q):
    store = make_store(tmp_path / "t.zarr", *noise_table(n_rows, n_features))
    run = tmp_path / "a.run"
    asked = ("--judge", "decoy", "--decoys", 1, "--q", q, "--iterations", 20, "--max-depth", 2)
    srs_ooc("run", store, "--out", run, *asked)
    few = ("--folds", 2, "--repeats", 1)
    cap = int(error_of("compact", run, *few, "--memory-mb", 20).split()[-1].rstrip("."))
    assert 56 < cap < 150
    peak = peak_kb("compact", run, *few, "--memory-mb", cap)
    assert peak * 1024 < cap * 1_000_000


@pytest.mark.few(1)
@pytest.mark.parametrize("option", ["--scores", "--validation-rows"])
def test_a_run_that_cannot_be_repeated_without_some_rows_is_refused_by_name(tmp_path, option):
    values, labels = noise_table(60, 30)
    store, run = make_store(tmp_path / "t.zarr", values, labels), tmp_path / "a.run"
    file = tmp_path / "file"
    if option == "--scores":
        file.write_text("name,score\n" + "".join(f"f{i},{i + 1}\n" for i in range(30)))
        method = ("--method", "less", "--judge", "probe", "--q", 8)
    else:
        file.write_text("".join(f"{i}\n" for i in range(1, 61, 4)))
        method = ("--method", "prs", "--q", 20)
    srs_ooc("run", store, "--out", run, "--iterations", 20, *method, option, file)
    assert f"without the rows that are held out, found one with {option}" in error_of(
        "compact", run
    )
    assert not (run / "compact").exists()
