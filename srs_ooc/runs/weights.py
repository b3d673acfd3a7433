"""What features are drawn by: scores of their columns, computed once and kept in the ledger.

And the principal components of rows, which the same passes find.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Budget, Lease, check_stages
from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Pages, Saved, State, Step, Watch, n_pages
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import MB
from srs_ooc.runs.inputs import WEIGHTS, InputFiles, Inputs
from srs_ooc.runs.resources import categorical_features
from srs_ooc.runs.run import Run
from srs_ooc.runs.run_memory import LEDGER_NBYTES
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task
from srs_ooc.samplers.column_scores import (
    CODES,
    MOST_ROWS,
    VALUES,
    Columns,
    ColumnScore,
    Leverage,
    SketchedLeverage,
    block_columns,
    integer_weights,
    n_blocks,
    score_columns,
)
from srs_ooc.samplers.less import ScoreParams
from srs_ooc.store.arrays import Names
from srs_ooc.store.store import Scan, Store

STAGE = "scoring columns"


class Weights:
    """The weights of all features, as a ledger commits them; uint32 (n_features,)."""

    def __init__(self) -> None:
        self.weights = np.zeros(0, np.uint32)

    def state(self) -> State:
        """Return all pages: they are written once."""
        changed = np.ones(n_pages(len(self.weights)), np.bool_)
        return State({WEIGHTS: Pages(self.weights, changed)})

    def restore(self, saved: Saved) -> None:
        """Take the weights back; none where they were not committed yet."""
        self.weights = np.zeros(saved.length(WEIGHTS), np.uint32)
        saved.fill(WEIGHTS, self.weights)


def scores_of(
    score: ColumnScore, scan: Scan, n_features: int, watch: Watch
) -> NDArray[np.float64] | None:
    """Score all columns of a run; None if ``watch`` said no.

    Parameters
    ----------
    score : ColumnScore
        As new.
    scan : Scan
        The columns of features.
    n_features : int
        Features of the store.
    watch : callable
        Told how many blocks of all passes are done.
    """
    n_steps, done = score.n_passes * n_blocks(n_features, scan.n_rows), 0

    def going() -> bool:
        nonlocal done
        done += 1
        return watch(Step(STAGE, done, n_steps, unit="blocks"))

    return score_columns(score, scan.blocks, going)


def with_weights(
    ledger: Run, spec: RunSpec, store: Store, task: Task, cap_nbytes: int, watch: Watch
) -> Task | None:
    """Return the task of a run with the weights of its features; None if ``watch`` said no.

    Of a method that has columns scored: from the ledger, or computed and committed there.

    Raises
    ------
    BudgetError
        If the cap cannot hold the passes.
    StoreError
        If the store is replaced meanwhile.
    """
    if not spec.method.draws_by_scores or task.inputs.weights is not None:
        return task
    part = Weights()
    progress = ledger.load({WEIGHTS: part})
    if not len(part.weights):
        with store.unchanged():
            check_stages(cap_nbytes, [needs_of(spec, store, task)])
            parts = _parts_of(spec, store, task)
            assert parts is not None
            scores = scores_of(*parts, store.n_features, watch)
        if scores is None:
            return None
        part.weights = integer_weights(scores)
        ledger.commit(progress, {WEIGHTS: part.state()})
    return replace(task, inputs=replace(task.inputs, weights=part.weights))


def needs_of(spec: RunSpec, store: Store, task: Task) -> list[Lease]:
    """Return what scoring the columns of a run needs besides the process; empty if nothing is.

    Raises
    ------
    UsageError
        If the store keeps no values and they are to be scored.
    """
    parts = _parts_of(spec, store, task)
    if parts is None:
        return []
    score, scan = parts
    return scoring_leases(score, scan, store.n_features)


def scoring_leases(score: ColumnScore, scan: Scan, n_features: int) -> list[Lease]:
    """Return what passes over the columns need besides the process."""
    return [
        Lease("scoring columns", score.nbytes),
        Lease("a block of columns", scan.nbytes),
        Lease(f"weights of {n_features} features", 4 * n_features),
        Lease("the run's record", LEDGER_NBYTES),
    ]


def _parts_of(spec: RunSpec, store: Store, task: Task) -> tuple[ColumnScore, Scan] | None:
    score = spec.sampler.score(task.n_rows, store.n_features, spec.run.seed)
    if score is None:
        return None
    return score, scan_of(store, task.inputs, getattr(spec.sampler, "matrix", CODES))


def scan_of(store: Store, inputs: Inputs, matrix: str) -> Scan:
    """Return the scan of the training rows of a store.

    Raises
    ------
    UsageError
        If the store keeps no values and they are to be scored.
    """
    if matrix == VALUES and store.manifest.values_dtype is None:
        raise UsageError(
            f"--matrix values: expected a store that keeps the values, found {store.place}, which "
            "keeps only codes. Score the codes with --matrix codes, or ingest without --no-values."
        )
    n_rows = store.n_rows if inputs.rows is None else len(inputs.rows)
    return Scan(
        store,
        block_columns(n_rows),
        rows=inputs.rows,
        excluded=inputs.excluded,
        values=matrix == VALUES,
    )


# Columns scored by themselves, without trees, as a table by score.


@dataclass(frozen=True)
class ScoreRecord:
    """A feature's score, and what it is of the sum."""

    rank: int
    name: str
    score: float
    share: float


