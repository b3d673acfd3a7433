"""The loop against Algorithm 1, its executors and guesses, its commits, and the paper's theory."""

from contextlib import closing
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import theory_examples as examples
from command import srs_ooc
from distinct_reference import draw_blocks
from ledgers import work_on_run
from more_problems import Clique, Marginal
from stores import make_store, noise_table
from theory_examples import real_tree_time
from tree_reference import draw_distinct, grow_on, shuffled

from srs_ooc.base.records import Iteration, Outcome, Subspace
from srs_ooc.base.seeds import Purpose, below, derive, key_of
from srs_ooc.evidence.tally import Tally
from srs_ooc.ingestion.ingest_options import stored_positions
from srs_ooc.learners.tree_learner import PROBE_FEATURE, tree_key
from srs_ooc.runs import engine
from srs_ooc.runs.engine import Speculation, ThreadExecutor
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run import Run
from srs_ooc.runs.run_memory import shape_of
from srs_ooc.runs.settling import settle
from srs_ooc.samplers.srs import KeptSet, SequentialRandomSubspace
from srs_ooc.store.store import Store
from srs_ooc.synthetic.chain import Chain
from srs_ooc.synthetic.table_files import write_table
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits

# The engine equals a plain transcription of Algorithm 1, whatever speeds it up.

NONE = np.zeros(0, dtype=np.uint32)


def algorithm_1(
    codes, labels, *, q, alpha, n_iterations, judge, seed, round_size=1, k=None, g=1, n_trees=1,
    values=None, row_sample=None,
):  # fmt: skip
    """Algorithm 1 in Python: (importance, n_drawn, n_better, F in order, entered)."""
    p = len(codes)
    importance, n_drawn, n_better = np.zeros(p, int), np.zeros(p, int), np.zeros(p, int)
    kept, entered = [], []
    whole = training = TrainingRows.of(Response.classes(labels, int(labels.max()) + 1), "gini")
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
        if row_sample is not None:
            rows = whole.drawn(whole.strata(row_sample), derive(key, Purpose.TREE))
            columns, training = columns[:, rows], whole.block_of(rows)
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
    ledger = Run(run, writable=False)
    tally, kept = Tally(150), KeptSet(150)
    progress = ledger.load({"tally": tally, "kept": kept})
    ledger.close()
    arrays = [pages.array.tolist() for pages in tally.state().pages.values()]
    return progress.iteration, arrays, kept.features.tolist(), kept.entered.tolist()


def run_to(store, run, n_iterations, *, threads=1, memory_mb=4000, **options):
    test = {"probe_min_draws": 3, "probe_min_wins": "0.8"} if options["judge"] == "probe" else {}
    asked = {"subspace_size": "20", **(test | options)}
    request = Request(options=asked, iterations=n_iterations, threads=threads, memory_mb=memory_mb)
    work_on_run(store, run, request)
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
    "sampled-rows": {"alpha": "0.5", "judge": "probe", "seed": 9, "row_sample": 41},
    "by-value": {"alpha": "0.5", "judge": "probe", "seed": 8, "thresholds": "value"},
}


@pytest.mark.few(0, 4)
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


# Guessing ahead and reading ahead: what is grown, announced and thrown away, in which order.


class Ahead:
    """Stands for a reader: notes what it is asked for."""

    def __init__(self, depth):
        self.depth, self.asked = depth, []

    def ask(self, features):
        self.asked.append(int(features[0]))


class Loop:
    """Iterations whose subspace is (iteration, state); the state is what they depend on."""

    def __init__(self, n_workers, depth):
        self.state, self.grown, self.ahead = 0, [], Ahead(depth)
        executor = ThreadExecutor(self.grow, [object()] * n_workers, self.ahead)
        self.speculation = Speculation(executor, self.propose, lambda _: self.state)
        self.executor = executor

    def propose(self, iteration):
        features = np.array([iteration, self.state], dtype=np.uint32)
        return Iteration(iteration, Subspace(features), 0)

    def grow(self, _, iteration):
        self.grown.append(tuple(iteration.features.tolist()))
        return Outcome(iteration.features, np.zeros(2, dtype=np.int64))

    def run(self, start, end, changes=()):
        outcomes = []
        for iteration in range(start, end):
            outcome = self.speculation.outcome(iteration, end)
            outcomes.append(tuple(outcome.features.tolist()))
            self.state += iteration in changes
        return outcomes


@pytest.mark.parametrize("n_workers", [1, 2, 3])
@pytest.mark.parametrize("depth", [0, 2])
def test_outcomes_are_those_of_the_state_of_their_turn(n_workers, depth):
    loop = Loop(n_workers, depth)
    outcomes = loop.run(0, 12, changes={3, 4, 9})
    loop.executor.close()
    states = [0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3]
    assert outcomes == list(enumerate(states))


