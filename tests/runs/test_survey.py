"""What is read of the table once a closing stage is over."""

import numpy as np
import pytest
from command import json_of
from command import srs_ooc as command
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.decoys import Exchangeability
from srs_ooc.evidence.rank_tests import RankTarget, strongest_contrasts
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import MarginalTests, RunContext
from srs_ooc.runs.run_verdict import CONCLUSION, VERDICT, _strongest
from srs_ooc.runs.session import RunDraft, open_or_create, work_on
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.runs.task import Task
from srs_ooc.store.store import Store

N_ROWS, N_FEATURES, SEED = 90, 70, 3


def asked(**given):
    return Options(judge="decoy", subspace_size="30", seed=SEED, **given)


def conclude(store, run, **given):
    request = Request(asked(**given), iterations=300, memory_mb=4000)
    ledger = open_or_create(Store.open(store), run, request)
    work_on(ledger, Store.open(store), request, lambda _: True)
    verdict, facts = ledger.read_arrays(VERDICT), ledger.meta(CONCLUSION)
    ledger.close()
    return verdict, facts


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_decoys_are_tested_as_the_columns_they_stand_for(tmp_path, task):
    values, labels = noise_table(N_ROWS, N_FEATURES)
    target = labels if task == "classification" else values[0] + values[1]
    store = tmp_path / "t.zarr"
    srs_ooc.ingest(values.T, store, target=target, task=task)
    opened, request = Store.open(store), Request(asked(decoys=2), iterations=1, memory_mb=4000)
    draft = RunDraft.of(opened, request)
    spec, inputs = draft.spec, draft.inputs
    learned = Task.of_run(spec, opened, inputs)
    with RunContext(spec, opened, learned, 1 << 32, 1).resources() as resources:
        found = MarginalTests(resources).of_all()
    first = values[stored_positions(N_FEATURES)]
    rows = Exchangeability(N_ROWS).families(key_of(SEED, Purpose.DECOYS, 0), 2)
    whole = np.concatenate([first, *(first[:, r] for r in rows)])
    codes = np.array([np.unique(column, return_inverse=True)[1] for column in whole])
    if task == "classification":
        tested = RankTarget.of_classes(labels, labels.max() + 1)
    else:
        tested = RankTarget.of_values(target)
    expected, _ = strongest_contrasts(codes.astype(np.uint8), 255, tested)
    np.testing.assert_array_equal(found, expected.astype(np.float32))


def shifted(n_shifted):
    values, _ = noise_table(N_ROWS, 400)
    labels = np.arange(N_ROWS) % 2
    values = values + 0.0
    values[:n_shifted] += 2.5 * labels
    return values, labels


@pytest.mark.slow
def test_features_that_pass_by_themselves_stand_first_by_their_p_values(tmp_path):
    values, labels = shifted(25)
    store = make_store(tmp_path / "t.zarr", values, labels)
    verdict, facts = conclude(store, tmp_path / "t.run")
    there = verdict["is_outstanding"]
    n = np.count_nonzero(there)
    assert n >= 20
    assert facts["n_outstanding"] >= n
    assert there[:n].all()
    assert np.all(np.diff(verdict["p_values"][:n]) >= 0)
    true = stored_positions(400)[verdict["features"][:n]] < 25
    assert np.count_nonzero(true) >= 20
    assert (verdict["is_selected"][:20]).all()
    expected = 400 * verdict["p_values"][:n]
    np.testing.assert_allclose(verdict["levels"][n - 1], expected[-1] / n, rtol=1e-6)


@pytest.mark.slow
def test_one_feature_that_stands_out_is_selected_alone(tmp_path):
    """No grain of counting for those."""
    values, labels = shifted(1)
    store = make_store(tmp_path / "t.zarr", values, labels)
    verdict, facts = conclude(store, tmp_path / "t.run")
    assert facts["n_outstanding"] >= 1
    selected = stored_positions(400)[verdict["features"][verdict["is_selected"]]]
    assert 0 in selected
    assert len(selected) <= 2


@pytest.mark.slow
def test_a_feature_whose_p_value_no_single_precision_holds_stands_out(tmp_path):
    """It is 0 there, which is also what is said where none passes."""
    rng = np.random.default_rng(0)
    labels = np.arange(600) % 2
    values = rng.standard_normal((200, 600))
    values[7] = labels * 10 + rng.random(600)
    store = make_store(tmp_path / "t.zarr", values, labels)
    verdict, facts = conclude(store, tmp_path / "t.run")
    assert facts["n_outstanding"] >= 1
    assert facts["n_marginal"] >= 1
    assert stored_positions(200)[verdict["features"][0]] == 7
    assert verdict["is_selected"][0]
    assert 0 < verdict["p_values"][0] < 1e-30


