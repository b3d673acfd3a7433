"""Values of codes as blocks get them; what lies between two codes tells rows apart as these do."""

import numpy as np
import pytest
from examples import examples, given, st
from stores import make_store

from srs_ooc import ingest
from srs_ooc.base.errors import StoreError
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.store import Store
from srs_ooc.store.values import midpoints, n_values_of
from srs_ooc.trees.block import Block


def block_with(store, features):
    """The codes and the values of features of a store."""
    manifest = read_manifest(store)
    shape = len(features), manifest.n_rows, manifest.code_nbytes
    block, opened = Block(*shape, tiled=False, n_values=n_values_of(manifest)), Store.open(store)
    with opened.columns(mapped=False) as columns, opened.value_tables() as tables:
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


# The value between two codes tells the rows of the store apart as the codes do.


finite = st.floats(allow_nan=False, allow_infinity=False)


@examples(300)
@given(finite, finite)
def test_a_midpoint_lies_from_the_lower_up_to_below_the_upper(a, b):
    lower, upper = min(a, b), max(a, b)
    if lower < upper:
        middle = midpoints(np.array([lower]), np.array([upper]))[0]
        assert lower <= middle < upper
        if 1e-300 < upper - lower < 1e300 and middle != lower:
            assert middle == pytest.approx(lower / 2 + upper / 2)


def test_midpoints_of_neighbours_and_of_the_largest():
    one = np.array([1.0])
    assert midpoints(one, np.nextafter(one, 2)) == one
    assert midpoints(np.array([1e308]), np.array([1.5e308])) == 1.25e308
    assert midpoints(np.array([2.0]), np.array([5.0])) == 3.5


@pytest.mark.few(4)
@pytest.mark.parametrize("values_dtype", ["float64", "float32", None])
@pytest.mark.parametrize("n_rows", [90, 1500])
def test_values_and_codes_fall_on_the_same_side(tmp_path, values_dtype, n_rows):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((12, n_rows)).astype(np.float32)
    values[3] = rng.integers(0, 5, n_rows)
    values[4] = np.nextafter(np.float32(1), np.float32(2)) * rng.integers(0, 2, n_rows)
    labels = np.arange(n_rows) % 2
    path = make_store(tmp_path / "t.zarr", values, labels, values_dtype=values_dtype)
    stored = values[stored_positions(12)].astype(np.float64)
    codes = np.fromfile(path / "codes/c/0/0", np.uint8).reshape(-1, n_rows)[:12]
    features = np.concatenate([np.full(row.max(), i) for i, row in enumerate(codes)])
    cuts = np.concatenate([np.arange(row.max()) for row in codes])
    found = Store.open(path).boundaries(features.astype(np.int64), cuts.astype(np.int64))
    for feature, cut, boundary in zip(features, cuts, found, strict=True):
        own, row = stored[feature], codes[feature]
        np.testing.assert_array_equal(own <= boundary, row <= cut)
        middle = (own[row <= cut].max() + own[row > cut].min()) / 2
        assert boundary == middle
    beyond = np.array([codes[0].max()], np.int64)
    with pytest.raises(StoreError, match="belong"):
        Store.open(path).boundaries(np.zeros(1, np.int64), beyond)
