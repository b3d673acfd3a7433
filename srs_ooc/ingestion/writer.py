"""From columns to a complete store, in one bounded pass."""

from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.base.text import MB
from srs_ooc.ingestion.categories import FeatureKinds
from srs_ooc.ingestion.columns_writer import ColumnsWriter, Share
from srs_ooc.ingestion.contents import (
    ORDER_KEY,
    ByteProgress,
    StoredColumns,
    StoreForm,
    TableFacts,
    stored_positions,
)
from srs_ooc.ingestion.memory import fit_batch
from srs_ooc.ingestion.scratch import ScratchArray, blocks_of, text_blocks
from srs_ooc.native import _native
from srs_ooc.store.manifest import Manifest, Shape
from srs_ooc.store.writing import (
    TextBlocks,
    write_coordinate,
    write_metadata,
    write_small,
    write_texts,
)

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
        The values, in the order of :func:`srs_ooc.ingestion.contents.stored_positions`.
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
        :func:`srs_ooc.ingestion.memory.smallest_batch`; about 64 MB of work if not given.
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