def test_columns_are_asked_for_ahead_of_growing_once_for_each_iteration():
    loop = Loop(1, 2)
    loop.speculation.outcome(0, 10)
    assert loop.grown == [(0, 0)]
    assert loop.ahead.asked == [0, 1, 2]
    loop.state = 1  # proposed anew; C is the same, so nothing is asked for twice
    assert loop.run(1, 10) == [(iteration, 1) for iteration in range(1, 10)]
    assert loop.ahead.asked == list(range(10))


def test_one_worker_grows_nothing_in_vain():
    loop = Loop(1, 2)
    loop.run(0, 6, changes=range(6))
    assert loop.grown == [(iteration, iteration) for iteration in range(6)]


def test_without_depth_iterations_are_announced_as_they_are_grown():
    loop = Loop(2, 0)
    loop.run(0, 8)
    loop.executor.close()
    assert sorted(loop.ahead.asked) == list(range(8))
    assert sorted(loop.grown) == [(iteration, 0) for iteration in range(8)]


def test_the_first_tree_on_a_subspace_keeps_its_key_and_others_meet_no_feature():
    keys = [tree_key(5, number) for number in range(4)]
    assert keys[0] == 5
    assert len(set(keys)) == 4
    assert not {derive(5, word) for word in range(1000)} & set(keys)


# A kill costs no more than what was done since the last commit, and those are not far apart.

SECONDS_EACH = 0.3
"""Of an iteration, by a clock that the test moves."""


class Killed(BaseException):
    """What nothing catches."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(20, 60)
    return make_store(tmp_path_factory.mktemp("s") / "t.zarr", values, np.asarray(labels))


def committed_before_kill(store, run, at, clock):
    """Kill a run after ``at`` iterations; return how many are committed."""
    request = Request(
        options={"subspace_size": 10, "judge": "positive"},
        iterations=1000,
        memory_mb=2000,
        threads=1,
    )

    def watch(step):
        clock.now = step.done * SECONDS_EACH
        if step.done == at:
            raise Killed
        return True

    with pytest.raises(Killed):
        work_on_run(store, run, request, watch)
    with closing(Run(run, writable=False)) as ledger:
        return ledger.progress().iteration


@pytest.mark.parametrize("commit_seconds", [0.0, 0.2])
@pytest.mark.parametrize("at", [3, 30, 47])
def test_at_most_one_commit_interval_is_repeated_after_a_kill(
    store, tmp_path, monkeypatch, at, commit_seconds
):
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    commit = engine.Engine.commit

    def takes_so_long(self):
        commit(self)
        return commit_seconds

    monkeypatch.setattr(engine, "time", clock)
    monkeypatch.setattr(engine.Engine, "commit", takes_so_long)
    interval = max(engine.COMMIT_SECONDS, engine.COMMIT_SHARE * commit_seconds)
    repeated = at - committed_before_kill(store, tmp_path / "a.run", at, clock)
    assert 0 <= repeated * SECONDS_EACH <= interval + 2 * SECONDS_EACH


# The engine on exact tables needs as many iterations as the theory says (Section 4, real trees).

N_RUNS = 300
KINDS = {"chain": Chain, "clique": Clique, "marginal": Marginal}


def times_to_find_all(store, alpha, relevant):
    opened, inputs = Store.open(store), Inputs()
    options = {"alpha": alpha, "subspace_size": "12", "judge": "positive"}
    asked, times = Request(options=options, memory_mb=1000, threads=1), []
    spec = settle(asked, shape_of(opened.manifest, inputs), {"store": opened.fingerprint})
    with Resources.of(Plan.of_spec(spec, opened, inputs, asked)) as resources:
        for seed in range(N_RUNS):
            resources.spec = spec.with_seed(seed)
            engine = resources.engine(None)
            sampler = engine.sampler
            assert isinstance(sampler, SequentialRandomSubspace)
            engine.advance(10**6, lambda: sampler.n_kept < len(relevant))  # noqa: B023
            assert set(sampler.kept.features.tolist()) == relevant
            times.append(engine.iteration)
    return np.array(times)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ["0", "0.5", "1"])
@pytest.mark.parametrize(("name", "repetitions"), [("chain", 1), ("clique", 2), ("marginal", 2)])
def test_the_mean_time_is_the_theorys(tmp_path, name, repetitions, alpha):
    problem = KINDS[name](KINDS[name].n_cells(3) * repetitions, 40, 3, 0, True)
    write_table(problem, tmp_path / "t.zarr")
    relevant = set(np.flatnonzero(np.isin(stored_positions(40), problem.positions)).tolist())
    times = times_to_find_all(tmp_path / "t.zarr", alpha, relevant)
    expected = float(real_tree_time(getattr(examples, name)(3), 40, 12, alpha, repetitions))
    assert abs(times.mean() - expected) < 4.5 * times.std() / N_RUNS**0.5
