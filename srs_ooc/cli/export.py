"""``srs-ooc export``."""

from pathlib import Path

import click
import numpy as np

from srs_ooc.errors import RunError, UsageError
from srs_ooc.ledger import Ledger
from srs_ooc.report.export import export_columns
from srs_ooc.report.ranking import Reading

_FILE = click.Path(path_type=Path)


@click.command("export")
@click.argument("store", type=_FILE)
@click.argument("run", type=_FILE)
@click.argument("out", type=_FILE)
@click.option("--top", type=click.IntRange(1), metavar="N",
              help="The N best features instead of the selected ones.")  # fmt: skip
@click.option("--core", "only_core", is_flag=True, help="Only selected features of the tier core.")
def export_command(store: Path, run: Path, out: Path, top: int | None, only_core: bool) -> None:
    """Write the columns of STORE that RUN selected to the CSV file OUT, best first.

    Each row has its row id, the columns' real values, and the target.
    """
    ledger = Ledger(run, writable=False)
    reading = Reading(ledger, store)
    ledger.close()
    if top and only_core:
        raise UsageError("expected one of --top and --core, found both. Leave one out.")
    stored = reading.order()[:top] if top else reading.selected(only_core=only_core)
    if len(stored) == 0:
        which = "features of the tier core" if only_core else "selected features"
        raise RunError(
            f"{run}: expected {which} to export, found none after "
            f"{reading.n_iterations} iterations. Export the best by rank with --top N."
        )
    export_columns(store, reading.positions[stored].astype(np.int64), out, reading.manifest)
    click.echo(f"{out}: {len(stored)} features of {reading.manifest.n_rows} rows")
