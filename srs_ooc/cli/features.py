"""``srs-ooc features``."""

from itertools import islice
from pathlib import Path

import click

from srs_ooc.cli.output import stream_csv, stream_json, stream_table
from srs_ooc.ledger import Ledger
from srs_ooc.report.ranking import FeatureRecord, Reading
from srs_ooc.runs import find_store

TABLE_ROWS = 50
_WIDTHS = {"name": 16, "rank": 6, "selected": 8, "kept": 4, "importance_ensemble": 19}


@click.command("features")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--store", type=click.Path(path_type=Path), help="The run's store, if it was moved.")
@click.option("--selected", "only_selected", is_flag=True, help="Only the selected features.")
@click.option("--top", type=click.IntRange(1), metavar="N",
              help="Only the N best.  [default: 50 in a table, all in CSV and JSON]")  # fmt: skip
@click.option("--csv", "as_csv", is_flag=True, help="CSV with a header.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list.")
def features_command(
    run: Path, store: Path | None, only_selected: bool, top: int | None, as_csv: bool, as_json: bool
) -> None:
    """Rank the features of RUN by importance, total MDI / times drawn; also while it goes on."""
    ledger = Ledger(run, writable=False)
    reading = Reading(ledger, find_store(ledger) if store is None else store)
    ledger.close()
    limit = TABLE_ROWS if top is None and not (as_csv or as_json) else top
    records = islice(reading.records(only_selected=only_selected), limit)
    if as_json:
        stream_json(records)
    elif as_csv:
        stream_csv(FeatureRecord, records)
    else:
        click.echo(
            f"{reading.n_selected} features selected after {reading.n_iterations} iterations"
        )
        stream_table(FeatureRecord, records, _WIDTHS)
        if limit == 50:
            click.echo(
                f"(the 50 best of {len(reading.positions)}; all with --csv, --json or --top N)"
            )
