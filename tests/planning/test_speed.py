"""What a run would take: its memory as the run accepts it, and its speed."""

import shlex
from itertools import product
from typing import Any

import numpy as np
import pytest
from closing import ALL, FEW, closing_trees
from command import error_of, json_of
from command import srs_ooc as srs_ooc_command
from object_server import serving

import srs_ooc
from srs_ooc.base.budget import PROCESS_NBYTES, growth_counted, total_nbytes
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.options import line_of
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.cli.plan import plan_lines
from srs_ooc.evidence import conditional_tests
from srs_ooc.learners.tree_learner import Trial
from srs_ooc.planning import speed
from srs_ooc.planning.run_plan import largest_held, plan_asked, plan_values
from srs_ooc.planning.speed import Speed, memory_plan, parts_of, speed_of
from srs_ooc.runs.feature_tests import MarginalTests
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run_memory import RunBudget, largest_subspace
from srs_ooc.store.opening import open_store
from srs_ooc.store.remote_cache import CacheOptions
from srs_ooc.store.store import Store

# What a plan says the cap holds is what the run accepts: q, workers and threads.


N_ROWS, N_FEATURES = 3000, 60_000
JUDGES = [{"judge": "probe"}, {"closing": "impurity"}, {"closing": "sensitivity"}]
RANKING = {"models": 20, "folds": 2, "inclusion": "0.002"}
METHODS = {
    "srs": JUDGES,
    "rs": JUDGES,
    "less": JUDGES,
    "prs": [RANKING, RANKING | {"screen": 3000}],
    "rase": [{"candidates": 50, "max_size": 5}],
}
TREES = list(product(("random", "best"), (False, True), (1, 4)))


def budget_of(draft):
    budget = RunBudget(draft.request.cap_nbytes, draft.leases(), PROCESS_NBYTES)
    budget.check()
    budget.spend(draft.spec, draft.shape, draft.request.threads)
    return budget


def is_accepted(draft):
    try:
        return budget_of(draft).free_nbytes >= 0
    except BudgetError:
        return False


@pytest.mark.parametrize("method", METHODS)
def test_the_run_accepts_the_largest_q_of_the_plan_and_not_the_next(method):
    n_planned = 0
    for own, (splitter, bootstrap, n_trees), memory_mb in product(
        METHODS[method], TREES, (70, 90, 140, 400)
    ):
        given = own | {
            "method": method,
            "splitter": splitter,
            "bootstrap": bootstrap,
            "trees_per_subspace": n_trees,
        }

        def drafted(memory_mb=memory_mb, given=given, **more):
            request = Request(options=given | more, memory_mb=memory_mb, threads=4)
            return Plan.of_numbers(request, N_ROWS, N_FEATURES)

        try:
            memory_plan(drafted())
        except BudgetError:
            assert not is_accepted(drafted()), "what the run accepts is planned"
            continue
        first = drafted()
        q = largest_subspace(first.spec, first.shape, memory_mb * MB)
        largest = drafted(subspace_size=str(q))
        assert is_accepted(largest), (own, splitter, bootstrap, memory_mb, q)
        if q < N_FEATURES:
            assert not is_accepted(drafted(subspace_size=str(q + 1))), (given, memory_mb, q)
        assert q == drafted(subspace_size="max").spec.subspace_size
        for draft in (drafted(), largest):
            planned, of_run = memory_plan(draft), budget_of(draft)
            assert (planned.n_workers, planned.n_threads) == (of_run.n_workers, of_run.n_threads)
        n_planned += 1
    assert n_planned > len(METHODS[method]) * len(TREES)


# The same on stores, through all that creating a run checks, and what it then holds.

