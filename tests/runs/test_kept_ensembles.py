"""`--save-trees` with methods that hold rows out: only the trees that predict are kept."""

import csv

import numpy as np
import pytest
from ledgers import work_on_run
from stores import make_store, noise_table

import srs_ooc as package
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.ensemble.feature_sensitivity import sensitivity
from srs_ooc.ensemble.prediction import predict
from srs_ooc.runs.inputs import trees_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_trees import TreeReader
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.runs.verification import verify_run
from srs_ooc.samplers.prs import FINAL, ParametricRandomSubspace
from srs_ooc.samplers.rase import RandomSubspaceEnsemble, Votes

SMALL = {
    "prs": {"models": 8, "folds": 2, "epochs": 6, "inclusion": "0.2", "learning_rate": "0.01"},
    "rase": {"models": 6, "candidates": 8, "rounds": 3, "folds": 2, "max_size": 3},
}
N_TREES = {"prs": 8, "rase": 6}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(80, 20, n_relevant=2)
    return make_store(tmp_path_factory.mktemp("kept") / "t.zarr", values, labels)


def work(store, run, method, watch=lambda _: True, **given):
    request = Request(
        Options(method=method, **SMALL[method] | given),
        threads=1,
        iterations=10**6,
        save_trees=True,
    )
    work_on_run(store, run, request, watch)


def shares_of(run, store, folder):
    """What `predict` says of the rows of a store: shares of the second class, and classes."""
    out = folder / "said.csv"
    out.unlink(missing_ok=True)
    report = predict(run, store, out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return report, rows


@pytest.fixture
def heard(monkeypatch):
    """What the models that predict said of the rows held out, as they were fitted."""
    said = {"votes": [], "rounds": [], "rows": None}
    absorb, loss = ParametricRandomSubspace.absorb, Votes.loss

    def absorbing(self, iteration, outcome):
        if self.phase == FINAL:
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
def test_predict_says_what_the_models_in_memory_voted(store, tmp_path, heard, method):
    run = tmp_path / "a.run"
    work(store, run, method)
    report, rows = shares_of(run, store, tmp_path)
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
    store = tmp_path / "t.zarr"
    package.ingest(values.T, store, target=values[0] + values[1], task="regression")
    work(store, tmp_path / "a.run", "prs", thresholds="value")
    _, rows = shares_of(tmp_path / "a.run", store, tmp_path)
    centered = np.mean([votes[:, 0] for votes in heard["votes"]], axis=0)
    found = np.array([float(rows[row]["prediction"]) for row in heard["rows"]])
    np.testing.assert_allclose(found - found.mean(), centered - centered.mean(), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["prs", "rase"])
def test_stopped_anywhere_it_keeps_the_same_bytes(store, tmp_path, method):
    work(store, tmp_path / "whole.run", method)
    whole = (tmp_path / "whole.run" / "trees.bin").read_bytes()
    run, calls, n_stops = tmp_path / "stopped.run", 0, 0

    def going(_):
        nonlocal calls
        calls += 1
        return calls % 5 != 0

    while not run.exists() or (run / "trees.bin").read_bytes() != whole:
        work(store, run, method, going)
        n_stops += 1
        with (run / "trees.bin").open("ab") as file:  # as a kill may leave beyond a commit
            file.write(b"junk")
        assert n_stops < 200
        if n_stops > 30:
            work(store, run, method)
    assert n_stops > 3


@pytest.mark.parametrize("method", ["prs", "rase"])
def test_verify_counts_what_is_kept(store, tmp_path, method):
    run = tmp_path / "a.run"
    work(store, run, method)
    counts = {checked.what: checked.count for checked in verify_run(run)}
    n_kept = 8 if method == "prs" else 3 * 6  # of all rounds
    assert counts["trees (trees.bin)"] == n_kept
    ledger = Ledger(run, writable=False)
    try:
        assert sum(len(batch.root) for batch in TreeReader(ledger).batches()) == n_kept
        among = trees_of(ledger)
        assert sum(len(batch.root) for batch in among.batches()) == N_TREES[method]
        facts = ledger.meta(method)
    finally:
        ledger.close()
    if method == "rase":
        assert among.ensemble.first == 6 * facts["best_round"]


@pytest.mark.parametrize("method", ["prs", "rase"])
def test_before_there_is_an_ensemble_it_says_so(store, tmp_path, method):
    run, calls = tmp_path / "a.run", 0

    def going(_):
        nonlocal calls
        calls += 1
        return calls < 3

    work(store, run, method, going)
    with pytest.raises(RunError, match="has not come to its ensemble yet"):
        predict(run, store, tmp_path / "out.csv")


def test_sensitivity_is_refused(store, tmp_path):
    work(store, tmp_path / "a.run", "prs")
    with pytest.raises(UsageError, match="--method prs, which holds rows out"):
        sensitivity(tmp_path / "a.run")


def test_a_cutoff_chooses_the_class():
    from srs_ooc.samplers.base import Ensemble

    shares = np.array([[0.7, 0.3], [0.65, 0.35], [0.2, 0.8]])
    assert Ensemble(votes=True, cutoff=0.325).chosen(shares).tolist() == [0, 1, 1]
    assert Ensemble().chosen(shares).tolist() == [0, 0, 1]


def test_the_names_of_parts_are_where_the_ledger_keeps_facts():
    assert (ParametricRandomSubspace.name, RandomSubspaceEnsemble.name) == ("prs", "rase")
