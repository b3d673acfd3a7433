"""The Zarr group that a store is: its metadata written, and compared with what zarr reads.

zarr is imported where it is called, by ``verify``: it takes 0.3 s and 10 MB, which a run or an
ingest does not have. So metadata are written here, as zarr writes them, byte by byte.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.errors import StoreError
from srs_ooc.base.urls import Place
from srs_ooc.store.arrays import Borrow
from srs_ooc.store.manifest import (
    ATTRIBUTE,
    COORDINATE_CHUNK,
    COORDINATES,
    FEATURE_ARRAYS,
    ROW_ARRAYS,
    SHA256,
    Manifest,
    Record,
    canonical,
    dtype_of,
    parse,
    reading,
)
from srs_ooc.store.values import ZARR_NAMES

_CONSOLIDATED = "consolidated_metadata"
_ORDERS = {
    "names": "feature names in the order of the source; those in stored order are in `feature`",
    "positions": "place in the source of each stored feature",
}


def make_group(folder: Path, manifest: Manifest) -> None:
    """Write the metadata of a store beside its chunk files: one Zarr v3 group, and its arrays."""
    for name, document in _documents(manifest).items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "zarr.json").write_bytes(json.dumps(document, indent=2).encode())


def _documents(manifest: Manifest) -> dict[str, Record]:
    """Return what the metadata of the group, whose name is empty, and of each array say."""
    n_features, n_rows = manifest.n_features, manifest.n_rows
    chunks, dtype = (manifest.chunk_features, n_rows), np.dtype(manifest.code_dtype)
    codes = _array((n_features, n_rows), chunks, dtype, "feature", "row")
    found = {"codes": codes | {"fill_value": manifest.missing_code}}
    for name in manifest.small_arrays:
        length, dtype = (manifest.lengths[name],), dtype_of(name)
        other = "row" if name in ROW_ARRAYS else f"{name}_item"
        found[name] = _array(length, length, dtype, "feature" if name in FEATURE_ARRAYS else other)
        about = _ORDERS.get(name.split("_", maxsplit=1)[0])
        found[name]["attributes"] = {} if about is None else {"description": about}
    for name, n_items in manifest.float_arrays.items():
        shape, dtype = (n_features, n_items), np.dtype(manifest.float_dtype)
        across = "row" if name == "values" else "code"
        found[name] = _array(shape, manifest.values_chunk, dtype, "feature", across)
        blosc = {"typesize": dtype.itemsize} | ZARR_NAMES | {"blocksize": 0}
        found[name]["codecs"] += [{"name": "blosc", "configuration": blosc}, {"name": "crc32c"}]
        found[name]["fill_value"] = "NaN"
    for name, field in COORDINATES.items():
        length = (getattr(manifest, field),)
        found[name] = _array(length, (min(*length, COORDINATE_CHUNK),), None, name)
    attributes = {ATTRIBUTE: manifest.to_json(), SHA256: manifest.fingerprint}
    # The standard has no consolidated metadata yet: who does not know them reads each array's own.
    inline = {"kind": "inline", "must_understand": False, "metadata": dict(sorted(found.items()))}
    group: Record = {"attributes": attributes, "zarr_format": 3, _CONSOLIDATED: inline}
    return {"": group | {"node_type": "group"}} | found


def _array(
    shape: tuple[int, ...], chunks: tuple[int, ...], dtype: np.dtype[Any] | None, *dimensions: str
) -> Record:
    """Return what the metadata of an array without compression say; of texts if no dtype."""
    codec: Record = {"name": "vlen-utf8", "configuration": {}}
    if dtype is not None:
        endian = {"configuration": {"endian": "little"}} if dtype.itemsize > 1 else {}
        codec = {"name": "bytes"} | endian
    return {
        "shape": shape,
        "data_type": "string" if dtype is None else dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "" if dtype is None else dtype.type(0).item(),
        "codecs": [codec],
        "attributes": {},
        "dimension_names": dimensions,
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


# Is the group, as zarr opens it, the one that follows from the manifest?


def check_group(place: Place, manifest: Manifest, read: Callable[[str], bytes]) -> None:
    """Compare what the metadata say, those of the group and of each array, without zarr.

    ``read`` returns the bytes of a file of the store, by its name below ``place``.

    Raises
    ------
    StoreError
        Naming the first file that is missing or says anything else.
    """
    for name, document in _documents(manifest).items():
        file = f"{name}/zarr.json".lstrip("/")
        with reading(f"{place}/{file}"):
            text = read(file)
        if not _is_said(text, document):
            raise _others(f"{place}/{file}")


def _others(file: object) -> StoreError:
    return StoreError(
        f"{file}: expected the metadata that follows from the store's manifest, found others. The "
        "store is damaged; ingest the table again."
    )


def verify_group(path: Path, manifest: Manifest, borrow: Borrow) -> tuple[int, int]:
    """Compare the metadata that Zarr clients read; return its files and bytes.

    Raises
    ------
    StoreError
        Naming the first file that is missing, or of which zarr reads anything else: names, shapes,
        dtypes, chunks, codecs, fill values, dimensions, attributes.
    """
    expected, nbytes = _documents(manifest), 0
    for name, document in expected.items():
        file = path / name / "zarr.json"
        with borrow(file):
            with reading(file):
                text = file.read_bytes()
            if not _is_as_made(path, name, text, document):
                raise _others(file)
        nbytes += len(text)
    others = sorted({file.parent.name for file in path.glob("*/zarr.json")} - set(expected))
    if others:
        raise StoreError(
            f"{path / others[0]}: expected the arrays of a store, found another. Remove it if you "
            "put it there: Zarr shows it as a part of the store."
        )
    return len(expected), nbytes


def _is_as_made(path: Path, name: str, text: bytes, expected: Record) -> bool:
    """Return whether zarr reads what is expected, and the text says that and nothing else."""
    import zarr

    opened = zarr.open_array if name else zarr.open_group
    try:
        found = opened(path, path=name, mode="r", zarr_format=3).metadata.to_dict()
    except Exception:  # the library parses what anybody may have written
        return False
    return _is_said(text, expected) and _is_said(canonical(found).encode(), expected)


def _is_said(text: bytes, expected: Record) -> bool:
    """Return whether a text says what is expected, and nothing else."""
    try:
        written = parse(text)
        if _CONSOLIDATED not in written:  # of a store made before they were
            expected = {key: expected[key] for key in expected if key != _CONSOLIDATED}
        return _meaning(written) == _meaning(expected)
    except (ValueError, TypeError, RecursionError):
        return False


def _meaning(metadata: Record) -> str:
    """Return the text of metadata: no codec has a configuration that is empty, 0.0 fills as 0."""
    text = canonical(metadata).replace('"configuration":{},', "")
    return text.replace('"fill_value":0.0,', '"fill_value":0,')
