"""Runs with a final verdict: decoys are items like others, and stops change nothing."""

import itertools
import re

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc
from ledgers import work_on_run
from stores import make_store, noise_table

from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.decoys import Exchangeability
from srs_ooc.evidence.tally import Tally
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_verdict import CONCLUSION, VERDICT
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options, RunSpec

N_ROWS, N_FEATURES = 80, 150


def options(**given):
    """One family, unless more or permutation runs are asked for: all else is much the same."""
    families = {} if "permutations" in given else {"decoys": 1}
    return Options(judge="decoy", subspace_size="40", **families | given)


def read(run, n_items):
    ledger = Ledger(run, writable=False)
    tally = Tally(n_items, wins=False)
    progress = ledger.load({"tally": tally})
    verdict = ledger.read_arrays(VERDICT)
    facts = ledger.meta(CONCLUSION) if verdict else None
    ledger.close()
    return progress.iteration, tally, verdict, facts


def assert_same(run, other, n_items):
    done, tally, verdict, facts = read(run, n_items)
    again, other_tally, other_verdict, other_facts = read(other, n_items)
    assert done == again
    np.testing.assert_array_equal(tally.importance, other_tally.importance)
    np.testing.assert_array_equal(tally.n_drawn, other_tally.n_drawn)
    assert verdict.keys() == other_verdict.keys()
    for name, array in verdict.items():
        np.testing.assert_array_equal(array, other_verdict[name], err_msg=name)
    for name in set(facts) - {"seconds", "peak_nbytes"}:
        assert facts[name] == other_facts[name]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    return make_store(tmp_path_factory.mktemp("table") / "t.zarr", values, labels), values, labels


@pytest.mark.slow
@pytest.mark.parametrize("n_families", [1, 3])
def test_decoys_are_what_features_with_permuted_rows_would_be(
    table, tmp_path, monkeypatch, n_families
):
    """A store that holds the decoys as features, run without a judge, has the same tallies."""
    store, values, labels = table
    first = values[stored_positions(N_FEATURES)]
    monkeypatch.setattr(RunSpec, "n_copies_apart", 1)  # as the other store has none
    rows = Exchangeability(N_ROWS).families(key_of(5, Purpose.DECOYS, 0), n_families)
    wanted = np.concatenate([first, *(first[:, r] for r in rows)])
    source = np.empty_like(wanted)
    source[stored_positions(len(wanted))] = wanted
    whole = make_store(tmp_path / "whole.zarr", source, labels)
    request = Request(options(seed=5, keep=0, decoys=n_families), iterations=60, memory_mb=4000)
    work_on_run(store, tmp_path / "a.run", request)
    plain = Options(judge="positive", alpha="0", subspace_size="40", seed=5)
    work_on_run(whole, tmp_path / "b.run", Request(plain, iterations=60, memory_mb=4000))
    _, tally, _, _ = read(tmp_path / "a.run", len(wanted))
    ledger = Ledger(tmp_path / "b.run", writable=False)
    expected = Tally(len(wanted))
    ledger.load({"tally": expected})
    ledger.close()
    np.testing.assert_array_equal(tally.importance, expected.importance)
    np.testing.assert_array_equal(tally.n_drawn, expected.n_drawn)


