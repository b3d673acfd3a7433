"""The Zarr group that a store is: made by zarr when it is published, compared, and handed on.

zarr is imported where it is called: it takes 0.3 s and 10 MB, which a run or an ingest at work does
not have. Codes are mapped and values are read without it.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.errors import StoreError
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


def make_group(store: Any, manifest: Manifest) -> None:
    """Describe the chunk files of a store as one Zarr v3 group, of which no array has metadata yet.

    Parameters
    ----------
    store : Path or zarr.abc.store.Store
        Where; the chunk files may be there or not.
    manifest : Manifest
        Of which all metadata follow.
    """
    import zarr

    attributes = {ATTRIBUTE: manifest.to_json(), SHA256: manifest.fingerprint}
    group = zarr.create_group(store, zarr_format=3, attributes=attributes)
    for name, described in _arrays(manifest).items():
        group.create_array(name, **described)
    with warnings.catch_warnings():
        # Of consolidated metadata, which the standard does not have yet: clients that do not know
        # them read each array's own. And of files that are not zarr's, while a store is made.
        warnings.simplefilter("ignore", UserWarning)
        zarr.consolidate_metadata(group.store)


def _arrays(manifest: Manifest) -> dict[str, dict[str, Any]]:
    """Return what zarr is asked for of each array, by its name."""
    from zarr.codecs import BloscCodec, Crc32cCodec

    n_features, n_rows = manifest.n_features, manifest.n_rows
    chunks, dtype = (manifest.chunk_features, n_rows), np.dtype(manifest.code_dtype)
    codes = _array((n_features, n_rows), chunks, dtype, "feature", "row")
    found = {"codes": codes | {"fill_value": manifest.missing_code}}
    for name in manifest.small_arrays:
        length = (manifest.lengths[name],)
        found[name] = _array(length, length, dtype_of(name), _dimension(name))
        about = _ORDERS.get(name.split("_", maxsplit=1)[0])
        found[name]["attributes"] = {} if about is None else {"description": about}
    for name, n_items in manifest.float_arrays.items():
        shape, dtype = (n_features, n_items), np.dtype(manifest.float_dtype)
        across = "row" if name == "values" else "code"
        found[name] = _array(shape, manifest.values_chunk, dtype, "feature", across)
        blosc = BloscCodec(typesize=dtype.itemsize, blocksize=0, **ZARR_NAMES)
        found[name] |= {"fill_value": np.nan, "compressors": [blosc, Crc32cCodec()]}
    for name, field in COORDINATES.items():
        length = (getattr(manifest, field),)
        found[name] = _array(length, (min(*length, COORDINATE_CHUNK),), "string", name)
        found[name]["fill_value"] = ""
    return found


def _dimension(name: str) -> str:
    """Return the dimension of a small array; one of its own where it is not of rows or features."""
    if name in FEATURE_ARRAYS:
        return "feature"
    return "row" if name in ROW_ARRAYS else f"{name}_item"


def _array(
    shape: tuple[int, ...], chunks: tuple[int, ...], dtype: Any, *dimensions: str
) -> dict[str, Any]:
    return {
        "shape": shape,
        "chunks": chunks,
        "dtype": dtype,
        "fill_value": 0,
        "filters": None,
        "compressors": None,
        "dimension_names": dimensions,
    }


# Is the group, as zarr opens it, the one that follows from the manifest?


def verify_group(path: Path, manifest: Manifest, borrow: Borrow) -> tuple[int, int]:
    """Compare the metadata that Zarr clients read; return its files and bytes.

    Raises
    ------
    StoreError
        Naming the first file that is missing, or of which zarr reads anything else: names, shapes,
        dtypes, chunks, codecs, fill values, dimensions, attributes.
    """
    from zarr.storage import MemoryStore

    group = MemoryStore()
    make_group(group, manifest)
    names, nbytes = ["", *_arrays(manifest)], 0
    for name in names:
        file = path / name / "zarr.json"
        with borrow(file):
            with reading(file):
                text = file.read_bytes()
            same = _is_as_made(path, name, text, _opened(group, name))
        if not same:
            raise StoreError(
                f"{file}: expected the metadata that follows from the store's manifest, found "
                "others. The store is damaged; ingest the table again."
            )
        nbytes += len(text)
    others = sorted({file.parent.name for file in path.glob("*/zarr.json")} - set(names))
    if others:
        raise StoreError(
            f"{path / others[0]}: expected the arrays of a store, found another. Remove it if you "
            "put it there: Zarr shows it as a part of the store."
        )
    return len(names), nbytes


def _opened(store: Any, name: str) -> Record:
    """Return what zarr reads of the group, or of an array."""
    import zarr

    opened = zarr.open_array if name else zarr.open_group
    found: Record = opened(store, path=name, mode="r", zarr_format=3).metadata.to_dict()
    return found


def _is_as_made(path: Path, name: str, text: bytes, expected: Record) -> bool:
    """Return whether zarr reads what is expected, and the text says that and nothing else."""
    try:
        found, written = _opened(path, name), parse(text)
        if _CONSOLIDATED not in written:  # of a store made before they were
            expected = {key: expected[key] for key in expected if key != _CONSOLIDATED}
        return bool(_meaning(found) == _meaning(written) == _meaning(expected))
    except Exception:  # the library parses what anybody may have written
        return False


def _meaning(metadata: Record) -> Any:
    """Return metadata as JSON has them, of which no codec has a configuration that is empty."""
    return parse(canonical(metadata).replace('"configuration":{},', "").encode())
