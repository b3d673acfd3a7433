"""Trees on made-up codes, timed: what growing takes on a table of some shape."""

import time
from collections.abc import Callable

import numpy as np

from srs_ooc.base.records import Candidates, Iteration, RowSplit, Subspace
from srs_ooc.base.seeds import derive_array, scale_below
from srs_ooc.learners.tree_learner import Columns, TreeLearner
from srs_ooc.planning.subject import Subject
from srs_ooc.runs.spec import fits_of
from srs_ooc.samplers.base import Fits
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import Response, TrainingRows

JUDGED_CANDIDATES, JUDGED_SPLITS = 32, 5
"""Made-up candidates that are judged together, and the folds of each."""
_PIECE = 1 << 13


def fits(subject: Subject) -> Fits:
    """Return the models of an iteration of a run."""
    return fits_of(subject.spec, subject.shape.n_candidates)


def seconds_of_a_tree(subject: Subject, n_rows: int, n_columns: int, seconds: float) -> float:
    """Return the mean seconds of a tree on random codes and labels."""
    spec = subject.spec
    learner = TreeLearner(_made_up_rows(subject, n_rows), spec.limits, spec.subspace_size)
    block = _made_up_block(subject, n_rows, n_columns, tiled=learner.tiled)
    features = np.arange(n_columns, dtype=np.uint32)
    return _mean_seconds(lambda number: learner.grow(block, features, number), seconds)


def seconds_of_candidates(subject: Subject, n_rows: int, n_columns: int, seconds: float) -> float:
    """Return the seconds of the models of an iteration that judges candidates.

    They are of all sizes up to the largest. How many are given up early depends on the table:
    hardly any of these few are.
    """
    spec, asked = subject.spec, fits(subject)
    rows = _made_up_rows(subject, n_rows)
    learner = TreeLearner(rows, spec.limits, spec.subspace_size, candidates=True)
    most = min(asked.n_columns, n_columns)
    n_columns = min(n_columns, JUDGED_CANDIDATES * most)  # about as many for each as there are
    block = _made_up_block(subject, n_rows, n_columns, tiled=learner.tiled)
    sizes = 1 + np.arange(JUDGED_CANDIDATES) * most // JUDGED_CANDIDATES
    places = [i * (n_columns - size) // JUDGED_CANDIDATES + np.arange(size)
              for i, size in enumerate(sizes.tolist())]  # fmt: skip
    every = np.arange(n_rows, dtype=np.int32)
    splits = tuple(
        RowSplit(every[every % JUDGED_SPLITS != fold], every[every % JUDGED_SPLITS == fold])
        for fold in range(JUDGED_SPLITS)
    )
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    candidates = Candidates(np.concatenate(places).astype(np.int32), bounds, splits)
    features = np.arange(n_columns, dtype=np.uint32)
    subspace, columns = Subspace(features, candidates), Columns(features, features)
    each = _mean_seconds(
        lambda number: learner.fit(block, columns, Iteration(number, subspace, number)), seconds
    )
    return each * asked.n_models / (JUDGED_CANDIDATES * JUDGED_SPLITS)


def _made_up_rows(subject: Subject, n_rows: int) -> TrainingRows:
    response = _made_up_response(subject, n_rows)
    return TrainingRows.of(response, subject.spec.learner.impurity)


def _made_up_block(subject: Subject, n_rows: int, n_columns: int, *, tiled: bool) -> Block:
    """Return a block of random codes."""
    block = Block(n_columns, n_rows, subject.shape.code_nbytes, tiled=tiled)
    for start in range(0, len(block.codes), _PIECE):
        codes = block.codes[start : start + _PIECE]
        hashes = derive_array(start, np.arange(len(codes), dtype=np.uint32))
        codes[:] = scale_below(hashes, min(n_rows, 254))
    return block


def _mean_seconds(work: Callable[[int], object], seconds: float) -> float:
    """Return the mean seconds of pieces of work, numbered from 0, done for about so long."""
    started, n_done = time.monotonic(), 0
    while n_done == 0 or time.monotonic() - started < seconds:
        work(n_done)
        n_done += 1
    return (time.monotonic() - started) / n_done


def _made_up_response(subject: Subject, n_rows: int) -> Response:
    """Return classes in the proportions of the subject's, or targets all different."""
    shape = subject.shape
    places = np.arange(n_rows) * (shape.n_rows / n_rows)
    weights = np.ones(n_rows)
    if shape.is_regression:
        return Response.targets(places, weights if shape.n_channels > 1 else None)
    labels = np.searchsorted(np.cumsum(subject.class_counts), places, side="right")
    return Response.classes(labels, shape.n_classes, weights if shape.n_channels else None)
