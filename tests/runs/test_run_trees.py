"""The trees that a run keeps, wherever it was stopped, and which of them predict."""

import csv
import random
import signal
import subprocess
import time
from contextlib import closing

import numpy as np
import pytest
from command import committing_often, environment, error_of, json_of, srs_ooc, wait_for
from forest_reference import PROBE, Leaf, decode_tree
from ledgers import work_on_run
from stores import make_store, noise_table

import srs_ooc as package
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.ensemble.prediction import predict
from srs_ooc.methods.prs.prs import FINAL, ParametricRandomSubspace
from srs_ooc.methods.rase.rase import RandomSubspaceEnsemble, Votes
from srs_ooc.methods.rfest.feature_sensitivity import sensitivity
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run
from srs_ooc.runs.run_trees import TreeReader
from srs_ooc.runs.verification import verify

# `run --save-trees`: every tree, in the order of iterations, whatever happens to the process.

OPTIONS = ("--q", 400, "--alpha", "0.5", "--probe-min-draws", 2, "--probe-min-wins", 0.6)
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
    ledger = Run(run, writable=False)
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
        ledger = Run(run, writable=False)
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
    options = ("--save-trees", "--q", 30, "--alpha", "0")
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


# `--save-trees` with methods that hold rows out: only the trees that predict are kept.

SMALL = {
    "prs": {"models": 8, "folds": 2, "epochs": 6, "inclusion": "0.2", "learning_rate": "0.01"},
    "rase": {"models": 6, "candidates": 8, "rounds": 3, "folds": 2, "max_size": 3},
}
N_TREES = {"prs": 8, "rase": 6}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    values, labels = noise_table(80, 20, n_relevant=2)
    return make_store(tmp_path_factory.mktemp("kept") / "t.zarr", values, labels)


def work(small, run, method, watch=lambda _: True, **given):
    request = Request(
        options={"method": method, **(SMALL[method] | given)},
        threads=1,
        iterations=10**6,
        save_trees=True,
    )
    work_on_run(small, run, request, watch)


def shares_of(run, small, folder):
    """What `predict` says of the rows of a store: shares of the second class, and classes."""
    out = folder / "said.csv"
    out.unlink(missing_ok=True)
    report = predict(run, small, out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return report, rows


@pytest.fixture
def heard(monkeypatch):
    """What the models that predict said of the rows held out, as they were fitted."""
    said = {"votes": [], "rounds": [], "rows": None}
    absorb, loss = ParametricRandomSubspace.absorb, Votes.loss

    def absorbing(self, iteration, outcome):
        if self.at.phase == FINAL:
            said["votes"].append(outcome.predictions[0])
            said["rows"] = self._folds.validation
        absorb(self, iteration, outcome)

    def losing(self):
        found = loss(self)
        said["rounds"].append((found[0], self.sums[self.held_out] / self._n_models))
        said["rows"] = self.split.predicted[self.held_out]
        return found

    monkeypatch.setattr(ParametricRandomSubspace, "absorb", absorbing)
    monkeypatch.setattr(Votes, "loss", losing)
    return said


@pytest.mark.parametrize("method", ["prs", "rase"])
def test_predict_says_what_the_models_in_memory_voted(small, tmp_path, heard, method):
    run = tmp_path / "a.run"
    work(small, run, method)
    report, rows = shares_of(run, small, tmp_path)
    assert report.n_trees == N_TREES[method]
    if method == "prs":
        expected = np.mean([votes.argmax(1) == 1 for votes in heard["votes"]], axis=0)
    else:
        losses = [loss for loss, _ in heard["rounds"]]
        expected = heard["rounds"][int(np.argmin(losses))][1][:, 1]
    found = [float(rows[row]["probability_1"]) for row in heard["rows"]]
    assert found == expected.tolist()
    assert len({row["probability_1"] for row in rows}) > 2
    assert [row["prediction"] for row in rows] == [
        str(int(float(row["probability_1"]) > 0.5)) for row in rows
    ]


def test_a_regression_is_predicted_by_the_mean(tmp_path, heard):
    values, _ = noise_table(80, 12, n_relevant=2)
    small = tmp_path / "t.zarr"
    package.ingest(values.T, small, target=values[0] + values[1], task="regression")
    work(small, tmp_path / "a.run", "prs", thresholds="value")
    _, rows = shares_of(tmp_path / "a.run", small, tmp_path)
    centered = np.mean([votes[:, 0] for votes in heard["votes"]], axis=0)
    found = np.array([float(rows[row]["prediction"]) for row in heard["rows"]])
    np.testing.assert_allclose(found - found.mean(), centered - centered.mean(), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["prs", "rase"])
def test_stopped_anywhere_it_keeps_the_same_bytes(small, tmp_path, method):
    work(small, tmp_path / "whole.run", method)
    whole = (tmp_path / "whole.run" / "trees.bin").read_bytes()
    run, calls, n_stops = tmp_path / "stopped.run", 0, 0

    def going(_):
        nonlocal calls
        calls += 1
        return calls % 5 != 0

    while not run.exists() or (run / "trees.bin").read_bytes() != whole:
        work(small, run, method, going)
        n_stops += 1
        with (run / "trees.bin").open("ab") as file:  # as a kill may leave beyond a commit
            file.write(b"junk")
        assert n_stops < 200
        if n_stops > 30:
            work(small, run, method)
    assert n_stops > 3


@pytest.mark.parametrize("method", ["prs", "rase"])
def test_verify_counts_what_is_kept(small, tmp_path, method):
    run = tmp_path / "a.run"
    work(small, run, method)
    counts = verify(run).files
    n_kept = 8 if method == "prs" else 3 * 6  # of all rounds
    assert counts["trees (trees.bin)"] == n_kept
    with closing(Run(run, writable=False)) as ledger:
        assert sum(len(batch.root) for batch in TreeReader(ledger).batches()) == n_kept
        among = ledger.trees()
        assert sum(len(batch.root) for batch in among.batches()) == N_TREES[method]
        facts = ledger.meta(method)
    if method == "rase":
        assert among.ensemble.first == 6 * facts["best_round"]


@pytest.mark.parametrize("method", ["prs", "rase"])
def test_before_there_is_an_ensemble_it_says_so(small, tmp_path, method):
    run, calls = tmp_path / "a.run", 0

    def going(_):
        nonlocal calls
        calls += 1
        return calls < 3

    work(small, run, method, going)
    with pytest.raises(RunError, match="has not come to its ensemble yet"):
        predict(run, small, tmp_path / "out.csv")


def test_sensitivity_is_refused(small, tmp_path):
    work(small, tmp_path / "a.run", "prs")
    with pytest.raises(UsageError, match="--method prs, which holds rows out"):
        sensitivity(tmp_path / "a.run")


def test_a_cutoff_chooses_the_class():
    from srs_ooc.samplers.base import Ensemble

    shares = np.array([[0.7, 0.3], [0.65, 0.35], [0.2, 0.8]])
    assert Ensemble(votes=True, cutoff=0.325).chosen(shares).tolist() == [0, 1, 1]
    assert Ensemble().chosen(shares).tolist() == [0, 0, 1]


def test_the_names_of_parts_are_where_the_ledger_keeps_facts():
    assert (ParametricRandomSubspace.name, RandomSubspaceEnsemble.name) == ("prs", "rase")
