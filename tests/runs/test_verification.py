"""Damage anywhere in what a run keeps is found by reading all of it."""

import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from command import error_of, srs_ooc
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from ledgers import change, changed_fact
from stores import make_store, noise_table

from srs_ooc.base.errors import RunError
from srs_ooc.base.records import PAGE_ITEMS
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.verification import verify
from srs_ooc.runs.whole_runs import remove_part
from srs_ooc.store.store import Store

N_FEATURES = PAGE_ITEMS + 700
FILE = "ledger.sqlite"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(40, N_FEATURES, n_relevant=6)
    return make_store(tmp_path_factory.mktemp("verify") / "t.zarr", values, labels)


@pytest.fixture(scope="module")
def whole(store):
    """A run with saved trees, rows left out, kept features, and thresholds."""
    folder = store.parent
    (folder / "rows.txt").write_text("\n".join(str(i) for i in range(1, 36)))
    asked = ("--judge", "probe", "--q", 3000, "--iterations", 60, "--save-trees")
    test = ("--probe-min-draws", 2, "--probe-min-wins", 0.5, "--rows", folder / "rows.txt")
    srs_ooc("run", store, "--out", folder / "w.run", *asked, *test, "--trees-per-subspace", 2)
    srs_ooc("predict", folder / "w.run", store, folder / "p.csv")
    return folder / "w.run"


@pytest.fixture
def run(whole, tmp_path):
    """A copy of it."""
    return shutil.copytree(whole, tmp_path / "d.run")


def test_a_whole_run_is_found_whole_and_left_as_it_is(whole):
    before = {path.name: path.read_bytes() for path in whole.iterdir()}
    found = verify(whole)
    after = {path.name: path.read_bytes() for path in whole.iterdir() if path.name in before}
    assert after == before
    counts = {what.split(" (")[0]: count for what, count in found.files.items()}
    assert counts["trees"] == 120
    assert counts["records of inputs"] == 1
    assert counts[f"pages of {PAGE_ITEMS} items"] == 3 * 2 + 2
    assert counts["notes of the last commit"] == 1
    assert counts["files of thresholds"] == 1
    assert found.nbytes > (whole / FILE).stat().st_size


@examples(40)
@given(data=st.data())
def test_no_damage_to_trees_or_thresholds_goes_unseen(whole, tmp_path_factory, data):
    name = data.draw(st.sampled_from(["trees.bin", "splits.bin"]))
    run = shutil.copytree(whole, tmp_path_factory.mktemp("d") / "d.run")
    content = bytearray((run / name).read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[place:]
    else:
        content[place] ^= data.draw(st.integers(1, 255))
    (run / name).write_bytes(content)
    with pytest.raises(RunError, match=name):
        verify(run)


def test_trees_that_are_lost_whole_are_missed(run):
    (run / "trees.bin").unlink()
    with pytest.raises(RunError, match=r"trees\.bin"):
        verify(run)


@examples(40)
@given(data=st.data())
def test_no_damage_to_what_a_ledger_holds_goes_unseen(whole, tmp_path_factory, data):
    table = data.draw(st.sampled_from(["pages", "inputs", "meta", "arrays"]))
    run = shutil.copytree(whole, tmp_path_factory.mktemp("d") / "d.run")
    ledger = Run(run, writable=True)
    ledger.write_arrays("more", {"a": np.arange(5)})
    ledger.close()
    database = sqlite3.connect(run / FILE)
    rows = database.execute(f"SELECT rowid FROM {table}").fetchall()
    column = "value" if table == "meta" else "data"
    with database.blobopen(table, column, data.draw(st.sampled_from(rows))[0]) as blob:
        place = data.draw(st.integers(0, len(blob) - 1))
        blob[place] = blob[place] ^ data.draw(st.integers(1, 127))
    database.commit()
    database.close()
    with pytest.raises(RunError):
        verify(run)


@pytest.mark.parametrize(
    "tampering",
    [
        "DELETE FROM pages WHERE id = 1",
        "DELETE FROM checksums WHERE id = 1",
        "DELETE FROM pages; DELETE FROM checksums",
        "INSERT INTO pages VALUES (7777, zeroblob(9))",
        "UPDATE history SET iteration = 61",
        "DROP TABLE history",
        "DELETE FROM meta WHERE name = 'spec'",
    ],
)
def test_what_is_missing_or_too_many_is_found(run, tampering):
    database = sqlite3.connect(run / FILE)
    database.executescript(tampering)
    database.commit()
    database.close()
    with pytest.raises(RunError):
        verify(run)


def copied_record(run, later, table, name):
    """Put a record of an earlier commit back, as a write that the disk lost would."""
    earlier, database = sqlite3.connect(run / FILE), sqlite3.connect(later / FILE)
    row = earlier.execute(f"SELECT * FROM {table} WHERE name = ?", (name,)).fetchone()
    marks = ",".join("?" * len(row))
    database.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)
    database.commit()
    earlier.close()
    database.close()


@pytest.mark.slow
@pytest.mark.parametrize(("table", "name"), [("arrays", "more"), ("meta", "iterations")])
def test_a_record_of_an_earlier_commit_is_found_at_once(whole, tmp_path, table, name):
    runs = [shutil.copytree(whole, tmp_path / f"{i}.run") for i in range(2)]
    for i, run in enumerate(runs):
        ledger = Run(run, writable=True)
        ledger.write_arrays("more", {"a": np.arange(5 + i)})
        ledger.set_meta("iterations", 60 + i)
        ledger.close()
    copied_record(runs[0], runs[1], table, name)
    for command in ("verify", "status", "resume"):
        assert "expected all records of one commit" in error_of(command, runs[1])


