"""A store and its runs as earlier versions wrote them, half done or finished."""

import zipfile
from pathlib import Path

from access import MEMORY, command, digests_of_store, status_of_run
from run_cases import predictions_of, results_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
FORMATS = ("format-2",)
INTERRUPTED = ("run-in-screen", "run-in-closing", "run-in-replay", "run-with-trees-in-screen")
FINISHED = ("run-finished", "run-with-trees-finished")
RUNS = [f"{form}/{name}" for form in FORMATS for name in ("store", *INTERRUPTED, *FINISHED)]


def unpack(form, folder):
    """Copy what was written in a format into ``folder``; return the store and where runs are."""
    with zipfile.ZipFile(FIXTURES / form / "runs.zip") as packed:
        packed.extractall(folder)
    return folder / "store"


def pin_of_old_file(name, folder):
    """Of the store its arrays; of a run where it stood, and what it ends with once resumed."""
    form, file = name.split("/")
    store = unpack(form, folder)
    if file == "store":
        return digests_of_store(store)
    run = folder / file
    stood = status_of_run(run)
    command("resume", run, *MEMORY, "--threads", 1)
    saved = ("--save-trees",) if "trees" in file else ()
    return {"stood": stood} | results_of(run, store) | predictions_of(run, folder, saved)