def score_table(
    store: Store,
    params: ScoreParams,
    request: Request,
    watch: Watch,
    *,
    key: int,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[ScoreRecord] | None:
    """Return the features, highest score first; None if ``watch`` said no.

    Parameters
    ----------
    store : Store
        The store.
    params : ScoreParams
        What columns are scored by.
    request : Request
        The features and rows that are left out, and the cap.
    watch : callable
        Told how far the passes are.
    key : int
        What is drawn by chance follows from it.
    note : callable
        Given sentences worth saying before the work begins.

    Raises
    ------
    BudgetError
        If the cap cannot hold the passes.
    StoreError
        If the store is damaged, or replaced meanwhile.
    UsageError
        If a file names what is not there, or scores are to come from a file.
    """

    def prepared(inputs: Inputs) -> tuple[ColumnScore, Scan, list[Lease]]:
        scan = scan_of(store, inputs, params.matrix)
        score = params.score(scan.n_rows, n_features, key)
        if score is None:
            raise UsageError(f"--scores: expected leverage or norm, found {params.scores!r}.")
        order = Lease("the table in order", 24 * n_features)
        return score, scan, [*scoring_leases(score, scan, n_features), order]

    n_features = store.n_features
    with store.unchanged():
        store.check_files()
        named, exclude_missing = (request.exclude_file, request.rows_file), request.exclude_missing
        files = InputFiles(store, *named, exclude_missing=exclude_missing)
        *_, leases = prepared(files.stand_in())
        check_stages(request.cap_mb * MB, [files.leases(), leases])
        inputs = files.resolve()
        score, scan, _ = prepared(inputs)
        n_excluded = 0 if inputs.excluded is None else len(inputs.excluded)
        for sentence in params.notes(scan.n_rows, n_features - n_excluded):
            note(sentence)
        scores = scores_of(score, scan, n_features, watch)
        if scores is None:
            return None
        names = store.names  # opened now, while it is this store
        by_source = np.empty(len(scores))
        for start, positions in store.pieces("positions"):
            by_source[positions] = scores[start : start + len(positions)]
    return _records(names, by_source)


def _records(names: Names, scores: NDArray[np.float64]) -> Iterator[ScoreRecord]:
    total = float(scores.sum())
    for rank, position in enumerate(np.argsort(-scores, kind="stable"), 1):
        score = float(scores[position])
        share = score / total if total > 0 else 0.0
        yield ScoreRecord(rank, names[int(position)], score, share)


# Principal components of the rows, over all features: what to adjust for.

POWER_PASSES = 4
"""Passes that make approximate components sharper; there are two more."""


@dataclass(frozen=True)
class Components:
    """Principal components of rows.

    Attributes
    ----------
    scores : float64 (n_rows, k)
        Of mean 0 and variance 1; the largest in size of each component is positive.
    shares : float64 (k,)
        Of the variance of all standardised features; largest first.
    n_features : int
        Features that they are over: all but constant and categorical ones.
    is_exact : bool
        Whether they are of the rows' whole Gram matrix, not of a random sketch.
    """

    scores: NDArray[np.float64]
    shares: NDArray[np.float64]
    n_features: int
    is_exact: bool


def principal_components(store: Store, k: int, cap_nbytes: int, watch: Watch) -> Components | None:
    """Return the first ``k`` components; None if ``watch`` said no.

    Features are their codes (ranks of the distinct values; of genotypes the alleles counted), less
    the mean, divided by the standard deviation; a missing cell is the mean. Up to 3,000 rows the
    Gram matrix of the rows is summed in one pass; of more rows a random sketch of k + 10 columns
    is, in six (:class:`srs_ooc.samplers.column_scores.SketchedLeverage`). The same bits on every
    machine.

    Raises
    ------
    UsageError
        If there are not so many components.
    BudgetError
        If the cap cannot hold the passes.
    StoreError
        If the store is damaged, or replaced meanwhile.
    """
    n_rows, n_features = store.n_rows, store.n_features
    is_exact, size = n_rows <= MOST_ROWS, block_columns(n_rows)
    _check_enough(k, min(n_rows - 1, n_features), "rows - 1, or features")
    sizes, key = (n_rows, 0, k), key_of(0, Purpose.SKETCH)
    score = (
        Leverage(*sizes, center=False)
        if is_exact
        else SketchedLeverage(*sizes, center=False, power_passes=POWER_PASSES, key=key)
    )
    categories = bool(store.manifest.kind_counts.get("categorical"))
    leases = [
        Lease("sums and vectors", score.nbytes + 24 * k * n_rows),
        Lease("a block of columns", Scan(store, size).nbytes + 16 * size * n_rows),
        Lease("marks of categories", categories * 6 * n_features),
    ]
    Budget(cap_nbytes, leases).check()
    n_passes, done, n_used = score.n_passes - 1, 0, 0  # the last one would score columns
    n_steps = n_passes * n_blocks(n_features, n_rows)
    with store.unchanged():
        flags = categorical_features(store)
        named = None if flags is None else np.flatnonzero(flags).astype(np.uint32)
        scan = Scan(store, size, excluded=named)
        for _ in range(n_passes):
            n_used = 0
            for first, columns in scan.blocks():
                some = _standardised(columns)
                n_used += int(np.count_nonzero(some.any(axis=1)))
                score.update(first, some)
                done += 1
                if not watch(Step("components", done, n_steps, unit="blocks")):
                    return None
            score.end_pass()
    _check_enough(k, len(score.vectors), "what rows and features have")
    vectors = score.vectors
    signs = np.sign(vectors[np.arange(k), np.abs(vectors).argmax(axis=1)])
    scores = (vectors * (signs * np.sqrt(n_rows))[:, None]).T
    return Components(scores, score.squares / n_used, n_used, is_exact)


def _check_enough(k: int, most: int, why: str) -> None:
    if k > most:
        raise UsageError(
            f"-k: expected at most {most:,} components ({why}), found {k:,}. Ask for fewer."
        )


def _standardised(columns: Columns) -> NDArray[np.float64]:
    """Return columns of mean 0 and length 1; constant ones are 0."""
    some = columns.astype(np.float64)
    some -= some.mean(axis=1)[:, None]
    lengths = np.sqrt(np.square(some).sum(axis=1))
    some /= np.where(lengths > 0, lengths, 1.0)[:, None]
    return some