@pytest.mark.slow
def test_no_more_stand_first_than_there_is_memory_for(tmp_path, monkeypatch):
    values, labels = shifted(25)
    store = make_store(tmp_path / "t.zarr", values, labels)
    every, _ = conclude(store, tmp_path / "every.run", decoys=1)
    monkeypatch.setattr("srs_ooc.runs.run_verdict.OUTSTANDING", 7)
    some, facts = conclude(store, tmp_path / "some.run", decoys=1)
    assert facts["n_outstanding"] == 7
    n = np.count_nonzero(some["is_outstanding"])
    np.testing.assert_array_equal(some["features"][:n], every["features"][:n])
    assert set(every["features"][every["is_outstanding"]]) <= set(some["features"])


def test_the_strongest_of_many_equal_ones_are_any(monkeypatch):
    monkeypatch.setattr("srs_ooc.runs.run_verdict.OUTSTANDING", 40)
    found_alone = np.full(200_000, 0.3, np.float32)
    found_alone[:150_000:2] = np.nan
    found_alone[[70_001, 180_000]] = 9
    found = _strongest(found_alone, 0.3 - 1e-6, 3)
    assert set(found[:2].tolist()) == {70_001, 180_000}
    assert len(set(found.tolist())) == 40
    assert not np.isnan(found_alone[found]).any()
    assert 60_000 < found.mean() < 180_000
    assert _strongest(found_alone, 1, 3).tolist() == found[:2].tolist()
    assert _strongest(found_alone, np.inf, 3).tolist() == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_rare_features_of_no_relevance_are_not_selected(tmp_path, seed):
    """Single ones in the rare class are no news, whatever normal tails say of them."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(800) < 80).astype(int)
    values = (rng.random((600, 800)) < rng.uniform(0.003, 0.03, (600, 1))) + 0.0
    store = make_store(tmp_path / "t.zarr", values, labels)
    verdict, facts = conclude(store, tmp_path / "t.run")
    assert not verdict["is_selected"].any()
    assert facts["n_marginal"] == 0


def test_what_stands_first_does_so_within_strata(tmp_path):
    """What only strata shift, and the target with them, is not marginally significant."""
    values, labels = shifted(25)
    strata = np.arange(N_ROWS) // 30
    labels = np.where(np.random.default_rng(0).random(N_ROWS) < 0.5, labels, strata > 0)
    values[:25] += 1.5 * labels
    values[25:60] += 2.5 * strata
    store = tmp_path / "strata.zarr"
    srs_ooc.ingest(values.T, store, target=labels, strata=strata)
    verdict, facts = conclude(store, tmp_path / "strata.run")
    there = stored_positions(400)[verdict["features"][verdict["is_outstanding"]]]
    assert np.count_nonzero(there < 25) >= 20
    assert np.count_nonzero((there >= 25) & (there < 60)) <= 3
    assert facts["n_outstanding"] >= len(there)


def test_none_stands_first_where_rows_come_in_groups(tmp_path):
    values, labels = shifted(25)
    store = tmp_path / "groups.zarr"
    srs_ooc.ingest(values.T, store, target=labels, groups=np.arange(N_ROWS) // 3)
    verdict, facts = conclude(store, tmp_path / "groups.run")
    assert facts["n_outstanding"] == 0
    assert not verdict["is_outstanding"].any()


@pytest.mark.slow
def test_permutation_runs_certify_marginally_significant_features(tmp_path):
    values, labels = shifted(25)
    store = make_store(tmp_path / "t.zarr", values, labels)
    verdict, facts = conclude(store, tmp_path / "t.run", permutations=4, fdr="0.2")
    n = facts["n_outstanding"]
    assert n >= 10
    assert verdict["is_outstanding"].tolist() == [i < n for i in range(len(verdict["is_selected"]))]
    assert (verdict["is_selected"][:n]).all()
    assert np.count_nonzero(stored_positions(400)[verdict["features"][:n]] < 25) >= n - 1


@pytest.mark.slow
def test_a_feature_left_out_does_not_stand_first(tmp_path):
    values, labels = shifted(25)
    store = make_store(tmp_path / "t.zarr", values, labels)
    out = tmp_path / "excluded.csv"
    out.write_text("f0\nf1\n")
    run = tmp_path / "t.run"
    command("run", store, "--out", run, "--judge", "decoy", "--q", 30, "--iterations", 300,
            "--exclude", out)  # fmt: skip
    records = {record["name"]: record for record in json_of("features", run, "--json")}
    assert not records["f0"]["selected"]
    assert records["f0"]["q_value"] is None
    assert records["f2"]["selected"]
    ledger = Ledger(run, writable=False)
    assert ledger.meta(CONCLUSION)["n_outstanding"] >= 18
    ledger.close()
