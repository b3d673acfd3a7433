"""Commits: whole, repeated harmlessly, noted, and read by whoever may read them."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress

import numpy as np
import pytest
from command import command_line, environment, error_of, json_of, srs_ooc
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from ledgers import change, changed_fact
from stores import make_store, noise_table

from srs_ooc.base.errors import RunError
from srs_ooc.base.records import PAGE_ITEMS, n_pages, touch
from srs_ooc.evidence.tally import Tally
from srs_ooc.runs import ledger as database
from srs_ooc.runs.halves import halves_done
from srs_ooc.runs.ledger import (
    NOTE_FILE,
    STRIDE,
    Ledger,
    Progress,
    check_notes,
    is_held,
    read_notes,
    write_note,
)
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.samplers.srs import KeptSet
from srs_ooc.store.store import Store

# Commits hold the whole state, repeat harmlessly, and are all or nothing.

N_FEATURES = 3 * PAGE_ITEMS + 100


@pytest.fixture
def run(tmp_path):
    Ledger.create(tmp_path / "a.run", {"spec": {"x": 1}}, {"rows": np.arange(5, dtype=np.int32)})
    return tmp_path / "a.run"


def changed(tally):
    """Pages that the next commit writes."""
    return tally.state().pages["importance"].changed


def states(tally, kept):
    return {"tally": tally.state(), "kept": kept.state()}


def state(seed, n_kept):
    rng = np.random.default_rng(seed)
    tally, kept = Tally(N_FEATURES), KeptSet(N_FEATURES)
    tally.importance[:] = rng.integers(0, 2**60, N_FEATURES)
    tally.n_drawn[:] = rng.integers(0, 2**32, N_FEATURES)
    tally.n_better[:] = rng.integers(0, 2**32, N_FEATURES)
    touch(changed(tally), np.arange(N_FEATURES))
    members = rng.permutation(N_FEATURES)[:n_kept].astype(np.uint32)
    kept.add(members, np.arange(1, n_kept + 1, dtype=np.uint32))
    return tally, kept


def loaded(run):
    ledger = Ledger(run, writable=False)
    tally, kept = Tally(N_FEATURES), KeptSet(N_FEATURES)
    progress = ledger.load({"tally": tally, "kept": kept})
    ledger.close()
    return progress, tally, kept


def assert_same(tally, kept, other_tally, other_kept):
    for name in ("importance", "n_drawn", "n_better"):
        np.testing.assert_array_equal(getattr(tally, name), getattr(other_tally, name))
    np.testing.assert_array_equal(kept.features, other_kept.features)
    np.testing.assert_array_equal(kept.entered, other_kept.entered)


def test_what_is_committed_is_loaded_and_committing_twice_changes_nothing(run):
    tally, kept = state(0, PAGE_ITEMS + 7)
    ledger = Ledger(run, writable=True)
    for _ in range(2):
        ledger.commit(Progress(9, kept.n, 1.5, 77), states(tally, kept))
    ledger.close()
    progress, found_tally, found_kept = loaded(run)
    assert progress == Progress(9, kept.n, 1.5, 77)
    assert_same(found_tally, found_kept, tally, kept)


def test_ids_of_pages_fit_31_bits():
    """Of 2,000 arrays of as many features as there may be."""
    assert n_pages(1 << 32) <= STRIDE
    assert 2000 * STRIDE < 1 << 31


def test_only_pages_that_were_touched_need_writing(run):
    tally, kept = state(1, 10)
    ledger = Ledger(run, writable=True)
    ledger.commit(Progress(1, kept.n, 0.0, 0), states(tally, kept))
    assert not changed(tally).any()
    tally.importance[2 * PAGE_ITEMS + 5] += 1
    touch(changed(tally), np.array([2 * PAGE_ITEMS]))
    kept.add(np.array([np.setdiff1d(np.arange(50), kept.features)[0]], np.uint32), 2)
    ledger.commit(Progress(2, kept.n, 0.0, 0), states(tally, kept))
    ledger.close()
    _, found_tally, found_kept = loaded(run)
    assert_same(found_tally, found_kept, tally, kept)


def test_a_commit_that_fails_leaves_the_one_before(run, monkeypatch):
    tally, kept = state(2, 5)
    ledger = Ledger(run, writable=True)
    ledger.commit(Progress(1, kept.n, 0.0, 0), states(tally, kept))
    other, _ = state(3, 5)

    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(ledger, "_record_history", full)
    with pytest.raises(RunError, match="disk is full"):
        ledger.commit(Progress(2, kept.n, 0.0, 0), states(other, kept))
    ledger.close()
    progress, found_tally, found_kept = loaded(run)
    assert progress.iteration == 1
    assert_same(found_tally, found_kept, tally, kept)


def test_the_history_is_thinned_and_spans_the_run(run, monkeypatch):
    monkeypatch.setattr(database, "MAX_HISTORY", 20)
    tally, kept = state(4, 0)
    ledger = Ledger(run, writable=True)
    for iteration in range(1, 101):
        ledger.commit(Progress(iteration, 0, 0.1 * iteration, 0), states(tally, kept))
        assert len(list(ledger.history())) <= 20
    iterations = [row[0] for row in ledger.history()]
    ledger.close()
    assert iterations[0] == 1
    assert iterations[-1] > 95
    assert iterations == sorted(iterations)


def test_the_lock_is_held_while_a_writer_is_open(run):
    assert not is_held(run)
    ledger = Ledger(run, writable=True)
    assert is_held(run)
    with pytest.raises(RunError, match="another process"):
        Ledger(run, writable=True)
    ledger.close()
    assert not is_held(run)


def test_what_files_contained_is_kept(run):
    ledger = Ledger(run, writable=False)
    assert ledger.input("rows", "<i4").tolist() == [0, 1, 2, 3, 4]
    assert ledger.input("excluded", "<u4") is None
    assert ledger.meta("spec") == {"x": 1}
    ledger.close()


def test_creating_where_something_is_is_refused(run):
    with pytest.raises(RunError, match="exists"):
        Ledger.create(run, {}, {})


# Commits lost with the write-ahead file are an error with a way on, never a fresh start.

FEW = 300
LOG, INDEX = "ledger.sqlite-wal", "ledger.sqlite-shm"


def commit(ledger, iteration):
    tally, kept = Tally(FEW), KeptSet(FEW)
    tally.n_drawn[:] = iteration
    states = {"tally": tally.state(), "kept": kept.state()}
    touch(states["tally"].pages["n_drawn"].changed, np.arange(FEW))
    ledger.commit(Progress(iteration, 0, 0.0, 0), states)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a run as a kill leaves it: 20 commits in the write-ahead file."""
    folder = tmp_path_factory.mktemp("killed")
    Ledger.create(folder / "a.run", {"spec": {"x": 1}}, {})
    ledger = Ledger(folder / "a.run", writable=True)
    for iteration in range(1, 21):
        commit(ledger, iteration)
    shutil.copytree(folder / "a.run", folder / "killed.run")
    ledger.close()
    return folder / "killed.run"


