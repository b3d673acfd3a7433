"""Options of clusters, where there is none to use."""

import logging
import socket
import sys
from contextlib import contextmanager

import pytest
from click.testing import CliRunner
from stores import make_store, noise_table

from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.cli import cli
from srs_ooc.runs import dask_cluster


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("cluster") / "t.zarr", *noise_table(60, 80))


def error_of(*arguments, kind=UsageError):
    error = CliRunner().invoke(cli, [str(argument) for argument in arguments]).exception
    assert isinstance(error, kind), error
    return str(error)


@pytest.mark.dask
def test_where_dask_is_absent_the_extra_is_named_and_nothing_is_made(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for address in ("local:2", "tcp://127.0.0.1:8786"):
        message = error_of("run", store, "--out", tmp_path / "a.run", "--dask", address)
        assert "pip install 'srs-ooc[dask]'" in message
    assert not (tmp_path / "a.run").exists()


@pytest.mark.parametrize("command", ["run", "resume"])
def test_a_size_of_workers_goes_with_workers(store, command):
    assert "--worker-memory-mb" in error_of(command, store, "--worker-memory-mb", 100)


def test_one_cluster_is_named(store, tmp_path):
    options = ("--dask", "local:1", "--dask-scheduler-file", tmp_path / "none")
    assert "found both" in error_of("run", store, *options)


@pytest.mark.dask
@pytest.mark.parametrize("address", ["local:0", "local:x", "local:99999", "host:8786"])
def test_an_address_of_no_known_form_is_refused(store, address):
    pytest.importorskip("distributed")
    assert "tcp://HOST:PORT" in error_of("run", store, "--dask", address)


@pytest.mark.dask
def test_no_workers_are_started_for_a_run_that_is_refused(store, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    asked = ("run", store, "--out", tmp_path / "a.run", "--iterations", 1, "--judge", "probe")
    assert CliRunner().invoke(cli, [str(x) for x in asked]).exit_code == 0

    @contextmanager
    def started(n_workers):
        raise AssertionError("workers were started")
        yield

    monkeypatch.setattr(dask_cluster, "_local_client", started)
    error = error_of(*asked, "--alpha", "0.25", "--dask", "local:2", kind=RunError)
    assert "alpha 0.5 (asked for: 0.25)" in error


@pytest.mark.dask
def test_a_scheduler_that_does_not_answer_is_told_of_soon(store, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 0.1)
    with socket.socket() as taken:  # a port at which nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        error = error_of("run", store, "--out", tmp_path / "b.run", "--dask", address)
    assert f"expected a Dask scheduler at {address}, found none that answers within 0.1 s" in error
    assert not (tmp_path / "b.run").exists()


@pytest.mark.dask
def test_what_dask_says_of_workers_that_take_long_to_end_is_not_shown(monkeypatch, caplog):
    distributed = pytest.importorskip("distributed")
    log = logging.getLogger("distributed.nanny")
    level = log.level

    @contextmanager
    def slow(*arguments, **options):
        yield
        log.warning("Worker process still alive after 4 seconds, killing")

    monkeypatch.setattr(distributed, "LocalCluster", slow)
    monkeypatch.setattr(distributed, "Client", slow)
    with dask_cluster._local_client(1):
        pass
    assert caplog.records == []
    log.warning("another's")
    assert [record.message for record in caplog.records] == ["another's"]
    assert log.level == level
