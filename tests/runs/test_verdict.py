"""Runs with a final verdict: what is read of the table, what is selected, and in which order."""

import itertools
import json
import shutil
from contextlib import closing, suppress

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc
from ledgers import change, changed_fact, work_on_run
from scipy import stats
from stores import make_store, noise_table

import srs_ooc as package
from srs_ooc.base.budget import PROCESS_NBYTES, total_nbytes
from srs_ooc.base.errors import RunError, StoreError
from srs_ooc.evidence import conditional_tests, correlation, pairs
from srs_ooc.evidence.conditional_tests import FEW_BESIDE, beside_others, cost
from srs_ooc.evidence.rank_tests import (
    CERTAIN,
    FIRST_SHARES,
    Contrast,
    RankTarget,
    strongest_contrasts,
)
from srs_ooc.evidence.tally import Tally
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.results.ranking import Ranking
from srs_ooc.runs import feature_tests
from srs_ooc.runs import verdict as run_verdict
from srs_ooc.runs.feature_tests import NOBODY, STRENGTHS, TESTS, MarginalTests, strongest
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run import Run
from srs_ooc.runs.run_memory import (
    RunBudget,
    another_tester_nbytes,
    shape_of,
)
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.verdict import CONCLUSION, TABLE, VERDICT, Verdict
from srs_ooc.store.store import Store

# Runs with a final verdict: stops change nothing.

N_ROWS, N_FEATURES = 80, 150


def options(**given):
    return {"subspace_size": "40", **given}


def read(run, n_features):
    ledger = Run(run, writable=False)
    tally = Tally(n_features, wins=False)
    progress = ledger.load({"tally": tally})
    verdict = Verdict.of(ledger)
    ledger.close()
    if verdict is None:
        return progress.iteration, tally, None, None
    return progress.iteration, tally, verdict.table, verdict.facts


def assert_same(run, other, n_features):
    done, tally, verdict, facts = read(run, n_features)
    again, other_tally, other_verdict, other_facts = read(other, n_features)
    assert done == again
    np.testing.assert_array_equal(tally.importance, other_tally.importance)
    np.testing.assert_array_equal(tally.n_drawn, other_tally.n_drawn)
    for name in TABLE.names:
        np.testing.assert_array_equal(verdict[name], other_verdict[name], err_msg=name)
    for name in set(facts) - {"seconds", "peak_nbytes"}:
        assert facts[name] == other_facts[name]
    np.testing.assert_array_equal(location(run), location(other))
    assert 0 < location(run).sum() <= n_features


def location(run):
    with closing(Run(run, writable=False)) as ledger:
        return Verdict.of(ledger).location


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    return make_store(tmp_path_factory.mktemp("table") / "t.zarr", values, labels), values, labels


