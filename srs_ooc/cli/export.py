"""``srs-ooc export``."""

from pathlib import Path
from shlex import quote

import click
import numpy as np

from srs_ooc.base.budget import process_nbytes
from srs_ooc.base.errors import RunError
from srs_ooc.base.places import Place
from srs_ooc.base.sizes import MB
from srs_ooc.cli.output import MEMORY_OPTION, SAFE_OPTION, say
from srs_ooc.cli.store_type import STORE
from srs_ooc.results.export import export_columns
from srs_ooc.results.export_formats import writer_of
from srs_ooc.results.ranking import Reading
from srs_ooc.runs.ledger import Ledger
from srs_ooc.store.opening import open_store

_FILE = click.Path(path_type=Path)


@click.command("export")
@click.argument("store", type=STORE)
@click.argument("run", type=_FILE)
@click.argument("out", type=_FILE)
@click.option("--top", type=click.IntRange(1), metavar="N",
              help="The N best features instead of the selected ones.")  # fmt: skip
@SAFE_OPTION
@MEMORY_OPTION
def export_command(
    store: Place,
    run: Path,
    out: Path,
    top: int | None,
    safe_csv: bool,
    memory_mb: int,
) -> None:
    """Write the columns of STORE that RUN selected to the file OUT, best first.

    Each row has its row id, the columns' real values, and the target. How OUT ends says the format:

    \b
    .csv, .csv.gz             CSV, also where OUT ends in nothing known
    .parquet, .feather        takes `pip install 'srs-ooc[arrow]'`
    .svmlight, .svm           numbers only; classes are numbered
    .npy                      the values alone, numbers only
    .txt                      the names alone, one a line, as --exclude reads them
    """
    writer_of(out)  # before anything is read
    process_nbytes()  # of the program alone, before there is work
    ledger = Ledger(run, writable=False)
    opened = open_store(store)
    reading = Reading(ledger, opened, memory_mb * MB)
    ledger.close()
    stored = reading.top(top) if top else reading.selected()
    if len(stored) == 0 and reading.is_provisional and not top:
        raise RunError(
            f"{run}: expected a run with its verdict, found one after {reading.n_iterations} "
            f"iterations that has none yet. Wait for it, go on with `srs-ooc resume "
            f"{quote(str(run))}`, or export the best by rank so far with --top N."
        )
    if len(stored) == 0:
        raise RunError(
            f"{run}: expected selected features to export, found none after "
            f"{reading.n_iterations} iterations. Export the best by rank with --top N."
        )
    n_features, positions = len(stored), reading.positions[stored].astype(np.int64)
    del reading, stored  # its tallies
    export_columns(opened, positions, out, cap_nbytes=memory_mb * MB, safe=safe_csv)
    say(f"{out}: {n_features} features of {opened.n_rows} rows")
