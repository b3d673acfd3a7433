"""Runs on stores at a URL have the bits of runs on a local disk, whatever fails meanwhile."""

import random
import re
import subprocess
import time

import numpy as np
import pytest
from access import MEMORY, command, json_of
from book import read
from command import committing_often, error_of, peak_kb
from object_server import serving, set_patience
from run_cases import CASES, results_of
from stores import make_store, noise_table

import srs_ooc as package
from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.base.text import MB
from srs_ooc.runs.request import Request
from srs_ooc.runs.run_memory import TrainingShape
from srs_ooc.runs.settling import settle
from srs_ooc.store import remote_cache

pytest.importorskip("obstore")
PINS = read()["runs"]
FEW = ["probe, draw block 16", "trees, missing and categories", "probe, thresholds between values",
       "tests, excluded features and some rows"]  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A folder of the test's own for what is kept of a store at a URL."""
    monkeypatch.setenv("SRS_OOC_CACHE_DIR", str(tmp_path / "cache"))


def cases():
    return [pytest.param(n, marks=[] if n in FEW else [pytest.mark.campaign]) for n in CASES]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", cases())
def test_a_run_on_a_url_has_the_results_that_are_pinned(name, tmp_path):
    make, given = CASES[name]
    store, run = make(tmp_path), tmp_path / "run"
    options = [p for one in given for p in (one(tmp_path) if callable(one) else (one,))]
    with serving(tmp_path) as server:
        where = ("--out", run, "--threads", 2)
        command("run", f"{server.url}/{store.name}", *where, *MEMORY, *options)
    places = read_places(run)
    assert places[0].endswith("/store")
    found = results_of(run, store)
    assert {key: found[key] for key in found if key != "status"} == {
        key: PINS[name][key] for key in found if key != "status"
    }


def read_places(run):
    from srs_ooc.runs.run import Run

    ledger = Run(run, writable=False)
    try:
        return ledger.meta("store")
    finally:
        ledger.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("remote") / "t.zarr", *noise_table(60, 400))


QUICK = {"judge": "probe", "q": 40, "memory_mb": 4000}


def results(run, store):
    found = results_of(run.run, store)
    del found["status"]
    return found


@pytest.mark.slow
def test_a_run_goes_on_after_the_server_was_away_to_the_same_bits(store, tmp_path, monkeypatch):
    set_patience(monkeypatch, 2, 0.001, 0.001, 2.0)
    monkeypatch.setattr(remote_cache, "BLOCK_NBYTES", 60)  # a request a column
    whole = package.run(store, out=tmp_path / "whole", iterations=150, **QUICK)
    with serving(store.parent) as server:
        url, served = f"{server.url}/t.zarr", []

        def away(_, path, part):
            served.append(path)
            return "reset" if "codes" in path and len(served) > 80 else None

        server.fault = away
        with pytest.raises(StoreError, match="try again; what was committed is kept"):
            package.run(url, out=tmp_path / "run", iterations=150, **QUICK)
        server.fault = lambda *_: None
        run = package.resume(tmp_path / "run", iterations=150)
    assert results(run, store) == results(whole, store)


@pytest.mark.slow
def test_a_run_goes_from_a_url_to_a_disk_and_back(store, tmp_path):
    whole = package.run(store, out=tmp_path / "whole", iterations=90, **QUICK)
    with serving(store.parent) as server:
        url = f"{server.url}/t.zarr"
        run = package.run(url, out=tmp_path / "run", iterations=30, **QUICK)
        package.run(store, out=tmp_path / "run", iterations=60)
        package.run(url, out=tmp_path / "run", iterations=90)
    assert results(run, store) == results(whole, store)


