"""Commits hold the whole state, repeat harmlessly, and are all or nothing."""

import sqlite3

import numpy as np
import pytest

from srs_ooc.base.errors import RunError
from srs_ooc.base.records import PAGE_ITEMS, touch
from srs_ooc.evidence.tally import Tally
from srs_ooc.runs import ledger as database
from srs_ooc.runs.ledger import Ledger, Progress, is_held
from srs_ooc.samplers.srs import KeptSet

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
        ledger.commit(Progress(9, kept.n, 1.5, 77), states(tally, kept), 50)
    ledger.close()
    progress, found_tally, found_kept = loaded(run)
    assert progress == Progress(9, kept.n, 1.5, 77)
    assert_same(found_tally, found_kept, tally, kept)


def test_only_pages_that_were_touched_need_writing(run):
    tally, kept = state(1, 10)
    ledger = Ledger(run, writable=True)
    ledger.commit(Progress(1, kept.n, 0.0, 0), states(tally, kept), 0)
    assert not changed(tally).any()
    tally.importance[2 * PAGE_ITEMS + 5] += 1
    touch(changed(tally), np.array([2 * PAGE_ITEMS]))
    kept.add(np.array([np.setdiff1d(np.arange(50), kept.features)[0]], np.uint32), 2)
    ledger.commit(Progress(2, kept.n, 0.0, 0), states(tally, kept), 0)
    ledger.close()
    _, found_tally, found_kept = loaded(run)
    assert_same(found_tally, found_kept, tally, kept)


def test_a_commit_that_fails_leaves_the_one_before(run, monkeypatch):
    tally, kept = state(2, 5)
    ledger = Ledger(run, writable=True)
    ledger.commit(Progress(1, kept.n, 0.0, 0), states(tally, kept), 0)
    other, _ = state(3, 5)

    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(ledger, "_record_history", full)
    with pytest.raises(RunError, match="disk is full"):
        ledger.commit(Progress(2, kept.n, 0.0, 0), states(other, kept), 0)
    ledger.close()
    progress, found_tally, found_kept = loaded(run)
    assert progress.iteration == 1
    assert_same(found_tally, found_kept, tally, kept)


def test_the_history_is_thinned_and_spans_the_run(run, monkeypatch):
    monkeypatch.setattr(database, "MAX_HISTORY", 20)
    tally, kept = state(4, 0)
    ledger = Ledger(run, writable=True)
    for iteration in range(1, 101):
        ledger.commit(Progress(iteration, 0, 0.1 * iteration, 0), states(tally, kept), 5)
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
