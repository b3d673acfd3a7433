"""Searching: the screen, its closing stage, and a run worked on until it has its verdict."""

import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from math import floor
from typing import TYPE_CHECKING, Any

from srs_ooc.base.arrays import Uints32
from srs_ooc.base.budget import check_stages, growth_counts
from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Step, Watch
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import MB
from srs_ooc.evidence.judges import closes_by_sensitivity
from srs_ooc.evidence.tally import best_features
from srs_ooc.runs.engine import Engine
from srs_ooc.runs.ledger import VALID, StageBook
from srs_ooc.runs.resources import Resources, RunContext
from srs_ooc.runs.run import PLACES, Run, places_of
from srs_ooc.runs.run_memory import run_leases, shape_of
from srs_ooc.runs.settling import Request
from srs_ooc.runs.task import Task
from srs_ooc.runs.verdict import Verdict, conclude
from srs_ooc.runs.weights import with_weights
from srs_ooc.samplers import elimination
from srs_ooc.samplers.elimination import SURVIVORS, TREES, Elimination
from srs_ooc.store.store import Store

if TYPE_CHECKING:
    from srs_ooc.runs.run_trees import TreeWriter


def survivors_of(engine: Engine, resources: Resources, until: int, watch: Watch) -> Uints32 | None:
    """Run a screen to ``until`` iterations; return what its closing stage begins with.

    None if stopped before.
    """
    engine.advance(until, partial(_goes_on, engine, Step("screening", 0, until), watch))
    if engine.iteration < until:
        return None
    key = key_of(resources.spec.run.seed, Purpose.CLOSING, engine.iteration)
    return best_features(engine.tally, min(SURVIVORS, resources.n_candidates), key)