@pytest.mark.slow
def test_the_commands_that_read_a_store_read_one_at_a_url(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with serving(store.parent) as server:
        url = f"{server.url}/t.zarr"
        there, here = json_of("inspect", url, "--json"), json_of("inspect", store, "--json")
        assert there.pop("store_nbytes") is None
        assert there == {key: here[key] for key in there}
        assert json_of("verify", url, "--json") == json_of("verify", store, "--json")
        command("run", url, "--iterations", 60, "--judge", "probe", *MEMORY)
        command("export", url, "t.run", "there.csv", "--top", 5, *MEMORY)
        features = command("features", "t.run", "--csv", *MEMORY)
    command("export", store, "t.run", "here.csv", "--top", 5, *MEMORY)
    assert (tmp_path / "there.csv").read_text() == (tmp_path / "here.csv").read_text()
    assert features == command("features", "t.run", "--csv", "--store", store, *MEMORY)


def test_memory_of_this_process_is_refused_on_the_command_line():
    with pytest.raises(AssertionError) as raised:
        command("run", "memory://b/t.zarr")
    assert isinstance(raised.value.__cause__, UsageError)


def settled(n_features, cap_mb, n_rows=1000, **options):
    shape = TrainingShape(n_rows, n_features, n_features, 2, 1, n_stored_rows=n_rows)
    return settle(Request(options=options, memory_mb=cap_mb), shape, {}).draw_block


def test_features_are_drawn_in_blocks_where_the_store_is_larger_than_the_cap():
    assert settled(1_000_000, 512) == 64
    assert settled(500_000, 512) == 1  # the cap holds its codes
    assert settled(1_000_000, 512, draw_block=1) == 1
    assert settled(1_000_000, 512, subspace_size="1000") == 16  # 32 blocks of a subspace at least
    assert settled(1_000_000, 2000, n_rows=20_000) == 4  # 64 KB a block
    assert settled(1_000_000, 512, method="rs") == 64
    assert settled(1_000_000, 512, method="less") == 1


@pytest.mark.campaign
def test_the_smallest_cap_accepted_holds_a_run_on_a_url(tmp_path):
    values = np.random.default_rng(1).normal(size=(60_000, 500))
    make_store(tmp_path / "t.zarr", values, np.arange(500) % 2)
    with serving(tmp_path) as server:
        run = ("run", f"{server.url}/t.zarr", "--judge", "probe",
               "--iterations", 60, "--q", 2000, "--out", tmp_path / "run")  # fmt: skip
        said = error_of(*run, "--memory-mb", 60)
        cap = int(re.search(r"--memory-mb (\d+)", said)[1])
        assert peak_kb(*run, "--memory-mb", cap) * 1024 <= cap * MB


@pytest.mark.campaign
def test_a_run_on_a_url_killed_again_and_again_ends_with_the_same_bits(store, tmp_path):
    """SIGKILL in the middle of requests, with a cache that holds a part of the store."""
    options = ("--judge", "probe", "--q", 60, "--iterations", 400, "--threads", 2)
    command("run", store, "--out", tmp_path / "whole", *options, *MEMORY)
    small = "import srs_ooc.store.remote_cache as b; b.BLOCK_NBYTES = 60; "
    with serving(store.parent) as server:
        server.fault = lambda number, *_: (None, None, "503", "slow", "cut")[number % 5]
        url, run = f"{server.url}/t.zarr", tmp_path / "run"
        line = committing_often("run", url, "--out", run, *options)
        line[2] = small + line[2]
        random.seed(4)
        for _ in range(8):
            process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            time.sleep(random.uniform(0.8, 3.0))
            process.kill()
            process.communicate()
        server.fault = lambda *_: None
        command("run", url, "--out", run, *options, *MEMORY)
    found = [results_of(path, store) for path in (tmp_path / "whole", run)]
    assert [one.pop("status") is not None for one in found] == [True, True]
    assert found[0] == found[1]


@pytest.mark.dask
@pytest.mark.campaign
def test_workers_of_a_cluster_read_the_url_themselves(store, tmp_path):
    pytest.importorskip("distributed")
    options = ("--judge", "probe", "--q", 60, "--iterations", 300, *MEMORY)
    command("run", store, "--out", tmp_path / "one", *options)
    with serving(store.parent) as server:
        where = ("--dask", "local:2")
        command("run", f"{server.url}/t.zarr", "--out", tmp_path / "two", *options, *where)
    found = [results_of(tmp_path / name, store) for name in ("one", "two")]
    assert [one.pop("status") is not None for one in found] == [True, True]
    assert found[0] == found[1]
    assert len(list((tmp_path / "cache").iterdir())) == 3  # the run's process, and two workers


@pytest.mark.slow
def test_rows_of_a_store_at_a_url_are_predicted_as_those_on_disk(tmp_path):
    table, labels = noise_table(40, 60)
    store = make_store(tmp_path / "t.zarr", table, labels)
    other = make_store(tmp_path / "other.zarr", table + 0.25, labels)
    run = package.run(store, judge="probe", iterations=20, q=10, save_trees=True, memory_mb=4000)
    with serving(tmp_path) as server:
        for data in (store, other):
            here, there = (tmp_path / f"{data.stem}-{name}.csv" for name in ("here", "there"))
            command("predict", run.run, data, here, "--memory-mb", 4000)
            command("predict", run.run, f"{server.url}/{data.name}", there, "--memory-mb", 4000)
            assert there.read_bytes() == here.read_bytes()
