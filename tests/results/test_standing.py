"""Runs are listed, compared and removed."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import srs_ooc
from srs_ooc.base.errors import RunError
from srs_ooc.cli import cli
from srs_ooc.methods.networks.edges import edge_ledger
from srs_ooc.results.ranking import _spearman
from srs_ooc.results.standing import list_runs, remove_run
from srs_ooc.runs.run import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store, two runs that differ in their seed, and one that is damaged."""
    folder = tmp_path_factory.mktemp("runs")
    values = np.random.default_rng(0).standard_normal((100, 30))
    srs_ooc.ingest(values, folder / "t.zarr", target=(values[:, :3].sum(1) > 0).astype(int))
    for seed in (0, 1):
        srs_ooc.run(folder / "t.zarr", out=folder / f"{seed}.run", iterations=300, q=10, seed=seed)
    (folder / "deep" / "bad.run").mkdir(parents=True)
    (folder / "deep" / "bad.run" / "ledger.sqlite").write_bytes(b"nothing")
    return folder


def called(*arguments):
    done = CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_runs_and_stores_of_a_folder_are_listed(folder):
    found = {item.path: item for item in list_runs(folder)}
    assert list(found) == ["0.run", "1.run", "deep/bad.run", "t.zarr"]
    assert found["0.run"].n_selected == len(srs_ooc.open_run(folder / "0.run").selected)
    assert (found["t.zarr"].n_rows, found["t.zarr"].n_features) == (100, 30)
    assert found["deep/bad.run"].state == "cannot be read"
    assert json.loads(called("runs", folder, "--json"))[0] == vars(found["0.run"])
    assert "300 of 300" in called("runs", folder)
    assert "no runs" in called("runs", folder / "t.zarr" / "codes")
    with pytest.raises(RunError, match="expected a folder"):
        list_runs(folder / "nowhere")


def test_a_finished_run_that_is_asked_for_fewer_iterations_is_not_listed_as_too_long(folder):
    srs_ooc.resume(folder / "0.run", iterations=100)
    (found,) = list_runs(folder / "0.run")
    assert found.done == "300 of 300"


def test_a_network_is_listed_as_one(tmp_path):
    with edge_ledger(tmp_path / "n.network", {"trees": 3}, 4):
        pass
    (found,) = list_runs(tmp_path)
    assert (found.kind, found.state) == ("network", "stopped")
    assert found.done == "0 of 4 targets"
    assert "0 of 4 targets" in called("runs", tmp_path)


def test_a_run_compared_with_itself_is_the_same(folder):
    found = json.loads(called("compare", folder / "0.run", folder / "0.run", "--json"))
    assert found["differences"] == {}
    assert found["rank_correlation"] == 1
    assert found["n_both"] == found["n_selected"][0] > 0
    assert found["only_first"] == found["only_second"] == []


def test_what_two_runs_select_and_how_they_differ(folder):
    first, second = (srs_ooc.open_run(folder / f"{seed}.run") for seed in (0, 1))
    found = first.compare(second)
    assert found.same_store
    assert found.differences == {"seed": [0, 1]}
    assert found.n_both == len(set(first.selected) & set(second.selected))
    assert set(found.only_first) == set(first.selected) - set(second.selected)
    assert -1 <= found.rank_correlation <= 1
    lines = called("compare", first.run, second.run).splitlines()
    assert lines[-1].split() == ["seed", "0", "/", "1"]
    assert all(len(line) < 100 for line in lines if "only by" not in line)


@given(st.permutations(range(6)))
def test_the_correlation_of_ranks_is_one_only_of_one_order(order):
    found = _spearman(list(range(6)), list(order))
    assert (found > 1 - 1e-12) == (list(order) == sorted(order))


def test_a_run_is_removed_whole_and_its_store_stays(folder, tmp_path):
    made = srs_ooc.run(folder / "t.zarr", out=tmp_path / "x.run", iterations=2, judge="probe")
    held = Run(made.run, writable=True)
    with pytest.raises(RunError, match="worked on by another"):
        remove_run(made.run)
    held.close()
    done = CliRunner().invoke(cli, ["remove", str(made.run)])
    assert "--yes" in str(done.exception)
    assert made.status.state == "finished"
    called("remove", made.run, "--yes")
    assert list(tmp_path.iterdir()) == []
    assert (folder / "t.zarr").exists()


def test_only_a_run_is_removed(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder / "0.run")
    for path in (folder / "t.zarr", tmp_path, tmp_path / "link", tmp_path / "nowhere"):
        with pytest.raises(RunError, match="Nothing was removed"):
            remove_run(path)
    assert (folder / "0.run").exists()
