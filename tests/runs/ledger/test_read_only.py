"""A run is read by whoever may read its files, where they may write nothing."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from command import command_line, environment, srs_ooc
from stores import make_store

from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.store.store import Store

LOG, INDEX = "ledger.sqlite-wal", "ledger.sqlite-shm"
UNPRIVILEGED = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
"""Runs a program of root's without the rights that let root pass by the modes of files."""


def as_reader(*arguments, cwd):
    """Run a program that the modes of files hold for."""
    prefix = UNPRIVILEGED if os.geteuid() == 0 else []
    return subprocess.run(
        [*prefix, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(),
        timeout=3600,
        check=False,
    )


def make_read_only(folder):
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def make_removable(folder):
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


@pytest.fixture
def place(tmp_path):
    """A folder for a run; skips where modes of files hold for nobody."""
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    try:
        done = as_reader("touch", locked / "file", cwd=tmp_path)
    except FileNotFoundError:
        pytest.skip("needs setpriv, as root")
    if done.returncode == 0:
        pytest.skip("the modes of files do not hold here")
    yield tmp_path
    make_removable(tmp_path)


@pytest.fixture
def run(place):
    labels = np.arange(60) % 2
    values = np.random.default_rng(1).standard_normal((100, 60))
    values[:5] += 2 * labels
    store = make_store(place / "t.zarr", values, labels)
    asked = ("--judge", "probe", "--q", 20, "--iterations", 60, "--save-trees")
    srs_ooc("run", store, "--out", place / "a.run", *asked)
    return place / "a.run"


def read_by_all_commands(run, out):
    store = run.with_name("t.zarr")
    commands = [
        ("status", run, "--json"),
        ("features", run, "--json"),
        ("export", store, run, out / "e.csv", "--top", 3),
        ("predict", run, store, out / "p.csv"),
    ]
    said = []
    for command in commands:
        done = as_reader(*command_line(*command), cwd=out)
        assert (done.returncode, done.stderr) == (0, "")
        said.append(done.stdout)
    files = [(out / name).read_bytes() for name in ("e.csv", "p.csv")]
    for name in ("e.csv", "p.csv"):
        (out / name).unlink()
    return said[:2], files


@pytest.fixture
def out(place):
    """Where the reader may write."""
    folder = place / "out"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_a_finished_run_is_read_without_permission_to_write(run, out):
    assert not (run / LOG).exists()
    expected = srs_ooc("status", run, "--json").stdout, srs_ooc("features", run, "--json").stdout
    for left_by_a_reader in (LOG, INDEX):
        (run / left_by_a_reader).unlink(missing_ok=True)
    make_read_only(run)
    before = sorted(path.name for path in run.iterdir())
    assert "splits.bin" not in before
    said, _ = read_by_all_commands(run, out)
    assert tuple(said) == expected
    assert sorted(path.name for path in run.iterdir()) == before


def killed_copy(run, name="k.run"):
    """A copy of a run with commits in its write-ahead file, as a kill leaves it."""
    store, other = run.with_name("t.zarr"), run.with_name("b.run")
    asked = Request(Options(judge="probe", subspace_size="20"), iterations=50, memory_mb=4000)
    ledger = open_or_create(Store.open(store), other, asked)
    work_on(ledger, Store.open(store), asked)
    killed = shutil.copytree(other, run.with_name(name))
    ledger.close()
    return killed


@pytest.mark.slow
def test_a_killed_run_is_read_with_its_write_ahead_file(run, out):
    """Both files are there, so SQLite needs to write neither; without one, the next test."""
    killed = killed_copy(run)
    assert (killed / LOG).stat().st_size
    assert (killed / INDEX).stat().st_size
    make_read_only(killed)
    done = as_reader(*command_line("status", killed), cwd=out)
    assert (done.returncode, done.stderr) == (0, "")
    assert "50 of 50" in done.stdout


@pytest.mark.slow
def test_commits_that_cannot_be_read_there_are_named_and_not_called_damage(run, out):
    killed = killed_copy(run)
    (killed / INDEX).unlink()
    make_read_only(killed)
    for command in (("status",), ("features",)):
        done = as_reader(*command_line(*command, killed), cwd=out)
        assert done.returncode == 2
        assert "expected permission to write in its folder" in done.stderr
        assert "ledger.sqlite-wal" in done.stderr
        assert "damaged" not in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["ledger.sqlite", "committed.json", "."])
def test_a_file_that_may_not_be_read_is_named(run, out, name):
    (run / name).chmod(0)
    done = as_reader(*command_line("status", run), cwd=out)
    (run / name).chmod(0o755)
    assert done.returncode == 2
    assert str(run / name) in done.stderr
    assert "damaged" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_run_that_may_not_be_written_is_not_gone_on_with(run, out):
    make_read_only(run)
    done = as_reader(*command_line("resume", run, "--iterations", 99), cwd=out)
    assert done.returncode == 2
    assert "permission" in done.stderr
    assert "Traceback" not in done.stderr