@pytest.fixture
def left(killed, tmp_path):
    """A copy of it."""
    return shutil.copytree(killed, tmp_path / "k.run")


def iteration_of(run, **how):
    with closing(Ledger(run, **{"writable": False} | how)) as ledger:
        return ledger.progress().iteration


def test_a_killed_run_stands_where_it_was_committed(left):
    assert iteration_of(left) == 20
    assert iteration_of(left, writable=True) == 20
    assert not (left / LOG).exists()
    assert iteration_of(left, writable=True) == 20


@examples(60)
@given(data=st.data())
def test_no_damage_to_the_write_ahead_file_goes_unseen(killed, tmp_path_factory, data):
    run = shutil.copytree(killed, tmp_path_factory.mktemp("d") / "k.run")
    (run / INDEX).unlink()
    log = bytearray((run / LOG).read_bytes())
    place = data.draw(st.integers(0, len(log) - 1))
    if data.draw(st.booleans()):
        del log[place:]
    else:
        log[place] ^= data.draw(st.integers(1, 255))
    (run / LOG).write_bytes(log)
    for writable in (False, True):
        with suppress(RunError):
            assert iteration_of(run, writable=writable) == 20


@pytest.mark.parametrize("writable", [False, True])
def test_a_lost_write_ahead_file_is_an_error_that_says_what_is_missing(left, writable):
    (left / LOG).unlink()
    (left / INDEX).unlink()
    message = r"of 20 commits, up to iteration 20.*one of 0, up to iteration 0.*--accept-loss"
    for _ in range(2):
        with pytest.raises(RunError, match=message):
            iteration_of(left, writable=writable)


def test_a_damaged_write_ahead_file_is_left_as_it_is(left):
    """What follows the damage may be saved by hand."""
    log = bytearray((left / LOG).read_bytes())
    log[len(log) // 2] ^= 1
    (left / LOG).write_bytes(log)
    (left / INDEX).unlink()
    with pytest.raises(RunError, match="--accept-loss"):
        Run(left, writable=True)
    assert (left / LOG).read_bytes() == bytes(log)


def test_a_loss_accepted_is_gone_on_from(left):
    log = (left / LOG).read_bytes()
    (left / LOG).write_bytes(log[: len(log) // 2])
    (left / INDEX).unlink()
    ledger = Run(left, writable=True, accept_loss=True)
    there = ledger.progress().iteration
    assert 0 < there < 20
    commit(ledger, there + 1)
    ledger.close()
    assert iteration_of(left) == there + 1
    assert read_notes(left, left)[-1][:2] == (there + 1, there + 1)


@pytest.mark.parametrize("damage", ["absent", "empty", "garbage"])
def test_a_note_that_is_lost_or_damaged_is_an_error_with_a_way_on(left, damage):
    if damage == "absent":
        (left / NOTE_FILE).unlink()
    else:
        (left / NOTE_FILE).write_bytes(b"" if damage == "empty" else os.urandom(1024))
    for writable in (False, True):
        with pytest.raises(RunError, match=r"committed\.json.*--accept-loss"):
            iteration_of(left, writable=writable)
    assert iteration_of(left, writable=True, accept_loss=True) == 20
    with pytest.raises(RunError, match="--accept-loss"):  # nothing was done with what is left
        iteration_of(left)
    with closing(Run(left, writable=True, accept_loss=True)) as ledger:
        ledger.accept()
    assert iteration_of(left) == 20


def test_a_note_cut_short_leaves_the_one_before(tmp_path):
    write_note(tmp_path, (0, 0, "a"), anew=True)
    for commits in range(1, 8):
        write_note(tmp_path, (commits, 10 * commits, "a"))
    data = bytearray((tmp_path / NOTE_FILE).read_bytes())
    data[512:520] = bytes(8)
    (tmp_path / NOTE_FILE).write_bytes(data)
    assert read_notes(tmp_path, tmp_path) == [(6, 60, "a")]


@given(st.integers(0, 5), st.integers(0, 5))
def test_a_note_may_lag_behind_the_ledger_and_not_be_ahead(noted, commits):
    from pathlib import Path

    run = Path("a.run")
    if commits >= noted:
        check_notes(run, run, [(noted, 0, "a")], (commits, 0, "a"))
    else:
        with pytest.raises(RunError, match="--accept-loss"):
            check_notes(run, run, [(noted, 0, "a")], (commits, 0, "a"))


def test_a_ledger_that_fails_to_commit_is_not_noted(left, monkeypatch):
    ledger = Run(left, writable=True)

    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(ledger, "_record_history", full)
    with pytest.raises(RunError, match="disk is full"):
        commit(ledger, 21)
    monkeypatch.undo()
    assert read_notes(left, left)[-1][:2] == (20, 20)
    ledger.set_meta("iterations", 5)
    ledger.close()
    assert read_notes(left, left)[-1][:2] == (21, 20)
    assert iteration_of(left) == 20


def test_a_ledger_that_does_not_count_its_commits_is_damaged(left):
    iteration_of(left, writable=True)
    change(left, "DELETE FROM meta WHERE name = 'commits'")
    for how in ({}, {"writable": True}, {"writable": True, "accept_loss": True}):
        with pytest.raises(RunError, match="record 'commits' as it was written, found none"):
            iteration_of(left, **how)


@pytest.mark.slow
def test_the_command_line_tells_the_loss_and_goes_on_when_told_to(tmp_path):
    values, labels = noise_table(60, FEW)
    store, run = make_store(tmp_path / "t.zarr", values, labels), tmp_path / "a.run"
    asked = Request(
        options={"judge": "probe", "subspace_size": "20"}, iterations=50, memory_mb=4000
    )
    ledger = open_or_create(Store.open(store), run, asked)
    work_on(ledger, Store.open(store), asked)
    shutil.copytree(run, tmp_path / "k.run")
    ledger.close()
    killed = tmp_path / "k.run"
    (killed / LOG).unlink()
    (killed / INDEX).unlink()
    for command in (("status",), ("features",), ("resume",)):
        message = error_of(*command, killed)
        assert f"srs-ooc resume {killed} --accept-loss" in message
        assert "up to iteration 50" in message
    srs_ooc("resume", killed, "--accept-loss")
    assert json_of("features", killed, "--json") == json_of("features", run, "--json")
    assert json_of("status", killed, "--json")["state"] == "finished"


@pytest.mark.slow
def test_a_loss_in_a_half_names_the_run_and_is_accepted_with_it(tmp_path):
    values, labels = noise_table(60, FEW)
    store, run = make_store(tmp_path / "t.zarr", values, labels), tmp_path / "a.run"
    asked = Request(options={"subspace_size": "20"}, iterations=60, memory_mb=4000, halves=2)

    def work(watch=lambda _: True, **how):
        ledger = Run(run, writable=True, **how) if run.exists() else None
        with closing(ledger or open_or_create(Store.open(store), run, asked)) as ledger:
            work_on(ledger, Store.open(store), asked, watch)
            return halves_done(ledger, 2)

    work(lambda step: step.stage != "half 2 of 2, screening, last stage")
    change(run / "halves" / "1", changed_fact("commits", 0))
    with pytest.raises(RunError, match=f"srs-ooc resume {run} --accept-loss"):
        work()
    assert len(work(accept_loss=True)) == 2


# A run is read by whoever may read its files, where they may write nothing.

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
def readable(place):
    labels = np.arange(60) % 2
    values = np.random.default_rng(1).standard_normal((100, 60))
    values[:5] += 2 * labels
    store = make_store(place / "t.zarr", values, labels)
    asked = ("--judge", "probe", "--q", 20, "--iterations", 60, "--save-trees")
    srs_ooc("run", store, "--out", place / "a.run", *asked)
    return place / "a.run"


def read_by_all_commands(readable, out):
    store = readable.with_name("t.zarr")
    commands = [
        ("status", readable, "--json"),
        ("features", readable, "--json"),
        ("export", store, readable, out / "e.csv", "--top", 3),
        ("predict", readable, store, out / "p.csv"),
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
def test_a_finished_run_is_read_without_permission_to_write(readable, out):
    assert not (readable / LOG).exists()
    expected = (
        srs_ooc("status", readable, "--json").stdout,
        srs_ooc("features", readable, "--json").stdout,
    )
    for left_by_a_reader in (LOG, INDEX):
        (readable / left_by_a_reader).unlink(missing_ok=True)
    make_read_only(readable)
    before = sorted(path.name for path in readable.iterdir())
    assert "splits.bin" not in before
    said, _ = read_by_all_commands(readable, out)
    assert tuple(said) == expected
    assert sorted(path.name for path in readable.iterdir()) == before


def killed_copy(readable, name="k.run"):
    """A copy of a run with commits in its write-ahead file, as a kill leaves it."""
    store, other = readable.with_name("t.zarr"), readable.with_name("b.run")
    asked = Request(
        options={"judge": "probe", "subspace_size": "20"}, iterations=50, memory_mb=4000
    )
    ledger = open_or_create(Store.open(store), other, asked)
    work_on(ledger, Store.open(store), asked)
    killed = shutil.copytree(other, readable.with_name(name))
    ledger.close()
    return killed


@pytest.mark.slow
def test_a_killed_run_is_read_with_its_write_ahead_file(readable, out):
    """Both files are there, so SQLite needs to write neither; without one, the next test."""
    killed = killed_copy(readable)
    assert (killed / LOG).stat().st_size
    assert (killed / INDEX).stat().st_size
    make_read_only(killed)
    done = as_reader(*command_line("status", killed), cwd=out)
    assert (done.returncode, done.stderr) == (0, "")
    assert "50 of 50" in done.stdout


@pytest.mark.slow
def test_commits_that_cannot_be_read_there_are_named_and_not_called_damage(readable, out):
    killed = killed_copy(readable)
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
def test_a_file_that_may_not_be_read_is_named(readable, out, name):
    (readable / name).chmod(0)
    done = as_reader(*command_line("status", readable), cwd=out)
    (readable / name).chmod(0o755)
    assert done.returncode == 2
    assert str(readable / name) in done.stderr
    assert "damaged" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_run_that_may_not_be_written_is_not_gone_on_with(readable, out):
    make_read_only(readable)
    done = as_reader(*command_line("resume", readable, "--iterations", 99), cwd=out)
    assert done.returncode == 2
    assert "permission" in done.stderr
    assert "Traceback" not in done.stderr
