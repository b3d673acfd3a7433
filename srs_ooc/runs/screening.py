"""Searching: the screen, its closing stage, and a run worked on until it has its verdict."""

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from math import floor
from typing import Any

from srs_ooc.base.arrays import Uints32
from srs_ooc.base.budget import check_stages, growth_counts
from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.judges import scorer_of
from srs_ooc.evidence.tally import best_features
from srs_ooc.runs.engine import Engine
from srs_ooc.runs.inputs import WEIGHTS
from srs_ooc.runs.ledger import StageBook
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run import PLACES, Run, places_of
from srs_ooc.runs.run_trees import TreeWriter
from srs_ooc.runs.verdict import Verdict, conclude
from srs_ooc.runs.weights import Weights
from srs_ooc.samplers import elimination
from srs_ooc.samplers.column_scores import integer_weights
from srs_ooc.samplers.elimination import SURVIVORS, TREES, Elimination


def survivors_of(engine: Engine, resources: Resources, until: int) -> Uints32 | None:
    """Run a screen to ``until`` iterations; return what its closing stage begins with.

    None if stopped before.
    """
    step, watch = Step("screening", 0, until), resources.plan.watch
    engine.advance(until, lambda: watch(replace(step, done=engine.iteration)))
    if engine.iteration < until:
        return None
    key = key_of(resources.spec.run.seed, Purpose.CLOSING, engine.iteration)
    return best_features(engine.tally, min(SURVIVORS, resources.n_candidates), key)


def closed(
    resources: Resources,
    ledger: Run | None,
    survivors: Uints32,
    until: int,
    *,
    n_each: int | None = None,
) -> Elimination | None:
    """Run the closing stage of a screen of ``until`` iterations; None if stopped before.

    What is left of it is taken from the ledger; without one, nothing is kept. ``n_each``: the trees
    of a round where these are others. The tallies of the screen are not needed any more.
    """
    spec = resources.spec
    key = key_of(spec.run.seed, Purpose.CLOSING, until)
    most = min(spec.subspace_size, SURVIVORS)
    shares = getattr(scorer_of(spec.judging), "shares", elimination.MIXED)
    sampler = Elimination(survivors, key, shares, most, n_each=n_each)
    book = None if ledger is None else StageBook(ledger, until)
    leaf = floor(elimination.LEAF_SHARE * spec.learner.n_grown(resources.n_rows))
    with resources.workers((leaf, sampler.capacity)) as executor:
        closing = Engine(sampler, executor, book, seed=key, round_size=n_each or TREES)
        step = Step("screening, last stage", 0, sampler.n_trees, unit="trees")
        watch = resources.plan.watch
        closing.advance(sampler.n_trees, lambda: watch(replace(step, done=closing.iteration)))
    return sampler if sampler.is_over else None


def tree_writer(ledger: Run) -> AbstractContextManager[TreeWriter | None]:
    """Return what keeps the trees of a run, for a ``with`` block; None where they are not kept."""
    if not ledger.saves_trees:
        return nullcontext()
    return TreeWriter(ledger)


def search(ledger: Run, plan: Plan, settled: dict[str, Any] | None = None) -> None:
    """Work on a run until its iterations are done, with their verdict, or it is told to stop.

    What is asked is kept once nothing refuses it, before the first step, with what ``settled`` has
    besides, by name.

    Raises
    ------
    RunError, StoreError, UsageError, BudgetError
        As of :func:`srs_ooc.runs.session.work_on`.
    """
    ledger.check = plan.store.check_unchanged
    before, asked = ledger.progress(), plan.n_iterations
    is_earlier = asked < before.iteration
    if is_earlier and not is_done(ledger, int(ledger.meta("iterations"))):  # else it is only read
        raise UsageError(
            f"--iterations: expected the iterations in total, at least the {before.iteration} that "
            f"are done, found {asked}. To end the run where it is, give --iterations "
            f"{before.iteration}."
        )
    until = max(asked, before.iteration)
    settled = (settled or {}) | {PLACES: places_of(plan.store.place, ledger.run)}
    settled["iterations"] = asked and until
    if is_done(ledger, until):
        if plan.request.memory_mb != ledger.meta("memory_mb"):
            check_stages(plan.request.cap_nbytes, [plan.leases()])
        keep(ledger, settled)
        return
    settled["memory_mb"] = plan.request.memory_mb
    counts = growth_counts() and (before.iteration == 0 or is_growth(ledger))
    if counts != is_growth(ledger):  # one whole process makes them mixed
        settled[_GROWTH] = counts
    if plan.spec.method.draws_by_scores:  # scores are kept: what follows is refused before
        check_stages(plan.request.cap_nbytes, [plan.leases()])
    weighted = with_weights(ledger, plan)
    if weighted is None:
        return
    began = time.monotonic()
    state = _searched(ledger, weighted, until, settled)  # its blocks are given back by now
    if state is not None:
        conclude(ledger, weighted, until, state, began - before.seconds)


def with_weights(ledger: Run, plan: Plan) -> Plan | None:
    """Return the plan of a run with the weights of its features; None if it was told to stop.

    Of a method that has columns scored: from the ledger, or computed and committed there.

    Raises
    ------
    BudgetError
        If the cap cannot hold the passes.
    StoreError
        If the store is replaced meanwhile.
    """
    if not plan.spec.method.draws_by_scores or plan.inputs.weights is not None:
        return plan
    part = Weights()
    progress = ledger.load({WEIGHTS: part})
    if not len(part.weights):
        with plan.store.unchanged():
            scoring = plan.scoring
            assert scoring is not None
            check_stages(plan.request.cap_nbytes, [scoring.leases])
            scores = scoring.scores(plan.watch)
        if scores is None:
            return None
        part.weights = integer_weights(scores)
        ledger.commit(progress, {WEIGHTS: part.state()})
    return replace(plan, inputs=replace(plan.inputs, weights=part.weights))


_GROWTH = "memory_is_growth"
"""Record of the ledger that says whether the sizes of memory there are of growth."""


def is_growth(ledger: Run) -> bool:
    """Return whether all sizes that were noted are of growth, as of a run made from Python."""
    return bool(ledger.has_meta(_GROWTH) and ledger.meta(_GROWTH))


def _searched(ledger: Run, plan: Plan, until: int, settled: dict[str, Any]) -> Elimination | None:
    """Advance a run to ``until`` iterations, or to its method's own end, and close it.

    None if it was stopped, or gets no verdict.
    """
    with tree_writer(ledger) as trees, Resources.of(plan) as resources:
        engine = resources.engine(ledger, trees)
        keep(ledger, settled)
        if plan.spec.concludes:
            survivors = survivors_of(engine, resources, until)
            del engine  # its tallies
            return None if survivors is None else closed(resources, ledger, survivors, until)
        sampler = engine.sampler

        def going() -> bool:
            step = Step("", engine.iteration, until, sampler.n_kept)
            return plan.watch(sampler.progress() or step)

        engine.advance(until, going)
        if engine.is_over:
            ledger.set_meta("iterations", engine.iteration)
        return None


def keep(ledger: Run, settled: dict[str, Any]) -> None:
    """Keep what a request that was accepted gives, once."""
    ledger.accept()
    for name, value in settled.items():
        if not ledger.has_meta(name) or value != ledger.meta(name):
            ledger.set_meta(name, value)


def is_done(ledger: Run, until: int) -> bool:
    """Return whether ``until`` iterations are done and judged."""
    if ledger.progress().iteration < until:
        return False
    return not ledger.spec.concludes or Verdict.of(ledger) is not None
