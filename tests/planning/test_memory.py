"""What a plan says the cap holds is what the run accepts: q, workers and threads."""

from itertools import product

import pytest

from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB
from srs_ooc.planning.speed import memory_plan
from srs_ooc.runs.run_memory import RunBudget, largest_subspace
from srs_ooc.runs.session import RunDraft
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options

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
