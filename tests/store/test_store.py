"""A store is opened once; what is read of it is its own, whatever comes to lie at its path."""

import shutil

import numpy as np
import pytest
import zarr
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import StoreError
from srs_ooc.store.manifest import small_file
from srs_ooc.store.store import Store

N_ROWS, N_FEATURES = 40, 12


@pytest.fixture
def path(tmp_path):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    return make_store(tmp_path / "t.zarr", values, labels)


@pytest.fixture
def other(tmp_path):
    values, labels = noise_table(N_ROWS, N_FEATURES, seed=1)
    return make_store(tmp_path / "other.zarr", values, labels)


def replace(path, other):
    shutil.rmtree(path)
    shutil.copytree(other, path)


def test_opening_reads_the_manifest_alone(path):
    for file in path.iterdir():
        if file.name != "zarr.json":
            shutil.rmtree(file)
    store = Store.open(path)
    assert (store.n_rows, store.n_features) == (N_ROWS, N_FEATURES)
    with pytest.raises(StoreError, match="names_offsets"):
        store.names[0]


def test_another_fingerprint_is_refused(path, other):
    found = Store.open(other).fingerprint
    with pytest.raises(StoreError, match=f"expected the store with fingerprint {found[:16]}"):
        Store.open(path, found)
    assert Store.open(path, Store.open(path).fingerprint).n_rows == N_ROWS


def test_a_block_refuses_a_store_that_was_replaced_before_it(path, other):
    store, begun = Store.open(path), []
    replace(path, other)
    with pytest.raises(StoreError, match="was replaced"), store.unchanged():
        begun.append(True)
    assert not begun


def test_a_block_refuses_a_store_that_is_replaced_within_it(path, other):
    store = Store.open(path)
    with pytest.raises(StoreError, match="was replaced"), store.unchanged():
        replace(path, other)


def test_damage_that_comes_of_another_store_is_not_called_damage(path, other):
    store = Store.open(path)

    def read():
        replace(path, other)
        store.target()

    with pytest.raises(StoreError, match="was replaced"), store.unchanged():
        read()


def test_damage_of_the_store_itself_is_named(path):
    store, file = Store.open(path), small_file(path, "target")
    file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(StoreError, match=r"target.*damaged"), store.unchanged():
        store.target()


def test_names_stay_those_of_the_store_they_were_opened_of(path, other):
    store = Store.open(path)
    assert len(store.names) == N_FEATURES
    replace(path, other)
    assert list(store.names) == [f"f{i}" for i in range(N_FEATURES)]


def test_rows_say_what_a_zarr_client_reads(tmp_path):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    rows = np.arange(N_ROWS)
    srs_ooc.ingest(
        values.T, tmp_path / "t.zarr", target=labels,
        weights=1.0 + rows, strata=rows // 10, groups=rows // 2,
    )  # fmt: skip
    store, group = Store.open(tmp_path / "t.zarr"), zarr.open_group(tmp_path / "t.zarr", mode="r")
    for name in ("target", "weights", "strata", "groups", "kinds"):
        np.testing.assert_array_equal(getattr(store, name)(), group[name][:])
    np.testing.assert_array_equal(store.array("positions"), group["positions"][:])
    pieces = dict(store.pieces("n_missing"))
    np.testing.assert_array_equal(np.concatenate(list(pieces.values())), group["n_missing"][:])
    assert list(store.row_ids) == group["row"][:].tolist()


def test_a_store_without_weights_strata_and_groups_has_none(path):
    store = Store.open(path)
    assert store.weights() is store.strata() is store.groups() is None
