import shutil

import book
import pytest
from access import MEMORY, command, digests_of_run
from old_files import FORMATS, RUNS, pin_of_old_file, unpack
from run_cases import results_of

PINS = book.read()["old_files"]
DECOY = ("--q", 30, "--iterations", 120)
PAIRS = {
    "run-in-screen": "run-finished",
    "run-in-closing": "run-finished",
    "run-with-trees-in-screen": "run-with-trees-finished",
}


@pytest.mark.parametrize("name", RUNS)
def test_what_an_earlier_version_wrote_opens_and_ends_as_pinned(name, tmp_path):
    assert pin_of_old_file(name, tmp_path) == PINS[name]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("interrupted", PAIRS)
def test_an_interrupted_run_is_pinned_to_what_the_whole_one_found(form, interrupted):
    half, whole = PINS[f"{form}/{interrupted}"], PINS[f"{form}/{PAIRS[interrupted]}"]
    assert half["stood"]["state"] == "stopped"
    assert whole["stood"]["state"] == "finished"
    assert {**half, "stood": None} == {**whole, "stood": None}


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


@pytest.mark.parametrize("form", FORMATS)
def test_an_old_store_takes_a_new_run(form, tmp_path):
    store, run = unpack(form, tmp_path), tmp_path / "new"
    command("run", store, "--out", run, *MEMORY, "--threads", 2, *DECOY)
    pinned = dict(PINS[f"{form}/run-finished"])
    # Only a run made by the command line has a plan.
    found = results_of(run, store)
    found["status"]["planned_iterations"] = None
    del pinned["stood"]
    assert found == pinned
