"""``srs-ooc export``."""

from pathlib import Path
from shlex import quote

import click
import numpy as np

from srs_ooc.base.budget import process_nbytes
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.sizes import MB
from srs_ooc.cli.output import MEMORY_OPTION, SAFE_OPTION, say
from srs_ooc.results.export import export_columns
from srs_ooc.results.ranking import Reading
from srs_ooc.runs.ledger import Ledger
from srs_ooc.store.store import Store

_FILE = click.Path(path_type=Path)
_OTHERS = (".parquet", ".feather", ".arrow", ".npy", ".npz", ".xlsx", ".xls", ".json", ".svm")


@click.command("export")
@click.argument("store", type=_FILE)
@click.argument("run", type=_FILE)
@click.argument("out", type=_FILE)
@click.option("--top", type=click.IntRange(1), metavar="N",
              help="The N best features instead of the selected ones.")  # fmt: skip
@click.option("--core", "only_core", is_flag=True, help="Only selected features of the tier core.")
@SAFE_OPTION
@MEMORY_OPTION
def export_command(
    store: Path,
    run: Path,
    out: Path,
    top: int | None,
    only_core: bool,
    safe_csv: bool,
    memory_mb: int,
) -> None:
    """Write the columns of STORE that RUN selected to the CSV file OUT, best first.

    Each row has its row id, the columns' real values, and the target.
    """
    _check_name(out)
    process_nbytes()  # of the program alone, before there is work
    ledger = Ledger(run, writable=False)
    opened = Store.open(store)
    reading = Reading(ledger, opened, memory_mb * MB)
    ledger.close()
    if top and only_core:
        raise UsageError("expected one of --top and --core, found both. Leave one out.")
    stored = reading.top(top) if top else reading.selected(only_core=only_core)
    if len(stored) == 0 and reading.is_provisional and not top:
        raise RunError(
            f"{run}: expected a run with its verdict, found one after {reading.n_iterations} "
            f"iterations that has none yet. Wait for it, go on with `srs-ooc resume "
            f"{quote(str(run))}`, or export the best by rank so far with --top N."
        )
    if len(stored) == 0:
        which = "features of the tier core" if only_core else "selected features"
        raise RunError(
            f"{run}: expected {which} to export, found none after "
            f"{reading.n_iterations} iterations. Export the best by rank with --top N."
        )
    n_features, positions = len(stored), reading.positions[stored].astype(np.int64)
    del reading, stored  # its tallies
    export_columns(opened, positions, out, cap_nbytes=memory_mb * MB, safe=safe_csv)
    say(f"{out}: {n_features} features of {opened.n_rows} rows")


def _check_name(out: Path) -> None:
    """Refuse names that promise something else than CSV."""
    if str(out) == "-" or out.suffix.lower() in _OTHERS:
        raise UsageError(
            f"{out}: expected the name of a CSV file to write, such as selected.csv or "
            f"selected.csv.gz, found {'-' if str(out) == '-' else out.suffix}. Choose another name."
        )
