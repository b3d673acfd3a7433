"""Columns scored by themselves, as a table; and the principal components that the passes find."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import srs_ooc.extend as core
from srs_ooc.methods.less.less import LEVERAGE, ScoreParams
from srs_ooc.methods.less.leverage import Leverage, SketchedLeverage

# Columns scored by themselves, without trees, as a table by score.


@dataclass(frozen=True)
class ScoreRecord:
    """A feature's score, and what it is of the sum."""

    rank: int
    name: str
    score: float
    share: float


def score_table(
    store: core.Store,
    params: ScoreParams,
    request: core.Request,
    watch: core.Watch,
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

    def scoring_of(inputs: core.Inputs) -> core.Scoring:
        if (scoring := core.Scoring.of(params.score, params.matrix, store, inputs, key)) is None:
            raise core.UsageError(f"scores: expected leverage or norm, found {params.scores!r}.")
        return scoring

    n_features = store.n_features
    with store.unchanged():
        store.check_files()
        named, exclude_missing = (request.exclude_file, request.rows_file), request.exclude_missing
        files = core.InputFiles(store, *named, exclude_missing=exclude_missing)
        leases = [
            *scoring_of(files.stand_in()).leases,
            core.Lease("the table in order", 24 * n_features),
        ]
        core.check_stages(request.cap_mb * core.MB, [files.leases(), leases])
        inputs = files.resolve()
        scoring = scoring_of(inputs)
        n_excluded = 0 if inputs.excluded is None else len(inputs.excluded)
        for sentence in params.notes(scoring.scan.n_rows, n_features - n_excluded):
            note(sentence)
        if (scores := scoring.scores(watch)) is None:
            return None
        names = store.names  # opened now, while it is this store
        by_source = np.empty(len(scores))
        for start, positions in store.pieces("positions"):
            by_source[positions] = scores[start : start + len(positions)]
    return _records(names.__getitem__, by_source)


def _records(name_of: Callable[[int], str], scores: core.Floats) -> Iterator[ScoreRecord]:
    total = float(scores.sum())
    for rank, position in enumerate(np.argsort(-scores, kind="stable"), 1):
        score = float(scores[position])
        share = score / total if total > 0 else 0.0
        yield ScoreRecord(rank, name_of(int(position)), score, share)


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

    scores: core.Floats
    shares: core.Floats
    n_features: int
    is_exact: bool


def principal_components(
    store: core.Store, k: int, cap_nbytes: int, watch: core.Watch
) -> Components | None:
    """Return the first ``k`` components; None if ``watch`` said no.

    Features are their codes (ranks of the distinct values; of genotypes the alleles counted), less
    the mean, divided by the standard deviation; a missing cell is the mean. Up to 3,000 rows the
    Gram matrix of the rows is summed in one pass; of more rows a random sketch of k + 10 columns
    is, in six (:class:`srs_ooc.methods.less.leverage.SketchedLeverage`). The same bits on every
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
    _check_enough(k, min(n_rows - 1, n_features), "rows - 1, or features")
    how = ScoreParams(
        scores=LEVERAGE, rank=k, center=False, matrix=core.VALUES, power_passes=POWER_PASSES
    )
    score, size = how.score(n_rows, 0, core.key_of(0)), core.block_columns(n_rows)
    assert isinstance(score, Leverage)
    categories = bool(store.manifest.kind_counts.get("categorical"))
    leases = [
        core.Lease("sums and vectors", score.nbytes + 24 * k * n_rows),
        core.Lease("a block of columns", core.Scan(store, size).nbytes + 16 * size * n_rows),
        core.Lease("marks of categories", categories * 6 * n_features),
    ]
    core.check_stages(cap_nbytes, [leases])
    n_passes, done, n_used = score.n_passes - 1, 0, 0  # the last one would score columns
    n_steps = n_passes * core.ceil_div(n_features, size)
    with store.unchanged():
        flags = core.categorical_features(store)
        named = None if flags is None else np.flatnonzero(flags).astype(np.uint32)
        scan = core.Scan(store, size, excluded=named)
        for _ in range(n_passes):
            n_used = 0
            for first, columns in scan.blocks():
                some = _standardised(columns)
                n_used += int(np.count_nonzero(some.any(axis=1)))
                score.update(first, some)
                done += 1
                if not watch(core.Step("components", done, n_steps, unit="blocks")):
                    return None
            score.end_pass()
    _check_enough(k, len(score.vectors), "what rows and features have")
    vectors = score.vectors
    signs = np.sign(vectors[np.arange(k), np.abs(vectors).argmax(axis=1)])
    scores = (vectors * (signs * np.sqrt(n_rows))[:, None]).T
    return Components(
        scores, score.squares / n_used, n_used, not isinstance(score, SketchedLeverage)
    )


def _check_enough(k: int, most: int, why: str) -> None:
    if k > most:
        raise core.UsageError(
            f"-k: expected at most {most:,} components ({why}), found {k:,}. Ask for fewer."
        )


def _standardised(columns: core.ScoredColumns) -> core.Floats:
    """Return columns of mean 0 and length 1; constant ones are 0."""
    some = columns.astype(np.float64)
    some -= some.mean(axis=1)[:, None]
    lengths = np.sqrt(np.square(some).sum(axis=1))
    some /= np.where(lengths > 0, lengths, 1.0)[:, None]
    return some
