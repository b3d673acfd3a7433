"""Options of clusters, where there is none to use."""

import sys

import pytest
from click.testing import CliRunner
from stores import make_store, noise_table

from srs_ooc.base.errors import UsageError
from srs_ooc.cli import cli


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("cluster") / "t.zarr", *noise_table(60, 80))


def error_of(*arguments):
    error = CliRunner().invoke(cli, [str(argument) for argument in arguments]).exception
    assert isinstance(error, UsageError), error
    return str(error)


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


@pytest.mark.parametrize("address", ["local:0", "local:x", "local:99999", "host:8786"])
def test_an_address_of_no_known_form_is_refused(store, address):
    pytest.importorskip("distributed")
    assert "tcp://HOST:PORT" in error_of("run", store, "--dask", address)
