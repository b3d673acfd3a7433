"""Rows held out for validation and folds of the others, by hashes alone."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import RowSplit
from srs_ooc.base.seeds import derive, derive_array, scale_below

_VALIDATION, _FOLDS = 1, 2


@dataclass(frozen=True)
class Folds:
    """How rows are shared out.

    Attributes
    ----------
    validation : int32 (n_validation,)
        Rows on which nothing is fitted, ascending.
    training : int32 (n_training,)
        All others.
    splits : tuple of RowSplit
        Of each fold: fitted on the training rows of the others, predicting its own rows and the
        validation rows.
    own : tuple of int64 arrays
        Where each fold's own rows are among those it predicts.
    held_out : tuple of int64 arrays
        Where the validation rows are among them.
    whole : RowSplit
        Fitted on all training rows, predicting the validation rows.
    """

    validation: NDArray[np.int32]
    training: NDArray[np.int32]
    splits: tuple[RowSplit, ...]
    own: tuple[NDArray[np.int64], ...]
    held_out: tuple[NDArray[np.int64], ...]
    whole: RowSplit

    @cached_property
    def most_predicted(self) -> int:
        """The most rows that a fold predicts."""
        return max(len(split.predicted) for split in self.splits)


def make_folds(
    strata: NDArray[np.integer],
    n_folds: int,
    key: int,
    *,
    share: float = 0.0,
    validation: NDArray[np.int32] | None = None,
) -> Folds:
    """Return the folds of some rows: as even in each stratum as can be.

    Parameters
    ----------
    strata : int (n_rows,)
        Class of each row; all the same in a regression.
    n_folds : int
        At least 2.
    key : int
        64-bit key of the draws.
    share : float
        Share of each stratum's rows held out for validation, rounded.
    validation : int32, optional
        The rows held out, ascending, instead.
    """
    n_rows = len(strata)
    if validation is None:
        validation = _first_of_each(strata, derive(key, _VALIDATION), share)
    is_training = np.ones(n_rows, np.bool_)
    is_training[validation] = False
    training = np.flatnonzero(is_training).astype(np.int32)
    fold = deal(strata[training], n_folds, derive(key, _FOLDS))
    splits = []
    for k in range(n_folds):
        predicted = np.sort(np.concatenate([training[fold == k], validation]))
        splits.append(RowSplit(training[fold != k], predicted))
    return Folds(
        validation,
        training,
        tuple(splits),
        tuple(
            np.searchsorted(s.predicted, training[fold == k]).astype(np.int64)
            for k, s in enumerate(splits)
        ),
        tuple(np.searchsorted(s.predicted, validation).astype(np.int64) for s in splits),
        RowSplit(training, validation),
    )


def deal(strata: NDArray[np.integer], n_folds: int, key: int) -> NDArray[np.int64]:
    """Return the fold of each row: as even in each stratum as can be; int64 (n_rows,)."""
    fold = np.empty(len(strata), np.int64)
    fold[_shuffled(strata, key)] = np.arange(len(strata)) % n_folds
    return fold


def resample(rows: NDArray[np.int32], key: int) -> RowSplit:
    """Return as many of some rows, drawn with replacement, to predict those not drawn."""
    n_rows = len(rows)
    hashes = derive_array(key, np.arange(n_rows, dtype=np.uint64))
    times = np.bincount(scale_below(hashes, n_rows).astype(np.int64), minlength=n_rows)
    return RowSplit(np.repeat(rows, times), rows[times == 0])


def _shuffled(strata: NDArray[np.integer], key: int) -> NDArray[np.intp]:
    """Return places by stratum, in each by hash."""
    hashes = derive_array(key, np.arange(len(strata), dtype=np.uint64))
    return np.lexsort((hashes, strata))


def _first_of_each(strata: NDArray[np.integer], key: int, share: float) -> NDArray[np.int32]:
    order = _shuffled(strata, key)
    in_order = strata[order]
    starts = np.searchsorted(in_order, in_order)
    sizes = np.searchsorted(in_order, in_order, side="right") - starts
    is_first = np.arange(len(order)) - starts < np.rint(share * sizes)
    return np.sort(order[is_first]).astype(np.int32)
