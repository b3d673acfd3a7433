"""The Zarr v3 metadata of a store, so that any Zarr client reads it.

Written without the Zarr library, whose import takes longer than a small ingest and more memory than
a tight cap leaves; the tests read every array with it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.store.codec import ZARR_NAMES
from srs_ooc.store.layout import Shape, dtype_of, values_chunk
from srs_ooc.store.manifest import ATTRIBUTE, Manifest


def write_metadata(
    folder: Path, manifest: Manifest, lengths: dict[str, int], n_ranges: int
) -> None:
    """Describe the chunk files already in ``folder`` as one Zarr v3 group.

    Parameters
    ----------
    folder : Path
        The store being written.
    manifest : Manifest
        Becomes the group's attribute.
    lengths : dict
        Length of each small array that the shape does not tell.
    n_ranges : int
        Columns of ``code_lows`` and ``code_highs``; 0 where there are none.
    """
    shape = Shape(manifest.n_rows, manifest.n_features)
    group = {"attributes": {ATTRIBUTE: manifest.to_json()}}
    _write(folder, group | {"zarr_format": 3, "node_type": "group"})
    _write_array(
        folder / "codes",
        (shape.n_features, shape.n_rows),
        (manifest.chunk_features, shape.n_rows),
        np.dtype(manifest.code_dtype),
        manifest.missing_code,
        {"dimension_names": ["feature", "row"]},
    )
    for name in manifest.small_arrays:
        length = lengths.get(name) or shape.length_of(name)
        dtype = dtype_of(name)
        fill = False if dtype.kind == "b" else 0
        _write_array(folder / name, (length,), (length,), dtype, fill)
    if manifest.values_dtype is not None:
        _write_floats(folder / "values", shape, np.dtype(manifest.values_dtype))
    for name in ("code_lows", "code_highs") if n_ranges else ():
        _write_floats(folder / name, Shape(n_ranges, shape.n_features), np.dtype("float64"))


def _write_floats(folder: Path, shape: Shape, dtype: np.dtype[Any]) -> None:
    size = dtype.itemsize
    blosc = {"name": "blosc", "configuration": ZARR_NAMES | {"typesize": size, "blocksize": 0}}
    chunk = values_chunk(shape, size)
    whole = (shape.n_features, shape.n_rows)
    _write_array(folder, whole, chunk, dtype, "NaN", codecs=[blosc, {"name": "crc32c"}])


def _write_array(
    folder: Path,
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    dtype: np.dtype[Any],
    fill: Any,
    more: dict[str, Any] | None = None,
    *,
    codecs: list[dict[str, Any]] | None = None,
) -> None:
    to_bytes: dict[str, Any] = {"name": "bytes"}
    if dtype.itemsize > 1:
        to_bytes["configuration"] = {"endian": "little"}
    record = {
        "shape": shape,
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": [to_bytes, *(codecs or [])],
        "attributes": {},
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }
    _write(folder, record | (more or {}))


def _write(folder: Path, record: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=2)
    (folder / "zarr.json").write_text(text, encoding="utf-8")
