"""Features of a run with a verdict are shown by what they are worth together."""

import itertools

import numpy as np
import pytest
from command import json_of
from stores import make_store

from srs_ooc.evidence import correlation
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.results.ranking import Ranking
from srs_ooc.runs import run_verdict
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_verdict import VerdictRecord
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.store.store import Store

N_ROWS, N_FEATURES, N_RELEVANT, N_COPIES = 120, 200, 6, 12


def write_store(path):
    """Six relevant features, two near copies of each behind them, and noise."""
    rng = np.random.default_rng(7)
    labels = np.arange(N_ROWS) % 2
    values = rng.standard_normal((N_FEATURES, N_ROWS))
    values[:N_RELEVANT] += np.linspace(2.2, 1.6, N_RELEVANT)[:, None] * labels
    for copy in range(N_COPIES):
        near = values[copy % N_RELEVANT] + 0.05 * rng.standard_normal(N_ROWS)
        values[N_RELEVANT + copy] = near
    return make_store(path, values, labels)


def family(source):
    """Which relevant feature a feature is, or is a near copy of; None if noise."""
    return source % N_RELEVANT if source < N_RELEVANT + N_COPIES else None


def work(store, run, watch=lambda _: True, *, threads=1, **given):
    asked = Options(judge="decoy", subspace_size="50", seed=3, fdr="0.3", **given)
    request = Request(asked, iterations=400, memory_mb=4000, threads=threads)
    ledger = open_or_create(Store.open(store), run, request)
    try:
        work_on(ledger, Store.open(store), request, watch)
        return VerdictRecord.read(ledger)
    finally:
        ledger.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    store = write_store(folder / "t.zarr")
    return store, folder / "t.run", work(store, folder / "t.run")


@pytest.mark.slow
def test_selected_features_are_listed_before_any_other(made):
    _, run, record = made
    listed = json_of("features", run, "--json")
    is_selected = [line["selected"] for line in listed]
    n = int(np.count_nonzero(record.is_selected))
    assert n >= N_RELEVANT + N_COPIES
    assert is_selected == [True] * n + [False] * (N_FEATURES - n)
    assert [line["rank"] for line in listed] == list(range(1, N_FEATURES + 1))
    assert len({line["name"] for line in listed}) == N_FEATURES
    sources = stored_positions(N_FEATURES)[record.order]
    assert [line["name"] for line in listed[: len(sources)]] == [f"f{i}" for i in sources]


@pytest.mark.slow
def test_a_near_copy_comes_after_all_that_is_relevant(made):
    _, run, _ = made
    listed = json_of("features", run, "--json", "--top", N_RELEVANT)
    families = [family(int(line["name"][1:])) for line in listed]
    assert sorted(families, key=str) == list(range(N_RELEVANT))
    # By importance alone they would not.
    everything = json_of("features", run, "--json")
    by_importance = sorted(everything, key=lambda line: -line["importance"])[:N_RELEVANT]
    assert len({family(int(line["name"][1:])) for line in by_importance}) < N_RELEVANT


@pytest.mark.slow
@pytest.mark.parametrize("permutations", [0, 4])
def test_the_order_does_not_depend_on_threads_or_stops(made, tmp_path, permutations):
    store = made[0]
    whole = work(store, tmp_path / "whole.run", permutations=permutations)
    assert len(whole.order) == N_FEATURES
    for stop in itertools.count(1):
        countdown = itertools.count(-151 * stop)
        record = work(
            store,
            tmp_path / "stopped.run",
            lambda _, countdown=countdown: next(countdown) != 0,
            threads=1 + stop % 3,
            permutations=permutations,
        )
        if record is not None:
            break
    assert stop > 2
    assert record.order.tolist() == whole.order.tolist()


@pytest.mark.slow
def test_every_selected_feature_is_in_the_order(made, tmp_path, monkeypatch):
    """However few are ordered by worth, and however few a small set is chosen from."""
    store, _, whole = made
    monkeypatch.setattr(run_verdict, "HEAD", 5)
    monkeypatch.setattr(run_verdict, "MOST", 7)
    record = work(store, tmp_path / "t.run")
    selected = record.features[record.is_selected]
    assert sorted(record.order.tolist()) == sorted(selected.tolist())
    assert sorted(selected.tolist()) == sorted(whole.features[whole.is_selected].tolist())
    ledger = Ledger(tmp_path / "t.run", writable=False)
    reading = Ranking(ledger, Store.open(store))
    ledger.close()
    assert len(reading.selected()) == reading.n_selected == len(selected)


@pytest.mark.slow
def test_what_is_left_out_is_not_in_the_order(made, tmp_path):
    store = made[0]
    (tmp_path / "out").write_text("f0\nf7\n")
    options = Options(judge="decoy", subspace_size="50", decoys=1)
    request = Request(options, tmp_path / "out", iterations=60, memory_mb=4000)
    ledger = open_or_create(Store.open(store), tmp_path / "t.run", request)
    work_on(ledger, Store.open(store), request)
    shown = stored_positions(N_FEATURES)[VerdictRecord.read(ledger).order]
    ledger.close()
    assert sorted(shown.tolist()) == sorted(set(range(N_FEATURES)) - {0, 7})


@pytest.mark.slow
def test_features_beyond_the_head_follow_by_importance(made, tmp_path, monkeypatch):
    monkeypatch.setattr(run_verdict, "HEAD", 40)
    run = tmp_path / "t.run"
    assert len(work(made[0], run).order) == 40 < correlation.HEAD
    importances = [line["importance"] for line in json_of("features", run, "--json")]
    assert importances[40:] == sorted(importances[40:], reverse=True)
