"""Coding features, and writing all that is kept of each: codes, values, facts, categories."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.categories import CategoryCoder, FeatureKinds
from srs_ooc.ingestion.contents import StoredColumns, StoreForm
from srs_ooc.ingestion.forced_kinds import ACCEPTED, FREE, first_misfit
from srs_ooc.ingestion.memory import smallest_batch
from srs_ooc.store.manifest import (
    CATEGORICAL,
    NAMES,
    CodeFacts,
    Shape,
    code_columns,
    codes_chunk_features,
)
from srs_ooc.store.writing import CodesWriter, FloatsWriter, write_small


@dataclass(frozen=True)
class Share:
    """What is left of features once their values are written."""

    start: int
    stop: int
    codes: NDArray[Any]
    facts: CodeFacts
    misfit: tuple[int, int, float] | None


class ColumnsWriter:
    """Codes features and writes all that is kept of them."""

    def __init__(
        self, folder: Path, shape: Shape, form: StoreForm, kinds: FeatureKinds | None
    ) -> None:
        self.chunk_features = codes_chunk_features(shape, form.code_nbytes)
        self.column_nbytes = shape.n_rows * form.code_nbytes
        self.step = smallest_batch(shape, form)
        self.checksums: dict[str, int] = {}
        self.n_missing = np.empty(shape.n_features, np.uint32)
        self._n_codes = np.empty(shape.n_features, np.uint16)
        self._exact = np.empty(shape.n_features, np.bool_)
        self._kinds = np.empty(shape.n_features, np.uint8)
        self._given = kinds
        self._categories: CategoryCoder | None = None
        if kinds is not None and kinds.is_text.any():
            self._categories = CategoryCoder(folder, kinds, form.code_dtype)
        self.lengths: dict[str, int] = {}
        self._folder, self._form = folder, form
        self._n_ranges = form.n_ranges(shape)
        self._codes = CodesWriter(folder, shape, self.chunk_features, form.missing_code)
        self._floats: dict[str, FloatsWriter] = {}
        wide = Shape(self._n_ranges, shape.n_features) if self._n_ranges else shape
        dtype = np.dtype(form.values_dtype or "float64")
        for name in ("code_lows", "code_highs") if self._n_ranges else ("values",):
            self._floats[name] = FloatsWriter(folder, name, wide, dtype)

    @property
    def floats_chunk(self) -> tuple[int, int]:
        """Features and items of a chunk of the values, or of the ranges of codes."""
        return next(iter(self._floats.values())).chunk

    @property
    def any_order(self) -> bool:
        """Whether shares may be made side by side; categories are written as they are made."""
        return self._categories is None

    def share(self, start: int, stop: int, columns: StoredColumns) -> Share:
        """Read and code the features ``start .. stop - 1`` and write their values."""
        values: NDArray[Any] = columns.read(start, stop)
        if self._categories is not None:
            self._categories.code(start, values)
        if self._form.values_dtype == "float32":
            values = _as_float32(values)
        codes = np.empty(values.shape, self._form.code_dtype)
        facts = code_columns(values, codes, ranges=self._n_ranges)
        if self._n_ranges:
            self._floats["code_lows"].write(start, facts.lows)
            self._floats["code_highs"].write(start, facts.highs)
        else:
            self._floats["values"].write(start, values)
        return Share(start, stop, codes, facts, self._misfit(start, values))

    def _misfit(self, start: int, values: NDArray[Any]) -> tuple[int, int, float] | None:
        """Return feature, row and value of the first cell that is not of the forced kind."""
        if self._given is None:
            return None
        found = first_misfit(values, self._given.forced[start : start + len(values)])
        return None if found is None else (start + found[0], found[1], float(values[found]))

    def take(self, share: Share) -> None:
        """Write the codes of the next features, and note what coding found."""
        self._codes.write(share.codes)
        start, stop, facts = share.start, share.stop, share.facts
        if share.misfit is not None:
            self._refuse(*share.misfit)
        self.n_missing[start:stop] = facts.n_missing
        self._n_codes[start:stop] = facts.n_codes
        self._exact[start:stop] = facts.exact
        self._kinds[start:stop] = facts.kinds
        if self._given is not None:
            self._settle_kinds(self._given, start, stop)

    def sync(self) -> None:
        """Wait until the values are on disk."""
        for floats in self._floats.values():
            floats.sync()

    def _refuse(self, feature: int, row: int, value: float) -> None:
        assert self._given is not None
        kind = int(self._given.forced[feature])
        where, text = self._given.cell(feature, row, value)
        raise InputError(
            f"{where}: expected {ACCEPTED[kind]}, or a missing value, as --kind "
            f"NAME={NAMES[kind]} says, found {text}. Mend the cell, or leave --kind out."
        )

    def _settle_kinds(self, given: FeatureKinds, start: int, stop: int) -> None:
        found, forced = self._kinds[start:stop], given.forced[start:stop]
        found[...] = np.where(forced == FREE, found, forced)
        found[given.is_text[start:stop]] = CATEGORICAL

    def kind_counts(self) -> dict[str, int]:
        """Return the features of each kind, by its name."""
        counts = np.bincount(self._kinds, minlength=len(NAMES)).tolist()
        return dict(zip(NAMES, counts, strict=True))

    def _write_categories(self, coder: CategoryCoder) -> None:
        firsts = np.zeros(len(self._kinds) + 1, np.int64)
        np.cumsum(np.where(self._kinds == CATEGORICAL, self._n_codes, 0), out=firsts[1:])
        self.lengths["categories_bytes"] = coder.nbytes
        self.lengths["categories_offsets"] = int(firsts[-1]) + 1
        self.checksums |= coder.checksums
        self.checksums |= write_small(self._folder, "categories_first", [firsts])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._codes.abandon()
            if self._categories is not None:
                self._categories.abandon()
            return
        self._codes.close()
        self.checksums |= self._codes.checksums
        if self._categories is not None:
            self._categories.close()
            self._write_categories(self._categories)
        arrays: dict[str, NDArray[Any]] = {
            "n_missing": self.n_missing,
            "n_codes": self._n_codes,
            "exact": self._exact,
            "kinds": self._kinds,
        }
        arrays |= {f"{name}_crc32c": floats.crcs for name, floats in self._floats.items()}
        for name, array in arrays.items():
            self.lengths[name] = len(array)
            self.checksums |= write_small(self._folder, name, [array])


def _as_float32(values: NDArray[Any]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    for wide_row, narrow_row in zip(values, narrow, strict=True):
        if not np.array_equal(wide_row, narrow_row, equal_nan=True):
            raise InputError(
                "expected values that survive the round trip through float32, found one that does "
                "not. Write the store with float64 values."
            )
    return narrow
