"""What a run would take: its memory as the run accepts it, and its speed."""

from itertools import product

import pytest

from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB
from srs_ooc.planning import speed
from srs_ooc.planning.run_plan import draft_asked
from srs_ooc.planning.speed import Speed, memory_plan, parts_of, speed_of
from srs_ooc.runs.run_memory import RunBudget, largest_subspace
from srs_ooc.runs.session import RunDraft
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options

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
    request = draft.request
    limits = request.cap_mb * MB, request.threads, PROCESS_NBYTES
    return RunBudget.of_run(draft.spec, draft.shape, *limits)


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
            request = Request(Options(**given | more), memory_mb=memory_mb, threads=4)
            return RunDraft.of_numbers(request, N_ROWS, N_FEATURES)

        try:
            memory_plan(drafted())
        except BudgetError:
            assert not is_accepted(drafted()), "what the run accepts is planned"
            continue
        first = drafted()
        q = largest_subspace(first.spec, first.shape, memory_mb * MB)
        largest = drafted(subspace_size=str(q))
        assert is_accepted(largest), (own, splitter, bootstrap, memory_mb, q)
        step = 1 if given.get("judge") == "probe" else 2  # room for a probe is always left
        if q + step <= N_FEATURES:
            assert not is_accepted(drafted(subspace_size=str(q + step))), (given, memory_mb, q)
        assert q == drafted(subspace_size="max").spec.subspace_size
        for draft in (drafted(), largest):
            planned, of_run = memory_plan(draft), budget_of(draft)
            assert (planned.n_workers, planned.n_threads) == (of_run.n_workers, of_run.n_threads)
        n_planned += 1
    assert n_planned > len(METHODS[method]) * len(TREES)


# Runs that begin with a screen: of both parts, each for as long as it lasts.


P, N_FIRST = 20_000, 300


def planned(method, **options):
    options = Options(method=method, models=10, folds=2, **options)
    return draft_asked(None, Request(options, memory_mb=1000), 200, P)


@pytest.mark.parametrize("method", ["prs", "rase"])
def test_a_run_behind_a_screen_is_that_and_a_run_on_what_it_lets_through(method):
    draft = planned(method, screen=N_FIRST)
    n_trees, screen, rest_of_it = parts_of(draft)
    assert (screen.shape.n_candidates, screen.spec.subspace_size) == (P, P // 20)
    assert n_trees == 2000
    rest = rest_of_it.spec
    assert rest_of_it.shape.n_candidates == N_FIRST
    alone = draft_asked(
        None,
        Request(
            Options(method=method, models=10, folds=2, subspace_size=str(N_FIRST)), memory_mb=1000
        ),
        200,
        N_FIRST,
    ).spec
    assert (rest.sampler, rest.learner, rest.run) == (alone.sampler, alone.learner, alone.run)
    assert parts_of(planned(method)) is None


def test_the_seconds_are_those_of_both_parts(monkeypatch):
    def estimated(draft, *_):
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
    found = speed_of(planned("prs", inclusion="0.002"), memory_plan(planned("prs")), 0.0, 100_000)
    assert "of 40 made-up columns" in found.how
