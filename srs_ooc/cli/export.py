"""``srs-ooc export``."""

from contextlib import closing
from pathlib import Path

import click

from srs_ooc.base.budget import process_nbytes
from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB, counted
from srs_ooc.base.urls import place_of
from srs_ooc.cli.output import FILE, MEMORY_OPTION, SAFE_OPTION, say
from srs_ooc.results.exporting import (
    check_name,
    check_one,
    export_columns,
    export_leases,
    named_positions,
    ranked_positions,
)
from srs_ooc.results.ranking import Ranking
from srs_ooc.results.standing import status_of
from srs_ooc.runs.inputs import find_store
from srs_ooc.runs.ledger import Ledger


@click.command("export")
@click.argument("paths", nargs=-1, required=True, type=FILE, metavar="[STORE] RUN OUT")
@click.option("--top", type=click.IntRange(1), metavar="N",
              help="The N best features instead of the selected ones.")  # fmt: skip
@click.option("--names", "names_file", type=FILE, metavar="FILE",
              help="The features that FILE names, one a line, instead.")  # fmt: skip
@SAFE_OPTION
@MEMORY_OPTION
def export_command(
    paths: tuple[Path, ...],
    top: int | None,
    names_file: Path | None,
    safe_csv: bool,
    memory_mb: int,
) -> None:
    """Write the features that RUN selected to OUT, best first.

    STORE is the run's store; it is found by itself if it was not moved. Each row has its row id,
    the real values of these features, and the target. How OUT ends says the format:

    \b
    .csv, .csv.gz             CSV, also where OUT ends in nothing known
    .parquet, .feather        takes `pip install 'srs-ooc[arrow]'`
    .svmlight, .svm           numbers only; classes are numbered
    .npy                      the values alone, numbers only
    .txt                      the names alone, one a line, as --exclude reads them
    .zarr                     a smaller store, with weights, strata and groups
    """
    if len(paths) not in (2, 3):
        raise UsageError(
            f"expected RUN and OUT, or STORE, RUN and OUT, found {counted(len(paths), 'path')}. "
            "`srs-ooc export --help` shows examples."
        )
    store, (run, out) = (place_of(paths[0]) if len(paths) == 3 else None), paths[-2:]
    check_one(top, names_file)
    check_name(out)  # before anything is read
    process_nbytes()  # of the program alone, before there is work
    cap_nbytes = memory_mb * MB
    with closing(Ledger(run, writable=False)) as ledger:
        opened = find_store(ledger, store)
        if names_file is not None:
            positions = named_positions(opened, names_file, cap_nbytes)
        else:
            n_columns = min(top or status_of(ledger).n_selected, opened.n_features)
            later = sum(lease.n_bytes for lease in export_leases(opened, n_columns, out))
            positions = ranked_positions(
                ledger, Ranking(ledger, opened, cap_nbytes, later_nbytes=later), top
            )
    export_columns(opened, positions, out, cap_nbytes=cap_nbytes, safe=safe_csv)
    say(f"{out}: {counted(len(positions), 'feature')} of {counted(opened.n_rows, 'row')}")