STORES = {
    "classes": {},
    "numbers": {"task": "regression"},
    "uint16": {"code_dtype": "uint16"},
    "strata": {"strata": np.repeat(np.arange(150), 20)},
    "weights": {"weights": np.arange(1.0, 3001)},
}
SHORT = {
    "prs": RANKING | {"method": "prs", "inclusion": "0.02", "epochs": 2, "models": 4},
    "rase": {"method": "rase", "candidates": 4, "models": 2, "rounds": 1, "folds": 2},
}
ASKED: dict[str, dict[str, Any]] = {
    "best": {"splitter": "best"},
    "bootstrap": {"bootstrap": True},
    "several trees": {"trees_per_subspace": 4},
    "sensitivity": {"closing": "sensitivity"},
    **SHORT,
    "less": {"method": "less", "scores": "norm"},
    "rs, probe": {"method": "rs", "judge": "probe"},
    "saved": {"save_trees": True},
    "defaults": {},
    "positive": {"judge": "positive"},
    "value": {"thresholds": "value"},
    "entropy": {"impurity": "entropy"},
    "balanced": {"class_weight": "balanced"},
    "few candidates": {"max_features": "sqrt"},
    "small trees": {"max_depth": 3},
    "prs behind a screen": SHORT["prs"] | {"screen": 300},
    "rase behind a screen": SHORT["rase"] | {"screen": 300},
    "best of several, bootstrapped, saved": {
        "splitter": "best", "bootstrap": True, "trees_per_subspace": 3, "save_trees": True,
    },
    "sensitivity of several": {
        "closing": "sensitivity", "trees_per_subspace": 3, "bootstrap": True,
    },
    "prs, best, saved": SHORT["prs"] | {"splitter": "best", "save_trees": True},
    "probe, values, saved": {"judge": "probe", "thresholds": "value", "save_trees": True},
}  # fmt: skip
REFUSED = {("numbers", "entropy"), ("numbers", "balanced"), ("weights", "entropy")}
CASES = [case for case in product(STORES, ASKED) if case not in REFUSED]
P_STORED = 1200


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Stores by name, each made when it is first asked for."""
    folder, made = tmp_path_factory.mktemp("kept"), {}

    def store(name):
        if name not in made:
            rng, path = np.random.default_rng(1), folder / f"{name}.zarr"
            values = rng.integers(0, 200, (N_ROWS, P_STORED)).astype(np.uint8)
            target = np.arange(N_ROWS) % 2 + (rng.random(N_ROWS) if name == "numbers" else 0)
            srs_ooc.ingest(values, path, target=target, **STORES[name])
            made[name] = path
        return made[name]

    return store


def asked_of(given, memory_mb, **more):
    given = given | more
    saves = given.pop("save_trees", None)
    return Request(options=given, memory_mb=memory_mb, threads=2, save_trees=saves)


def caps_from_the_least(store, given):
    """The least cap that a run of a hundred columns is accepted with, some above, and plenty."""
    draft = Plan.of(store, asked_of(given, 1000, subspace_size="100"))
    needed = PROCESS_NBYTES + max(map(total_nbytes, draft.stages()))
    return [ceil_div(needed, MB) + more for more in (0, 1, 2, 4, 1000)]


def refusal_of(store, request):
    """Create a run and all it works with; return why it is refused, None if it is not."""
    try:
        draft = Plan.of(store, request)
        with Resources.of(draft):
            return None
    except BudgetError as error:
        return str(error)


def check_kept(store, given, memory_mb):
    """Check that the largest q that a plan promises is accepted, and the next is not."""
    draft = Plan.of(store, asked_of(given, memory_mb))
    q = largest_held(draft)
    assert draft.spec.subspace_size <= q <= P_STORED
    assert refusal_of(store, asked_of(given, memory_mb, subspace_size=str(q))) is None
    if q < P_STORED:
        assert refusal_of(store, asked_of(given, memory_mb, subspace_size=str(q + 1)))
    return q


@pytest.mark.few(10)
@pytest.mark.parametrize(("name", "asked"), CASES)
def test_a_run_of_a_store_accepts_what_the_plan_promises_and_no_more(stored, name, asked):
    store, given = Store.open(stored(name)), ASKED[asked]
    with growth_counted():
        found = [check_kept(store, given, cap) for cap in caps_from_the_least(store, given)]
    assert found == sorted(found)
    assert found[-1] == P_STORED
    assert found[0] < P_STORED or asked == "less"  # whose passes over all columns need more


@pytest.mark.few(0, 6)
@pytest.mark.parametrize("asked", [*reversed(ASKED)])  # the last are of several options
def test_a_run_ends_with_the_largest_q_of_the_plan(stored, tmp_path, monkeypatch, asked):
    closing_trees(monkeypatch, FEW)
    path, given = stored("classes"), ASKED[asked]
    with growth_counted():
        memory_mb = caps_from_the_least(Store.open(path), given)[1]
    promised = srs_ooc.plan(path, memory_mb=memory_mb, threads=1, **given)
    q = promised["largest_subspace_size"]
    asked = {"memory_mb": memory_mb, "threads": 1, "subspace_size": q, "iterations": 3}
    result = srs_ooc.run(path, out=tmp_path / "t.run", **asked, **given)
    assert result.status.parts["run"]["subspace_size"] == q


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["best", "bootstrap", "several trees", *SHORT])
def test_commands_keep_to_the_plan_in_processes_of_their_own(stored, tmp_path, asked):
    path, judge = stored("classes"), {} if asked in SHORT else {"judge": "positive"}
    given = ASKED[asked] | judge  # which has no closing stage: of full length it takes minutes
    with growth_counted():
        memory_mb = caps_from_the_least(Store.open(path), given)[1]
    flags = ["--memory-mb", memory_mb, "--threads", 1]
    for option, value in given.items():
        flags += shlex.split(line_of(option, value))
    q = json_of("plan", path, *flags, "--json")["largest_subspace_size"]
    run = ("run", path, "--out", tmp_path / "t.run", *flags, "--iterations", 1, "--q")
    assert "cannot hold the work" in error_of(*run, q + 1)
    srs_ooc_command(*run, q)


@pytest.mark.slow
@pytest.mark.parametrize("given", [{}, *map(ASKED.get, ("saved", "balanced", "value", "best"))])
def test_numbers_alone_promise_what_the_store_does(stored, given):
    asked = asked_of(given, 98)
    with growth_counted():
        of_store = Plan.of(Store.open(stored("classes")), asked)
        of_numbers = Plan.of_numbers(asked, N_ROWS, P_STORED)
        plans = [plan_values(draft) for draft in (of_store, of_numbers)]
    for part in ("subspace_size", "largest_subspace_size", "leases", "free_mb"):
        assert plans[0][part] == plans[1][part]
    assert of_numbers.spec.run.judge == of_store.spec.run.judge


@pytest.mark.slow
def test_of_a_store_at_a_url_requests_under_way_are_left_out(stored, tmp_path):
    pytest.importorskip("obstore")
    path = stored("classes")
    with serving(path.parent) as server, growth_counted():
        store = open_store(f"{server.url}/{path.name}", cache=CacheOptions(str(tmp_path), 64))
        memory_mb = caps_from_the_least(store, {})[2]
        there = plan_values(Plan.of(store, asked_of({}, memory_mb)))["largest_subspace_size"]
        assert there == check_kept(store, {}, memory_mb)
        here = largest_held(Plan.of(Store.open(path), asked_of({}, memory_mb)))
        assert there < here
        with pytest.raises(BudgetError, match="max grows with the cap"):
            Plan.of(store, asked_of({}, memory_mb, subspace_size="max"))


def test_of_a_model_that_is_tried_nothing_is_promised_beyond_the_trial(monkeypatch):
    from srs_ooc.methods.models import model_learner

    monkeypatch.setattr(model_learner, "tried", lambda *_: Trial(0, 0, 0.01))
    given = {"method": "rs", "model": "knn", "subspace_size": "50"}
    draft = Plan.of_numbers(Request(options=given, memory_mb=300), 200, 500)
    plan = plan_values(draft)
    assert plan["largest_subspace_size"] is None
    said = "\n".join(plan_lines(draft, plan))
    assert "q = 50 features at a time, with which knn was tried" in said


# Runs that begin with a screen: of both parts, each for as long as it lasts.


P, N_FIRST = 20_000, 300


def planned(method, **options):
    options = {"method": method, "models": 10, "folds": 2, **options}
    return plan_asked(None, Request(options=options, memory_mb=1000), 200, P)


@pytest.mark.parametrize("method", ["prs", "rase"])
def test_a_run_behind_a_screen_is_that_and_a_run_on_what_it_lets_through(method):
    draft = planned(method, screen=N_FIRST)
    n_trees, screen, rest_of_it = parts_of(draft)
    assert (screen.shape.n_candidates, screen.spec.subspace_size) == (P, P // 20)
    assert n_trees == 2000
    rest = rest_of_it.spec
    assert rest_of_it.shape.n_candidates == N_FIRST
    alone = plan_asked(
        None,
        Request(
            options={"method": method, "models": 10, "folds": 2, "subspace_size": str(N_FIRST)},
            memory_mb=1000,
        ),
        200,
        N_FIRST,
    ).spec
    assert (rest.sampler, rest.learner, rest.run) == (alone.sampler, alone.learner, alone.run)
    assert parts_of(planned(method)) is None


def test_the_seconds_are_those_of_both_parts(monkeypatch):
    def estimated(draft, **_):
        is_screen = draft.spec.run.method == "rs"
        return Speed(5.0 if is_screen else 0.25, False, "a try")

    monkeypatch.setattr(speed, "estimated_speed", estimated)
    draft = planned("prs", screen=N_FIRST, epochs=50)
    spec = draft.spec
    n_all = spec.sampler.most_iterations(P, spec.subspace_size)[0]
    found = speed_of(draft, memory_plan(draft))
    assert found.seconds * n_all == pytest.approx(2000 * 5.0 + (n_all - 2000) * 0.25)
    assert "2,000 trees of the screen of 5 s each" in found.how


def test_models_on_few_features_are_estimated_on_as_many():
    few, all_of_them = (planned("prs", **options) for options in ({"inclusion": "0.002"}, {}))
    one, other = (speed_of(draft, memory_plan(all_of_them)) for draft in (few, all_of_them))
    assert one.seconds < other.seconds


# What follows the iterations: few trees and tests, scaled to all.


class Clock:
    """Time that passes only where a test says so."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1e-9
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(speed, "time", clock)
    return clock


