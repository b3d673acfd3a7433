"""The large store of noise is a store like any other, whose codes are one chunk's, turned."""

import numpy as np
from cold_store import make_noise_store

from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.store import manifest
from srs_ooc.store.arrays import check_files
from srs_ooc.store.store import Store


def test_a_store_of_noise_is_whole_and_can_be_run_on(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "CODES_CHUNK_NBYTES", 12_000)
    monkeypatch.setattr(manifest, "VALUES_CHUNK_NBYTES", 20_000)
    make_noise_store(tmp_path / "n.zarr", 40, 1000)
    store = Store.open(tmp_path / "n.zarr")
    check_files(store.path, store.manifest)
    assert (store.manifest.n_chunks, store.manifest.chunk_features) == (4, 300)
    assert store.names[999] == "f999"
    assert sorted(store.array("positions").tolist()) == list(range(1000))
    chunks = [np.fromfile(store.path / manifest.chunk_file(i), np.uint8) for i in range(2)]
    first, second = (chunk.reshape(300, 40) for chunk in chunks)
    np.testing.assert_array_equal(second, np.roll(first, 1, axis=1))
    request = Request(Options(judge="probe", subspace_size="50"), iterations=5, memory_mb=4000)
    ledger = open_or_create(store, tmp_path / "n.run", request)
    work_on(ledger, store, request)
    assert ledger.progress().iteration == 5
    ledger.close()
