"""A run of Random Subspace Ensemble: resumed, on other threads, refused by name."""

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc
from ledgers import state_of_part, work_on_run
from stores import make_store, noise_table

from srs_ooc.runs.request import Request

SMALL = {"models": 10, "candidates": 30, "rounds": 3, "folds": 3}
ARGUMENTS = [word for name, value in SMALL.items() for word in ("--with", f"{name}={value}")]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(90, 60, n_relevant=2)
    return make_store(tmp_path_factory.mktemp("rase") / "t.zarr", values, labels)


def work(store, run, *, threads=1, watch=lambda _: True, **given):
    request = Request(options={"method": "rase"} | SMALL | given, threads=threads, iterations=10**6)
    work_on_run(store, run, request, watch)


def bits_of(saved):
    score = np.zeros(saved.length("score"))
    saved.fill("score", score)
    return [score.tobytes(), *(a.tobytes() for a in saved.arrays.values())]


def state_of(run):
    return state_of_part(run, "rase", bits_of)


@pytest.fixture(scope="module")
def whole(store):
    run = store.with_name("whole.run")
    work(store, run)
    return state_of(run)


def test_stopped_after_every_few_iterations_it_ends_with_the_same_bits(store, whole, tmp_path):
    for every in (2, 9):
        run, calls, n_stops = tmp_path / f"{every}.run", 0, 0

        def going(_, every=every):
            nonlocal calls
            calls += 1
            return calls % every != 0

        while not run.exists() or state_of(run)[0] != whole[0]:
            work(store, run, watch=going, threads=1 + n_stops % 2)
            n_stops += 1
        assert n_stops > 5
        assert state_of(run) == whole


def test_threads_change_nothing(store, whole, tmp_path):
    work(store, tmp_path / "three.run", threads=3)
    assert state_of(tmp_path / "three.run") == whole
    assert whole[0] == 3 * 10 * 2


def test_smaller_blocks_take_more_iterations(store, whole, tmp_path):
    work(store, tmp_path / "a.run", subspace_size=40)
    iteration, facts, _ = state_of(tmp_path / "a.run")
    assert iteration == 3 * 10 * (6 + 1)
    assert len(facts["losses"]) == 3


@pytest.mark.slow
def test_a_run_ends_by_itself_and_ranks_by_share_of_kept_subspaces(store, tmp_path):
    run = tmp_path / "a.run"
    done = srs_ooc("run", store, "--out", run, "--method", "rase", *ARGUMENTS)
    assert "All features ranked by rase after" in done.stdout
    assert json_of("status", run, "--json")["state"] == "finished"
    records = json_of("features", run, "--json")
    scores = [record["score"] for record in records]
    assert len(records) == 60
    assert scores == sorted(scores, reverse=True)
    assert {record["name"] for record in records[:2]} == {"f0", "f1"}
    assert 0 < scores[0] <= 1
    assert srs_ooc("resume", run).stdout == done.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "given", [{"criterion": "oob"}, {"criterion": "validation", "folds": None}]
)
def test_other_criteria_find_the_relevant_features_too(store, tmp_path, given):
    run = tmp_path / "a.run"
    work(store, run, vote_cutoff="training", **given)
    records = json_of("features", run, "--json")
    assert records[0]["name"] in {"f0", "f1"}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--method", "srs", "--with", "candidates=5"), "candidates"),
        (("--method", "rase", "--judge", "tests"), "--judge"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(store, tmp_path, given, says):
    assert says in error_of("run", store, "--out", tmp_path / "a.run", *given)
    assert not (tmp_path / "a.run").exists()


@pytest.mark.slow
def test_plan_and_run_say_where_a_round_sees_too_few_features(store, tmp_path):
    few = (
        "--method",
        "rase",
        "--with",
        "models=2",
        "--with",
        "candidates=2",
        "--with",
        "rounds=1",
        "--with",
        "max_size=3",
    )
    planned = srs_ooc("plan", store, *few)
    ran = srs_ooc("run", store, "--out", tmp_path / "a.run", *few)
    for said in (planned.stdout, ran.stderr):
        assert "88% of them are never seen in the first round" in " ".join(said.split())