CASES = {
    "decoys": {"seed": 1},
    "three-families": {"seed": 2, "decoys": 3},
    "rounds-of-7": {"seed": 3, "round_size": 7},
    "permutations": {"seed": 4, "permutations": 4, "fdr": "0.2"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_verdict_does_not_depend_on_stops_or_threads(table, tmp_path, name):
    store, _, _ = table
    asked = options(**CASES[name])
    n_items = (1 + (0 if asked.get("permutations") else asked.get("decoys", 1))) * N_FEATURES
    request = Request(asked, iterations=250, threads=1, memory_mb=4000)
    work_on_run(store, tmp_path / "whole.run", request)
    stopped = tmp_path / "stopped.run"
    for stop in itertools.count(1):
        countdown = itertools.count(-37 * stop)
        several = Request(asked, iterations=250, threads=1 + stop % 3, memory_mb=4000)
        work_on_run(store, stopped, several, lambda _, countdown=countdown: next(countdown) != 0)
        if read(stopped, n_items)[2] is not None:
            break
    assert stop > 5
    assert_same(tmp_path / "whole.run", stopped, n_items)
    assert not (stopped / "replays").exists()


@pytest.mark.slow
def test_going_on_to_more_iterations_is_as_if_they_had_been_asked_at_once(table, tmp_path):
    store, _, _ = table
    for iterations in (100, 300):
        work_on_run(store, tmp_path / "a.run", Request(options(), iterations=iterations))
    work_on_run(store, tmp_path / "b.run", Request(options(), iterations=300))
    assert_same(tmp_path / "a.run", tmp_path / "b.run", 2 * N_FEATURES)


@pytest.mark.slow
def test_a_screen_ends_once_its_ranking_is_at_rest_wherever_it_was_stopped(table, tmp_path):
    store, _, _ = table
    asked = Request(options(seed=6), iterations=50_000, memory_mb=4000, until_stable=True)
    work_on_run(store, tmp_path / "whole.run", asked)
    done = read(tmp_path / "whole.run", 2 * N_FEATURES)[0]
    assert 1000 < done < 50_000
    assert json_of("status", tmp_path / "whole.run", "--json")["state"] == "finished"
    stopped = tmp_path / "stopped.run"
    for stop in itertools.count(1):
        countdown = itertools.count(-700 * stop)
        work_on_run(store, stopped, asked, lambda _, countdown=countdown: next(countdown) != 0)
        if read(stopped, 2 * N_FEATURES)[2] is not None:
            break
    assert stop > 1
    assert_same(tmp_path / "whole.run", stopped, 2 * N_FEATURES)
    # At so many iterations asked at once the verdict is the same.
    fixed = Request(options(seed=6), iterations=done, memory_mb=4000)
    work_on_run(store, tmp_path / "fixed.run", fixed)
    assert_same(tmp_path / "whole.run", tmp_path / "fixed.run", 2 * N_FEATURES)
    work_on_run(store, stopped, Request(options(seed=6), iterations=done + 100, memory_mb=4000))
    assert read(stopped, 2 * N_FEATURES)[0] == done + 100


@pytest.mark.slow
def test_only_runs_with_a_verdict_end_by_themselves(table, tmp_path):
    asked = ("--judge", "probe", "--until-stable", "--out", tmp_path / "no.run")
    assert "--iterations" in error_of("run", table[0], *asked)
    asked = ("--permutations", 9, "--until-stable", "--out", tmp_path / "no.run")
    assert "must end alike" in error_of("run", table[0], *asked)
    assert not (tmp_path / "no.run").exists()


@pytest.mark.slow
def test_nothing_is_selected_where_nothing_is(tmp_path):
    rng = np.random.default_rng(0)
    n_selected = []
    for seed in range(6):
        labels = rng.permutation(np.arange(60) % 2)
        store = make_store(tmp_path / f"{seed}.zarr", rng.standard_normal((300, 60)), labels)
        run = tmp_path / f"{seed}.run"
        work_on_run(store, run, Request(options(seed=seed), iterations=400, memory_mb=4000))
        n_selected.append(np.count_nonzero(read(run, 600)[2]["is_selected"]))
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
        work_on_run(store, run, Request(options(seed=seed), iterations=1000, memory_mb=4000))
        verdict = read(run, 800)[2]
        source = stored_positions(400)[verdict["features"][verdict["is_selected"]]]
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
    asked = ("--judge", "decoy", "--fdr", 0.4, "--q", 40, "--iterations", 600)
    said = srs_ooc("run", store, "--out", run, *asked).stdout
    return run, said


@pytest.mark.slow
def test_the_command_line_tells_the_verdict(concluded):
    run, said = concluded
    status = json_of("status", run, "--json")
    assert status["state"] == "finished"
    assert (status["judge"], status["fdr"], status["decoys"]) == ("decoy", 0.4, 7)
    records = json_of("features", run, "--json")
    assert len(records) == N_FEATURES
    selected = [record for record in records if record["selected"]]
    assert status["n_selected"] == len(selected) >= 3
    assert len({record["name"] for record in selected} & {f"f{i}" for i in range(15)}) >= 12
    assert all(record["q_value"] <= 0.4 for record in selected)
    assert selected == records[: len(selected)]
    assert json_of("features", run, "--json", "--selected") == selected
    assert f"{len(selected)} features selected after" in said
    assert re.search(r"Level 0\.4, with \d+ decoys? above the cut \(\d+ for each feature\)", said)
    srs_ooc("export", run.with_name("t.zarr"), run, run.with_name("selected.csv"))
    header = run.with_name("selected.csv").read_text().splitlines()[0]
    assert header.split(",")[1:-1] == [record["name"] for record in selected]
    assert srs_ooc("resume", run).stdout == said
    assert f"{len(selected)} features selected" in srs_ooc("features", run).stdout


@pytest.mark.slow
def test_why_says_why(concluded):
    run, _ = concluded
    records = json_of("features", run, "--json")
    assert "is in: place" in srs_ooc("features", run, "--why", records[0]["name"]).stdout
    out = [r["name"] for r in records if not r["selected"] and r["q_value"] is not None][:20]
    said = (srs_ooc("features", run, "--why", name).stdout for name in out)
    assert any("is out: it is at place" in line for line in said)
    assert "expected the name of a feature" in error_of("features", run, "--why", "nobody")


@pytest.mark.slow
def test_a_run_without_a_verdict_is_provisional(table, tmp_path):
    run = tmp_path / "p.run"
    request = Request(options(), iterations=200, memory_mb=4000)
    work_on_run(table[0], run, request, lambda step: step.stage == "screening")
    assert "provisional" in srs_ooc("features", run).stdout
    assert json_of("status", run, "--json")["state"] == "stopped"
    assert "final verdict" in error_of("features", run, "--why", "f0")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--judge", "probe", "--fdr", 0.1), "--judge decoy only"),
        (("--judge", "decoy", "--decoys", 1, "--permutations", 9), "decoys or permutation runs"),
        (("--judge", "decoy", "--decoys", 0), "decoys or permutation runs"),
        (("--judge", "decoy", "--permutations", 8), "at least 9 for --fdr 0.1"),
        (("--judge", "decoy", "--fdr", 0), "between 0 and 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(table, tmp_path, given, message):
    assert message in error_of("run", table[0], "--out", tmp_path / "no.run", *given)
    assert not (tmp_path / "no.run").exists()


@pytest.mark.slow
def test_strata_are_kept_and_pinning_ones_refused(tmp_path):
    import srs_ooc as package

    rng = np.random.default_rng(2)
    values = rng.standard_normal((40, 60))
    labels = np.arange(40) % 2
    store = tmp_path / "s.zarr"
    package.ingest(values, store, target=labels, strata=np.arange(40) // 20)
    work_on_run(store, tmp_path / "s.run", Request(options(), iterations=100))
    assert read(tmp_path / "s.run", 120)[2] is not None
    pinned = tmp_path / "p.zarr"
    package.ingest(values, pinned, target=labels, strata=np.arange(40))
    assert "all have the same one" in error_of("run", pinned, "--judge", "decoy", "--q", 40)
    told = tmp_path / "t.zarr"
    package.ingest(values, told, target=labels, strata=labels)
    assert "all have the same one" in error_of("run", told, "--judge", "decoy", "--q", 40)


def test_permutation_runs_taken_up_again_go_on_where_they_were(table, tmp_path):
    """However early in the first permutation run a run is stopped, it gets on."""
    store, _, _ = table
    request = Request(options(seed=8, permutations=9), iterations=3000, threads=1, memory_mb=4000)
    run, done = tmp_path / "r.run", []
    for _ in range(3):
        countdown = itertools.count(-400)

        def watch(step, countdown=countdown):
            return not step.stage.startswith("permutation run 1") or next(countdown) != 0

        work_on_run(store, run, request, watch)
        first = Ledger(run / "replays" / "1", writable=False)
        done.append(first.progress().iteration)
        first.close()
    assert done == [401, 802, 1203]


@pytest.mark.slow
def test_a_permutation_run_left_behind_is_cleared(table, tmp_path):
    store, _, _ = table
    request = Request(options(seed=8, permutations=4, fdr="0.2"), iterations=100, memory_mb=4000)
    run = tmp_path / "r.run"
    work_on_run(store, run, request)
    (run / "replays" / "0").mkdir(parents=True)
    work_on_run(store, run, Request(iterations=150, memory_mb=4000))
    assert not (run / "replays").exists()
