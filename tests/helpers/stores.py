"""Stores made from plain arrays, for the tests."""

import numpy as np

from srs_ooc.base.files import published_folder
from srs_ooc.ingestion.ingest_memory import StoreForm
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.ingestion.rows import TableFacts
from srs_ooc.ingestion.scratch import text_blocks
from srs_ooc.ingestion.writer import CodedTable, write_store


class ArrayColumns:
    """A StoredColumns over an array (n_features, n_rows) in source order."""

    def __init__(self, values):
        self.values = np.asarray(values, dtype=np.float64)[stored_positions(len(values))]
        self.n_features, self.n_rows = self.values.shape

    def read(self, start, stop):
        return self.values[start:stop]


def values_of(store):
    """The values (n_features, n_rows) of a store in source order, as Zarr reads them."""
    import zarr

    group = zarr.open_group(store, mode="r")
    values = np.empty(group["values"].shape)
    values[group["positions"][:].astype(int)] = group["values"][:]
    return values


def make_store(path, values, labels, *, code_dtype="uint8", values_dtype="float64"):
    """Write a store of `values` (n_features, n_rows) named f0.. with integer labels."""
    classes = tuple(str(label) for label in np.unique(labels))
    target = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    names = text_blocks(f"f{i}" for i in range(len(values)))
    with published_folder(path) as scratch:
        write_store(
            scratch,
            CodedTable(ArrayColumns(values), StoreForm(code_dtype, values_dtype)),
            TableFacts("target", classes, arrays={"target": target}),
            names,
        )
    return path


def noise_table(n_rows, n_features, *, n_classes=2, seed=0, n_relevant=3):
    """Values (n_features, n_rows), of which the first few decide the labels with some noise."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n_features, n_rows))
    score = values[:n_relevant].sum(axis=0) + 0.3 * rng.standard_normal(n_rows)
    cuts = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return values, np.searchsorted(cuts, score)