@pytest.mark.parametrize(("each", "power"), [(0.01, 1.0), (0.002, 1.2), (0.5, 1.0), (1e-5, 1.25)])
@pytest.mark.parametrize(("n_tried", "most"), [(1000, 1000), (150, 4000), (20, 20), (5, 90)])
def test_what_grows_with_a_power_of_the_number_is_scaled(clock, each, power, n_tried, most):
    tried = []

    def work(n):
        tried.append(n)
        clock.now += each * n**power

    found = speed._scaled(work, n_tried, most)
    assert tried[-1] == max(tried) <= min(n_tried, most)
    assert clock.now < 5 * speed.STAGE_SECONDS + each * tried[0] ** power
    if len(tried) > 1 or power == 1 or tried == [most]:
        assert found == pytest.approx(each * most**power, rel=1e-3)


@pytest.mark.parametrize(("power", "taken_as"), [(2.0, 1.25), (0.2, 1.0)])
def test_chance_in_the_last_seconds_is_not_scaled(clock, power, taken_as):
    def work(n):
        clock.now += 1e-5 * n**power

    expected = 1e-5 * 64**power * (4000 / 64) ** taken_as
    assert speed._scaled(work, 64, 4000) == pytest.approx(expected, rel=1e-3)


def test_closing_and_tests_are_of_all_their_trees_and_features(stored, clock, monkeypatch):
    n_tests, n_rounds = [], 6

    def closes(resources, ledger, survivors, until, *_, n_each):
        assert ledger is None
        assert until > 0 < len(survivors)
        clock.now += n_rounds * n_each * 0.25

    def tests_alone(tests, features):
        n_tests.append(len(features))
        clock.now += len(features) * 0.125
        return np.ones(len(features), np.float32), np.zeros(len(features), np.uint8)

    def tests_beside(tests, neg_log10_p, leaders, closing):
        assert np.flatnonzero(neg_log10_p == 1).tolist() == sorted(leaders[0].tolist())
        clock.now += len(closing) * 0.5

    monkeypatch.setattr(speed, "closed", closes)
    monkeypatch.setattr(MarginalTests, "strongest_of", tests_alone)
    monkeypatch.setattr(speed, "add_tests_beside", tests_beside)
    monkeypatch.setattr(MarginalTests, "best_pairs", lambda *_, **how: None)
    draft = Plan.of(Store.open(stored("classes")), Request(memory_mb=1000))
    monkeypatch.setattr(speed, "PROBE_SECONDS", 0.0)
    later = speed_of(draft, memory_plan(draft)).later
    assert later["closing"] == pytest.approx(n_rounds * ALL * 0.25, rel=1e-6)
    looked_at = conditional_tests.n_looked_at(N_ROWS, 1)
    expected = (P_STORED + 1000) * 0.125 + looked_at * 0.5
    assert later["tests"] == pytest.approx(expected, rel=1e-6)
    assert max(n_tests) < P_STORED


