"""The engine equals a plain transcription of Algorithm 1, whatever speeds it up."""

from fractions import Fraction

import numpy as np
import pytest
from command import srs_ooc
from distinct_reference import draw_blocks
from stores import make_store, noise_table
from tree_reference import draw_distinct, grow_on, shuffled

from srs_ooc.base.seeds import Purpose, below, derive, key_of
from srs_ooc.evidence.tally import Tally
from srs_ooc.learners.tree_learner import PROBE_FEATURE, tree_key
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.samplers.srs import KeptSet
from srs_ooc.store.store import Store
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits

NONE = np.zeros(0, dtype=np.uint32)


def algorithm_1(
    codes, labels, *, q, alpha, n_iterations, judge, seed, round_size=1, k=None, g=1, n_trees=1,
    values=None,
):  # fmt: skip
    """Algorithm 1 in Python: (importance, n_drawn, n_better, F in order, entered)."""
    p = len(codes)
    importance, n_drawn, n_better = np.zeros(p, int), np.zeros(p, int), np.zeros(p, int)
    kept, entered = [], []
    training = TrainingRows.of(Response.classes(labels, int(labels.max()) + 1), "gini")
    for t in range(n_iterations):
        key = key_of(seed, t // round_size, t % round_size)
        known = [f for f, e in zip(kept, entered, strict=True) if e <= t - t % round_size]
        size = min(int(Fraction(alpha) * q // 1), len(known))
        picks = range(size)
        if size < len(known):
            picks = draw_distinct(derive(key, Purpose.RETAINED), len(known), NONE, size)
        retained = np.array([known[i] for i in picks], dtype=np.uint32)
        sequence = derive(key, Purpose.SEQUENCE)
        fresh = draw_distinct(sequence, p, retained, q - size)
        if g > 1:
            fresh = draw_blocks(sequence, p, g, retained, q - size)
        subspace = np.sort(np.concatenate([retained, fresh]))
        columns, features, sources = codes[subspace].astype(np.uint8), subspace, subspace
        if judge == "probe":
            source = below(derive(key, Purpose.PROBE_COLUMN), 0, q)
            probe = shuffled(columns[source], derive(key, Purpose.PROBE_ROWS))
            columns = np.vstack([columns, probe])
            features = np.append(subspace, np.uint32(PROBE_FEATURE))
            sources = np.append(subspace, subspace[source])
        limits = TreeLimits(len(features) if k is None else k)
        sums = np.zeros(len(features), int)
        for number in range(n_trees):
            this = tree_key(derive(key, Purpose.TREE), number)
            table = None if values is None else values[sources]
            sums += grow_on(columns, training, features, this, limits, values=table).importance
        found = sums[:q]
        importance[subspace] += found
        n_drawn[subspace] += 1
        passes = found > 0
        if judge == "probe":
            n_better[subspace] += found > sums[q]
            drawn, better = n_drawn[subspace], n_better[subspace]
            passes = (drawn > 3) & (better * 5 >= drawn * 4)
        for f in subspace[passes].tolist():
            if f not in kept:
                kept.append(f)
                entered.append(t + 1)
    return importance, n_drawn, n_better, kept, entered


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    values, labels = noise_table(60, 150, n_classes=3)
    values = np.exp(values)  # gaps of very different widths
    store = make_store(tmp_path_factory.mktemp("table") / "t.zarr", values, labels)
    ranks = values.argsort(axis=1).argsort(axis=1)
    return store, ranks, labels, values


def run_state(run):
    """Everything a run says, as comparable values."""
    ledger = Ledger(run, writable=False)
    tally, kept = Tally(150), KeptSet(150)
    progress = ledger.load({"tally": tally, "kept": kept})
    ledger.close()
    arrays = [pages.array.tolist() for pages in tally.state().pages.values()]
    return progress.iteration, arrays, kept.features.tolist(), kept.entered.tolist()


def run_to(store, run, n_iterations, *, threads=1, memory_mb=4000, **options):
    test = {"probe_min_draws": 3, "probe_min_wins": "0.8"} if options["judge"] == "probe" else {}
    asked = Options(subspace_size="20", **test | options)
    request = Request(asked, iterations=n_iterations, threads=threads, memory_mb=memory_mb)
    ledger = open_or_create(Store.open(store), run, request)
    try:
        work_on(ledger, Store.open(store), request)
    finally:
        ledger.close()
    return run_state(run)


CASES = {
    "srs": {"alpha": "0.5", "judge": "probe", "seed": 0},
    "full-memory": {"alpha": "1", "judge": "probe", "seed": 5},
    "random-subspace": {"alpha": "0", "judge": "probe", "seed": 1},
    "as-printed": {"alpha": "0.5", "judge": "positive", "seed": 2},
    "rounds": {"alpha": "0.5", "judge": "positive", "seed": 3, "round_size": 7},
    "few-candidates": {"alpha": "0.3", "judge": "probe", "seed": 4, "max_features": 2},
    "blocks": {"alpha": "0.5", "judge": "probe", "seed": 6, "draw_block": 8},
    "several-trees": {"alpha": "0.5", "judge": "probe", "seed": 7, "trees_per_subspace": 3},
    "by-value": {"alpha": "0.5", "judge": "probe", "seed": 8, "thresholds": "value"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_engine_equals_algorithm_1(table, tmp_path, name):
    store, ranks, labels, values = table
    options = dict(CASES[name])
    from srs_ooc.ingestion.ingest_options import stored_positions

    codes = ranks[stored_positions(150)]
    state = run_to(store, tmp_path / "a.run", 60, **options)
    short = {"max_features": "k", "draw_block": "g", "trees_per_subspace": "n_trees"}
    options = {short.get(name, name): value for name, value in options.items()}
    if options.pop("thresholds", None):
        options["values"] = np.sort(values, axis=1)[stored_positions(150)]
    expected = algorithm_1(codes, labels, q=20, n_iterations=60, **options)
    importance, n_drawn, n_better, kept, entered = expected
    assert state == (
        60, [importance.tolist(), n_drawn.tolist(), n_better.tolist()], kept, entered
    )  # fmt: skip
    assert kept, "the case must exercise F"


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CASES)
def test_threads_stops_and_caps_change_nothing(table, tmp_path, name):
    """Laws 1 and 2: workers that run ahead, stopping and going on, reading instead of mapping."""
    store = table[0]
    whole = run_to(store, tmp_path / "whole.run", 120, **CASES[name])
    for threads in (2, 3):
        run = tmp_path / f"{threads}.run"
        assert run_to(store, run, 120, threads=threads, **CASES[name]) == whole
    pieces = tmp_path / "pieces.run"
    for until in (1, 2, 50, 51, 93, 120):
        state = run_to(store, pieces, until, threads=1 + until % 3, **CASES[name])
    assert state == whole


@pytest.mark.slow
def test_a_store_larger_than_its_lease_is_read_with_the_same_result(tmp_path):
    """20 MB of codes under a cap that leaves less than that: files are read, not mapped."""
    values, labels = noise_table(400, 50_000)
    store = make_store(tmp_path / "t.zarr", values, labels)
    options = ("--q", 300, "--judge", "positive", "--iterations", 25, "--threads", 2)
    listings = []
    for memory_mb in (76, 300):
        run = tmp_path / f"{memory_mb}.run"
        srs_ooc("run", store, "--out", run, "--memory-mb", memory_mb, *options)
        listings.append(srs_ooc("features", run, "--csv").stdout)
    assert listings[0] == listings[1]
