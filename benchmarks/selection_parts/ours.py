"""srs-ooc itself as methods of the benchmark. How a selection is read stands here alone."""

import json
import subprocess
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measured import Measured, find_srs_ooc, measure

from selection_parts.answers import Answer, last_line
from selection_parts.scores import position_of
from selection_parts.tables import Table

LEVEL = "0.1"
CAP_MB = "512"
RUN_OPTIONS = {"decoy": ("--judge", "decoy", "--fdr", LEVEL), "probe": ("--judge", "probe")}


def run_ours(method: str, table: Table) -> tuple[Measured, Answer]:
    """Run a judge on a table, in a process of its own, and read what it selected."""
    run, errors = table.folder / f"{method}.run", table.folder / "errors"
    options = [*RUN_OPTIONS[method], "--memory-mb", CAP_MB, "--seed", str(table.seed)]
    options += table.problem.ours if method == "decoy" else ()
    command = [find_srs_ooc(), "run", str(table.store()), "--out", str(run), *options]
    done = measure(command, out="/dev/null", errors=str(errors))
    if done.status != 0:
        return done, Answer.failed(last_line(errors))
    return done, read_selection(run)


def read_selection(run: Path) -> Answer:
    """Return the selected features of a run, and all by rank."""
    selected, ranking = [], array("I")
    for record in records(run):
        position = position_of(record["name"])
        ranking.append(position)
        if is_selected(record):
            selected.append(position)
    return Answer(selected, ranking)


def is_selected(record: dict[str, Any]) -> bool:
    """Tell whether a line of ``srs-ooc features --json`` is of a selected feature."""
    return bool(record["selected"])


def records(run: Path, *options: str) -> Iterator[dict[str, Any]]:
    """Yield the records of ``srs-ooc features --json``, best first: one a line, never all held."""
    command = [find_srs_ooc(), "features", str(run), "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if line.startswith("{"):
                yield json.loads(line.rstrip(",\n"))
    if process.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}")
