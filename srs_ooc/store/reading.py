"""What a store says of its rows and features, read by name: target, weights, kinds, categories."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.store.array_checks import check_categories
from srs_ooc.store.kinds import CATEGORICAL
from srs_ooc.store.layout import small_file
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.names import text_of
from srs_ooc.store.small_arrays import SmallFile, check_size, length_of, read_array, verify_array
from srs_ooc.store.validation import ImpossibleError, damaged


def read_target(path: Path, manifest: Manifest) -> NDArray[np.int32] | NDArray[np.float64]:
    """Return the target of each row: int32 (n_rows,) classes, or float64 numbers of a regression.

    Raises
    ------
    StoreError
        If the store is damaged; so do the other functions here.
    """
    if manifest.task == "regression":
        return np.asarray(read_array(path, manifest, "target_values"), dtype=np.float64)
    return np.asarray(read_array(path, manifest, "target"), dtype=np.int32)


def read_kinds(path: Path, manifest: Manifest) -> NDArray[np.uint8]:
    """Return the kind of each stored feature, uint8 (n_features,).

    The kinds are ``NUMERIC``, ``INTEGER``, ``BOOLEAN``, ``CATEGORICAL`` and ``CONSTANT`` of
    :mod:`srs_ooc.store.kinds`, by name in :data:`srs_ooc.store.kinds.KINDS`.
    """
    return np.asarray(read_array(path, manifest, "kinds"), dtype=np.uint8)


def read_weights(path: Path, manifest: Manifest) -> NDArray[np.float64] | None:
    """Return the weight of each row, float64 (n_rows,); None if the store has none."""
    if "weights" not in manifest.row_columns:
        return None
    return np.asarray(read_array(path, manifest, "weights"), dtype=np.float64)


def read_strata(path: Path, manifest: Manifest) -> NDArray[np.int32] | None:
    """Return the stratum of each row, int32 (n_rows,) from 0; None if the store has none."""
    return _read_codes(path, manifest, "strata")


def read_groups(path: Path, manifest: Manifest) -> NDArray[np.int32] | None:
    """Return the group of each row, int32 (n_rows,) from 0; None if the store has none."""
    return _read_codes(path, manifest, "groups")


def _read_codes(path: Path, manifest: Manifest, name: str) -> NDArray[np.int32] | None:
    if name not in manifest.row_columns:
        return None
    return np.asarray(read_array(path, manifest, name), dtype=np.int32)


class Categories:
    """The categories of the categorical features of a store.

    Parameters
    ----------
    path : Path
        The store.
    manifest : Manifest
        Its manifest.

    Raises
    ------
    StoreError
        If the store is damaged; so does :meth:`of`.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self._has_any = "categories_first" in manifest.small_arrays
        if self._has_any:
            self._kinds = read_kinds(path, manifest)
            self._first = read_array(path, manifest, "categories_first")
            for name in ("categories_offsets", "categories_bytes"):
                check_size(path, manifest, name)
                verify_array(path, manifest, name)
            n_offsets = length_of(path, manifest, "categories_offsets")
            self._offsets = SmallFile(path, "categories_offsets")
            self._bytes = SmallFile(path, "categories_bytes")
            n_codes = read_array(path, manifest, "n_codes")
            try:
                check_categories(self._first, self._kinds, n_codes, n_offsets)
            except ImpossibleError as error:
                raise damaged(small_file(path, "categories_first"), error) from error

    def wrong_code(self, feature: int, values: NDArray[np.floating[Any]]) -> tuple[int, str] | None:
        """Return the place of the first value of a feature that is no code, and what is wrong.

        None if it is not categorical, or all are codes of its categories or missing.
        """
        if not self._has_any or self._kinds[feature] != CATEGORICAL:
            return None
        n_codes = int(self._first[feature + 1]) - int(self._first[feature])
        is_code = (values >= 0) & (values < n_codes) & (values == np.floor(values))
        bad = ~(is_code | np.isnan(values))
        if not bad.any():
            return None
        at = int(bad.argmax())
        return at, f"expected codes of its {n_codes} categories, found {float(values[at]):g}"

    def of(self, feature: int) -> list[str] | None:
        """Return the categories of a stored feature, by code; None if it is not categorical."""
        if not self._has_any or self._kinds[feature] != CATEGORICAL:
            return None
        first, last = (int(i) for i in self._first[feature : feature + 2])
        ends = [int(i) for i in self._offsets.items(first, last + 1 - first)]
        blob = self._bytes.bytes(ends[0], ends[-1])
        starts = [end - ends[0] for end in ends]
        return [text_of(blob[start:stop], self._bytes.file) for start, stop in pairwise(starts)]
