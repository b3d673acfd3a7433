"""Screens before another method, and closing stages: stopped anywhere, with the same bits."""

import weakref
from contextlib import closing
from itertools import count
from typing import Any

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc
from ledgers import state_of_part, work_on_run
from stores import make_store, noise_table

import srs_ooc as package
from srs_ooc.ensemble.prediction import predict
from srs_ooc.runs.feature_tests import MarginalTests
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run import Run
from srs_ooc.runs.verdict import VERDICT
from srs_ooc.samplers.elimination import TREES

# Runs whose method learns on what a screen ranks first: resumed, on other threads, predicting.

P, N_FIRST, N_TREES = 200, 12, 600
SMALL: dict[str, dict[str, Any]] = {
    "prs": {"models": 8, "folds": 3, "epochs": 4, "inclusion": "0.2", "learning_rate": "0.01"},
    "rase": {"models": 5, "candidates": 10, "rounds": 2, "folds": 2, "max_size": 3},
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    values, labels = noise_table(90, P, n_relevant=2)
    return make_store(tmp_path_factory.mktemp("screened") / "t.zarr", values, labels)


def work(table, run, method, *, threads=1, watch=lambda _: True, **given):
    options = {"method": method, "screen": N_FIRST, "screen_draws": 30, **SMALL[method], **given}
    request = Request(options=options, threads=threads, iterations=10**6, save_trees=True)
    work_on_run(table, run, request, watch)


def bits_of(saved):
    score = np.zeros(saved.length("score"))
    saved.fill("score", score)
    return [score.tobytes(), *(array.tobytes() for array in saved.arrays.values())]


@pytest.mark.slow
@pytest.mark.parametrize("method", SMALL)
def test_stopped_within_the_screen_and_after_it_ends_with_the_same_bits(table, tmp_path, method):
    whole, parts = tmp_path / "whole.run", tmp_path / "parts.run"
    work(table, whole, method)
    iteration, facts, bits = state_of_part(whole, method, bits_of)
    assert facts["screened"] == N_TREES
    for stop in (1, 250, N_TREES - 1, N_TREES, N_TREES + 3, iteration - 1):
        calls = 0

        def going(step, stop=stop):
            nonlocal calls
            calls += 1
            return step.done < stop if step.unit == "trees" else calls < 4

        work(table, parts, method, watch=going, threads=1 + stop % 2)
    work(table, parts, method, threads=2)
    assert state_of_part(parts, method, bits_of) == (iteration, facts, bits)
    said = [predict(run, table, run / "said.csv") for run in (whole, parts)]
    assert said[0] == said[1]
    assert (whole / "said.csv").read_bytes() == (parts / "said.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("method", SMALL)
def test_before_there_are_scores_features_rank_by_importance_and_excluded_ones_last(
    table, tmp_path, method
):
    run, excluded = tmp_path / "a.run", [f"f{j}" for j in range(2, P, 9)]
    (tmp_path / "out.txt").write_text("\n".join(excluded) + "\n")
    words = "run", table, "--out", run, "--method", method, "--with", f"screen={N_FIRST}"
    said = srs_ooc(*words, "--exclude", tmp_path / "out.txt", "--iterations", 200).stdout
    records = json_of("features", run, "--json")
    assert {record["score"] for record in records} == {0}
    drawn = [record for record in records if record["n_drawn"]]
    assert records[: len(drawn)] == drawn
    assert {record["name"] for record in records[len(drawn) :]} >= set(excluded)
    worth = [record["importance"] for record in drawn]
    assert worth == sorted(worth, reverse=True)
    assert f"First: {records[0]['name']}, with a score of 0" in said


@pytest.mark.slow
@pytest.mark.parametrize("method", SMALL)
def test_what_is_screened_out_has_no_score_and_what_is_excluded_is_never_drawn(
    table, tmp_path, method
):
    run, excluded = tmp_path / "a.run", [f"f{j}" for j in range(5, P, 9)]
    (tmp_path / "out.txt").write_text("\n".join(excluded) + "\n")
    small = [w for key, value in SMALL[method].items() for w in ("--with", f"{key}={value}")]
    words = "run", table, "--out", run, "--method", method, *small
    screen = "--with", f"screen={N_FIRST}", "--with", "screen_draws=30"
    done = srs_ooc(*words, *screen, "--exclude", tmp_path / "out.txt").stdout
    assert f"All features ranked by {method}" in done
    records = json_of("features", run, "--json")
    drawn = {record["name"] for record in records if record["n_drawn"]}
    assert drawn.isdisjoint(excluded)
    assert len(drawn) == P - len(excluded)
    scored = {record["name"] for record in records if record["score"]}
    assert 2 <= len(scored) <= N_FIRST
    if method == "prs":
        assert {record["name"] for record in records[:2]} == {"f0", "f1"}
    words = "run", table, "--out", run, "--method", method, "--with", "screen=9"
    assert f"screen {N_FIRST} (asked for: 9)" in error_of(*words)


# `--closing sensitivity`: part of a run's identity, resumed to the bit.

ASKED = {"subspace_size": "40", "closing": "sensitivity"}


def run_to(store, run, watch=lambda _: True, threads=1, iterations=100):
    request = Request(options=ASKED, iterations=iterations, memory_mb=4000, threads=threads)
    work_on_run(store, run, request, watch)


def arrays_of(run, name):
    with closing(Run(run, writable=False)) as ledger:
        return ledger.read_arrays(name)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(60, 80)
    return make_store(tmp_path_factory.mktemp("closing") / "t.zarr", values, labels)


@pytest.fixture(scope="module")
def whole(store, tmp_path_factory):
    run = tmp_path_factory.mktemp("closing") / "whole.run"
    run_to(store, run)
    return run


@pytest.mark.slow
def test_stopped_in_its_closing_stage_it_goes_on_to_the_same_bits(store, whole, tmp_path):
    run = tmp_path / "parts.run"
    for most in (150, 500, TREES + 10):
        steps = count()

        def watch(step, steps=steps, most=most):
            return "last stage" not in step.stage or next(steps) < most

        run_to(store, run, watch, threads=1 + most % 3)
        assert arrays_of(run, VERDICT) is None
    run_to(store, run, threads=2)
    for name in ("closing", VERDICT):
        found, expected = arrays_of(run, name), arrays_of(whole, name)
        assert found.keys() == expected.keys()
        for key, array in expected.items():
            assert found[key].tobytes() == array.tobytes(), key  # NaN is equal, too


@pytest.mark.slow
def test_it_is_part_of_a_run_s_identity_and_others_are_as_they_were(store, whole, tmp_path):
    message = error_of("run", store, "--out", whole, "--closing", "impurity")
    assert "closing sensitivity (asked for: impurity)" in message
    assert json_of("status", whole, "--json")["closing"] == "sensitivity"
    plain = tmp_path / "plain.run"
    srs_ooc("run", store, "--out", plain, "--iterations", 20, "--q", 30)
    srs_ooc("run", store, "--out", plain, "--closing", "impurity")
    message = error_of("run", store, "--out", plain, "--closing", "sensitivity")
    assert "closing impurity (asked for: sensitivity)" in message
    assert "--judge tests only" in error_of(
        "run", store, "--out", tmp_path / "no.run", "--judge", "probe", "--closing", "sensitivity"
    )
    ledger = Run(plain, writable=False)
    assert "closing" not in ledger.spec.to_json()
    ledger.close()


def test_what_matters_is_selected(tmp_path):
    values, labels = noise_table(150, 60, n_relevant=2)
    store = make_store(tmp_path / "t.zarr", values, labels)
    result = package.run(store, out=tmp_path / "a.run", iterations=60, closing="sensitivity")
    assert {"f0", "f1"} <= set(result.selected)


def test_what_the_search_held_is_given_back_before_the_tests(store, tmp_path, monkeypatch):
    """Blocks above all: they would lie beside what the tests take, under one cap."""
    made, alive = [], []
    prepare, of_all = Resources.__init__, MarginalTests.of_all

    def noted(self, *given, **how):
        prepare(self, *given, **how)
        made.append(weakref.ref(self))

    def looked_at(self):
        alive.append([resources() is not None for resources in made])
        return of_all(self)

    monkeypatch.setattr(Resources, "__init__", noted)
    monkeypatch.setattr(MarginalTests, "of_all", looked_at)
    package.run(store, out=tmp_path / "a.run", iterations=20)
    assert alive == [[False, True]]