@pytest.mark.slow
def test_a_record_that_its_index_does_not_know_is_not_taken_for_none(run):
    """The rows to train on: without them the run would go on with all rows."""
    content = (run / FILE).read_bytes()
    database = sqlite3.connect(run / FILE)
    query = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_inputs_1'"
    start = 4096 * (database.execute(query).fetchone()[0] - 1)
    database.close()
    page = content[start : start + 4096]
    assert b"rows" in page
    damaged = content[:start] + page.replace(b"rows", b"sows") + content[start + 4096 :]
    (run / FILE).write_bytes(damaged)
    assert "expected the rows that the run was made with, 35 rows" in error_of(
        "resume", run, "--iterations", 70
    )
    with pytest.raises(RunError, match="ledger"):
        verify(run)


@pytest.mark.few(1)
@pytest.mark.parametrize("version", [1, 2, 5, None, "4", [3]])
def test_a_ledger_of_another_format_is_refused_by_name(run, version):
    change(run, changed_fact("format", version))
    found = f"of format 4, found {re.escape(repr(version))}.*start the run again"
    refused = rf"d.run: expected a record \(ledger.sqlite\) {found}"
    with pytest.raises(RunError, match=refused):
        verify(run)
    assert f"found {version!r}. Use the srs-ooc version that wrote it" in error_of("resume", run)


def test_a_change_that_is_sealed_anew_is_read(run):
    change(run, changed_fact("iterations", 77))
    ledger = Run(run, writable=False)
    assert ledger.meta("iterations") == 77
    ledger.close()
    verify(run)


@pytest.mark.slow
@pytest.mark.parametrize("slot", [0, 1])
def test_damage_to_one_of_the_two_notes_is_found_and_mended(run, slot):
    note = run / "committed.json"
    content = bytearray(note.read_bytes())
    content[512 * slot + 13] ^= 1
    note.write_bytes(content)
    Run(run, writable=False).close()  # the other one says enough
    message = error_of("verify", run)
    assert message.startswith(f"srs-ooc: {note}: expected a note")
    assert f"srs-ooc resume {run} --accept-loss" in message
    srs_ooc("resume", run, "--accept-loss")
    assert verify(run)


@pytest.fixture(scope="module")
def twin(whole, tmp_path_factory):
    """Another run of the same store, asked the same."""
    with closing(Run(whole, writable=False)) as ledger:
        names = ("spec", "store", "iterations", "trees_nbytes")
        facts = {name: ledger.meta(name) for name in names}
    made = tmp_path_factory.mktemp("twin") / "t.run"
    Run.create(made, facts, {"rows": np.arange(35, dtype=np.int32)})
    with closing(Run(made, writable=True)) as ledger:
        for number in range(20):
            ledger.set_meta("iterations", number)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", [FILE, "committed.json"])
@pytest.mark.parametrize("place", ["", "halves/1"])
def test_another_runs_ledger_or_notes_are_found_by_all_who_read(whole, run, twin, name, place):
    if place:
        shutil.copytree(whole, run / place)
    shutil.copy(twin / name, run / place / name)
    with pytest.raises(RunError, match=r"one of them is of another run.*from a copy"):
        verify(run)
    if not place:
        for command in ("verify", "status", "resume"):
            assert "of another run" in error_of(command, run)


def test_trees_that_the_ledger_does_not_know_are_named(store, whole, tmp_path):
    asked = Request(options={"judge": "probe", "subspace_size": "20"}, iterations=5)
    run = tmp_path / "n.run"
    with closing(open_or_create(Store.open(store), run, asked)) as ledger:
        work_on(ledger, Store.open(store), asked)
    verify(run)
    shutil.copy(whole / "trees.bin", run)
    with pytest.raises(RunError, match=r"trees\.bin: expected no file of trees, as the run keeps"):
        verify(run)


@pytest.mark.parametrize("page", range(2, 8))
def test_a_database_page_that_is_no_longer_one_is_found(run, page):
    content = bytearray((run / FILE).read_bytes())
    content[page * 4096 : (page + 1) * 4096] = bytes(4096)
    (run / FILE).write_bytes(content)
    with pytest.raises(RunError, match="ledger") as refused:
        verify(run)
    assert "\n" not in str(refused.value)  # as SQLite's own texts have


def test_a_half_that_is_being_removed_is_no_damage(whole, tmp_path, monkeypatch):
    run = shutil.copytree(whole, tmp_path / "d.run")
    done = shutil.copytree(whole, run / "halves" / "1")
    removed = []

    def killed(path, **_):
        removed.append(path)
        if path.exists():
            (path / FILE).write_bytes(b"")
            raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        remove_part(done)
    monkeypatch.undo()
    assert removed
    assert not done.exists()
    assert replace(verify(run), path=whole) == verify(whole)


@pytest.mark.slow
def test_halves_under_way_are_checked_too(store, tmp_path):
    values, labels = noise_table(60, 120)
    small, run = make_store(tmp_path / "s.zarr", values, labels), tmp_path / "r.run"
    asked = Request(options={"subspace_size": "20"}, iterations=60, memory_mb=4000, halves=4)
    with closing(open_or_create(Store.open(small), run, asked)) as ledger:
        work_on(
            ledger,
            Store.open(small),
            asked,
            lambda step: step.stage != "half 3 of 4, screening, last stage",
        )
    third = run / "halves" / "2" / FILE
    assert verify(run).nbytes > (run / FILE).stat().st_size + third.stat().st_size
    database = sqlite3.connect(third)
    database.execute("UPDATE pages SET data = zeroblob(length(data)) WHERE id = 0")
    database.commit()
    database.close()
    with pytest.raises(RunError, match="page 0 of array 0"):
        verify(run)
