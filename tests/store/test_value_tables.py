"""The values of codes, as blocks get them."""

import numpy as np
import pytest
from stores import make_store

from srs_ooc import ingest
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.store import Store
from srs_ooc.store.values import ValueTables, n_values_of
from srs_ooc.trees.block import Block


def block_with(store, features):
    """The codes and the values of features of a store."""
    manifest = read_manifest(store)
    block = Block(
        len(features),
        manifest.n_rows,
        manifest.code_nbytes,
        tiled=False,
        n_values=n_values_of(manifest),
    )
    with Store.open(store).columns(mapped=False) as columns, ValueTables(store, manifest) as tables:
        columns.gather(features, block)
        tables.gather(features, block)
    return block


@pytest.mark.parametrize("code_dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("n_rows", [40, 700])
def test_a_code_has_its_value_or_the_middle_of_its_range(tmp_path, code_dtype, n_rows):
    rng = np.random.default_rng(0)
    values = np.exp(rng.standard_normal((90, n_rows)))
    values[rng.random(values.shape) < 0.1] = np.nan
    labels = np.arange(n_rows) % 2
    store = make_store(tmp_path / "t.zarr", values, labels, code_dtype=code_dtype)
    manifest = read_manifest(store)
    features = np.array([3, 4, 80, 7, 7], dtype=np.uint32)
    block = block_with(store, features)
    from srs_ooc.ingestion.ingest_options import stored_positions

    stored = values[stored_positions(90)]
    if manifest.values_dtype == "float32":
        stored = stored.astype(np.float32)
    for column, (codes, table) in enumerate(zip(block.as_columns(), block.values, strict=False)):
        own = stored[features[column]]
        for code in np.unique(codes[codes != manifest.missing_code]):
            at_code = own[codes == code]
            assert table[code] == pytest.approx((at_code.min() + at_code.max()) / 2, rel=1e-12)
            if at_code.min() == at_code.max():
                assert table[code] == at_code[0]


@pytest.mark.parametrize("kept", [True, False])
def test_huge_values_stay_finite_and_in_order(tmp_path, kept):
    values = np.array([[-1.7e308, -1.0, 0.0, 1.0, 1.7e308, np.nan]] * 2)
    store = tmp_path / "t.zarr"
    ingest(values.T, store, target=np.arange(6) % 2, keep_values=kept)
    table = block_with(store, np.arange(2, dtype=np.uint32)).values[0]
    assert np.isfinite(table[4] - table[0])
    assert (np.diff(table[:5]) > 0).all()
