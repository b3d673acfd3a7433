"""Rows held out for validation and folds of the others, by hashes alone."""

from dataclasses import dataclass, replace
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
    strata : int (n_training,)
        Class of each training row.
    key : int
        64-bit key of the deals.
    """

    validation: NDArray[np.int32]
    training: NDArray[np.int32]
    splits: tuple[RowSplit, ...]
    own: tuple[NDArray[np.int64], ...]
    held_out: tuple[NDArray[np.int64], ...]
    whole: RowSplit
    strata: NDArray[np.integer]
    key: int

    @cached_property
    def most_predicted(self) -> int:
        """The most rows that a fold predicts."""
        return max(len(split.predicted) for split in self.splits)

    def dealt(self, number: int) -> "Folds":
        """Return the same rows held out, and the others dealt once more; 0 is the first deal."""
        n_folds = len(self.splits)
        fold = deal(self.strata, n_folds, derive(self.key, number) if number else self.key)
        splits, own, held_out = _splits(fold, n_folds, self.training, self.validation)
        return replace(self, splits=splits, own=own, held_out=held_out)


def make_folds(
    strata: NDArray[np.integer],
    n_folds: int,
    key: int,
    *,
    share: float = 0.0,
    validation: NDArray[np.int32] | None = None,
    rows: NDArray[np.int32] | None = None,
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
        Places of the rows held out, ascending, instead.
    rows : int32 (n_rows,), optional
        Which rows they are, ascending; default all.
    """
    n_rows = len(strata)
    if validation is None:
        validation = _first_of_each(strata, derive(key, _VALIDATION), share)
    is_training = np.ones(n_rows, np.bool_)
    is_training[validation] = False
    training = np.flatnonzero(is_training).astype(np.int32)
    strata = strata[training]
    if rows is not None:
        training, validation = rows[training], rows[validation]
    key = derive(key, _FOLDS)
    parts = _splits(deal(strata, n_folds, key), n_folds, training, validation)
    return Folds(validation, training, *parts, RowSplit(training, validation), strata, key)


_Places = tuple[NDArray[np.int64], ...]


def _splits(
    fold: NDArray[np.int64],
    n_folds: int,
    training: NDArray[np.int32],
    validation: NDArray[np.int32],
) -> tuple[tuple[RowSplit, ...], _Places, _Places]:
    """Return each fold's split, and where its own and the validation rows are in it."""
    splits, own, held_out = [], [], []
    for k in range(n_folds):
        rows = training[fold == k]
        predicted = np.sort(np.concatenate([rows, validation]))
        splits.append(RowSplit(training[fold != k], predicted))
        own.append(np.searchsorted(predicted, rows).astype(np.int64))
        held_out.append(np.searchsorted(predicted, validation).astype(np.int64))
    return tuple(splits), tuple(own), tuple(held_out)


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
