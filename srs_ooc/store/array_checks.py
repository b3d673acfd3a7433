"""What must hold of the items of the small arrays, whatever their checksums say."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.store.coding import max_codes
from srs_ooc.store.kinds import CATEGORICAL, NAMES
from srs_ooc.store.layout import SMALL_ARRAYS
from srs_ooc.store.validation import ImpossibleError, Record, wrong


class ArrayCheck:
    """Checks the items of a small array as they are read, some at a time.

    Parameters
    ----------
    name : str
        The array.
    record : dict
        The manifest as JSON; it has been checked.
    """

    def __init__(self, name: str, record: Record) -> None:
        self._name, self._record = name, record
        self._dtype = np.dtype(SMALL_ARRAYS[name])
        self._counts = np.zeros(1, np.int64)
        self._seen = np.zeros(record["n_features"] if name == "positions" else 0, np.bool_)
        self._last: int | None = None
        self._error: ImpossibleError | None = None
        self._n_missing = self._n_with = 0

    def feed(self, data: bytes) -> None:
        """Check the next bytes, whole items.

        What is wrong is kept until the end, so that a checksum that is wrong too is named first.
        """
        if self._error is None:
            try:
                self._feed(data)
            except ImpossibleError as error:
                self._error = error

    def _feed(self, data: bytes) -> None:
        if self._name.endswith(("_offsets", "_first")):
            self._check_ascending(np.frombuffer(data, self._dtype))
        elif self._name == "exact":
            self._within(np.frombuffer(data, np.uint8), 0, 1)
        elif not self._name.endswith(("_bytes", "_crc32c")):
            self._check_items(np.frombuffer(data, self._dtype))

    def _check_items(self, items: NDArray[Any]) -> None:
        r = self._record
        if self._name in ("target_values", "weights"):
            low = 0.0 if self._name == "weights" else -np.inf
            bad = ~(np.isfinite(items) & (items > low))
            if bad.any():
                wrong(f"finite {'positive ' * (low == 0)}numbers", float(items[bad.argmax()]))
            return
        most = {
            "target": len(r["classes"]) - 1,
            "kinds": len(NAMES) - 1,
            "positions": r["n_features"] - 1,
            "n_codes": min(max_codes(r["code_dtype"]), r["n_rows"]),
            "n_missing": r["n_rows"],
            "strata": r["n_rows"] - 1,
            "groups": r["n_rows"] - 1,
        }[self._name]
        self._within(items, 0, most)
        if self._name in ("target", "kinds"):
            self._counts = self._counts + np.bincount(items, minlength=most + 1)
        elif self._name == "positions":
            self._seen[items] = True
        elif self._name == "n_missing":
            self._n_missing += int(items.sum(dtype=np.int64))
            self._n_with += int(np.count_nonzero(items))

    def _within(self, items: NDArray[Any], low: int, high: int) -> None:
        bad = (items < low) | (items > high)
        if bad.any():
            wrong(f"{low} .. {high}", int(items[bad.argmax()]))

    def _check_ascending(self, items: NDArray[Any]) -> None:
        if self._last is None and int(items[0]) != 0:
            wrong("0 as the first offset", int(items[0]))
        if (items[1:] < items[:-1]).any() or int(items[0]) < (self._last or 0):
            wrong("offsets that do not descend", "one that does")
        self._last = int(items[-1])

    def end(self) -> None:
        """Check what holds of all items together.

        Raises
        ------
        ImpossibleError
            If it does not, or an item cannot be.
        """
        if self._error is not None:
            raise self._error
        r, name = self._record, self._name
        facts: dict[str, tuple[Any, Any]] = {
            "target": (list(r["class_counts"]), self._counts.tolist()),
            "kinds": ([r["kind_counts"][kind] for kind in NAMES], self._counts.tolist()),
            "positions": ("each feature once", "each feature once"),
            "n_missing": (
                [r["n_missing_cells"], r["n_missing_features"]],
                [self._n_missing, self._n_with],
            ),
        }
        if name == "positions" and not self._seen.all():
            wrong("each feature once", f"no {int(self._seen.argmin())}")
        if name in facts and facts[name][0] != facts[name][1]:
            wrong(f"counts {facts[name][0]} as in the manifest", facts[name][1])
        if name.endswith("_offsets"):
            last = max(1, self._last or 0)
            most = r.get("lengths", {}).get(name.replace("_offsets", "_bytes"), last)
            if last != most:
                wrong(f"{most} bytes of texts", self._last)


def check_categories(
    first: NDArray[Any], kinds: NDArray[np.uint8], n_codes: NDArray[Any], n_offsets: int
) -> None:
    """Check that each categorical feature, and no other, has as many categories as codes.

    Parameters
    ----------
    first : uint32 (n_features + 1,)
        First category of each feature.
    kinds, n_codes : uint8, uint16 (n_features,)
        Kind and codes of each feature.
    n_offsets : int
        Length of the offsets of the categories.

    Raises
    ------
    ImpossibleError
        If it has not.
    """
    for start, stop in pairwise([*range(0, len(kinds), 1 << 16), len(kinds)]):
        counts = np.diff(first[start : stop + 1].astype(np.int64))
        expected = np.where(kinds[start:stop] == CATEGORICAL, n_codes[start:stop], 0)
        if (counts != expected).any():
            at = int((counts != expected).argmax())
            wrong(f"{int(expected[at])} categories of feature {start + at}", int(counts[at]))
    if int(first[-1]) + 1 != n_offsets:
        wrong(f"{int(first[-1]) + 1} offsets of categories", n_offsets)
