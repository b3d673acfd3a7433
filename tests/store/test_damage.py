"""A store that is not whole says which file is wrong, and is never read as missing values."""

import errno
import io
import json
import mmap
import shutil

import numpy as np
import pytest
from refusals import refused

from srs_ooc.base.errors import StoreError
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.store.arrays import check_files, read_array
from srs_ooc.store.manifest import SMALL_ARRAYS, read_manifest
from srs_ooc.store.store import Store
from srs_ooc.store.values import ValuesReader


@pytest.fixture
def store(tmp_path, request):
    """A store of classes; of a censored target where a test is of a file that such a store has."""
    path = tmp_path / "t.csv"
    path.write_text("a,b,w,s,y,c,t,e\n1,p,2,k,u,4,7,1\n3,,1,k,v,,8,0\n5,p,1,l,u,6,9,1\n")
    options = IngestOptions(target="y", weights="w", strata=("s",), ignore=("c", "t", "e"))
    asked = getattr(request.node, "callspec", None)
    if asked is not None and asked.params.get("name") in CENSORED:
        options = IngestOptions(
            target="t", censored=True, event="e", covariates=("c", "s"), ignore=("w", "y")
        )
    ingest_table(path, tmp_path / "t.zarr", options)
    return tmp_path / "t.zarr"


CENSORED = ["covariates/c/0", "events/c/0", "target_values/c/0"]
BESIDE = ("feature_columns_bytes", "feature_columns_offsets")
"""Of a store that knows more of features: see test_feature_columns.py."""
ABSENT = ("groups", "code_lows_crc32c", "code_highs_crc32c", "linked_rows", "present", *BESIDE)
FILES = ["codes/c/0/0", *(f"{name}/c/0" for name in SMALL_ARRAYS if name not in ABSENT)]


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_short_file_is_named_with_both_sizes(store, name):
    manifest = read_manifest(store)
    file = store / name
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    sizes = f"{name}: expected {len(whole)} bytes, found"
    refused(StoreError, f"{sizes} {len(whole) - 1}", check_files, store, manifest)
    file.unlink()
    refused(StoreError, f"{sizes} no file", check_files, store, manifest)


@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_fails_the_checksum(store, name):
    file = store / name
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)
    with pytest.raises(StoreError):  # by its size where the byte is an offset, else by its sum
        Store.open(store).verify()


def test_a_lost_or_damaged_chunk_of_values_is_not_read_as_missing(store):
    manifest = read_manifest(store)
    file = store / "values" / "c" / "0" / "0"
    stored = np.arange(2)
    assert len(list(ValuesReader(store, manifest).columns(stored))) == 2
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"values/c/0/0: expected a chunk of 2 x 3 values"):
        list(ValuesReader(store, manifest).columns(stored))
    file.unlink()
    refused(StoreError, "no file", list, ValuesReader(store, manifest).columns(stored))
    refused(StoreError, "no file", check_files, store, manifest)


def test_other_versions_other_groups_and_no_store(store, tmp_path):
    metadata = store / "zarr.json"
    record = json.loads(metadata.read_text())
    for version in (1, 2, 99):
        record["attributes"]["srs_ooc"]["format"] = version
        metadata.write_text(json.dumps(record))
        said = f"expected store format 3 to 6, found {version}"
        refused(StoreError, f"{said}.*wrote it, or ingest the table again", read_manifest, store)
    del record["attributes"]["srs_ooc"]
    metadata.write_text(json.dumps(record))
    refused(StoreError, "could not read", read_manifest, store)
    shutil.rmtree(store)
    refused(StoreError, "nothing there", read_manifest, store)


@pytest.mark.parametrize("name", ["zarr.json", "values/c/0/0", "kinds/c/0", "codes/c/0/0"])
def test_a_disk_that_cannot_read_is_not_called_damage(store, name, monkeypatch):
    file, opened = store / name, io.open

    def fails(path, *arguments, **named):
        if str(path) == str(file):
            raise OSError(errno.EIO, "Input/output error", str(path))
        return opened(path, *arguments, **named)

    monkeypatch.setattr(io, "open", fails)
    with pytest.raises(StoreError, match=f"{name}: could not be read: Input/output") as raised:
        Store.open(store).verify()
    assert "try again" in str(raised.value)
    assert "is damaged" not in str(raised.value)


def test_a_file_that_cannot_be_mapped_is_named_with_a_remedy(store, monkeypatch):
    def fails(*_, **__):
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(mmap, "mmap", fails)
    with pytest.raises(StoreError, match=r"codes/c/0/0: .*mapped.*No such device.*local"):
        Store.open(store).columns(mapped=True)
    read_array(store, read_manifest(store), "kinds")  # small arrays are read
