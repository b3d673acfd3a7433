"""Stores at a URL: the columns of the local ones, in bounded room, whatever fails meanwhile."""

import sys
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from examples import examples, given, st
from object_server import serving, set_patience
from refusals import refused
from stores import make_store

from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.urls import Url, place_of
from srs_ooc.ingestion.ingest import ingest
from srs_ooc.store import remote_cache
from srs_ooc.store.objects import Objects
from srs_ooc.store.opening import open_store, open_zarr
from srs_ooc.store.remote_cache import CacheOptions
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block

pytest.importorskip("obstore")
P, N = 900, 70
MADE: dict[str, Path] = {}
"""A store and a cache for all examples of a property, which has no fixtures."""
STALL = 0.5
"""Seconds after which a server that says nothing is asked again."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values = np.random.default_rng(5).normal(size=(P, N))
    path = tmp_path_factory.mktemp("remote") / "t.zarr"
    make_store(path, values, np.arange(N) % 2)
    return path


@pytest.fixture(scope="module")
def server(store):
    with serving(store.parent) as server:
        yield server


@pytest.fixture(autouse=True)
def quick(monkeypatch, server):
    set_patience(monkeypatch, 6, 0.001, 0.002, STALL)
    monkeypatch.setattr(remote_cache, "BLOCK_NBYTES", 4 * N)  # 225 blocks of four columns
    monkeypatch.setattr(remote_cache, "REQUEST_NBYTES", 16 * N)
    server.fault = lambda number, path, part: None
    server.requests.clear()


def remote(server, tmp_path, megabytes=1):
    return open_store(f"{server.url}/t.zarr", cache=CacheOptions(str(tmp_path), megabytes))


def gathered(store, features, rows=None, *, tiled=True):
    n_rows = N if rows is None else len(rows)
    block = Block(len(features), n_rows, 1, tiled=tiled)
    with store.columns(mapped=False) as columns:
        columns.gather(np.asarray(features, np.uint32), block, rows)
    return block.as_columns(len(features))


@examples(25)
@given(st.data())
def test_a_gather_lays_out_the_same_columns_as_from_a_local_disk(data):
    there = open_store("memory://examples/t.zarr", cache=CacheOptions(str(MADE["cache"]), 1))
    features = data.draw(st.lists(st.integers(0, P - 1), min_size=1, max_size=300, unique=True))
    some_rows = data.draw(st.booleans())
    rows = np.arange(0, N, 2, dtype=np.int32) if some_rows else None
    tiled = data.draw(st.booleans())
    found = gathered(there, sorted(features), rows, tiled=tiled)
    expected = gathered(Store.open(MADE["store"]), sorted(features), rows, tiled=tiled)
    assert np.array_equal(found, expected)


@pytest.fixture(autouse=True, scope="module")
def _in_memory(store, tmp_path_factory):
    MADE.update(store=store, cache=tmp_path_factory.mktemp("cache"))
    copied(store, "memory://examples/t.zarr")


def copied(store, url):
    target = Objects(place_of(url))
    for file in store.rglob("*"):
        if file.is_file():
            target.write(file.relative_to(store).as_posix(), file)


@pytest.mark.slow
def test_the_room_on_disk_is_bounded_and_the_columns_are_right(
    server, store, tmp_path, monkeypatch
):
    opened = remote(server, tmp_path)
    monkeypatch.setattr(remote_cache, "MB", 1000)
    opened._mirror.n_slots, room = 130, opened._mirror._small_nbytes + 130 * 4 * N  # of 225 blocks
    random = np.random.default_rng(1)
    local = Store.open(store)
    with opened.columns(mapped=False) as columns:
        for _ in range(4):
            features = np.sort(random.choice(P, 400, replace=False)).astype(np.uint32)
            block = Block(400, N, 1, tiled=True)
            columns.advise(np.sort(random.choice(P, 200, replace=False)).astype(np.uint32))
            columns.gather(features, block)
            assert np.array_equal(block.as_columns(400), gathered(local, features))
    opened.names  # noqa: B018 (kept here, too)
    used = sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file() and f.name != "index")
    assert used <= room


def test_what_was_fetched_of_a_store_that_was_replaced_is_not_kept(store, tmp_path):
    served, everything = tmp_path / "served" / "t.zarr", np.arange(P)
    values = np.random.default_rng(6).normal(size=(P, N))
    other = make_store(tmp_path / "other.zarr", values, np.arange(N) % 2)
    copytree(store, served)
    with serving(served.parent) as own:
        opened = remote(own, tmp_path)
        copytree(other, served, dirs_exist_ok=True)
        gathered(opened, everything)
        refused(StoreError, "it was replaced", opened.check_unchanged)
        copytree(store, served, dirs_exist_ok=True)
        expected = gathered(Store.open(store), everything)
        assert np.array_equal(gathered(remote(own, tmp_path), everything), expected)


@pytest.mark.parametrize("is_looked_at", [True, False])
def test_codes_written_over_at_the_server_are_noticed_as_they_are_fetched(
    store, tmp_path, is_looked_at
):
    """The metadata are still those of the store. What was fetched before is right."""
    served, some = tmp_path / "served" / "t.zarr", np.arange(40)
    copytree(store, served)
    with serving(served.parent) as own:
        opened = remote(own, tmp_path)
        if is_looked_at:
            opened.check_files()
        else:
            gathered(opened, some)
        chunk = served / "codes" / "c" / "0" / "0"
        chunk.write_bytes(chunk.read_bytes()[::-1])
        with pytest.raises(StoreError, match=r"http.*codes/c/0/0: .*written to, replaced, or giv"):
            gathered(opened, np.arange(P))
        copytree(store, served, dirs_exist_ok=True)
        found = gathered(remote(own, tmp_path / "anew"), some)
        assert np.array_equal(found, gathered(Store.open(store), some))


def test_what_is_kept_is_not_fetched_again_and_what_is_damaged_is(
    server, store, tmp_path, monkeypatch
):
    everything = np.arange(P)
    expected = gathered(Store.open(store), everything)
    opened = remote(server, tmp_path)
    assert np.array_equal(gathered(opened, everything), expected)
    n_ranges = sum("codes" in path for _, path, _ in server.requests)
    assert n_ranges == 57  # 225 blocks, four a request
    assert np.array_equal(gathered(remote(server, tmp_path), everything), expected)
    assert sum("codes" in path for _, path, _ in server.requests) == n_ranges
    kept = opened.path / "blocks"
    damaged = bytearray(kept.read_bytes())
    damaged[10 * 4 * N] ^= 1
    kept.write_bytes(damaged)
    (opened.path / "index").write_bytes((opened.path / "index").read_bytes()[:-12])
    assert np.array_equal(gathered(remote(server, tmp_path), everything), expected)
    assert sum("codes" in path for _, path, _ in server.requests) - n_ranges in (2, 3)
    del opened
    monkeypatch.setattr(remote_cache, "BLOCK_NBYTES", 5 * N)  # slots of another size
    assert np.array_equal(gathered(remote(server, tmp_path), everything), expected)
    assert sum("codes" in path for _, path, _ in server.requests) - n_ranges > 57


@pytest.mark.few(1)
@pytest.mark.parametrize("fault", ["503", "cut", "reset", "slow"])
def test_failures_that_pass_change_nothing(server, store, tmp_path, fault):
    seen = []

    def twice(_, *asked):
        seen.append(asked)
        return fault if seen.count(asked) <= (1 if fault == "slow" else 2) else None

    server.fault = twice
    opened = remote(server, tmp_path)
    assert np.array_equal(gathered(opened, np.arange(P)), gathered(Store.open(store), np.arange(P)))
    assert opened.names[3] == Store.open(store).names[3]


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_given_up_with_a_clear_error(
    server, tmp_path, monkeypatch
):
    set_patience(monkeypatch, 2, 0.001, 0.001, 0.2)
    opened = remote(server, tmp_path)
    server.fault = lambda number, path, part: "stall" if "codes" in path else None
    with pytest.raises(StoreError, match=r"http.*codes/c/0/0: .*2 failures.*try again"):
        gathered(opened, np.arange(P))
    server.fault = lambda number, path, part: "503"
    refused(StoreError, r"zarr.json: .*2 failures.*try again", opened.check_unchanged)
    server.fault = lambda number, path, part: None
    assert gathered(opened, np.arange(P)).shape == (P, N)


def test_zarr_opens_a_store_at_a_web_server_that_lists_nothing(server, store):
    group, here = open_zarr(f"{server.url}/t.zarr"), open_zarr(store)
    assert sorted(group) == sorted(here)
    assert group["feature"][:3].tolist() == here["feature"][:3].tolist()
    np.testing.assert_array_equal(group["codes"][5:9], here["codes"][5:9])
    refused(StoreError, r"no zarr\.json there", open_zarr, f"{server.url}/none.zarr")


def test_a_server_that_knows_no_ranges_is_refused_at_once(server, tmp_path):
    server.fault = lambda number, path, part: "whole"
    refused(StoreError, "range requests", gathered, remote(server, tmp_path), np.arange(5))


@pytest.mark.slow
def test_damage_and_replacement_are_found_as_on_a_local_disk(server, store, tmp_path):
    place = store.parent / "hurt.zarr"
    copytree(store, place)
    url, cache = f"{server.url}/hurt.zarr", CacheOptions(str(tmp_path), 1)
    opened = open_store(url, cache=cache)
    opened.check_files()
    assert opened.verify().files == Store.open(place).verify().files
    names = place / "names_bytes" / "c" / "0"
    names.write_bytes(names.read_bytes()[::-1])
    refused(StoreError, r"http.*names_bytes.*CRC-32.*damaged", open_store(url, cache=cache).verify)
    values = place / "values" / "c" / "0" / "0"
    values.write_bytes(values.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"http.*values/c/0/0: .*damaged"):
        list(opened.values().columns(np.arange(3)))
    chunk = place / "codes" / "c" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"http.*codes/c/0/0: expected 63000 bytes, found 62999"):
        open_store(url, cache=cache).check_files()
    chunk.unlink()
    refused(StoreError, r"codes/c/0/0: .*no object", open_store(url, cache=cache).check_files)
    with pytest.raises(StoreError, match="no object"):
        gathered(open_store(url, cache=CacheOptions(str(tmp_path / "2"), 1)), np.arange(3))
    make_store(store.parent / "new.zarr", np.ones((3, N)), np.arange(N) % 2)
    (place / "zarr.json").write_bytes((store.parent / "new.zarr" / "zarr.json").read_bytes())
    refused(StoreError, "found another store there", opened.check_unchanged)
    (place / "zarr.json").unlink()
    refused(StoreError, r"found no zarr\.json there", opened.check_unchanged)


def test_values_and_texts_are_those_of_the_local_store(server, store, tmp_path):
    local, opened = Store.open(store), remote(server, tmp_path)
    assert list(opened.names) == list(local.names)
    assert list(opened.row_ids) == list(local.row_ids)
    assert np.array_equal(opened.target(), local.target())
    stored = np.array([5, 17, 300])
    parts = [[p for _, _, p in one.column_parts(stored)] for one in (opened, local)]
    assert all(np.array_equal(a, b) for a, b in zip(*parts, strict=True))
    assert not list(opened.path.glob("values/c/*/*"))  # files of values are not kept


def test_two_processes_do_not_share_a_folder(server, tmp_path):
    first = remote(server, tmp_path)
    mirror_of_another = remote_cache.Mirror(first._objects, first.manifest, first.cache)
    assert mirror_of_another.path != first.path
    assert remote(server, tmp_path).path == first.path  # the same process does


def test_a_cache_without_room_for_a_gather_is_refused_with_the_room_it_takes(
    server, tmp_path, monkeypatch
):
    monkeypatch.setattr(remote_cache, "BLOCK_NBYTES", 1 << 14)
    with pytest.raises(UsageError, match=r"SRS_OOC_CACHE_MB: expected at least 3 .*found 1\."):
        remote(server, tmp_path).columns(mapped=False)


def test_without_the_library_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(UsageError, match=r"obstore.*pip install 'srs-ooc\[remote\]'"):
        open_store("s3://bucket/t.zarr")


def test_places_are_folders_or_urls_without_secrets():
    assert place_of("a/t.zarr") == Path("a/t.zarr")
    assert place_of("s3://b/x/t.zarr/") == Url("s3://b/x/t.zarr")
    assert place_of(Path("s3://b/t.zarr")) == Url("s3://b/t.zarr")  # a slash was lost
    assert place_of("c:/t.zarr") == Path("c:/t.zarr")
    for text, found in {
        "ftp://h/t.zarr": "found ftp://",
        "https://me:secret@h/t.zarr": "with a user",
        "https://h/t.zarr?sig=secret": "with a user, a query",
        "s3://bucket": "found no path",
    }.items():
        with pytest.raises(UsageError, match=found) as error:
            place_of(text)
        assert "secret" not in str(error.value)


def test_a_store_made_at_a_url_is_the_one_made_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("SRS_OOC_CACHE_DIR", str(tmp_path / "cache"))
    values = np.random.default_rng(3).normal(size=(20, 6))
    local = ingest(values, tmp_path / "t.zarr")
    there = ingest(values, "memory://made/a/t.zarr")
    assert there == local
    opened = open_store("memory://made/a/t.zarr", there.fingerprint)
    assert opened.verify().files == Store.open(tmp_path / "t.zarr").verify().files
    files = {p.relative_to(tmp_path / "t.zarr").as_posix() for p in (tmp_path / "t.zarr").rglob("*")
             if p.is_file()}  # fmt: skip
    assert set(dict(Objects(place_of("memory://made/a/t.zarr")).sizes())) == files
    refused(StoreError, "found a store there", ingest, values, "memory://made/a/t.zarr")
    group, on_disk = open_zarr("memory://made/a/t.zarr"), open_zarr(tmp_path / "t.zarr")
    assert group.read_only
    assert sorted(group) == sorted(on_disk)
    assert group["feature"][:].tolist() == on_disk["feature"][:].tolist()
    np.testing.assert_array_equal(group["values"][:], on_disk["values"][:])
    replaced = ingest(values[:, 1:], "memory://made/a/t.zarr", overwrite=True)
    assert open_store("memory://made/a/t.zarr").fingerprint == replaced.fingerprint
    assert not list((tmp_path / "cache").glob("ingest-*"))


@contextmanager
def watched(monkeypatch, most=10**6):
    """Yield the names of what is written; the network fails behind so many."""
    write, written = Objects.write, []

    def noted(self, name, data):
        if len(written) == most:
            raise StoreError("the network is gone")
        written.append(name)
        write(self, name, data)

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "write", noted)
        yield written


def test_a_copy_that_was_cut_leaves_no_store_and_the_next_one_clears_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SRS_OOC_CACHE_DIR", str(tmp_path / "cache"))
    values, url = np.random.default_rng(3).normal(size=(20, 6)), "memory://cut/t.zarr"
    ingest(values, url)
    with watched(monkeypatch, most=7), pytest.raises(StoreError, match="network is gone"):
        ingest(values[:, 1:], url, overwrite=True)
    refused(StoreError, r"no zarr\.json", open_store, url)
    made = ingest(values[:, 2:], url)
    assert open_store(url).verify().nbytes > 0
    assert open_store(url).fingerprint == made.fingerprint


def test_a_copy_that_was_cut_is_gone_on_with_and_takes_up_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("SRS_OOC_CACHE_DIR", str(tmp_path / "cache"))
    rng, url = np.random.default_rng(3), "memory://cut-again/t.zarr"
    first, second = rng.normal(size=(2, 20, 6))
    ingest(second, url)  # files of the same names and sizes
    with watched(monkeypatch, most=12) as before:
        for _ in range(2):
            refused(StoreError, "network is gone", ingest, first, url, overwrite=True)
    with watched(monkeypatch) as after:
        made = ingest(first, url)
    assert not set(before) & (set(after) - {"zarr.json"})
    assert open_store(url, made.fingerprint).verify().nbytes > 0
    (tmp_path / "cache" / "ingest-left").mkdir()
    (tmp_path / "cache" / "ingest-left" / "lock").touch()
    ingest(second, url, overwrite=True)
    assert not list((tmp_path / "cache").glob("ingest-*"))
    assert open_store(url).verify().nbytes > 0


def test_what_is_no_store_of_ours_is_left_alone(tmp_path, server, monkeypatch):
    monkeypatch.setenv("SRS_OOC_CACHE_DIR", str(tmp_path / "cache"))
    objects_there = Objects(place_of("memory://theirs/t.zarr"))
    for name in ("notes.txt", "zarr.json"):
        objects_there.write(name, b"{}")
        with pytest.raises(StoreError, match="found something else"):
            ingest(np.eye(5), "memory://theirs/t.zarr", overwrite=True)
    assert [name for name, _ in objects_there.sizes()] == ["notes.txt", "zarr.json"]
    refused(UsageError, "found a web server's", ingest, np.eye(5), f"{server.url}/new.zarr")
