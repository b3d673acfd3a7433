"""A large store of noise, made quickly, and its files in and out of the page cache."""

import ctypes
import mmap
import os
from pathlib import Path

import numpy as np

from srs_ooc.atomic import published_folder
from srs_ooc.store.chunks import CodesWriter, write_small, write_texts
from srs_ooc.store.layout import Shape, codes_chunk_features
from srs_ooc.store.manifest import Manifest, chunk_file
from srs_ooc.store.metadata import write_metadata
from srs_ooc.store.table import ORDER_KEY, numbered_rows, stored_positions
from srs_ooc.store.texts import text_blocks

N_CODES = 250


def make_noise_store(path: Path, n_rows: int, n_features: int) -> None:
    """Write a store of random codes and labels, without values: as fast as the disk writes."""
    shape, rng = Shape(n_rows, n_features), np.random.default_rng(0)
    chunk = codes_chunk_features(shape, 1)
    target = (np.arange(n_rows) % 2).astype(np.int32)
    with published_folder(path) as folder:
        writer = CodesWriter(folder, shape, chunk, np.uint8(255))
        codes = rng.integers(0, N_CODES, (chunk, n_rows), dtype=np.uint8)
        for start in range(0, n_features, chunk):
            codes[:] = np.roll(codes, 1, axis=1)
            writer.write(codes[: n_features - start])
        writer.close()
        checksums = dict(writer.checksums)
        text_nbytes = {}
        names = text_blocks(f"f{i}" for i in range(n_features))
        for name, blocks in (("names", names), ("row_ids", numbered_rows(n_rows))):
            sums, _, text_nbytes[f"{name}_bytes"] = write_texts(folder, name, blocks)
            checksums |= sums
        for name, array in (
            ("positions", stored_positions(n_features)),
            ("target", target),
            ("n_missing", np.zeros(n_features, np.uint32)),
            ("n_codes", np.full(n_features, N_CODES, np.uint16)),
            ("exact", np.ones(n_features, np.bool_)),
        ):
            checksums |= write_small(folder, name, [array])
        manifest = Manifest(
            n_rows=n_rows,
            n_features=n_features,
            task="classification",
            classes=("0", "1"),
            class_counts=tuple(np.bincount(target).tolist()),
            code_dtype="uint8",
            chunk_features=chunk,
            values_dtype=None,
            n_missing_cells=0,
            n_missing_features=0,
            order_key=ORDER_KEY,
            target_name="target",
            row_id_name=None,
            inferred={},
            source={"format": "noise"},
            checksums=checksums,
        )
        write_metadata(folder, manifest, text_nbytes, 0)


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
