"""Screen and closing stage: all of a run with a final verdict that comes before the verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor

from srs_ooc.base.records import Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.ranking import best_items
from srs_ooc.runs.engine import Engine
from srs_ooc.runs.ledger import Ledger, StageBook
from srs_ooc.runs.ledger.trees import TreeWriter
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.search import Search
from srs_ooc.runs.task import Task
from srs_ooc.samplers.elimination import COUNTING, REPLAYING, SURVIVORS, TREES, Elimination
from srs_ooc.store.store import Store

Watch = Callable[[Step], bool]
"""Told where the work stands after each tree; says whether to go on."""


@dataclass(frozen=True)
class Setting:
    """What a run is worked on with."""

    store: Store
    task: Task
    cap_nbytes: int
    threads: int | None


def screen_and_close(
    resources: Resources,
    ledger: Ledger,
    until: int,
    watch: Watch,
    stage: str,
    *,
    seed: int | None = None,
    trees: TreeWriter | None = None,
    until_stable: bool = False,
) -> tuple[Elimination, int] | None:
    """Run the screen to ``until`` iterations and its closing stage; None if stopped before.

    What is left of either is taken from the ledger. ``seed`` replaces the spec's;
    ``until_stable`` ends the screen once the ranking is stable. Returns the stage, and the
    iterations of the screen.
    """
    spec = resources.spec
    search = resources.search(ledger, seed, trees)
    n_iterations = _screen(search, until, watch, stage, until_stable=until_stable)
    if n_iterations is None:
        return None
    key = key_of(search.spec.seed, Purpose.CLOSING, n_iterations)
    survivors = best_items(search.tally, min(SURVIVORS, resources.n_candidates), key)
    del search  # its tallies
    most = min(spec.subspace_size, SURVIVORS)
    manner = REPLAYING if spec.replays else COUNTING
    sampler = Elimination(survivors, key, manner, most)
    _close(resources, sampler, StageBook(ledger, n_iterations), key, watch, f"{stage}, closing")
    return (sampler, n_iterations) if sampler.is_over else None


def _screen(
    search: Search, until: int, watch: Watch, stage: str, *, until_stable: bool
) -> int | None:
    """Advance a search; return how many iterations the screen has, or None if stopped before."""
    engine = search.engine

    def is_over() -> bool:
        return until_stable and search.is_stable

    def going() -> bool:
        return watch(Step(stage, engine.iteration, until)) and not is_over()

    if not is_over():
        engine.advance(until, going)
    return engine.iteration if engine.iteration >= until or is_over() else None


def _close(
    resources: Resources, sampler: Elimination, book: StageBook, key: int, watch: Watch, stage: str
) -> None:
    """Advance a closing stage to its end, or until told to stop."""
    leaf = floor(sampler.manner.leaf_share * resources.n_rows)
    with resources.closing_executor(leaf, sampler.capacity) as executor:
        engine = Engine(sampler, executor, book, seed=key, round_size=TREES)
        engine.advance(
            sampler.n_trees,
            lambda: watch(Step(stage, engine.iteration, sampler.n_trees, unit="trees")),
        )
