"""``verify`` stays under its cap, which it names where it is too small."""

import numpy as np
import pytest
from command import error_of, peak_kb
from stores import make_store

import srs_ooc


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wide")
    values = np.random.default_rng(0).integers(0, 9, (60_000, 8)).astype(np.float32)
    store = make_store(folder / "t.zarr", values, np.arange(8) % 2)
    run = folder / "t.run"
    srs_ooc.run(store, out=run, iterations=3, subspace_size=50, threads=1, memory_mb=512)
    return store, run


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1], ids=["store", "run"])
def test_verify_works_at_the_smallest_cap_it_names_and_at_none_smaller(places, which):
    refused = error_of("verify", places[which], "--memory-mb", 9)
    cap = int(refused.rsplit("--memory-mb ", 1)[1].rstrip("."))
    assert peak_kb("verify", places[which], "--memory-mb", cap) * 1024 / 1e6 < cap


@pytest.mark.slow
def test_texts_of_categories_do_not_take_the_cap(tmp_path):
    frame = {f"c{i}": [f"text {i} {j % 3}" for j in range(9)] for i in range(3_000)}
    pandas = pytest.importorskip("pandas")
    store = tmp_path / "t.zarr"
    srs_ooc.ingest(pandas.DataFrame(frame), store, target=[0, 1, 2] * 3, memory_mb=700)
    refused = error_of("verify", store, "--memory-mb", 9)
    cap = int(refused.rsplit("--memory-mb ", 1)[1].rstrip("."))
    assert peak_kb("verify", store, "--memory-mb", cap) * 1024 / 1e6 < cap
