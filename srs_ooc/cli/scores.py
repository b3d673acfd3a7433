"""``srs-ooc scores``: columns scored by themselves, without trees."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease, process_nbytes
from srs_ooc.base.errors import UsageError
from srs_ooc.base.params import Whole
from srs_ooc.base.places import Place
from srs_ooc.base.records import Step
from srs_ooc.base.sizes import MB, counted
from srs_ooc.cli.options import TABLE_OPTIONS, option_of, with_options
from srs_ooc.cli.output import (
    MEMORY_OPTION,
    SAFE_OPTION,
    say,
    stream_csv,
    stream_json,
    stream_table,
)
from srs_ooc.cli.progress import RunProgress
from srs_ooc.cli.store_type import STORE
from srs_ooc.column_scores.base import ColumnScore
from srs_ooc.runs.inputs import InputFiles, Inputs, resolve
from srs_ooc.runs.item_weights import STAGE, Scoring, scan_of, scoring_leases
from srs_ooc.runs.memory import check_stages
from srs_ooc.samplers.less import ScoreParams
from srs_ooc.samplers.method import ScoreGround
from srs_ooc.store.opening import open_store
from srs_ooc.store.scan import Scan
from srs_ooc.store.store import Store

TABLE_ROWS = 50
ORDER_NBYTES = 24
"""Memory of a feature while the table is put in order."""
_COLUMNS = {"rank": 6, "name": 20, "score": 12, "share": 12}


@dataclass(frozen=True)
class ScoreRecord:
    """A feature's score, and what it is of the sum."""

    rank: int
    name: str
    score: float
    share: float


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
    with opened.unchanged():
        opened.check_files()
        files = InputFiles.of(opened, exclude_file, rows_file, exclude_missing=exclude_missing)
        reading = [Lease(*lease) for lease in files.leases(opened.n_features)]
        *_, leases = _scan(opened, files.stand_in(), params, key)
        check_stages(memory_mb * MB, [reading, leases])
        inputs = resolve(opened, files)
        scan, score, leases = _scan(opened, inputs, params, key)
        scoring = Scoring(score, scan, opened.n_features)
        progress, n_steps = RunProgress(memory_mb), scoring.n_steps
        try:
            scores = scoring.run(lambda done: _shown(progress, done, n_steps))
        finally:
            progress.close()
        assert scores is not None
        del scoring, score
        records = _records(opened, scores)
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


def _scan(
    store: Store, inputs: Inputs, params: ScoreParams, key: int
) -> tuple[Scan, ColumnScore, list[Lease]]:
    """Return what is read, what scores it, and what both need besides the process."""
    scan = scan_of(store, inputs, params.matrix)
    score = params.score(ScoreGround(scan.n_rows, store.n_features, 1, key))
    if score is None:
        raise UsageError(f"--scores: expected leverage or norm, found {params.scores!r}.")
    leases = scoring_leases(score, scan, store.n_features)
    leases.append(("the table in order", ORDER_NBYTES * store.n_features))
    return scan, score, [Lease(*lease) for lease in leases]


def _shown(progress: RunProgress, done: int, n_steps: int) -> bool:
    progress.show(Step(STAGE, done, n_steps, unit="blocks"))
    return True


def _records(store: Store, scores: NDArray[np.float64]) -> Iterator[ScoreRecord]:
    """Yield the features, highest score first."""
    by_source = np.empty(len(scores))
    for start, positions in store.pieces("positions"):
        by_source[positions] = scores[start : start + len(positions)]
    names, total = store.names, float(scores.sum())
    for rank, position in enumerate(np.argsort(-by_source, kind="stable"), 1):
        score = float(by_source[position])
        share = score / total if total > 0 else 0.0
        yield ScoreRecord(rank, names[int(position)], score, share)
