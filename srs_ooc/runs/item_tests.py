"""Items looked at one at a time, once a closing stage is over: their columns and their tests."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence import marginal, stratified
from srs_ooc.runs.resources import Resources
from srs_ooc.trees.block import Block

_CELLS = 1 << 20
"""Codes looked at together."""
_COLUMNS = 64


class MarginalTests:
    """Rank tests of items against the target, one at a time, within strata where there are any.

    The target is that of the task: a permutation run's is permuted.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources, self._manifest = resources, resources.manifest
        task = resources.task
        target, strata = task.target, task.strata
        self._strata = None if strata is None else stratified.rows_by_stratum(strata)
        self._labels = self._ranks = None
        if task.is_regression:
            self._ranks = marginal.target_ranks(target.astype(np.float64))
        else:
            self._labels = target.astype(np.int64)

    def of_all(self) -> NDArray[np.float32]:
        """Return the p-value of every item; float32, as there are many; NaN where left out."""
        n_items = self._resources.spec.n_items(self._manifest.n_features)
        p_values = self._of(np.arange(n_items, dtype=np.uint32), np.dtype(np.float32))
        candidates = self._resources.candidates
        if candidates is not None:
            is_out = np.ones(n_items, np.bool_)
            is_out[candidates] = False
            p_values[is_out] = np.nan
        return p_values

    def of(self, items: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return the p-values of some items."""
        return self._of(items, np.dtype(np.float64))

    def _of(self, items: NDArray[np.uint32], dtype: np.dtype[Any]) -> NDArray[Any]:
        p_values = np.ones(len(items), dtype)
        least, done = np.finfo(dtype).tiny, 0  # 0 would read as: none passes
        for some in item_columns(self._resources, items):
            p_values[done : done + len(some)] = np.maximum(self._test(some), least)
            done += len(some)
        return p_values

    def _test(self, columns: NDArray[Any]) -> NDArray[np.float64]:
        n_codes = self._manifest.missing_code
        if self._manifest.code_nbytes > 1:
            columns, n_codes = _dense(columns, n_codes)
        labels, ranks, strata = self._labels, self._ranks, self._strata
        if ranks is not None:
            if strata is None:
                return marginal.rank_correlation_p_values(columns, ranks, n_codes)
            return stratified.rank_correlation_p_values(columns, ranks, n_codes, strata)
        assert labels is not None
        n_classes = len(self._manifest.classes)
        if strata is None:
            return marginal.class_p_values(columns, labels, n_classes, n_codes)
        return stratified.class_p_values(columns, labels, n_classes, n_codes, strata)


def _dense(columns: NDArray[Any], missing_code: int) -> tuple[NDArray[np.int64], int]:
    """Return the codes numbered from 0 as they are in use, missing ones last, and how many."""
    codes, inverse = np.unique(columns, return_inverse=True)
    return inverse.reshape(columns.shape), int(np.count_nonzero(codes != missing_code))


def item_columns(resources: Resources, items: NDArray[np.uint32]) -> Iterator[NDArray[Any]]:
    """Yield the codes of items, some (n_columns, n_rows) at a time; the memory is used again."""
    n_rows = resources.n_rows
    size = max(1, min(_COLUMNS, _CELLS // n_rows, len(items)))
    block = Block(size, n_rows, resources.manifest.code_nbytes, tiled=False)
    for start in range(0, len(items), size):
        some = np.ascontiguousarray(items[start : start + size])
        resources.source.gather(some, block)
        yield block.as_columns(len(some))
