"""``srs-ooc scores``: columns scored by themselves, without trees."""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click

from srs_ooc.base.budget import process_nbytes
from srs_ooc.base.options import Whole
from srs_ooc.base.records import Step
from srs_ooc.base.text import counted
from srs_ooc.base.urls import Place
from srs_ooc.cli.output import (
    PROGRESS_OPTIONS,
    RECORD_OPTIONS,
    STORE,
    say,
    with_options,
    write_records,
)
from srs_ooc.cli.run_options import TABLE_OPTIONS, option_of
from srs_ooc.results.live import RunProgress
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.runs.weights import ScoreRecord, score_table
from srs_ooc.samplers.less import ScoreParams
from srs_ooc.store.opening import open_store

_COLUMNS = {"rank": 6, "name": 20, "score": 12, "share": 12}


@click.command("scores")
@click.argument("store", type=STORE)
@with_options([option_of(name, option) for name, option in ScoreParams.options().items()])
@click.option(
    "--seed",
    type=click.INT,
    default=0,
    show_default=True,
    help="Seed of the passes over more than 3000 rows, which draw by chance.",
)
@with_options([*TABLE_OPTIONS, *RECORD_OPTIONS, *PROGRESS_OPTIONS])
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
    shows: str | None,
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
    request = Request(Options(), exclude_file, rows_file, exclude_missing, memory_mb=memory_mb)
    with closing(RunProgress(memory_mb, shows)) as progress:

        def goes_on(step: Step) -> bool:
            progress.show(step)
            return True

        notes = partial(say, err=True)
        records = score_table(opened, params, request, goes_on, key=key, note=notes)
    assert records is not None, "it was not stopped"
    features, centred = counted(opened.n_features, "feature"), ", centred" * params.center
    heading = f"{features}, {params.scores} of the {params.matrix}{centred}"
    form = {"as_json": as_json, "as_csv": as_csv, "safe_csv": safe_csv}
    write_records(ScoreRecord, records, _COLUMNS, top, heading, **form)