@pytest.mark.parametrize(("given", "stages"), [
    ({}, ["closing", "tests"]),
    ({"judge": "probe"}, []),
])  # fmt: skip
def test_every_stage_of_a_run_has_its_time(stored, monkeypatch, given, stages):
    monkeypatch.setattr(speed, "PROBE_SECONDS", 0.0)
    monkeypatch.setattr(speed, "STAGE_SECONDS", 0.0)
    request = Request(options=given, memory_mb=1000, threads=1)
    draft = Plan.of(Store.open(stored("classes")), request)
    plan = plan_values(draft)
    assert list(plan["stage_seconds"]) == ["iterations", *stages]
    assert all(seconds > 0 for seconds in plan["stage_seconds"].values())
    assert plan["total_seconds"] == sum(plan["stage_seconds"].values())
    said = "\n".join(plan_lines(draft, plan))
    assert f"{plan['iterations']:,} iterations " in said
    assert "; in all " in said
    assert all(f"; {stage} " in said for stage in stages)


def test_halves_are_runs_on_half_of_the_rows(stored, monkeypatch):
    rows = []

    def speed_by_rows(draft, _):
        rows.append(draft.task.n_rows if draft.table else draft.shape.n_rows)
        return Speed(1.0, True, "a try", {"closing": 0.5, "tests": float(rows[-1])})

    monkeypatch.setattr("srs_ooc.planning.speed.speed_of", speed_by_rows)
    store = Store.open(stored("classes"))
    asked = Request(memory_mb=1000, halves=4)
    for draft in (Plan.of(store, asked), Plan.of_numbers(asked, N_ROWS, P_STORED)):
        stages = plan_values(draft)["stage_seconds"]
        assert rows[-2:] == [N_ROWS, N_ROWS // 2]
        assert stages["halves"] == 4 * (stages["iterations"] + 0.5 + N_ROWS // 2)
    assert srs_ooc.plan(store.place, memory_mb=1000, halves=2)["stage_seconds"]["halves"] > 3000


def test_of_numbers_alone_what_is_left_out_is_said():
    draft = Plan.of_numbers(Request(memory_mb=1000), 100, 1000)
    said = "\n".join(plan_lines(draft, plan_values(draft)))
    assert "last stage and tests are not in this" in said
    assert "in all" not in said
