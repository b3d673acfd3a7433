"""The Zarr v3 metadata of a store, so that any Zarr client reads it.

Written without the Zarr library, whose import takes longer than a small ingest and more memory than
a tight cap leaves; the tests read every array with it.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.store.codec import ZARR_NAMES
from srs_ooc.store.layout import COORDINATE_CHUNK, COORDINATES, FEATURE_ARRAYS, ROW_ARRAYS, dtype_of
from srs_ooc.store.manifest import ATTRIBUTE, SHA256, Manifest

Document = dict[str, Any]
_ORDERS = {
    "names": "feature names in the order of the source; those in stored order are in `feature`",
    "positions": "place in the source of each stored feature",
}


def write_metadata(folder: Path, manifest: Manifest) -> None:
    """Describe the chunk files already in ``folder`` as one Zarr v3 group."""
    for name, document in documents(manifest, manifest.lengths).items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        text = json.dumps(document, indent=2)
        (folder / name / "zarr.json").write_text(text, encoding="utf-8")


def documents(manifest: Manifest, lengths: dict[str, int]) -> dict[str, Document]:
    """Return the metadata documents of a store, by folder: they follow from the manifest.

    Parameters
    ----------
    manifest : Manifest
        The store's manifest, of any format.
    lengths : dict
        Items of each small array, by name.
    """
    named = manifest.format >= 3
    attributes: dict[str, Any] = {ATTRIBUTE: manifest.to_json()}
    if named:
        attributes[SHA256] = manifest.fingerprint
    found = {"": {"attributes": attributes, "zarr_format": 3, "node_type": "group"}}
    shape, dimensions = (manifest.n_features, manifest.n_rows), ["feature", "row"]
    chunk, dtype = (manifest.chunk_features, manifest.n_rows), np.dtype(manifest.code_dtype)
    codes = _array(shape, chunk, dtype.name, manifest.missing_code, [_as_bytes(dtype)])
    found["codes"] = codes | {"dimension_names": dimensions}
    for name in manifest.small_arrays:
        dtype, length = dtype_of(name), (lengths[name],)
        fill = False if dtype.kind == "b" else 0
        found[name] = _array(length, length, dtype.name, fill, [_as_bytes(dtype)])
        if named:
            found[name] |= {"dimension_names": [_dimension(name)], "attributes": _about(name)}
    for name, n_items in manifest.float_arrays.items():
        found[name] = _floats(manifest, n_items)
        if named:
            found[name]["dimension_names"] = ["feature", "row" if name == "values" else "code"]
    for name, field in COORDINATES.items() if named else ():
        length = (getattr(manifest, field),)
        chunk = (min(*length, COORDINATE_CHUNK),)  # type: ignore[assignment]
        found[name] = _array(length, chunk, "string", "", [{"name": "vlen-utf8"}])
        found[name]["dimension_names"] = [name]
    return found


def _dimension(name: str) -> str:
    """Return the dimension of a small array; one of its own where it is not of rows or features."""
    if name in FEATURE_ARRAYS:
        return "feature"
    return "row" if name in ROW_ARRAYS else f"{name}_item"


def _about(name: str) -> dict[str, str]:
    text = _ORDERS.get(name.split("_", maxsplit=1)[0])
    return {} if text is None else {"description": text}


def _floats(manifest: Manifest, n_items: int) -> Document:
    dtype = np.dtype(manifest.float_dtype)
    sizes = {"typesize": dtype.itemsize, "blocksize": 0}
    blosc = {"name": "blosc", "configuration": ZARR_NAMES | sizes}
    codecs = [_as_bytes(dtype), blosc, {"name": "crc32c"}]
    shape = (manifest.n_features, n_items)
    return _array(shape, manifest.float_chunk, dtype.name, "NaN", codecs)


def _as_bytes(dtype: np.dtype[Any]) -> Document:
    if dtype.itemsize == 1:
        return {"name": "bytes"}
    return {"name": "bytes", "configuration": {"endian": "little"}}


def _array(
    shape: tuple[int, ...], chunk: tuple[int, ...], data_type: str, fill: Any, codecs: list[Any]
) -> Document:
    return {
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill,
        "codecs": codecs,
        "attributes": {},
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }
