"""Commits lost with the write-ahead file are an error with a way on, never a fresh start."""

import os
import shutil
import sqlite3
from contextlib import suppress

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from ledgers import change, changed_fact
from stores import make_store, noise_table

from srs_ooc.base.errors import RunError
from srs_ooc.base.records import touch
from srs_ooc.evidence.tally import Tally
from srs_ooc.runs.ledger import (
    NOTE_FILE,
    Ledger,
    Progress,
    check_note,
    make_note,
    read_note,
    write_note,
)
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.runs.survey import BESTS
from srs_ooc.samplers.srs import KeptSet
from srs_ooc.store.store import Store

N_FEATURES = 300
LOG, INDEX = "ledger.sqlite-wal", "ledger.sqlite-shm"


def commit(ledger, iteration):
    tally, kept = Tally(N_FEATURES), KeptSet(N_FEATURES)
    tally.n_drawn[:] = iteration
    states = {"tally": tally.state(), "kept": kept.state()}
    touch(states["tally"].pages["n_drawn"].changed, np.arange(N_FEATURES))
    ledger.commit(Progress(iteration, 0, 0.0, 0), states, 0)


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


def iteration_of(run, **how):
    ledger = Ledger(run, **{"writable": False} | how)
    try:
        return ledger.progress().iteration
    finally:
        ledger.close()


def test_a_killed_run_stands_where_it_was_committed(killed, tmp_path):
    run = shutil.copytree(killed, tmp_path / "k.run")
    assert iteration_of(run) == 20
    assert iteration_of(run, writable=True) == 20
    assert not (run / LOG).exists()
    assert iteration_of(run, writable=True) == 20


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
def test_a_lost_write_ahead_file_is_an_error_that_says_what_is_missing(killed, tmp_path, writable):
    run = shutil.copytree(killed, tmp_path / "k.run")
    (run / LOG).unlink()
    (run / INDEX).unlink()
    message = r"of 20 commits, up to iteration 20.*one of 0, up to iteration 0.*--accept-loss"
    for _ in range(2):
        with pytest.raises(RunError, match=message):
            iteration_of(run, writable=writable)


def test_a_damaged_write_ahead_file_is_left_as_it_is(killed, tmp_path):
    """What follows the damage may be saved by hand."""
    run = shutil.copytree(killed, tmp_path / "k.run")
    log = bytearray((run / LOG).read_bytes())
    log[len(log) // 2] ^= 1
    (run / LOG).write_bytes(log)
    (run / INDEX).unlink()
    with pytest.raises(RunError, match="--accept-loss"):
        Ledger(run, writable=True)
    assert (run / LOG).read_bytes() == bytes(log)


def test_a_loss_accepted_is_gone_on_from(killed, tmp_path):
    run = shutil.copytree(killed, tmp_path / "k.run")
    log = (run / LOG).read_bytes()
    (run / LOG).write_bytes(log[: len(log) // 2])
    (run / INDEX).unlink()
    ledger = Ledger(run, writable=True, accept_loss=True)
    left = ledger.progress().iteration
    assert 0 < left < 20
    commit(ledger, left + 1)
    ledger.close()
    assert iteration_of(run) == left + 1
    assert read_note(run, run) == (left + 1, left + 1)


@pytest.mark.parametrize("damage", ["absent", "empty", "garbage"])
def test_a_note_that_is_lost_or_damaged_is_an_error_with_a_way_on(killed, tmp_path, damage):
    run = shutil.copytree(killed, tmp_path / "k.run")
    if damage == "absent":
        (run / NOTE_FILE).unlink()
    else:
        (run / NOTE_FILE).write_bytes(b"" if damage == "empty" else os.urandom(1024))
    for writable in (False, True):
        with pytest.raises(RunError, match=r"committed\.json.*--accept-loss"):
            iteration_of(run, writable=writable)
    assert iteration_of(run, writable=True, accept_loss=True) == 20
    assert iteration_of(run) == 20


def test_a_note_cut_short_leaves_the_one_before(tmp_path):
    make_note(tmp_path, 0, 0)
    with (tmp_path / NOTE_FILE).open("r+b") as file:
        for commits in range(1, 8):
            write_note(file.fileno(), commits, 10 * commits)
    data = bytearray((tmp_path / NOTE_FILE).read_bytes())
    data[512:520] = bytes(8)
    (tmp_path / NOTE_FILE).write_bytes(data)
    assert read_note(tmp_path, tmp_path) == (6, 60)


@given(st.integers(0, 5), st.integers(0, 5))
def test_a_note_may_lag_behind_the_ledger_and_not_be_ahead(noted, commits):
    from pathlib import Path

    run = Path("a.run")
    if commits >= noted:
        check_note(run, run, (noted, 0), commits, 0)
    else:
        with pytest.raises(RunError, match="--accept-loss"):
            check_note(run, run, (noted, 0), commits, 0)


def test_a_ledger_that_fails_to_commit_is_not_noted(killed, tmp_path, monkeypatch):
    run = shutil.copytree(killed, tmp_path / "k.run")
    ledger = Ledger(run, writable=True)

    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(ledger, "_record_history", full)
    with pytest.raises(RunError, match="disk is full"):
        commit(ledger, 21)
    monkeypatch.undo()
    assert read_note(run, run) == (20, 20)
    ledger.set_meta("iterations", 5)
    ledger.close()
    assert read_note(run, run) == (21, 20)
    assert iteration_of(run) == 20


def test_a_ledger_that_does_not_count_its_commits_is_damaged(killed, tmp_path):
    run = shutil.copytree(killed, tmp_path / "k.run")
    iteration_of(run, writable=True)
    change(run, "DELETE FROM meta WHERE name = 'commits'")
    for how in ({}, {"writable": True}, {"writable": True, "accept_loss": True}):
        with pytest.raises(RunError, match="record 'commits' as it was written, found none"):
            iteration_of(run, **how)


@pytest.mark.slow
def test_the_command_line_tells_the_loss_and_goes_on_when_told_to(tmp_path):
    values, labels = noise_table(60, N_FEATURES)
    store, run = make_store(tmp_path / "t.zarr", values, labels), tmp_path / "a.run"
    asked = Request(Options(judge="probe", subspace_size="20"), iterations=50, memory_mb=4000)
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
def test_a_loss_in_a_permutation_run_names_the_run_and_is_accepted_with_it(tmp_path):
    values, labels = noise_table(60, N_FEATURES)
    store, run = make_store(tmp_path / "t.zarr", values, labels), tmp_path / "a.run"
    asked = Request(
        Options(judge="decoy", subspace_size="20", permutations=9), iterations=60, memory_mb=4000
    )

    def work(watch=lambda _: True, **how):
        ledger = Ledger(run, writable=True, **how) if run.exists() else None
        ledger = ledger or open_or_create(Store.open(store), run, asked)
        try:
            work_on(ledger, Store.open(store), asked, watch)
            return ledger.read_arrays(BESTS)
        finally:
            ledger.close()

    work(lambda step: step.stage != "permutation run 2 of 9, closing")
    first = run / "replays" / "2"
    change(first, changed_fact("commits", 0))
    with pytest.raises(RunError, match=f"srs-ooc resume {run} --accept-loss"):
        work()
    assert len(work(accept_loss=True)["bests"]) == 9
