"""Items looked at one at a time, once a closing stage is over: their columns and their tests."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.rank_tests import RankTarget, strongest_contrasts
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
        if task.is_regression:
            self._target = RankTarget.of_values(task.target.astype(np.float64), task.strata)
        else:
            labels = task.target.astype(np.int64)
            self._target = RankTarget.of_classes(labels, len(task.classes), task.strata)

    def of_all(self) -> NDArray[np.float32]:
        """Return the strength of every item, minus the decimal logarithm of its p-value.

        Of single precision, as there are many; NaN where left out.
        """
        n_items = self._resources.spec.n_items(self._manifest.n_features)
        found = self.of(np.arange(n_items, dtype=np.uint32))
        candidates = self._resources.candidates
        if candidates is not None:
            is_out = np.ones(n_items, np.bool_)
            is_out[candidates] = False
            found[is_out] = np.nan
        return found

    def of(self, items: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the strengths of some items, the same as among all."""
        found, done = np.zeros(len(items), np.float32), 0
        for some, _ in self._tested(items):
            found[done : done + len(some)] = some
            done += len(some)
        return found

    def contrasts_of(self, items: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """Return the :class:`Contrast` that shows most of each of some items."""
        some = [contrasts for _, contrasts in self._tested(items)]
        return np.concatenate([np.zeros(0, np.uint8), *some])

    def _tested(
        self, items: NDArray[np.uint32]
    ) -> Iterator[tuple[NDArray[np.float64], NDArray[np.uint8]]]:
        for columns in item_columns(self._resources, items):
            codes, n_codes = columns, self._manifest.missing_code
            if self._manifest.code_nbytes > 1:
                codes, n_codes = _dense(codes, n_codes)
            yield strongest_contrasts(codes, n_codes, self._target)


def _dense(columns: NDArray[Any], missing_code: int) -> tuple[NDArray[np.uint16], int]:
    """Return the codes numbered from 0 as they are in use, missing ones last, and how many."""
    codes, inverse = np.unique(columns, return_inverse=True)
    dense = inverse.reshape(columns.shape).astype(np.uint16)
    return dense, int(np.count_nonzero(codes != missing_code))


def item_columns(resources: Resources, items: NDArray[np.uint32]) -> Iterator[NDArray[Any]]:
    """Yield the codes of items, some (n_columns, n_rows) at a time; the memory is used again."""
    n_rows = resources.n_rows
    size = max(1, min(_COLUMNS, _CELLS // n_rows, len(items)))
    block = Block(size, n_rows, resources.manifest.code_nbytes, tiled=False)
    for start in range(0, len(items), size):
        some = np.ascontiguousarray(items[start : start + size])
        resources.source.gather(some, block)
        yield block.as_columns(len(some))
