import shutil

import book
import pytest
from access import MEMORY, close_as_before, command, digests_of_run
from old_files import FORMATS, RUNS, pin_of_old_file, unpack
from run_cases import results_of

PINS = book.read()["old_files"]
PERMUTATIONS = ("--q", 30, "--iterations", 40, "--permutations", 9)
"""Options of an interrupted run of ``tests/fixtures/make_runs.py``."""


@pytest.mark.parametrize("name", RUNS)
def test_what_an_earlier_version_wrote_opens_and_ends_as_pinned(name, tmp_path):
    assert pin_of_old_file(name, tmp_path) == PINS[name]


@pytest.mark.parametrize("form", FORMATS)
def test_an_interrupted_run_is_pinned_to_what_the_whole_one_found(form):
    half = PINS[f"{form}/run-with-trees-in-screen"]
    whole = PINS[f"{form}/run-with-trees-finished"]
    assert half["stood"]["state"] == "stopped"
    assert whole["stood"]["state"] == "finished"
    assert {**half, "stood": None} == {**whole, "stood": None}


@pytest.mark.parametrize("form", FORMATS)
def test_wherever_it_was_interrupted_an_old_run_is_pinned_to_one_verdict(form):
    screen, closing = PINS[f"{form}/run-in-screen"], PINS[f"{form}/run-in-closing"]
    assert screen["stood"]["state"] == closing["stood"]["state"] == "stopped"
    assert {**screen, "stood": None} == {**closing, "stood": None}


@pytest.mark.parametrize("form", FORMATS)
def test_a_finished_run_is_pinned_to_the_verdict_it_has(form):
    """Of the version it was judged by; what comes before the verdict is the same in all."""
    finished, resumed = PINS[f"{form}/run-finished"], PINS[f"{form}/run-in-closing"]
    assert finished["stood"]["state"] == "finished"
    assert "evidence" not in finished["conclusion"]
    assert resumed["conclusion"]["evidence"] > 1
    assert finished["verdict"]["p_values"] != resumed["verdict"]["p_values"]
    assert finished["tallies"] == resumed["tallies"]


@pytest.mark.parametrize("form", FORMATS)
def test_an_old_run_goes_on_when_its_store_is_named_after_a_move(form, tmp_path):
    store = unpack(form, tmp_path)
    moved = tmp_path / "elsewhere" / "moved"
    shutil.copytree(store, moved)
    shutil.rmtree(store)
    run = tmp_path / "run-in-closing"
    command("run", moved, "--out", run, *MEMORY, "--threads", 1)
    found = digests_of_run(run, moved)
    assert found.items() <= PINS[f"{form}/run-in-closing"].items()


@pytest.fixture
def old_closing_stage(monkeypatch):
    close_as_before(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_an_old_run_with_permutations_ends_with_the_verdict_of_a_new_one(
    form, tmp_path, old_closing_stage
):
    """Its evidence is of one version: what was tested before it stopped is tested anew.

    A run with decoys of an old version keeps their kind, which a new run does not make.
    """
    store, run = unpack(form, tmp_path), tmp_path / "new"
    command("run", store, "--out", run, *MEMORY, "--threads", 2, *PERMUTATIONS)
    pinned = dict(PINS[f"{form}/run-in-replay"])
    # Only a run made by the command line has a plan.
    found = results_of(run, store)
    found["status"]["planned_iterations"] = None
    found["conclusion"]["begun_evidence"] = 1
    del pinned["stood"]
    assert found == pinned
