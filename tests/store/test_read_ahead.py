"""Reading ahead asks for the right bytes in few requests, and never changes what is read."""

import ctypes
import mmap
import os
import shutil
import time
from types import SimpleNamespace

import numpy as np
import pytest
from stores import make_store, noise_table

from srs_ooc.store import store as read_ahead
from srs_ooc.store.manifest import chunk_file
from srs_ooc.store.store import MOST_WAITING, SAMPLE, ReadAhead, Store

N_ROWS, N_FEATURES = 5000, 400


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    return make_store(tmp_path_factory.mktemp("ahead") / "t.zarr", values, labels)


def features(*places):
    return np.array(places, dtype=np.uint32)


def test_neighbours_share_a_request(store):
    with Store.open(store).columns(mapped=False) as columns:
        assert columns.advise(features(3)) == 1
        assert columns.advise(features(3, 4, 5, 6)) == 1
        assert columns.advise(features(3, 5)) == 2  # a column of 5,000 bytes between them
        assert columns.advise(features(9, 3, 4)) == 2  # in any order
        assert columns.advise(features()) == 0
        with pytest.raises(ValueError, match="beyond the last chunk"):
            columns.advise(features(10**6))


def test_columns_less_than_a_page_apart_share_a_request(tmp_path):
    values, labels = noise_table(50, 500)
    made = Store.open(make_store(tmp_path / "t.zarr", values, labels))
    with made.columns(mapped=False) as columns:
        assert columns.advise(features(0, 50, 100)) == 1
        assert columns.advise(features(0, 200, 400)) == 3


class Columns:
    """Stands for a store: notes what it is asked for, and takes its time."""

    mapped, n_ahead = False, 2
    manifest = SimpleNamespace(n_features=2000)

    def __init__(self, seconds):
        self.seconds, self.asked = seconds, []

    def advise(self, wanted):
        self.asked.append(wanted.tolist())
        time.sleep(self.seconds)
        return len(wanted)


def test_once_columns_are_cached_only_a_sample_is_asked_for_until_they_are_not(monkeypatch):
    monkeypatch.setattr(read_ahead, "CACHED_SECONDS", 1.0)
    columns, wanted = Columns(0.0), np.arange(64, dtype=np.uint32)
    sample = wanted[::SAMPLE].tolist()
    with ReadAhead(columns) as ahead:
        assert ahead.depth > 0
        for _ in range(3):
            ahead._ask(wanted)
        assert columns.asked == [wanted.tolist(), sample, sample]
        monkeypatch.setattr(read_ahead, "CACHED_SECONDS", 0.0)  # nothing is that fast: cold
        ahead._ask(wanted)
        ahead._ask(wanted)
    assert columns.asked[3:] == [sample, wanted.tolist()]


def test_what_a_slow_disk_cannot_keep_up_with_is_left_out():
    """Nothing piles up: iterations that read for themselves meanwhile are past."""
    columns = Columns(0.02)
    with ReadAhead(columns) as ahead:
        for number in range(1000):
            ahead.ask(features(number))
            assert len(ahead._waiting) <= MOST_WAITING
        ahead._waiting[-1].result()
        n_before = len(columns.asked)
        ahead.ask(features(1000))
        ahead._waiting[-1].result()
    assert n_before < 500
    assert columns.asked[-1] == [1000]


def test_a_mapped_store_is_not_asked(store):
    with Store.open(store).columns(mapped=True) as columns, ReadAhead(columns) as ahead:
        assert ahead.depth == 0
        ahead.ask(features(1, 2))


def cached_pages(file):
    """Which pages of a file are in memory; bool (n_pages,)."""
    library = ctypes.CDLL(None)
    with file.open("rb") as handle:
        view = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_COPY)
    address = np.frombuffer(view, dtype=np.uint8).ctypes.data
    flags = np.zeros(-(-len(view) // mmap.PAGESIZE), dtype=np.uint8)
    done = library.mincore(
        ctypes.c_void_p(address), ctypes.c_size_t(len(view)), ctypes.c_void_p(flags.ctypes.data)
    )
    assert done == 0
    return (flags & 1).astype(bool)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="needs posix_fadvise")
def test_what_is_asked_for_comes_into_the_page_cache(store, tmp_path):
    store = shutil.copytree(store, tmp_path / "t.zarr")  # one that no other test has mapped
    file = store / chunk_file(0)
    with file.open("r+b") as handle:
        os.fsync(handle.fileno())
        os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if cached_pages(file).any():
        pytest.skip("this file system keeps its pages")
    wanted = features(10, 11, 12, 300)
    with Store.open(store).columns(mapped=False) as columns, ReadAhead(columns) as ahead:
        ahead.ask(wanted)
    pages = np.unique(
        [byte // mmap.PAGESIZE for f in wanted for byte in range(f * N_ROWS, (f + 1) * N_ROWS)]
    )
    deadline = time.monotonic() + 3600
    while not cached_pages(file)[pages].all() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert cached_pages(file)[pages].all()
    assert cached_pages(file).sum() < 100
