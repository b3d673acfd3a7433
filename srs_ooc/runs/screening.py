"""Screens: that of a run without a verdict, and that before a verdict, with its closing stage."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import floor
from typing import TYPE_CHECKING

from srs_ooc.base.records import Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.judges import closes_by_sensitivity
from srs_ooc.evidence.tally import best_features
from srs_ooc.runs.engine import Engine
from srs_ooc.runs.inputs import spec_of
from srs_ooc.runs.ledger import VALID, Ledger, StageBook
from srs_ooc.runs.resources import Resources, RunContext
from srs_ooc.samplers.elimination import (
    BY_SENSITIVITY,
    LEAF_SHARE,
    MIXED,
    SURVIVORS,
    TREES,
    Elimination,
)

if TYPE_CHECKING:
    from srs_ooc.runs.run_trees import TreeWriter

Watch = Callable[[Step], bool]
"""Told where the work stands after each tree; says whether to go on."""


def screen_and_close(
    resources: Resources,
    ledger: Ledger | None,
    until: int,
    watch: Watch,
    stage: str,
    *,
    seed: int | None = None,
    trees: "TreeWriter | None" = None,
    engine: Engine | None = None,
    n_each: int | None = None,
) -> Elimination | None:
    """Run the screen to ``until`` iterations and its closing stage; None if stopped before.

    What is left of either is taken from the ledger; without one, nothing is kept. ``seed`` replaces
    the spec's; ``engine`` is the screen where there is one already, ``n_each`` the trees of a
    closing round where these are others.
    """
    spec = resources.spec
    engine = engine or resources.engine(ledger, seed, trees)
    engine.advance(until, partial(_goes_on, engine, Step(stage, 0, until), watch))
    n_iterations = engine.iteration
    if n_iterations < until:
        return None
    key = key_of(spec.seed if seed is None else seed, Purpose.CLOSING, n_iterations)
    survivors = best_features(engine.tally, min(SURVIVORS, resources.n_candidates), key)
    del engine  # its tallies
    most = min(spec.subspace_size, SURVIVORS)
    asks = closes_by_sensitivity(spec.judging)
    shares = BY_SENSITIVITY if asks else MIXED
    sampler = Elimination(survivors, key, shares, most, by_sensitivity=asks, n_each=n_each)
    book = None if ledger is None else StageBook(ledger, n_iterations)
    leaf = floor(LEAF_SHARE * resources.n_rows)
    with resources.closing_executor(leaf, sampler.capacity) as executor:
        closing = Engine(sampler, executor, book, seed=key, round_size=n_each or TREES)
        step = Step(f"{stage}, closing", 0, sampler.n_trees, unit="trees")
        closing.advance(sampler.n_trees, partial(_goes_on, closing, step, watch))
    return sampler if sampler.is_over else None


def _goes_on(engine: Engine, step: Step, watch: Watch) -> bool:
    return watch(replace(step, done=engine.iteration))


def saves_trees(ledger: Ledger) -> bool:
    """Return whether the run of an open ledger keeps its trees."""
    return ledger.meta(VALID) is not None


@contextmanager
def tree_writer(ledger: Ledger) -> Iterator["TreeWriter | None"]:
    """Yield what keeps the trees of a run, None where they are not kept, and close it after."""
    if not saves_trees(ledger):
        yield None
        return
    spec = spec_of(ledger)
    from srs_ooc.runs.run_trees import TreeWriter

    some_only = spec.method.splits_rows  # most of its trees only serve to learn
    trees = TreeWriter(ledger, None if some_only else spec.learner.trees_per_subspace)
    try:
        yield trees
    finally:
        trees.close()


def screen_only(
    ledger: Ledger, context: RunContext, until: int, trees: "TreeWriter | None"
) -> None:
    """Advance a run without a final verdict to ``until`` iterations, or to its method's own end."""
    with context.resources(saves=trees is not None) as resources:
        engine = resources.engine(ledger, trees=trees)
        sampler = engine.sampler

        def going() -> bool:
            by_iterations = Step("", engine.iteration, until, sampler.n_kept)
            return context.watch(sampler.progress() or by_iterations)

        engine.advance(until, going)
        if engine.is_over:
            ledger.set_meta("iterations", engine.iteration)
