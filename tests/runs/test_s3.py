"""A real S3 server on the loopback address: moto's, which `pip install 'moto[server]'` brings.

Slow, as the server brings forty packages and takes seconds to start; the same code is tried against
a smaller web server in every run of the tests.
"""

import pytest
from run_cases import results_of
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import StoreError
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store

pytest.importorskip("obstore")
moto_server = pytest.importorskip("moto.server")
pytestmark = pytest.mark.slow
QUICK = {"judge": "probe", "q": 40, "memory_mb": 4000}


@pytest.fixture
def bucket(monkeypatch, tmp_path):
    boto3 = pytest.importorskip("boto3")
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    settings = {
        "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key",
        "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
        "SRS_OOC_CACHE_DIR": str(tmp_path / "cache"),
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3", endpoint_url=url).create_bucket(Bucket="tables")
    yield "s3://tables/folder"
    server.stop()


def test_a_store_is_made_on_s3_read_from_there_and_replaced(bucket, tmp_path):
    values, labels = noise_table(60, 400)
    local = srs_ooc.ingest(values.T, tmp_path / "t.zarr", target=labels)
    assert srs_ooc.ingest(values.T, f"{bucket}/t.zarr", target=labels) == local
    there, here = open_store(f"{bucket}/t.zarr"), Store.open(tmp_path / "t.zarr")
    assert there.verify() == here.verify()
    assert there.stored_nbytes() == here.stored_nbytes()
    with pytest.raises(StoreError, match="found a store there"):
        srs_ooc.ingest(values.T, f"{bucket}/t.zarr", target=labels)
    one = srs_ooc.run(tmp_path / "t.zarr", out=tmp_path / "one", iterations=150, **QUICK)
    two = srs_ooc.run(f"{bucket}/t.zarr", out=tmp_path / "two", iterations=150, **QUICK)
    results = [results_of(run.run, tmp_path / "t.zarr") for run in (one, two)]
    assert [found.pop("status") is None for found in results] == [False, False]
    assert results[0] == results[1]
    srs_ooc.ingest(values.T[:, 1:], f"{bucket}/t.zarr", target=labels, overwrite=True)
    with pytest.raises(StoreError, match="replaced"):
        there.check_unchanged()
    assert open_store(f"{bucket}/t.zarr").verify().nbytes > 0


def test_a_store_larger_than_a_part_is_copied_whole(bucket, tmp_path):
    values, labels = noise_table(100, 140_000)  # a chunk of codes takes three parts
    make_store(tmp_path / "t.zarr", values, labels)
    from srs_ooc.base.places import place_of
    from srs_ooc.store.remote.objects import Objects
    from srs_ooc.store.remote.publishing import Publishing

    target = Objects(place_of(f"{bucket}/large.zarr"))
    Publishing(target, replaces=False).copy(tmp_path / "t.zarr", lambda *_: None)
    found = open_store(f"{bucket}/large.zarr").verify()
    assert found == Store.open(tmp_path / "t.zarr").verify()
