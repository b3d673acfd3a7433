"""Large stores without values or made quickly, and their files in and out of the page cache."""

import ctypes
import dataclasses
import json
import mmap
import os
import tempfile
from pathlib import Path

import numpy as np

from srs_ooc.base.files import published_folder
from srs_ooc.ingestion.ingest_memory import StoreForm
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.ingestion.rows import TableFacts
from srs_ooc.ingestion.scratch import text_blocks
from srs_ooc.ingestion.writer import write_store
from srs_ooc.store.manifest import (
    Manifest,
    Shape,
    chunk_file,
    codes_chunk_features,
    dtype_of,
    small_file,
    values_file,
)
from srs_ooc.store.writing import CodesWriter, NewStore, write_coordinate
from srs_ooc.synthetic.problems import Problem, describe, feature_name, truth_path


class Noise:
    """Normal columns: a ``StoredColumns``."""

    def __init__(self, n_rows: int, n_features: int) -> None:
        self.n_rows, self.n_features = n_rows, n_features
        self._rng = np.random.default_rng(0)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the next columns."""
        return self._rng.standard_normal((stop - start, self.n_rows))


def make_noise_store(path: Path, n_rows: int, n_features: int) -> None:
    """Write a store of noise: one chunk made as any other, repeated with turns.

    Its values, which a run with thresholds of ranks never reads, are links to those of that chunk.
    """
    chunk = codes_chunk_features(Shape(n_rows, n_features), 1)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        labels = (np.arange(n_rows) % 2).astype(np.int32)
        names = text_blocks(f"f{i}" for i in range(chunk))
        facts = TableFacts("target", ("0", "1"))
        form = StoreForm(values_dtype="float64")
        one = write_store(Path(scratch), Noise(n_rows, chunk), labels, facts, names, form=form)
        with published_folder(path) as folder:
            _widen(Path(scratch), one, folder, n_features)


def _widen(source: Path, one: Manifest, folder: Path, n_features: int) -> None:
    shape, chunk = Shape(one.n_rows, n_features), one.n_features
    codes = np.fromfile(source / chunk_file(0), dtype=np.uint8).reshape(chunk, one.n_rows)
    new = NewStore(folder)
    writer = CodesWriter(new, shape, chunk, np.uint8(255))
    for start in range(0, n_features, chunk):
        writer.write(np.roll(codes, start // chunk, axis=1)[: n_features - start])
    writer.close()
    new.texts("names", text_blocks(f"f{i}" for i in range(n_features)))
    _link_values(source, one, folder, n_features)
    for name in one.small_arrays:
        array = np.fromfile(small_file(source, name), dtype=dtype_of(name))
        if name == "positions":
            array = stored_positions(n_features)
        elif len(array) == chunk:  # one element a feature
            array = np.resize(array, n_features)
        elif name == "values_crc32c":
            array = np.resize(array, _n_value_chunks(one, n_features))
        if not name.startswith("names_"):
            new.small(name, [array])
    write_coordinate(new, "feature", "names", stored_positions(n_features))
    write_coordinate(new, "row", "row_ids")
    wide = dataclasses.replace(
        one,
        n_features=n_features,
        kind_counts=dict.fromkeys(one.kind_counts, 0) | {"numeric": n_features},
    )
    new.finish(wide)


def _link_values(source: Path, one: Manifest, folder: Path, n_features: int) -> None:
    n_made = _n_value_chunks(one, one.n_features)
    for index in range(_n_value_chunks(one, n_features)):
        file = values_file(folder, "values", index, 0)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.hardlink_to(values_file(source, "values", index % n_made, 0))


def _n_value_chunks(one: Manifest, n_features: int) -> int:
    features, rows = one.values_chunk
    assert rows == one.n_rows, "chunks of some of the rows"
    return -(-n_features // features)


class Tenths:
    """The columns of a problem, to one decimal: a ``StoredColumns``."""

    def __init__(self, problem: Problem) -> None:
        self.n_rows, self.n_features = problem.n_rows, problem.n_features
        self._problem = problem

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return some columns."""
        return np.round(self._problem.read(start, stop), 1)


def write_without_values(path: Path, problem: Problem) -> None:
    """Write the codes of a synthetic problem of two classes as a store, and the truth beside it.

    Its numbers are of one decimal, since what each code stands for is kept: 254 of four decimals
    take 4 kB a feature.
    """
    target = problem.target(0, problem.n_rows).astype(np.int32)
    facts, form = TableFacts("target", ("0", "1")), StoreForm(values_dtype=None)
    names = text_blocks(feature_name(j) for j in range(problem.n_features))
    truth_path(path).write_text(json.dumps(describe(problem)))
    with published_folder(path) as folder:
        write_store(folder, Tenths(problem), target, facts, names, form=form)


def chunk_files(store: Path, n_chunks: int) -> list[Path]:
    """Return the chunk files of a store."""
    return [store / chunk_file(index) for index in range(n_chunks)]


def drop_cache(files: list[Path]) -> None:
    """Have the system forget the files: no root needed."""
    os.sync()
    for file in files:
        handle = os.open(file, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def cached_share(files: list[Path]) -> float:
    """Return the share of the files' pages that are in memory, by ``mincore``."""
    library = ctypes.CDLL(None, use_errno=True)
    n_pages = n_cached = 0
    for file in files:
        with file.open("rb") as handle:
            view = mmap.mmap(handle.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | 2)
        address = ctypes.addressof(ctypes.c_char.from_buffer(view))
        flags = (ctypes.c_ubyte * -(-len(view) // mmap.PAGESIZE))()
        if library.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(view)), flags):
            raise OSError(ctypes.get_errno(), "mincore")
        n_cached += sum(flag & 1 for flag in flags)
        n_pages += len(flags)
    return n_cached / n_pages
