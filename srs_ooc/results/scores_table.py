"""Columns scored by themselves, without trees, as a table by score."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Step
from srs_ooc.runs.inputs import InputFiles, Inputs, resolve
from srs_ooc.runs.item_weights import STAGE, Scoring, scan_of, scoring_leases
from srs_ooc.runs.run_memory import check_stages
from srs_ooc.samplers.base import ColumnScore, ScoreGround
from srs_ooc.samplers.less import ScoreParams
from srs_ooc.store.arrays import Names
from srs_ooc.store.store import Scan, Store

ORDER_NBYTES = 24
"""Memory of a feature while the table is put in order."""


@dataclass(frozen=True)
class ScoreRecord:
    """A feature's score, and what it is of the sum."""

    rank: int
    name: str
    score: float
    share: float


@dataclass(frozen=True)
class ScoreRequest:
    """What is scored, and how.

    Attributes
    ----------
    params : ScoreParams
        What columns are scored by.
    key : int
        What is drawn by chance follows from it.
    exclude_file, rows_file : Path or None
        Names of features to leave out; ids of the rows that are looked at.
    exclude_missing : bool
        Leave out features with missing values.
    """

    params: ScoreParams
    key: int
    exclude_file: Path | None = None
    rows_file: Path | None = None
    exclude_missing: bool = False


def score_table(
    store: Store,
    request: ScoreRequest,
    cap_nbytes: int,
    watch: Callable[[Step], bool],
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[ScoreRecord] | None:
    """Return the features, highest score first; None if ``watch`` said no.

    ``note`` is given sentences worth saying before the work begins.

    Raises
    ------
    BudgetError
        If the cap cannot hold the passes.
    StoreError
        If the store is damaged, or replaced meanwhile.
    UsageError
        If a file names what is not there, or scores are to come from a file.
    """
    with store.unchanged():
        store.check_files()
        files = InputFiles.of(
            store,
            request.exclude_file,
            request.rows_file,
            exclude_missing=request.exclude_missing,
        )
        reading = [Lease(*lease) for lease in files.leases(store.n_features)]
        *_, leases = _scan(store, files.stand_in(), request)
        check_stages(cap_nbytes, [reading, leases])
        inputs = resolve(store, files)
        scan, score, leases = _scan(store, inputs, request)
        n_excluded = 0 if inputs.excluded is None else len(inputs.excluded)
        for sentence in request.params.notes(scan.n_rows, store.n_features - n_excluded):
            note(sentence)
        scoring = Scoring(score, scan, store.n_features)
        n_steps = scoring.n_steps
        scores = scoring.run(lambda done: watch(Step(STAGE, done, n_steps, unit="blocks")))
        if scores is None:
            return None
        names = store.names  # opened now, while it is this store
        by_source = np.empty(len(scores))
        for start, positions in store.pieces("positions"):
            by_source[positions] = scores[start : start + len(positions)]
    return _records(names, by_source)


def _scan(
    store: Store, inputs: Inputs, request: ScoreRequest
) -> tuple[Scan, ColumnScore, list[Lease]]:
    """Return what is read, what scores it, and what both need besides the process."""
    params = request.params
    scan = scan_of(store, inputs, params.matrix)
    score = params.score(ScoreGround(scan.n_rows, store.n_features, 1, request.key))
    if score is None:
        raise UsageError(f"--scores: expected leverage or norm, found {params.scores!r}.")
    leases = scoring_leases(score, scan, store.n_features)
    leases.append(("the table in order", ORDER_NBYTES * store.n_features))
    return scan, score, [Lease(*lease) for lease in leases]


def _records(names: Names, scores: NDArray[np.float64]) -> Iterator[ScoreRecord]:
    total = float(scores.sum())
    for rank, position in enumerate(np.argsort(-scores, kind="stable"), 1):
        score = float(scores[position])
        share = score / total if total > 0 else 0.0
        yield ScoreRecord(rank, names[int(position)], score, share)
