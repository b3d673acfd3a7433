"""``srs-ooc scores``: columns scored by themselves, without trees."""

from itertools import islice
from pathlib import Path
from typing import Any

import click

from srs_ooc.base.budget import process_nbytes
from srs_ooc.base.options import Whole
from srs_ooc.base.records import Step
from srs_ooc.base.text import MB, counted
from srs_ooc.base.urls import Place
from srs_ooc.cli.output import (
    MEMORY_OPTION,
    SAFE_OPTION,
    STORE,
    say,
    stream_csv,
    stream_json,
    stream_table,
)
from srs_ooc.cli.progress import RunProgress
from srs_ooc.cli.run_options import TABLE_OPTIONS, option_of, with_options
from srs_ooc.runs.item_weights import ScoreRecord, ScoreRequest, score_table
from srs_ooc.samplers.less import ScoreParams
from srs_ooc.store.opening import open_store

TABLE_ROWS = 50
_COLUMNS = {"rank": 6, "name": 20, "score": 12, "share": 12}


@click.command("scores")
@click.argument("store", type=STORE)
@with_options([option_of(name, option) for name, option in ScoreParams.options().items()])
@click.option(
    "--seed",
    type=click.INT,
    default=0,
    show_default=True,
    help="What the passes over more than 3000 rows draw by chance follows from it.",
)
@with_options(TABLE_OPTIONS)
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="N",
    help="Only the N best.  [default: 50 in a table, all in CSV and JSON]",
)
@click.option("--csv", "as_csv", is_flag=True, help="CSV with a header; columns as below.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list; keys as below.")
@SAFE_OPTION
@MEMORY_OPTION
def scores_command(
    store: Place,
    seed: int,
    exclude_file: Path | None,
    exclude_missing: bool,
    rows_file: Path | None,
    top: int | None,
    as_csv: bool,
    as_json: bool,
    safe_csv: bool,
    memory_mb: int,
    **given: Any,
) -> None:
    """Score the columns of STORE as `srs-ooc run --method less` would draw them.

    The target is not looked at. What --csv writes can be given to run --scores.

    \b
    rank, name                highest score first; ties as in the source
    score                     leverage (sums to 1 over all features) or squared norm
    share                     what it is of the sum of all
    """
    process_nbytes()  # of the program alone, before there is work
    params = ScoreParams.settle({k: v for k, v in given.items() if v is not None}, None)
    key = Whole(0, 2**64 - 1).canonical("seed", seed)
    opened = open_store(store)
    request = ScoreRequest(params, key, exclude_file, rows_file, exclude_missing)
    progress = RunProgress(memory_mb)
    try:
        records = score_table(
            opened,
            request,
            memory_mb * MB,
            lambda step: _shown(progress, step),
            lambda text: say(text, err=True),
        )
    finally:
        progress.close()
    assert records is not None, "it was not stopped"
    if as_json:
        stream_json(islice(records, top))
    elif as_csv:
        stream_csv(ScoreRecord, islice(records, top), safe=safe_csv)
    else:
        say(
            f"{counted(opened.n_features, 'feature')}, {params.scores} of the "
            f"{params.matrix}{', centred' * params.center}"
        )
        stream_table(_COLUMNS, islice(records, top or TABLE_ROWS))


def _shown(progress: RunProgress, step: Step) -> bool:
    progress.show(step)
    return True
