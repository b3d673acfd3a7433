"""Items looked at one at a time, once a closing stage is over: their columns and their tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.fitting import EngineParts
from srs_ooc.kernel.block import Block
from srs_ooc.kernel.rank_tests import RankTarget, strengths
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.reading import read_strata, read_target

_CELLS = 1 << 20
"""Codes looked at together."""
_COLUMNS = 64


class MarginalTests:
    """Rank tests of items against the target, one at a time, within strata where there are any.

    A replay's target is permuted.
    """

    def __init__(self, parts: EngineParts, store: Path, manifest: Manifest) -> None:
        target, strata = read_target(store, manifest), read_strata(store, manifest)
        if parts.source.rows is not None:
            target = target[parts.source.rows]
            strata = None if strata is None else strata[parts.source.rows]
        if parts.target_order is not None:
            target = target[parts.target_order]
        self._parts, self._manifest = parts, manifest
        if manifest.task == "regression":
            self._target = RankTarget.of_values(target.astype(np.float64), strata)
        else:
            labels, n_classes = target.astype(np.int64), len(manifest.classes)
            self._target = RankTarget.of_classes(labels, n_classes, strata)

    def of_all(self) -> NDArray[np.float32]:
        """Return the strength of every item, minus the decimal logarithm of its p-value.

        Of single precision, as there are many; NaN where left out.
        """
        n_items = self._parts.spec.n_items(self._manifest.n_features)
        found = self.of(np.arange(n_items, dtype=np.uint32))
        candidates = self._parts.sampler.candidates
        if candidates is not None:
            is_out = np.ones(n_items, np.bool_)
            is_out[candidates] = False
            found[is_out] = np.nan
        return found

    def of(self, items: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the strengths of some items, the same as among all."""
        found, done = np.zeros(len(items), np.float32), 0
        for some in item_columns(self._parts, items, self._manifest):
            found[done : done + len(some)] = self._test(some)
            done += len(some)
        return found

    def _test(self, columns: NDArray[Any]) -> NDArray[np.float64]:
        n_codes = self._manifest.missing_code
        if self._manifest.code_nbytes > 1:
            columns, n_codes = _dense(columns, n_codes)
        return strengths(columns, n_codes, self._target)


def _dense(columns: NDArray[Any], missing_code: int) -> tuple[NDArray[np.uint16], int]:
    """Return the codes numbered from 0 as they are in use, missing ones last, and how many."""
    codes, inverse = np.unique(columns, return_inverse=True)
    dense = inverse.reshape(columns.shape).astype(np.uint16)
    return dense, int(np.count_nonzero(codes != missing_code))


def item_columns(
    parts: EngineParts, items: NDArray[np.uint32], manifest: Manifest
) -> Iterator[NDArray[Any]]:
    """Yield the codes of items, some (n_columns, n_rows) at a time; the memory is used again."""
    n_rows = parts.n_rows
    size = max(1, min(_COLUMNS, _CELLS // n_rows, len(items)))
    block = Block(size, n_rows, manifest.code_nbytes, tiled=False)
    for start in range(0, len(items), size):
        some = np.ascontiguousarray(items[start : start + size])
        parts.source.gather(some, block)
        yield block.as_columns(len(some))
