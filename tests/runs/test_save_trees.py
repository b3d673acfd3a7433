"""`run --save-trees`: every tree, in the order of iterations, whatever happens to the process."""

import random
import signal
import subprocess
import time

import pytest
from command import committing_often, environment, error_of, json_of, srs_ooc, wait_for
from forest_reference import PROBE, Leaf, decode_tree
from stores import make_store, noise_table

from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_trees import TreeReader

OPTIONS = ("--q", 400, "--alpha", 0.5, "--probe-min-draws", 2, "--probe-min-wins", 0.6)
ENDLESS = 10**7
"""Iterations that no machine has done when a test kills the run; `resume` then ends it sooner."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(120, 10_000, n_relevant=6)
    return make_store(tmp_path_factory.mktemp("trees") / "t.zarr", values, labels)


def command(store, run, threads, *more):
    arguments = ("run", store, "--out", run, "--save-trees", "--threads", threads)
    return (*arguments, "--iterations", ENDLESS, *OPTIONS, *more)


def tree_bytes(run):
    return (run / "trees.bin").read_bytes()


def records(run):
    """The trees of the file, read as its docstring says."""
    data, place = tree_bytes(run), len(b"srs-ooc trees 1\n")
    while place < len(data):
        length = int.from_bytes(data[place : place + 4], "little")
        yield data[place + 8 : place + 8 + length]
        place += 8 + length


def n_read(run):
    ledger = Ledger(run, writable=False)
    batches = list(TreeReader(ledger).batches())
    ledger.close()
    return sum(len(batch.root) for batch in batches)


def started(*arguments):
    return subprocess.Popen(
        committing_often(*arguments),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_tree_file(store, tmp_path):
    """Law 1, SIGKILL at random moments, with other numbers of workers; bytes beyond are cut off."""
    random.seed(5)
    run, done, committed = tmp_path / "killed.run", 0, []
    for attempt in range(4):
        process = started(*command(store, run, 1 + attempt % 3))
        wait_for(process, run, done)
        time.sleep(random.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        ledger = Ledger(run, writable=False)
        valid, done = ledger.meta("trees_nbytes"), ledger.progress().iteration
        ledger.close()
        committed.append(tree_bytes(run)[:valid])
        assert n_read(run) == done
    more = done + 500
    srs_ooc(*command(store, tmp_path / "whole.run", 1), "--iterations", more)
    whole = tree_bytes(tmp_path / "whole.run")
    assert all(whole.startswith(part) for part in committed)
    with (run / "trees.bin").open("ab") as file:  # as a kill may leave beyond the last commit
        file.write(whole[valid : valid + 1000])
    srs_ooc("resume", run, "--iterations", more)
    assert tree_bytes(run) == whole
    assert n_read(run) == more


@pytest.mark.slow
def test_the_file_holds_the_trees_that_were_grown(store, tmp_path):
    """Each tree's root has the training rows; its splits are on the features of its subspace."""
    run = tmp_path / "a.run"
    srs_ooc("run", store, "--out", run, "--save-trees", "--iterations", 40, "--q", 30)
    srs_ooc("resume", run, "--iterations", 60)
    trees = [decode_tree(record) for record in records(run)]
    assert json_of("status", run, "--json")["trees_nbytes"] == len(tree_bytes(run))
    assert "saved trees " in srs_ooc("status", run).stdout
    assert len(trees) == 60 == n_read(run)
    assert {tree.n_rows for tree in trees} == {120}
    used = [set(features_of(tree)) for tree in trees]
    assert all(1 <= len(features - {PROBE}) <= 30 for features in used)
    assert all(feature < 10_000 for features in used for feature in features - {PROBE})


def features_of(tree):
    if isinstance(tree, Leaf):
        return []
    return [tree.feature, *features_of(tree.left), *features_of(tree.right)]


