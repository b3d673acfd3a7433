"""What a verdict put first can be read where the store is gone, and is the same."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import srs_ooc
from srs_ooc.base.errors import RunError
from srs_ooc.cli import cli
from srs_ooc.runs import run_verdict


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """What is said of a run with its store, and the run without it."""
    folder = tmp_path_factory.mktemp("moved")
    values = np.random.default_rng(0).standard_normal((100, 250))
    names = ["größe", *(f"f{i}" for i in range(1, 250))]
    target = (values[:, :3].sum(1) > 0).astype(int)
    srs_ooc.ingest(values, folder / "t.zarr", target=target, names=names)
    run = srs_ooc.run(folder / "t.zarr", out=folder / "a.run", iterations=200, q=10).run
    before = srs_ooc.open_run(run).features("records")
    (folder / "t.zarr").rename(folder / "elsewhere.zarr")
    return run, before


def called(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def test_what_the_verdict_put_first_is_read_without_the_store(moved):
    run, before = moved
    done = called("features", run, "--json", "--memory-mb", 4000)
    found = json.loads(done.stdout)
    assert found == before[: len(found)]
    assert len(found) >= sum(record["selected"] for record in before) > 0
    assert "no longer at" in done.stderr
    some = json.loads(called("features", run, "--selected", "--json").stdout)
    assert some == [record for record in found if record["selected"]]
    assert called("features", run).stdout.count("\n") == 1 + min(50, len(found))


def test_what_needs_the_store_says_so(moved):
    run, _ = moved
    assert isinstance(called("features", run, "--why", "f1").exception, RunError)
    assert isinstance(called("features", run, "--store", run / "nowhere").exception, Exception)


def test_names_take_bounded_room(tmp_path, monkeypatch):
    monkeypatch.setattr(run_verdict, "NAMES_NBYTES", 12)
    values = np.random.default_rng(0).standard_normal((60, 10))
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=(values[:, 0] > 0).astype(int))
    run = srs_ooc.run(tmp_path / "t.zarr", iterations=50)
    with run._ledger() as ledger:
        assert len(run_verdict.kept_names(ledger)) == 6
