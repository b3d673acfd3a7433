"""Real servers of object storage on the loopback address: S3's protocol, Google's and Azure's.

S3 is moto's server, of `pip install 'moto[server]'`. Google's requests in XML have the form of
S3's but for who signs them, so moto answers those, too, once it is given a signature of its own.
Azure's is Azurite, the command `azurite-blob` of `npm install azurite`, with
`pip install azure-storage-blob` to make a container. Slow, as the servers take seconds to start;
the same code is tried against a smaller web server in every run of the tests.
"""

import base64
import json
import shutil
import socket
import subprocess
import threading
import time

import pytest
from run_cases import results_of
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import StoreError
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store

pytest.importorskip("obstore")
pytestmark = pytest.mark.campaign
QUICK = {"judge": "probe", "q": 40, "memory_mb": 4000}


def s3(monkeypatch):
    moto_server, boto3 = pytest.importorskip("moto.server"), pytest.importorskip("boto3")
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    settings = {
        "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key",
        "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3", endpoint_url=url).create_bucket(Bucket="tables")
    yield "s3://tables/folder"
    server.stop()


def gs(monkeypatch):
    moto_server, boto3 = pytest.importorskip("moto.server"), pytest.importorskip("boto3")
    serving = pytest.importorskip("werkzeug.serving")
    signed = (
        "AWS4-HMAC-SHA256 Credential=id/20200101/us-east-1/s3/aws4_request, "
        "SignedHeaders=host, Signature=none"
    )
    answer = moto_server.DomainDispatcherApplication(moto_server.create_backend_app)
    server = serving.make_server(
        "127.0.0.1", 0, lambda asked, start: answer(asked | {"HTTP_AUTHORIZATION": signed}, start),
        threaded=True,
    )  # fmt: skip
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    account = {"gcs_base_url": url, "disable_oauth": True}
    account |= dict.fromkeys(("client_email", "private_key", "private_key_id"), "")
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps(account))
    names = {"aws_access_key_id": "id", "aws_secret_access_key": "key", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=url, **names).create_bucket(Bucket="more")
    yield "gs://more/folder"  # moto's buckets are those of the process
    server.shutdown()
    thread.join()
    server.server_close()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def az(monkeypatch):
    blob = pytest.importorskip("azure.storage.blob")
    command = shutil.which("azurite-blob")
    if command is None:
        pytest.skip("needs azurite-blob on the path")
    account, key, port = "tester", base64.b64encode(b"of this test").decode(), free_port()
    url = f"http://127.0.0.1:{port}/{account}"
    monkeypatch.setenv("AZURITE_ACCOUNTS", f"{account}:{key}")
    options = ("--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent")
    with subprocess.Popen([command, "--blobPort", str(port), *options]) as server:
        try:
            monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", account)
            monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", key)
            monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", url)
            wait_for(port)
            blob.BlobServiceClient(url, credential=key).create_container("tables")
            yield "az://tables/folder"
        finally:
            server.terminate()


def wait_for(port):
    for _ in range(600):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server did not start")


@pytest.fixture(params=[s3, gs, az], ids=["s3", "gs", "az"])
def bucket(request, monkeypatch, tmp_path):
    monkeypatch.setenv("SRS_OOC_CACHE_DIR", str(tmp_path / "cache"))
    yield from request.param(monkeypatch)


def test_a_store_is_made_there_read_from_there_and_replaced(bucket, tmp_path):
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
    from srs_ooc.base.urls import place_of
    from srs_ooc.store.objects import Objects, check_free, copy_store

    target = Objects(place_of(f"{bucket}/large.zarr"))
    copy_store(tmp_path / "t.zarr", target, check_free(target, replaces=False))
    found = open_store(f"{bucket}/large.zarr").verify()
    assert found == Store.open(tmp_path / "t.zarr").verify()