@pytest.mark.slow
def test_all_trees_of_a_subspace_are_kept_and_counted(store, tmp_path):
    """Stopped and gone on with: 3 trees an iteration, in order, the first of each as with one."""
    options = ("--save-trees", "--q", 30, "--alpha", 0)
    one, whole, parts = (tmp_path / f"{name}.run" for name in ("one", "whole", "parts"))
    srs_ooc("run", store, "--out", one, "--iterations", 25, *options)
    options += ("--trees-per-subspace", 3)
    srs_ooc("run", store, "--out", whole, "--iterations", 25, "--threads", 1, *options)
    srs_ooc("run", store, "--out", parts, "--iterations", 7, "--threads", 3, *options)
    srs_ooc("resume", parts, "--iterations", 25)
    assert tree_bytes(parts) == tree_bytes(whole)
    trees = list(records(whole))
    assert len(trees) == 75 == n_read(whole)
    assert trees[::3] == list(records(one))
    assert len(set(trees)) == 75
    assert json_of("predict", whole, store, tmp_path / "p.csv", "--json")["n_trees"] == 75
    assert "trees-per-subspace 3" in srs_ooc("status", whole).stdout
    assert json_of("status", whole, "--json")["trees_per_subspace"] == 3


@pytest.mark.slow
def test_tallies_do_not_depend_on_saving(store, tmp_path):
    listings = []
    for flag in ("--save-trees", "--no-save-trees"):
        run = tmp_path / f"{flag}.run"
        probe = ("--judge", "probe", "--iterations", 50, "--q", 30)
        srs_ooc("run", store, "--out", run, flag, *probe)
        listings.append(srs_ooc("features", run, "--csv").stdout)
    assert listings[0] == listings[1]
    assert json_of("status", run, "--json")["trees_nbytes"] is None
    assert not (run / "trees.bin").exists()


@pytest.mark.slow
def test_a_run_keeps_all_of_its_trees_or_none(store, tmp_path):
    quick = ("--iterations", 20, "--q", 30)
    for first, second in (("--save-trees", "--no-save-trees"), ("--no-save-trees", "--save-trees")):
        run = tmp_path / f"{first}.run"
        srs_ooc("run", store, "--out", run, first, *quick)
        message = error_of("run", store, "--out", run, second, *quick)
        assert first.removeprefix("--") in message
        assert f"asked for: {second.removeprefix('--')}" in message
        srs_ooc("run", store, "--out", run, "--iterations", 30, "--q", 30)  # not given: as it is
    assert n_read(tmp_path / "--save-trees.run") == 30


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["byte", "length", "truncated", "absent", "garbage", "swapped"])
def test_a_damaged_tree_file_is_an_error(store, tmp_path, damage):
    run = tmp_path / "a.run"
    srs_ooc("run", store, "--out", run, "--save-trees", "--iterations", 20, "--q", 30)
    file, data = run / "trees.bin", bytearray(tree_bytes(run))
    first, second = (len(r).to_bytes(4, "little") + r for r in list(records(run))[:2])
    if damage == "byte":
        data[len(data) // 2] ^= 4
    elif damage == "length":
        data[16 + 2] ^= 1  # 65,536 more bytes than there are
    elif damage == "truncated":
        del data[-10:]
    elif damage == "garbage":
        data[:4] = b"what"
    elif damage == "swapped":
        ends = 16 + len(first) + 4, 16 + len(first) + len(second) + 8
        data[16 : ends[1]] = data[ends[0] : ends[1]] + data[16 : ends[0]]
    file.write_bytes(data)
    if damage == "absent":
        file.unlink()
    message = error_of("predict", run, store, tmp_path / "out.csv")
    assert "trees.bin" in message
    assert not (tmp_path / "out.csv").exists()
    if damage in ("truncated", "absent", "garbage"):
        assert "trees.bin" in error_of("resume", run, "--iterations", 30)
        assert file.exists() == (damage != "absent")


@pytest.mark.slow
def test_trees_are_used_while_the_run_goes_on(store, tmp_path):
    """As of the last commit, and the run is not disturbed."""
    run = tmp_path / "going.run"
    process = started(*command(store, run, 1))
    try:
        wait_for(process, run, 0)
        report = json_of("predict", run, store, tmp_path / "out.csv", "--json")
        assert report["n_trees"] > 0
        assert report["n_rows"] == 120
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
