"""The Zarr metadata of a store, made by the Zarr library so that any Zarr client reads it."""

from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.store.codec import zarr_compressors
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
    import zarr
    from zarr.storage import LocalStore

    shape = Shape(manifest.n_rows, manifest.n_features)
    group = zarr.create_group(
        LocalStore(folder), zarr_format=3, attributes={ATTRIBUTE: manifest.to_json()}
    )
    group.create_array(
        "codes",
        shape=(shape.n_features, shape.n_rows),
        chunks=(manifest.chunk_features, shape.n_rows),
        dtype=manifest.code_dtype,
        fill_value=manifest.missing_code,
        compressors=None,
        filters=None,
        dimension_names=("feature", "row"),
    )
    for name in manifest.small_arrays:
        length = lengths.get(name) or shape.length_of(name)
        group.create_array(
            name,
            shape=(length,),
            chunks=(length,),
            dtype=dtype_of(name),
            compressors=None,
            filters=None,
        )
    if manifest.values_dtype is not None:
        _create_floats(group, "values", shape, np.dtype(manifest.values_dtype))
    for name in ("code_lows", "code_highs") if n_ranges else ():
        _create_floats(group, name, Shape(n_ranges, shape.n_features), np.dtype("float64"))


def _create_floats(group: Any, name: str, shape: Shape, dtype: np.dtype[Any]) -> None:
    group.create_array(
        name,
        shape=(shape.n_features, shape.n_rows),
        chunks=values_chunk(shape, dtype.itemsize),
        dtype=dtype,
        fill_value=float("nan"),
        compressors=zarr_compressors(dtype),
        filters=None,
    )