CASES = {
    "plain": {"seed": 1},
    "another-level": {"seed": 2, "fdr": "0.3"},
    "rounds-of-7": {"seed": 3, "round_size": 7},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_verdict_does_not_depend_on_stops_or_threads(table, tmp_path, name):
    store, _, _ = table
    asked = options(**CASES[name])
    request = Request(options=asked, iterations=250, threads=1, memory_mb=4000)
    work_on_run(store, tmp_path / "whole.run", request)
    stopped = tmp_path / "stopped.run"
    for stop in itertools.count(1):
        countdown = itertools.count(-37 * stop)
        several = Request(options=asked, iterations=250, threads=1 + stop % 3, memory_mb=4000)
        work_on_run(store, stopped, several, lambda _, countdown=countdown: next(countdown) != 0)
        if read(stopped, N_FEATURES)[2] is not None:
            break
    assert stop > 5
    assert_same(tmp_path / "whole.run", stopped, N_FEATURES)


@pytest.mark.slow
def test_going_on_to_more_iterations_is_as_if_they_had_been_asked_at_once(table, tmp_path):
    store, _, _ = table
    for iterations in (100, 300):
        work_on_run(store, tmp_path / "a.run", Request(options=options(), iterations=iterations))
    work_on_run(store, tmp_path / "b.run", Request(options=options(), iterations=300))
    assert_same(tmp_path / "a.run", tmp_path / "b.run", N_FEATURES)


@pytest.mark.slow
def test_nothing_is_selected_where_nothing_is(tmp_path):
    rng = np.random.default_rng(0)
    n_selected = []
    for seed in range(6):
        labels = rng.permutation(np.arange(60) % 2)
        store = make_store(tmp_path / f"{seed}.zarr", rng.standard_normal((300, 60)), labels)
        run = tmp_path / f"{seed}.run"
        work_on_run(store, run, Request(options=options(seed=seed), iterations=400, memory_mb=4000))
        n_selected.append(np.count_nonzero(read(run, 300)[2]["selected"]))
    assert np.count_nonzero(n_selected) <= 2


@pytest.mark.slow
def test_the_share_of_false_features_is_near_the_level_and_most_true_ones_are_found(tmp_path):
    rng = np.random.default_rng(1)
    n_true, false_shares, powers = 30, [], []
    for seed in range(6):
        labels = np.arange(150) % 2
        values = rng.standard_normal((400, 150))
        values[:n_true] += 1.2 * labels
        store = make_store(tmp_path / f"{seed}.zarr", values, labels)
        run = tmp_path / f"{seed}.run"
        work_on_run(
            store, run, Request(options=options(seed=seed), iterations=1000, memory_mb=4000)
        )
        verdict = read(run, 400)[2]
        source = stored_positions(400)[verdict["stored"][verdict["selected"]]]
        powers.append(np.count_nonzero(source < n_true) / n_true)
        false_shares.append(np.count_nonzero(source >= n_true) / max(len(source), 1))
    assert np.mean(powers) > 0.8
    assert np.mean(false_shares) < 0.2


@pytest.fixture(scope="module")
def concluded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("concluded")
    labels = np.arange(120) % 2
    values = np.random.default_rng(3).standard_normal((N_FEATURES, 120))
    values[:15] += 2 * labels
    store, run = make_store(folder / "t.zarr", values, labels), folder / "t.run"
    asked = ("--fdr", 0.4, "--q", 40, "--iterations", 600)
    said = srs_ooc("run", store, "--out", run, *asked).stdout
    return run, said


@pytest.mark.slow
def test_the_command_line_tells_the_verdict(concluded):
    run, said = concluded
    status = json_of("status", run, "--json")
    assert status["state"] == "finished"
    assert (status["judge"], status["fdr"]) == ("tests", 0.4)
    records = json_of("features", run, "--json")
    assert len(records) == N_FEATURES
    selected = [record for record in records if record["selected"]]
    assert status["n_selected"] == len(selected) >= 3
    assert len({record["name"] for record in selected} & {f"f{i}" for i in range(15)}) >= 12
    assert all(record["q_value"] <= 0.4 for record in selected)
    assert selected == records[: len(selected)]
    assert json_of("features", run, "--json", "--selected") == selected
    assert f"{len(selected)} features selected after" in said
    largest = max(record["q_value"] for record in selected)
    assert f"Level 0.4, q-values of the selected up to {largest:.4g}" in said
    srs_ooc("export", run.with_name("t.zarr"), run, run.with_name("selected.csv"))
    header = run.with_name("selected.csv").read_text().splitlines()[0]
    assert header.split(",")[1:-1] == [record["name"] for record in selected]
    assert srs_ooc("resume", run).stdout == said
    assert f"{len(selected)} features selected" in srs_ooc("features", run).stdout


@pytest.mark.slow
def test_why_says_why(concluded):
    run, _ = concluded
    records = json_of("features", run, "--json")
    assert "is in: rank 1, q-value" in srs_ooc("features", run, "--why", records[0]["name"]).stdout
    out = [r["name"] for r in records if not r["selected"] and r["q_value"] is not None][:20]
    said = (srs_ooc("features", run, "--why", name).stdout for name in out)
    assert any("is out: rank" in line and "q-value" in line for line in said)
    assert "expected the name of a feature" in error_of("features", run, "--why", "nobody")


@pytest.mark.slow
def test_a_run_without_a_verdict_is_provisional(table, tmp_path):
    run = tmp_path / "p.run"
    request = Request(options=options(), iterations=200, memory_mb=4000)
    work_on_run(table[0], run, request, lambda step: step.stage == "screening")
    assert "provisional" in srs_ooc("features", run).stdout
    assert json_of("status", run, "--json")["state"] == "stopped"
    assert "final verdict" in error_of("features", run, "--why", "f0")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--judge", "probe", "--fdr", 0.1), "--judge tests only"),
        (("--fdr", 0), "between 0 and 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(table, tmp_path, given, message):
    assert message in error_of("run", table[0], "--out", tmp_path / "no.run", *given)
    assert not (tmp_path / "no.run").exists()


@pytest.mark.slow
def test_strata_are_kept_and_pinning_ones_refused(tmp_path):
    rng = np.random.default_rng(2)
    values = rng.standard_normal((40, 60))
    labels = np.arange(40) % 2
    store = tmp_path / "s.zarr"
    package.ingest(values, store, target=labels, strata=np.arange(40) // 20)
    work_on_run(store, tmp_path / "s.run", Request(options=options(), iterations=100))
    assert read(tmp_path / "s.run", 60)[2] is not None
    pinned = tmp_path / "p.zarr"
    package.ingest(values, pinned, target=labels, strata=np.arange(40))
    assert "all have the same one" in error_of("run", pinned, "--q", 40)
    told = tmp_path / "t.zarr"
    package.ingest(values, told, target=labels, strata=labels)
    assert "all have the same one" in error_of("run", told, "--q", 40)


# What is read of the table once a closing stage is over.

TESTED_ROWS, TESTED_FEATURES, SEED = 90, 70, 3


def asked(**given):
    return {"subspace_size": "30", "seed": SEED, **given}


def conclude(folder, values, labels, name="t", *, rows=None, **given):
    """The verdict on a table, and the facts about it; ``rows`` are its strata or groups."""
    store, run = folder / f"{name}.zarr", folder / f"{name}.run"
    if rows is None:
        make_store(store, values, labels)
    else:
        package.ingest(values.T, store, target=labels, **rows)
    work_on_run(store, run, Request(options=asked(**given), iterations=300, memory_mb=4000))
    with closing(Run(run, writable=False)) as ledger:
        verdict = Verdict.of(ledger)
        return verdict.table, verdict.facts


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_features_are_tested_as_their_columns(tmp_path, task):
    values, labels = noise_table(TESTED_ROWS, TESTED_FEATURES)
    target = labels if task == "classification" else values[0] + values[1]
    store = tmp_path / "t.zarr"
    package.ingest(values.T, store, target=target, task=task)
    opened, request = Store.open(store), Request(options=asked(), iterations=1, memory_mb=4000)
    draft = Plan.of(opened, request)
    with Resources.of(draft.asked(threads=1)) as resources:
        found = MarginalTests(resources).of_all()
    first = values[stored_positions(TESTED_FEATURES)]
    codes = np.array([np.unique(column, return_inverse=True)[1] for column in first])
    if task == "classification":
        tested = RankTarget.of_classes(labels, labels.max() + 1)
    else:
        tested = RankTarget.of_numbers(target)
    begun = FIRST_SHARES / 3  # until the other features are known
    expected, _ = strongest_contrasts(codes.astype(np.uint8), 255, tested, shares=begun)
    np.testing.assert_array_equal(found, expected.astype(np.float32))


def levels_of(alone, beside):
    """By which level each would be selected, by Benjamini and Hochberg or beside others."""
    shows = np.where(beside > alone, np.minimum(1, 10.0**-beside), 1)
    by_itself = stats.false_discovery_control(np.minimum(1, 10.0**-alone))
    n, few = len(shows), min(len(shows), FEW_BESIDE)
    order, places = np.argsort(shows), np.minimum(np.arange(1, n + 1), few)
    levels = shows[order] * n * (1 / np.arange(1, few + 1)).sum() / places
    beside_others = np.ones(n)
    beside_others[order] = np.minimum.accumulate(levels[::-1])[::-1]
    return np.minimum(by_itself, beside_others)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_verdict_by_default_is_that_of_all_tests_put_together_by_hand(tmp_path, task):
    """Of features alone and beside others, then by the levels of Benjamini and Hochberg."""
    values, _ = noise_table(TESTED_ROWS, TESTED_FEATURES)
    target = values[2] * np.where(values[3] > np.median(values[3]), 1, -1)
    if task == "classification":
        target = (target > 0).astype(int)
    store, run = tmp_path / "t.zarr", tmp_path / "t.run"
    package.ingest(values.T, store, target=target, task=task)
    request = Request(options={"subspace_size": "30", "seed": SEED}, iterations=60, memory_mb=4000)
    work_on_run(store, run, request)
    found = read(run, TESTED_FEATURES)[2]
    if task == "classification":
        tested = RankTarget.of_classes(target, 2)
    else:
        tested = RankTarget.of_numbers(target)
    first = values[stored_positions(TESTED_FEATURES)]
    codes = np.array([np.unique(column, return_inverse=True)[1] for column in first], np.uint8)
    begun = np.tile(FIRST_SHARES / 3, (TESTED_FEATURES, 1))  # none is certain alone
    alone = strongest_contrasts(codes, 255, tested, shares=begun)[0] - cost(0, TESTED_FEATURES)
    order = np.argsort(-alone, kind="stable")
    leaders = order, alone[order]
    beside = beside_others(codes, 255, tested, alone, leaders, TESTED_FEATURES, begun)
    levels = levels_of(alone, beside.neg_log10_p)[found["stored"]]
    np.testing.assert_allclose(found["q_value"], levels, rtol=1e-3)
    np.testing.assert_array_equal(found["selected"], levels <= 0.1)
    assert found["selected"].any()
    others = np.where(beside.others < 0, NOBODY, beside.others)
    others[beside.neg_log10_p <= alone] = NOBODY
    np.testing.assert_array_equal(found["beside"], others[found["stored"]])
    assert (found["beside"][found["selected"], 0] != NOBODY).any()


@pytest.mark.parametrize("level", ["0.1", "0.001"])
def test_contrasts_share_the_level_by_what_the_other_features_show(level, tmp_path):
    """Twelve features differ in spread for certain, and others by the tests are judged by that."""
    values, _ = noise_table(TESTED_ROWS, TESTED_FEATURES)
    labels = np.arange(TESTED_ROWS) % 2
    values = np.where(labels == 1, 1.0, 0.25) * (values - np.median(values, axis=1)[:, None])
    values[12:] = noise_table(TESTED_ROWS, TESTED_FEATURES)[0][12:]
    store = tmp_path / "t.zarr"
    package.ingest(values.T, store, target=labels)
    opened = Store.open(store)
    request = Request(options={"seed": SEED, "fdr": level}, iterations=60, threads=1)
    with Resources.of(Plan.of(opened, request)) as resources:
        tests = MarginalTests(resources)
        found = tests.of_all()
        before = found.copy()
        tests.split_level(found)
        shown = tests.strongest_of(np.arange(TESTED_FEATURES, dtype=np.uint32))[1]
    first = values[stored_positions(TESTED_FEATURES)]
    codes = np.array([np.unique(column, return_inverse=True)[1] for column in first], np.uint8)
    tested = RankTarget.of_classes(labels, 2)
    begun = FIRST_SHARES / 3
    alone, contrasts = strongest_contrasts(codes, 255, tested, shares=begun)
    np.testing.assert_array_equal(before, alone.astype(np.float32))
    certain = alone >= np.log10(TESTED_FEATURES / CERTAIN)
    assert np.count_nonzero(certain & (contrasts == Contrast.SPREAD)) >= 8
    for i in range(TESTED_FEATURES):
        others = [np.count_nonzero(certain & (contrasts == c)) for c in Contrast]
        shares = np.array(others) + FIRST_SHARES
        if certain[i]:
            shares[contrasts[i]] -= 1
        expected, contrast = strongest_contrasts(
            codes[i : i + 1], 255, tested, shares=shares / shares.sum()
        )
        if alone[i] >= 1:
            assert found[i] == np.float32(expected[0])
            assert shown[i] == contrast[0]
        else:
            assert found[i] == before[i]
    assert (found[certain] > before[certain]).any()


def test_who_leads_is_found_by_strengths_in_which_no_other_feature_has_a_part(
    tmp_path, monkeypatch
):
    """Where features that differ in spread have changed the shares of the others' contrasts."""
    values, _ = noise_table(TESTED_ROWS, TESTED_FEATURES)
    labels = np.arange(TESTED_ROWS) % 2
    values[:12] = np.where(labels == 1, 1.0, 0.2) * values[:12]
    given = []

    def seen(*some):
        given.append(some)
        return beside_others(*some)

    monkeypatch.setattr("srs_ooc.runs.feature_tests.beside_others", seen)
    by_default(tmp_path, values, labels)
    codes, missing_code, target, alone, (order, leading) = given[0][:5]
    begun = FIRST_SHARES / 3
    columns = np.ascontiguousarray(codes)
    expected, _ = strongest_contrasts(columns, missing_code, target, shares=begun)
    expected = expected.astype(np.float32) - cost(0, TESTED_FEATURES)
    np.testing.assert_allclose(leading, expected[order], atol=1e-6)
    assert (np.diff(leading) <= 0).all()
    assert (alone[order] > leading + 0.1).any()


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_verdicts_and_kept_p_values_do_not_depend_on_threads(task, tmp_path, monkeypatch):
    """Some promising features are kept, and those there is no room for are tested again."""
    values, labels = noise_table(TESTED_ROWS, 700)
    values = values + np.where(np.arange(700) % 3 == 0, 0.8, 0.0)[:, None] * labels
    values[::5, ::7] = np.nan
    target = labels if task == "classification" else values[1] + labels
    store = tmp_path / "t.zarr"
    package.ingest(values.T, store, target=target, task=task)
    opened, request = (
        Store.open(store),
        Request(options={"seed": SEED}, iterations=1, memory_mb=4000),
    )
    draft = Plan.of(opened, request)
    found = []
    for threads, room in ((1, 0), (3, 0), (3, 1 << 14)):
        monkeypatch.setattr(feature_tests, "_LEAST_KEPT", room)
        with Resources.of(draft.asked(threads=threads), grows=False) as resources:
            assert resources.n_testers == threads
            tests = MarginalTests(resources)
            neg_log10_p = tests.of_all()
            before = neg_log10_p.copy()
            tests.split_level(neg_log10_p)
            contrasts = tests.strongest_of(np.arange(700, dtype=np.uint32))[1]
        found.append(np.stack([before, neg_log10_p, contrasts.astype(np.float32)]))
    assert np.count_nonzero(found[0][0] >= 1) > 100
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_threads_that_test_features_stay_within_the_cap(tmp_path):
    values, labels = noise_table(TESTED_ROWS, TESTED_FEATURES)
    store = tmp_path / "t.zarr"
    package.ingest(values.T, store, target=labels)
    opened, request = (
        Store.open(store),
        Request(options={"seed": SEED}, iterations=1, memory_mb=4000),
    )
    draft = Plan.of(opened, request)
    shape = shape_of(opened.manifest, draft.inputs)
    least = PROCESS_NBYTES + total_nbytes(draft.leases())
    for cap, expected in (
        (least, 1),
        (least + another_tester_nbytes(shape) - 1, 1),
        (least + 2 * another_tester_nbytes(shape), 3),
        (least + 9 * another_tester_nbytes(shape), 4),
    ):
        budget = RunBudget(cap, draft.leases(), PROCESS_NBYTES)
        budget.spend(draft.spec, shape, 4, grows=False)
        assert (budget.n_testers, budget.n_workers) == (expected, 1)
        assert budget.free_nbytes >= 0


def shifted(n_shifted):
    values, _ = noise_table(TESTED_ROWS, 400)
    labels = np.arange(TESTED_ROWS) % 2
    values = values + 0.0
    values[:n_shifted] += 2.5 * labels
    return values, labels


@pytest.mark.slow
def test_one_relevant_feature_is_selected_alone(tmp_path):
    verdict, facts = conclude(tmp_path, *shifted(1))
    assert facts["n_marginal"] >= 1
    selected = stored_positions(400)[verdict["stored"][verdict["selected"]]]
    assert 0 in selected
    assert len(selected) <= 2


@pytest.mark.slow
def test_a_feature_whose_p_value_no_single_precision_holds_is_selected(tmp_path):
    """It is 0 there, which is also what is said where none passes."""
    rng = np.random.default_rng(0)
    labels = np.arange(600) % 2
    values = rng.standard_normal((200, 600))
    values[7] = labels * 10 + rng.random(600)
    verdict, facts = conclude(tmp_path, values, labels)
    assert facts["n_marginal"] >= 1
    assert stored_positions(200)[verdict["stored"][0]] == 7
    assert verdict["selected"][0]
    assert 0 < verdict["p_value"][0] < 1e-30


@pytest.mark.slow
def test_no_more_are_selected_than_there_is_memory_for(tmp_path, monkeypatch):
    every, _ = conclude(tmp_path, *shifted(25), "every")
    monkeypatch.setattr("srs_ooc.runs.verdict.MOST_SELECTED", 7)
    some, _ = conclude(tmp_path, *shifted(25), "some")
    assert np.count_nonzero(every["selected"]) >= 20
    assert some["selected"].tolist() == [i < 7 for i in range(len(some["stored"]))]
    np.testing.assert_array_equal(some["stored"][:7], every["stored"][:7])


def test_the_strongest_of_many_equal_ones_are_any():
    found_alone = np.full(200_000, 0.3, np.float32)
    found_alone[:150_000:2] = np.nan
    found_alone[[70_001, 180_000]] = 9
    found = strongest(found_alone, 3, 40)
    assert set(found[:2].tolist()) == {70_001, 180_000}
    assert len(set(found.tolist())) == 40
    assert not np.isnan(found_alone[found]).any()
    assert 60_000 < found.mean() < 180_000
    assert strongest(found_alone, 3, 2).tolist() == found[:2].tolist()
    assert len(strongest(found_alone, 3, 200_000)) == 125_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_rare_features_of_no_relevance_are_not_selected(tmp_path, seed):
    """Single ones in the rare class are no news, whatever normal tails say of them."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(800) < 80).astype(int)
    values = (rng.random((600, 800)) < rng.uniform(0.003, 0.03, (600, 1))) + 0.0
    verdict, facts = conclude(tmp_path, values, labels)
    assert not verdict["selected"].any()
    assert facts["n_marginal"] == 0


def test_features_alone_are_tested_within_strata(tmp_path):
    """What only strata shift, and the target with them, is not marginally significant."""
    values, labels = shifted(25)
    strata = np.arange(TESTED_ROWS) // 30
    labels = np.where(np.random.default_rng(0).random(TESTED_ROWS) < 0.5, labels, strata > 0)
    values[:25] += 1.5 * labels
    values[25:60] += 2.5 * strata
    verdict, facts = conclude(tmp_path, values, labels, rows={"strata": strata})
    there = stored_positions(400)[verdict["stored"][verdict["p_value"] <= facts["marginal_cutoff"]]]
    assert np.count_nonzero(there < 25) >= 20
    assert np.count_nonzero((there >= 25) & (there < 60)) <= 3
    assert facts["n_marginal"] == len(there)


# Where rows come in groups, the default judge tests whole groups.


def repeated(n_groups, n_features, *, shifted=0, shift=1.5, strata=1, seed=0):
    """Repeated samples of persons, each with values and a class of its own; some are shifted."""
    rng = np.random.default_rng(seed)
    person = rng.permutation(np.repeat(np.arange(n_groups), rng.integers(2, 5, n_groups)))
    plate, labels = rng.integers(0, strata, n_groups), rng.integers(0, 2, n_groups)
    if strata > 1:  # the plate shifts all, and goes with the class
        labels = (rng.random(n_groups) < np.where(plate == 1, 0.8, 0.2)).astype(int)
    values = rng.standard_normal((n_features, n_groups)) + 2.0 * plate
    values[:shifted] += shift * labels
    noise = 0.3 * rng.standard_normal((n_features, len(person)))
    return values[:, person] + noise, labels[person], {"groups": person}, plate[person]


def by_default(folder, values, target, *, name="t", iterations=60, **rows):
    """The verdict of the default judge on a table, and the facts about it."""
    store, run = folder / f"{name}.zarr", folder / f"{name}.run"
    package.ingest(values.T, store, target=target, **rows)
    request = Request(
        options={"subspace_size": "30", "seed": SEED}, iterations=iterations, memory_mb=4000
    )
    work_on_run(store, run, request)
    with closing(Run(run, writable=False)) as ledger:
        assert ledger.spec.run.judge == "tests"
        verdict = Verdict.of(ledger)
        return verdict.table, verdict.facts


@pytest.mark.few(1)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_groups_of_one_row_are_tested_as_rows(tmp_path, task):
    values, labels = noise_table(TESTED_ROWS, TESTED_FEATURES)
    target = labels if task == "classification" else values[0] + values[1]
    singles = np.random.default_rng(0).permutation(TESTED_ROWS)
    verdict, facts = by_default(tmp_path, values, target, task=task)
    again, other_facts = by_default(tmp_path, values, target, name="u", task=task, groups=singles)
    for name in TABLE.names:
        np.testing.assert_array_equal(verdict[name], again[name], err_msg=name)
    for name in set(facts) - {"seconds", "peak_nbytes"}:
        assert facts[name] == other_facts[name]


@pytest.mark.slow
def test_repeated_samples_are_no_more_often_significant_than_they_may(tmp_path):
    values, labels, groups, _ = repeated(70, 2000)
    verdict, facts = by_default(tmp_path, values, labels, **groups)
    assert not verdict["selected"].any()
    assert facts["n_marginal"] == 0
    p_values = marginal_p_values(tmp_path)
    assert 0.03 < np.mean(p_values <= 0.05) < 0.065
    by_rows, _ = strongest_contrasts(
        stats.rankdata(values, axis=1, method="dense").astype(np.uint16) - 1,
        len(labels),
        RankTarget.of_classes(labels, 2),
    )
    assert np.mean(10.0**-by_rows <= 0.05) > 0.15  # repeated samples taken for new ones


def marginal_p_values(folder):
    store = Store.open(folder / "t.zarr")
    with Resources.of(Plan.of(store, Request(memory_mb=4000, threads=1))) as resources:
        return 10.0 ** -MarginalTests(resources).of_all()


def sized_groups(sizes, n_features, within):
    """A table of groups of these sizes; of the variance a share ``within`` is within groups."""
    rng, group = np.random.default_rng(0), np.repeat(np.arange(len(sizes)), sizes)
    whole = np.sqrt(1 - within) * rng.standard_normal((n_features, len(sizes)))[:, group]
    return whole + np.sqrt(within) * rng.standard_normal((n_features, len(group))), group


def p_values_of_groups(folder, values, target, groups):
    package.ingest(values.T, folder / "t.zarr", target=target, groups=groups)
    return marginal_p_values(folder)


@pytest.mark.few(1)
@pytest.mark.parametrize("within", [0.5, 0.05, 1.0])
def test_groups_of_all_different_sizes_are_tested_at_their_level(tmp_path, within):
    sizes, labels = np.random.default_rng(1).permutation(np.arange(1, 41)), np.arange(40) % 2
    values, group = sized_groups(sizes, 3000, within)
    p_values = p_values_of_groups(tmp_path, values, labels[group], group)
    assert np.mean(p_values <= 0.01) < 0.016
    assert 0.03 < np.mean(p_values <= 0.05) < 0.065


@pytest.mark.slow
def test_sizes_that_go_with_the_target_do_not_pass_for_a_difference(tmp_path):
    """Small groups of cases, of rows that are as if independent: their means vary more."""
    rng, labels = np.random.default_rng(2), np.arange(80) % 2
    sizes = np.where(labels == 1, rng.integers(1, 9, 80), rng.integers(3, 20, 80))
    values, group = sized_groups(sizes, 3000, 1.0)
    p_values = p_values_of_groups(tmp_path, values, labels[group], group)
    assert np.mean(p_values <= 0.01) < 0.016
    ranks = np.apply_along_axis(stats.rankdata, 1, values)
    means = np.add.reduceat(ranks, np.flatnonzero(np.diff(group, prepend=-1)), axis=1) / sizes
    codes = stats.rankdata(means, axis=1, method="dense").astype(np.uint8) - 1
    plain, _ = strongest_contrasts(codes, 255, RankTarget.of_classes(labels, 2))
    assert np.mean(10.0**-plain <= 0.01) > 0.03


def test_groups_that_count_by_their_size_show_more_than_plain_means(tmp_path):
    """Groups of 1 to 19 rows that are as if independent: a mean of many is worth more."""
    labels = np.arange(60) % 2
    sizes = np.random.default_rng(3).integers(1, 20, 60)
    values, group = sized_groups(sizes, 1000, 1.0)
    values += 0.25 * labels[group]
    p_values = p_values_of_groups(tmp_path, values, labels[group], group)
    ranks = np.apply_along_axis(stats.rankdata, 1, values)
    means = np.add.reduceat(ranks, np.flatnonzero(np.diff(group, prepend=-1)), axis=1) / sizes
    codes = stats.rankdata(means, axis=1, method="dense").astype(np.uint8) - 1
    target, only = RankTarget.of_classes(labels, 2), Contrast.LOCATION
    plain, _ = strongest_contrasts(codes, 255, target, only=only)
    assert np.mean(p_values <= 0.001) > 1.25 * np.mean(10.0**-plain <= 0.001)


def test_what_whole_groups_shift_is_selected(tmp_path):
    values, labels, groups, _ = repeated(70, 400, shifted=10)
    verdict, facts = by_default(tmp_path, values, labels, **groups)
    there = stored_positions(400)[verdict["stored"][verdict["selected"]]]
    assert np.count_nonzero(there < 10) >= 8
    assert len(there) <= 12
    assert facts["n_marginal"] >= 8


@pytest.mark.slow
def test_groups_are_compared_within_strata(tmp_path):
    values, labels, groups, plate = repeated(120, 300, shifted=10, shift=2.0, strata=2)
    verdict, _ = by_default(tmp_path, values, labels, **groups, strata=plate)
    there = stored_positions(300)[verdict["stored"][verdict["selected"]]]
    assert np.count_nonzero(there < 10) >= 8
    assert len(there) <= 12
    verdict, _ = by_default(tmp_path, values, labels, name="plain", **groups)
    assert np.count_nonzero(verdict["selected"]) > 60


def test_a_verdict_on_groups_is_that_of_one_row_a_group_put_together_by_hand(tmp_path):
    """Alone and beside others: two features show only together, in means of groups alike."""
    rng = np.random.default_rng(0)
    n_groups = 120
    whole = rng.standard_normal((TESTED_FEATURES, n_groups))
    labels = (whole[2] * np.where(whole[3] > np.median(whole[3]), 1, -1) > 0).astype(int)
    person = np.tile(np.arange(n_groups), 3)
    values = np.round(whole[:, person] + 0.1 * rng.standard_normal((TESTED_FEATURES, 360)), 1)
    found, _ = by_default(tmp_path, values, labels[person], groups=person)
    ranks = stats.rankdata(values, axis=1).reshape(TESTED_FEATURES, 3, n_groups).sum(axis=1)
    codes = stats.rankdata(ranks, axis=1, method="dense").astype(np.uint8) - 1
    codes, tested = codes[stored_positions(TESTED_FEATURES)], RankTarget.of_classes(labels, 2)
    begun = np.tile(FIRST_SHARES / 3, (TESTED_FEATURES, 1))  # none is certain alone
    alone = strongest_contrasts(codes, 255, tested, shares=begun)[0] - cost(0, TESTED_FEATURES)
    order = np.argsort(-alone, kind="stable")
    leaders = order, alone[order]
    beside = beside_others(codes, 255, tested, alone, leaders, TESTED_FEATURES, begun)
    levels = levels_of(alone, beside.neg_log10_p)[found["stored"]]
    np.testing.assert_allclose(found["q_value"], levels, rtol=1e-5)
    assert found["selected"].any()
    assert (found["beside"][found["selected"], 0] != NOBODY).any()


@pytest.mark.slow
def test_a_verdict_on_groups_does_not_depend_on_stops(tmp_path):
    values, labels, groups, _ = repeated(40, 100, shifted=5)
    whole, _ = by_default(tmp_path, values, labels, **groups)
    request = Request(options={"subspace_size": "30", "seed": SEED}, iterations=60, memory_mb=4000)
    for stop in itertools.count(1):
        countdown = itertools.count(-17 * stop)
        watch = lambda _, countdown=countdown: next(countdown) != 0  # noqa: E731
        work_on_run(tmp_path / "t.zarr", tmp_path / "stopped.run", request, watch)
        with closing(Run(tmp_path / "stopped.run", writable=False)) as ledger:
            if (verdict := Verdict.of(ledger)) is not None:
                break
    assert stop > 2
    for name in TABLE.names:
        np.testing.assert_array_equal(whole[name], verdict.table[name], err_msg=name)


class KilledError(BaseException):
    """In place of SIGKILL: nothing is committed on the way out."""


TESTED_BY_PIECES = 260


@pytest.fixture
def by_pieces(tmp_path, monkeypatch):
    """A store; tests are then of 64 features at a time, and committed after each."""
    monkeypatch.setattr(feature_tests, "commit_due", lambda took=0.0: 0.0)
    monkeypatch.setattr(feature_tests, "_SECONDS", 0)
    monkeypatch.setattr(feature_tests, "PAGE_ITEMS", 100)
    values, labels = noise_table(40, TESTED_BY_PIECES, n_relevant=150)
    package.ingest(values.T, tmp_path / "t.zarr", target=labels)
    return tmp_path / "t.zarr"


def n_kept(run):
    """Of how many features -log10 p are kept in a run that is not done, by consecutive pages."""
    with closing(Run(run, writable=False)) as ledger:
        assert ledger.read_arrays(VERDICT) is None
        pages = [ledger.read_arrays(f"{STRENGTHS}{page}") for page in range(6)]
    return sum(len(page["strengths"]) for page in pages if page is not None)


@pytest.mark.slow
@pytest.mark.parametrize("ends_by", ["kill", "stop"])
def test_tests_go_on_where_they_were_and_change_nothing(by_pieces, tmp_path, ends_by):
    """Stopped or killed after each piece of those alone: no piece is tested twice."""
    request = Request(options=asked(), iterations=40, memory_mb=4000, threads=2)
    work_on_run(by_pieces, tmp_path / "whole.run", request)
    left, done = tmp_path / "left.run", []

    def watch(step):
        if step.stage != TESTS or step.done in done:
            return True
        done.append(step.done)
        if ends_by == "kill":
            raise KilledError
        return False

    for n_ends in itertools.count(1):
        with suppress(KilledError):
            work_on_run(by_pieces, left, request, watch)
            if read(left, TESTED_BY_PIECES)[2] is not None:
                break
        assert n_kept(left) == done[-1]
        assert len(done) == n_ends
    assert done == [*range(64, TESTED_BY_PIECES, 64), TESTED_BY_PIECES]
    assert_same(tmp_path / "whole.run", left, TESTED_BY_PIECES)
    with closing(Run(left, writable=False)) as ledger:
        assert ledger.read_arrays(f"{STRENGTHS}0") is None


@pytest.mark.slow
def test_tests_beside_others_end_when_told_to(by_pieces, tmp_path):
    stage = f"{TESTS} beside others"
    request = Request(options=asked(), iterations=40, memory_mb=4000)
    work_on_run(by_pieces, tmp_path / "whole.run", request)
    told = []

    def watch(step):
        assert not told
        told.extend([step] if step.stage == stage and step.done else [])
        return not told

    work_on_run(by_pieces, tmp_path / "left.run", request, watch)
    assert told
    assert read(tmp_path / "left.run", TESTED_BY_PIECES)[2] is None
    work_on_run(by_pieces, tmp_path / "left.run", request)
    assert_same(tmp_path / "whole.run", tmp_path / "left.run", TESTED_BY_PIECES)


@pytest.mark.slow
@pytest.mark.parametrize("ends_by", ["kill", "stop"])
def test_pairs_go_on_where_they_were_and_change_nothing(by_pieces, tmp_path, monkeypatch, ends_by):
    """Stopped or killed after each piece: no piece is looked at twice."""
    monkeypatch.setattr(conditional_tests, "MOST_FEATURES", 30)
    monkeypatch.setattr(pairs, "_AT_ONCE", 1)
    request = Request(options=asked(), iterations=40, memory_mb=4000, threads=1)
    work_on_run(by_pieces, tmp_path / "whole.run", request)
    left, done = tmp_path / "left.run", []

    def watch(step):
        if step.stage != "pairs" or step.done in done:
            return True
        done.append(step.done)
        if ends_by == "kill":
            raise KilledError
        return False

    while not done or read(left, TESTED_BY_PIECES)[2] is None:
        with suppress(KilledError):
            work_on_run(by_pieces, left, request, watch)
    assert done == [0, 5, 9, 12, 14, 15]
    assert_same(tmp_path / "whole.run", left, TESTED_BY_PIECES)
    with closing(Run(left, writable=False)) as ledger:
        assert ledger.read_arrays(f"{STRENGTHS}pairs") is None


def test_strengths_are_not_kept_once_the_store_is_another(by_pieces, tmp_path):
    """Nor is a commit made of what was read of it."""
    request = Request(options=asked(), iterations=40, memory_mb=4000)

    def watch(step):
        if step.stage == TESTS and step.done == 128:
            shutil.rmtree(by_pieces)
            values, labels = noise_table(40, TESTED_BY_PIECES, n_relevant=2)
            package.ingest(values.T, by_pieces, target=labels)
        return True

    with pytest.raises(StoreError):
        work_on_run(by_pieces, tmp_path / "t.run", request, watch)
    assert n_kept(tmp_path / "t.run") == 128


def test_classes_that_differ_within_some_groups_are_counted(tmp_path):
    values, labels, groups, _ = repeated(70, 200, shifted=5, shift=2.0)
    labels[:3] = 1 - labels[:3]
    verdict, facts = by_default(tmp_path, values, labels, **groups)
    there = stored_positions(200)[verdict["stored"][verdict["selected"]]]
    assert np.count_nonzero(there < 5) >= 4
    assert "of 70 groups: tested is its sum" in facts["groups"]


def test_where_a_target_differs_within_groups_the_line_to_use_is_said_at_ingest_and_run(tmp_path):
    rows = [f"p{i // 2},{i % 2},{i * 7 % 11},{i * 5 % 13}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["one person,y,a,b", *rows]))
    given = "t.csv", "t.zarr", "--target", "y", "--groups", "one person"
    line = "with `--strata 'one person'` in place of `--groups 'one person'`"
    said = srs_ooc("ingest", *given, cwd=tmp_path).stdout
    assert "note: the target differs within 20 of 20 groups. To compare rows" in said
    assert line in said
    assert line in error_of("run", "t.zarr", cwd=tmp_path)


@pytest.mark.slow
def test_which_groups_trade_places_is_said_before_and_after_a_run(tmp_path):
    sizes = np.where(np.arange(40) % 2, np.arange(40) // 5 + 1, np.arange(40) // 3 + 3)
    values, group = sized_groups(sizes, 30, 0.5)
    package.ingest(values.T, tmp_path / "t.zarr", target=group % 2, groups=group)
    ran = srs_ooc("run", "t.zarr", "--iterations", 20, cwd=tmp_path)
    for said in (ran.stdout, ran.stderr, srs_ooc("plan", "t.zarr", cwd=tmp_path).stdout):
        assert "of about their size" in said


@pytest.mark.slow
def test_a_feature_left_out_does_not_stand_first(tmp_path):
    values, labels = shifted(25)
    store = make_store(tmp_path / "t.zarr", values, labels)
    out = tmp_path / "excluded.csv"
    out.write_text("f0\nf1\n")
    run = tmp_path / "t.run"
    srs_ooc("run", store, "--out", run, "--q", 30, "--iterations", 300,
            "--exclude", out)  # fmt: skip
    records = {record["name"]: record for record in json_of("features", run, "--json")}
    assert not records["f0"]["selected"]
    assert records["f0"]["q_value"] is None
    assert records["f2"]["selected"]
    ledger = Run(run, writable=False)
    assert ledger.meta(CONCLUSION)["n_marginal"] >= 18
    ledger.close()


# Features of a run with a verdict are shown by what they are worth together.

COPIED_ROWS, COPIED_FEATURES, N_RELEVANT, N_COPIES = 120, 200, 6, 12


def write_store(path):
    """Six relevant features, two near copies of each behind them, and noise."""
    rng = np.random.default_rng(7)
    labels = np.arange(COPIED_ROWS) % 2
    values = rng.standard_normal((COPIED_FEATURES, COPIED_ROWS))
    values[:N_RELEVANT] += np.linspace(2.2, 1.6, N_RELEVANT)[:, None] * labels
    for copy in range(N_COPIES):
        near = values[copy % N_RELEVANT] + 0.05 * rng.standard_normal(COPIED_ROWS)
        values[N_RELEVANT + copy] = near
    return make_store(path, values, labels)


def family(source):
    """Which relevant feature a feature is, or is a near copy of; None if noise."""
    return source % N_RELEVANT if source < N_RELEVANT + N_COPIES else None


def work(store, run, watch=lambda _: True, *, threads=1):
    options = {"subspace_size": "50", "seed": 3, "fdr": "0.3"}
    request = Request(options=options, iterations=400, memory_mb=4000, threads=threads)
    with closing(open_or_create(Store.open(store), run, request)) as ledger:
        work_on(ledger, Store.open(store), request, watch)
        found = Verdict.of(ledger)
        return None if found is None else (found.table, found.order)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    store = write_store(folder / "t.zarr")
    return store, folder / "t.run", work(store, folder / "t.run")


@pytest.mark.slow
def test_selected_features_are_listed_before_any_other(made):
    _, run, (record, order) = made
    listed = json_of("features", run, "--json")
    is_selected = [line["selected"] for line in listed]
    n = int(np.count_nonzero(record["selected"]))
    assert n >= N_RELEVANT + N_COPIES
    assert is_selected == [True] * n + [False] * (COPIED_FEATURES - n)
    assert [line["rank"] for line in listed] == list(range(1, COPIED_FEATURES + 1))
    assert len({line["name"] for line in listed}) == COPIED_FEATURES
    sources = stored_positions(COPIED_FEATURES)[order]
    assert [line["name"] for line in listed[: len(sources)]] == [f"f{i}" for i in sources]


@pytest.mark.slow
def test_a_near_copy_comes_after_all_that_is_relevant(made):
    _, run, _ = made
    listed = json_of("features", run, "--json", "--top", N_RELEVANT)
    families = [family(int(line["name"][1:])) for line in listed]
    assert sorted(families, key=str) == list(range(N_RELEVANT))
    # By importance alone they would not.
    everything = json_of("features", run, "--json")
    by_importance = sorted(everything, key=lambda line: -line["importance"])[:N_RELEVANT]
    assert len({family(int(line["name"][1:])) for line in by_importance}) < N_RELEVANT


@pytest.mark.slow
def test_the_order_does_not_depend_on_threads_or_stops(made, tmp_path):
    store, _, (_, whole) = made
    assert len(whole) == COPIED_FEATURES
    for stop in itertools.count(1):
        countdown = itertools.count(-151 * stop)
        verdict = work(
            store,
            tmp_path / "stopped.run",
            lambda _, countdown=countdown: next(countdown) != 0,
            threads=1 + stop % 3,
        )
        if verdict is not None:
            break
    assert stop > 2
    assert verdict[1].tolist() == whole.tolist()


@pytest.mark.slow
def test_every_selected_feature_is_in_the_order(made, tmp_path, monkeypatch):
    """However few are ordered by worth, and however few a small set is chosen from."""
    store, _, (whole, _) = made
    monkeypatch.setattr(run_verdict, "HEAD", 5)
    monkeypatch.setattr(run_verdict, "MOST", 7)
    record, order = work(store, tmp_path / "t.run")
    selected = record["stored"][record["selected"]]
    assert sorted(order.tolist()) == sorted(selected.tolist())
    assert sorted(selected.tolist()) == sorted(whole["stored"][whole["selected"]].tolist())
    ledger = Run(tmp_path / "t.run", writable=False)
    reading = Ranking(ledger, Store.open(store))
    ledger.close()
    assert len(reading.selected()) == reading.n_selected == len(selected)


@pytest.mark.slow
def test_what_is_left_out_is_not_in_the_order(made, tmp_path):
    store = made[0]
    (tmp_path / "out").write_text("f0\nf7\n")
    options = {"subspace_size": "50"}
    request = Request(options=options, exclude_file=tmp_path / "out", iterations=60, memory_mb=4000)
    ledger = open_or_create(Store.open(store), tmp_path / "t.run", request)
    work_on(ledger, Store.open(store), request)
    shown = stored_positions(COPIED_FEATURES)[Verdict.of(ledger).order]
    ledger.close()
    assert sorted(shown.tolist()) == sorted(set(range(COPIED_FEATURES)) - {0, 7})


@pytest.mark.slow
def test_features_beyond_the_head_follow_by_importance(made, tmp_path, monkeypatch):
    monkeypatch.setattr(run_verdict, "HEAD", 40)
    run = tmp_path / "t.run"
    assert len(work(made[0], run)[1]) == 40 < correlation.HEAD
    importances = [line["importance"] for line in json_of("features", run, "--json")]
    assert importances[40:] == sorted(importances[40:], reverse=True)


# The versions that a verdict is of: part of a run's identity, and others are refused by name.


def noted(run, meta=None):
    with closing(Run(run, writable=False)) as ledger:
        return ledger.spec if meta is None else ledger.meta(meta)


VERSIONS = {"evidence": 11, "stages": 3}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("versions")
    store = make_store(folder / "t.zarr", *noise_table(60, 80, n_relevant=2))
    srs_ooc("run", store, "--out", folder / "t.run", "--q", 30, "--iterations", 20)
    return folder / "t.run"


def test_a_run_with_a_verdict_says_of_which_versions_it_is(done):
    record = noted(done).to_json()
    assert {name: record[name] for name in VERSIONS} == VERSIONS
    assert noted(done, CONCLUSION)["evidence"] == VERSIONS["evidence"]


def test_a_run_without_a_final_verdict_has_no_version(done):
    record = noted(done, "spec") | {
        "judge": "probe",
        "probe_min_draws": 10,
        "probe_min_wins": "0.9",
    }
    record |= {"evidence": 1, "stages": 1}
    assert not RunSpec.from_json(record).to_json().keys() & {"evidence", "stages"}


OTHERS = [
    *(("evidence", version) for version in (None, 4, 7, 8, 9, "two")),
    *(("stages", version) for version in (2, 4)),
]


def is_refused(run, found, commands=(("status",), ("features",), ("resume",))):
    """By name, with the remedy, whatever is asked of it."""
    with pytest.raises(RunError, match=f"a.run: expected a run of {found}"):
        noted(run)
    for command, *more in commands:
        message = error_of(command, run, *more)
        assert found in message
        assert "Use the srs-ooc version that began it, or start the run again in an" in message


@pytest.mark.few(0, 2)
@pytest.mark.parametrize(("name", "version"), OTHERS)
def test_a_run_of_another_version_is_refused_by_name_with_the_remedy(done, tmp_path, name, version):
    run, record = shutil.copytree(done, tmp_path / "a.run"), noted(done, "spec")
    del record[name]
    change(run, changed_fact("spec", record if version is None else record | {name: version}))
    is_refused(run, f"version {VERSIONS[name]} of its {name}, found version {version or 1!r}")


def test_no_command_reads_a_run_of_another_version_or_makes_a_file_of_it(done, tmp_path):
    run = shutil.copytree(done, tmp_path / "a.run")
    change(run, changed_fact("spec", noted(done, "spec") | {"evidence": 9}))
    further = (("report",), ("pairs",), ("features", "--why", "f0"), ("export", tmp_path / "a.csv"))
    is_refused(run, f"version {VERSIONS['evidence']} of its evidence, found version 9", further)
    assert [*tmp_path.iterdir()] == [run]


def test_the_copy_as_it_was_is_read(done, tmp_path):
    run = shutil.copytree(done, tmp_path / "a.run")
    change(run, changed_fact("spec", noted(done, "spec")))
    assert json_of("status", run, "--json")["state"] == "finished"


# Lambda, of all tests.


@pytest.fixture(scope="module")
def batched(tmp_path_factory):
    """A batch that most features follow goes with the target; in one store it is given."""
    folder, rng = tmp_path_factory.mktemp("batched"), np.random.default_rng(4)
    batch = np.arange(100) % 2
    labels = np.where(rng.random(100) < 0.85, batch, 1 - batch)
    values = rng.normal(size=(100, 200)) + rng.normal(size=200) * batch[:, None]
    package.ingest(values, folder / "plain.zarr", target=labels)
    package.ingest(values, folder / "strata.zarr", target=labels, strata=batch)
    for name in ("plain", "strata"):
        given = ("--iterations", 30, "--judge", "tests", "--seed", 1)
        done = srs_ooc("run", f"{name}.zarr", *given, cwd=folder)
        (folder / f"{name}.txt").write_text(done.stdout)
    return folder


@pytest.mark.slow
def test_lambda_is_said_wherever_a_run_is_read(batched):
    status = json_of("status", "plain.run", "--json", cwd=batched)
    assert status["lambda"] > 3
    assert 0 < status["lambda_error"] < 1
    assert 1 < status["n_effective"] <= 200
    said = f"Lambda {status['lambda']:.3g}"
    assert said in (batched / "plain.txt").read_text()
    assert f"lambda      {said[7:]}" in srs_ooc("status", "plain.run", cwd=batched).stdout
    features = json_of("features", "plain.run", "--json", cwd=batched)
    assert {record["inflation"] for record in features} <= {status["lambda"], None}
    assert features[0]["inflation"] == status["lambda"]
    found = json.loads(
        srs_ooc("report", "plain.run", "--format", "json", "-o", "-", cwd=batched).stdout
    )
    assert any(text.startswith(said) for text in found["answers"]["How sure"])


def test_p_values_too_small_over_all_features_are_cautioned_of(batched):
    title = "The p-values are too small over all features"
    assert title in (batched / "plain.txt").read_text()
    assert title in srs_ooc("features", "plain.run", cwd=batched).stderr
    found = srs_ooc("report", "plain.run", "--format", "md", "-o", "-", cwd=batched).stdout
    assert title in found
    assert "most features truly matter" in found
    text = (batched / "strata.txt").read_text()
    assert "The p-values are too" not in text
    assert "Lambda" in text


@pytest.mark.slow
@pytest.mark.parametrize(("pairs_asked", "n_found"), [("auto", 4), ("none", 0)])
def test_pairs_that_show_only_together_are_found_among_many_features(
    tmp_path, pairs_asked, n_found
):
    """Half of the rows follow one pair, half the other; nothing leads."""
    rng = np.random.default_rng(11)
    values = rng.integers(0, 200, (700, 20_000)).astype(np.float32)
    high = values[:, [5, 11_000, 13_000, 19_999]] > 99
    labels = np.where(rng.random(700) < 0.5, high[:, 0] ^ high[:, 1], high[:, 2] ^ high[:, 3])
    package.ingest(values, tmp_path / "t.zarr", target=labels.astype(int))
    run = package.run(tmp_path / "t.zarr", out=tmp_path / "t.run", pairs=pairs_asked)
    found = {int(name.lstrip("f")) for name in run.selected}
    expected = {5, 11_000, 13_000, 19_999}
    assert len(found & expected) == n_found


def test_a_table_of_more_rows_than_are_read_at_once_has_the_same_verdict(tmp_path, monkeypatch):
    """A column at a time, as of a million rows: the stored positions of a table are not aligned."""
    values, labels = noise_table(60, 40)
    values[:5] += 2 * labels
    store = make_store(tmp_path / "t.zarr", values, labels)
    found = []
    for name in ("whole", "one"):
        if name == "one":
            monkeypatch.setattr(feature_tests, "TESTED_CELLS", 60)
        result = package.run(store, out=tmp_path / f"{name}.run", iterations=20)
        found.append(result.features("records", top=40))
    assert found[0] == found[1]
    assert sum(one["selected"] for one in found[0]) >= 4