def closed(
    resources: Resources,
    ledger: Run | None,
    survivors: Uints32,
    until: int,
    watch: Watch,
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
    asks = closes_by_sensitivity(spec.judging)
    shares = elimination.BY_SENSITIVITY if asks else elimination.MIXED
    sampler = Elimination(survivors, key, shares, most, by_sensitivity=asks, n_each=n_each)
    book = None if ledger is None else StageBook(ledger, until)
    leaf = floor(elimination.LEAF_SHARE * spec.learner.n_grown(resources.n_rows))
    with resources.closing_executor(leaf, sampler.capacity) as executor:
        closing = Engine(sampler, executor, book, seed=key, round_size=n_each or TREES)
        step = Step("screening, last stage", 0, sampler.n_trees, unit="trees")
        closing.advance(sampler.n_trees, partial(_goes_on, closing, step, watch))
    return sampler if sampler.is_over else None


def _goes_on(engine: Engine, step: Step, watch: Watch) -> bool:
    return watch(replace(step, done=engine.iteration))


def saves_trees(ledger: Run) -> bool:
    """Return whether the run of an open ledger keeps its trees."""
    return ledger.meta(VALID) is not None


def tree_writer(ledger: Run) -> AbstractContextManager["TreeWriter | None"]:
    """Return what keeps the trees of a run, for a ``with`` block; None where they are not kept."""
    if not saves_trees(ledger):
        return nullcontext()
    spec = ledger.spec
    from srs_ooc.runs.run_trees import TreeWriter

    # of a method that splits rows most trees only serve to learn
    return TreeWriter(ledger, None if spec.method.splits_rows else spec.learner.trees_per_subspace)


def search(
    ledger: Run, store: Store, request: Request, watch: Watch, settled: dict[str, Any] | None = None
) -> None:
    """Work on a run until its iterations are done, with their verdict, or ``watch`` says no.

    What is asked is kept once nothing refuses it, before the first step, with what ``settled`` has
    besides, by name.

    Raises
    ------
    RunError, StoreError, UsageError, BudgetError
        As of :func:`srs_ooc.runs.session.work_on`.
    """
    ledger.check_store(store)
    ledger.check = store.check_unchanged
    spec, before, asked = ledger.spec, ledger.progress(), request.iterations
    is_earlier = asked is not None and asked < before.iteration
    if is_earlier and not is_done(ledger, int(ledger.meta("iterations"))):  # else it is only read
        raise UsageError(
            f"--iterations: expected the iterations in total, at least the {before.iteration} that "
            f"are done, found {asked}. To end the run where it is, give --iterations "
            f"{before.iteration}."
        )
    settled = {PLACES: places_of(store.place, ledger.run)} | (settled or {})
    if asked is not None:
        settled["iterations"] = asked and max(asked, before.iteration)
    until = max(int(settled.get("iterations", ledger.meta("iterations"))), before.iteration)
    if is_done(ledger, until):
        if request.memory_mb is not None:
            _check_cap(ledger, store, request.memory_mb * MB)
        keep(ledger, settled)
        return
    if request.memory_mb is not None:
        settled["memory_mb"] = request.memory_mb
    cap_nbytes = int(settled.get("memory_mb", ledger.meta("memory_mb"))) * MB
    counts = growth_counts() and (before.iteration == 0 or is_growth(ledger))
    if counts != is_growth(ledger):  # one whole process makes them mixed
        settled[_GROWTH] = counts
    with store.unchanged():
        task = Task.of_run(spec, store, ledger.inputs)
    if spec.method.draws_by_scores:  # scores are kept: what follows is refused before
        _check_cap(ledger, store, cap_nbytes)
    weighted = with_weights(ledger, spec, store, task, cap_nbytes, watch)
    if weighted is None:
        return
    context = RunContext(spec, store, weighted, cap_nbytes, request.threads, request.cluster, watch)
    began = time.monotonic()
    state = _searched(ledger, context, until, settled)  # its blocks are given back by now
    if state is not None:
        conclude(ledger, context, until, state, began - before.seconds)


_GROWTH = "memory_is_growth"
"""Record of the ledger that says whether the sizes of memory there are of growth."""


def is_growth(ledger: Run) -> bool:
    """Return whether all sizes that were noted are of growth, as of a run made from Python."""
    return bool(ledger.has_meta(_GROWTH) and ledger.meta(_GROWTH))


def _searched(
    ledger: Run, context: RunContext, until: int, settled: dict[str, Any]
) -> Elimination | None:
    """Advance a run to ``until`` iterations, or to its method's own end, and close it.

    None if it was stopped, or gets no verdict.
    """
    watch, saves = context.watch, saves_trees(ledger)
    with tree_writer(ledger) as trees, context.resources(saves=saves) as resources:
        engine = resources.engine(ledger, trees=trees)
        keep(ledger, settled)
        if not context.spec.concludes:
            _screen_only(engine, ledger, until, watch)
            return None
        survivors = survivors_of(engine, resources, until, watch)
        del engine  # its tallies
        return None if survivors is None else closed(resources, ledger, survivors, until, watch)


def _screen_only(engine: Engine, ledger: Run, until: int, watch: Watch) -> None:
    """Advance a run without a final verdict to ``until`` iterations, or to its method's own end."""
    sampler = engine.sampler

    def going() -> bool:
        return watch(sampler.progress() or Step("", engine.iteration, until, sampler.n_kept))

    engine.advance(until, going)
    if engine.is_over:
        ledger.set_meta("iterations", engine.iteration)


def _check_cap(ledger: Run, store: Store, cap_nbytes: int) -> None:
    """Refuse a cap that cannot hold the run."""
    spec, saves, beside = ledger.spec, saves_trees(ledger), store.reading_nbytes
    shape = shape_of(store.manifest, ledger.inputs, spec.values())
    check_stages(cap_nbytes, [run_leases(spec, shape, saves=saves, beside_nbytes=beside)])


def keep(ledger: Run, settled: dict[str, Any]) -> None:
    """Keep what a request that was accepted gives, once."""
    ledger.accept()
    while settled:
        name, value = settled.popitem()
        if not ledger.has_meta(name) or value != ledger.meta(name):
            ledger.set_meta(name, value)


def is_done(ledger: Run, until: int) -> bool:
    """Return whether ``until`` iterations are done and judged."""
    if ledger.progress().iteration < until:
        return False
    return not ledger.spec.concludes or Verdict.of(ledger) is not None
