"""From columns to a complete store, in one bounded pass: codes, values, facts, categories."""

from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.base.text import MB
from srs_ooc.ingestion.columns import CategoryCoder, FeatureKinds
from srs_ooc.ingestion.ingest_memory import fit_batch, smallest_batch
from srs_ooc.ingestion.ingest_options import (
    ACCEPTED,
    FREE,
    ORDER_KEY,
    ByteProgress,
    StoredColumns,
    StoreForm,
    TableFacts,
    first_misfit,
    stored_positions,
)
from srs_ooc.ingestion.scratch import ScratchArray, blocks_of, text_blocks
from srs_ooc.native import _native
from srs_ooc.store.manifest import (
    CATEGORICAL,
    NAMES,
    CodeFacts,
    Manifest,
    Shape,
    code_columns,
    codes_chunk_features,
)
from srs_ooc.store.writing import (
    CodesWriter,
    FloatsWriter,
    TextBlocks,
    write_coordinate,
    write_metadata,
    write_small,
    write_texts,
)


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


RowArray = ScratchArray | NDArray[Any]
"""An item for each row; of several dtypes."""


def write_store(
    folder: Path,
    columns: StoredColumns,
    target: RowArray,
    facts: TableFacts,
    names: TextBlocks,
    *,
    row_ids: TextBlocks | None = None,
    row_arrays: Mapping[str, RowArray] | None = None,
    kinds: FeatureKinds | None = None,
    form: StoreForm | None = None,
    batch_features: int | None = None,
    n_threads: int = 2,
    progress: ByteProgress | None = None,
    first_feature: int = 0,
) -> Manifest:
    """Write a complete store into an empty folder; to be published by the caller.

    Parameters
    ----------
    folder : Path
        Where the store's files go (see :func:`srs_ooc.base.files.published_folder`).
    columns : StoredColumns
        The values, in the order of :func:`srs_ooc.ingestion.ingest_options.stored_positions`.
    target : int32 or float64 (n_rows,)
        Class of each row; of a regression the number.
    facts : TableFacts
        Names, classes and origin of the table.
    names : TextBlocks
        Feature names in source order.
    row_ids : TextBlocks, optional
        Row ids; ``1 .. n_rows`` if not given.
    row_arrays : mapping, optional
        ``weights`` (float64), ``strata`` and ``groups`` (int32), each (n_rows,).
    kinds : FeatureKinds, optional
        Which features are texts, and which kinds are forced; all are numbers if not given.
    form : StoreForm, optional
        How to keep the table; uint8 codes and float64 values if not given.
    batch_features : int, optional
        Features to code at a time, a multiple of
        :func:`srs_ooc.ingestion.ingest_memory.smallest_batch`; about 64 MB of work if not given.
    n_threads : int
        Threads that code and compress.
    progress : ByteProgress, optional
        Told of the bytes of codes written.
    first_feature : int
        Place of the first feature in the table that this one is a piece of.

    Raises
    ------
    InputError
        If a value does not survive the round trip through a float32 ``values_dtype``, the texts
        are not as many as the features and rows, or a feature is not of the kind that is forced.
    """
    form = form or StoreForm()
    shape = Shape(columns.n_rows, columns.n_features)
    batch = batch_features or fit_batch(shape, form, 96 * MB)[0]
    _native.reuse_blocks()  # those of compressing; the memory plan counts them
    with ColumnsWriter(folder, shape, form, kinds) as work:
        _write_columns(work, columns, batch, n_threads, progress)
    _native.return_large_blocks()
    checksums = work.checksums
    text_sums, lengths = _write_texts(folder, shape, names, row_ids)
    positions = stored_positions(shape.n_features, first_feature)
    checksums |= write_small(folder, "positions", [positions]) | text_sums
    checksums |= write_coordinate(folder, "feature", "names", positions)
    checksums |= write_coordinate(folder, "row", "row_ids")
    del positions
    is_regression = target.dtype.kind == "f"
    by_row = {"target_values" if is_regression else "target": target} | dict(row_arrays or {})
    for name, array in by_row.items():
        checksums |= write_small(folder, name, blocks_of(array))
    manifest = Manifest(
        n_rows=shape.n_rows,
        n_features=shape.n_features,
        task="regression" if is_regression else "classification",
        classes=facts.classes,
        class_counts=() if is_regression else _class_counts(target, len(facts.classes)),
        n_dropped_rows=facts.n_dropped_rows,
        row_columns=facts.row_columns,
        kind_counts=work.kind_counts(),
        code_dtype=form.code_dtype,
        chunk_features=work.chunk_features,
        values_dtype=form.values_dtype,
        n_missing_cells=int(work.n_missing.sum(dtype=np.int64)),
        n_missing_features=int(np.count_nonzero(work.n_missing)),
        order_key=ORDER_KEY,
        target_name=facts.target_name,
        row_id_name=facts.row_id_name,
        inferred=facts.inferred,
        source=facts.source,
        checksums=checksums,
        lengths={},
        values_chunk=work.floats_chunk,
    )
    manifest = _with_lengths(manifest, shape, lengths | work.lengths)
    write_metadata(folder, manifest)
    work.sync()
    return manifest


def _with_lengths(manifest: Manifest, shape: Shape, lengths: Mapping[str, int]) -> Manifest:
    every = {name: lengths.get(name) or shape.length_of(name) for name in manifest.small_arrays}
    return replace(manifest, lengths=every)


def _write_columns(
    work: ColumnsWriter,
    columns: StoredColumns,
    batch: int,
    n_threads: int,
    progress: ByteProgress | None,
) -> None:
    """Write all columns: each thread reads, codes and compresses its own share of a batch.

    What is written in order is written here, as the shares come.
    """
    n_features, waiting = columns.n_features, deque[Future[Share]]()
    n_threads = min(n_threads, batch // work.step) if work.any_order else 1
    step = max(1, batch // work.step // n_threads) * work.step
    with ThreadPoolExecutor(n_threads) as pool:
        for start in range(0, n_features, step):
            stop = min(start + step, n_features)
            waiting.append(pool.submit(work.share, start, stop, columns))
            while len(waiting) > (n_threads if stop < n_features else 0):
                done = waiting.popleft().result()
                work.take(done)
                if progress:
                    n_done = done.stop * work.column_nbytes
                    progress("writing", n_done, n_features * work.column_nbytes)


def _write_texts(
    folder: Path, shape: Shape, names: TextBlocks, row_ids: TextBlocks | None
) -> tuple[dict[str, int], dict[str, int]]:
    ids = text_blocks(map(str, range(1, shape.n_rows + 1))) if row_ids is None else row_ids
    checksums: dict[str, int] = {}
    nbytes: dict[str, int] = {}
    for name, blocks, expected in (
        ("names", names, shape.n_features),
        ("row_ids", ids, shape.n_rows),
    ):
        sums, n_texts, nbytes[f"{name}_bytes"] = write_texts(folder, name, blocks)
        checksums |= sums
        if n_texts != expected:
            raise InputError(f"expected {expected} {name}, found {n_texts}. Give one for each.")
    return checksums, nbytes


def _class_counts(target: RowArray, n_classes: int) -> tuple[int, ...]:
    counts = np.zeros(n_classes, np.int64)
    for block in blocks_of(target):
        counts += np.bincount(block, minlength=n_classes)
    return tuple(counts.tolist())
