"""Bringing a run to its verdict: closing stage, replays, the only reading of what is a decoy."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import peak_resident_nbytes
from srs_ooc.base.records import Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.shares import exact_share
from srs_ooc.evidence.marginal import strength
from srs_ooc.evidence.ranking import best_items
from srs_ooc.evidence.replays import certify
from srs_ooc.evidence.verdict import Verdict, clear_drops, count_decoys
from srs_ooc.runs.engine import Engine
from srs_ooc.runs.item_tests import MarginalTests
from srs_ooc.runs.ledger import Ledger, StageBook
from srs_ooc.runs.ledger.records import REPLAYS_FOLDER
from srs_ooc.runs.ledger.trees import TreeWriter
from srs_ooc.runs.resources import Resources, resources_of
from srs_ooc.runs.search import Search
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.survey import Survey, bests, survey
from srs_ooc.runs.task import Task
from srs_ooc.samplers.elimination import COUNTING, REPLAYING, SURVIVORS, TREES, Elimination
from srs_ooc.store.store import Store

VERDICT, BESTS, CONCLUSION = "verdict", "replays", "conclusion"
"""Arrays of the ledger with the verdict and with what replays reached; the record about both."""

Watch = Callable[[Step], bool]
"""Told where the work stands after each tree; says whether to go on."""


@dataclass(frozen=True)
class Setting:
    """What a run is worked on with."""

    store: Store
    task: Task
    cap_nbytes: int
    threads: int | None


def is_concluded(ledger: Ledger) -> bool:
    """Return whether the verdict after the iterations done so far is there."""
    arrays = ledger.read_arrays(VERDICT)
    return arrays is not None and int(arrays["n_iterations"]) == ledger.progress().iteration


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


def conclude(
    ledger: Ledger,
    spec: RunSpec,
    setting: Setting,
    until: int,
    trees: TreeWriter | None,
    watch: Watch,
    *,
    until_stable: bool = False,
) -> None:
    """Bring a run to its verdict after ``until`` iterations, or as far as ``watch`` allows.

    ``until_stable`` ends the screen before, once its blind ranking is at rest; the iterations asked
    for are then those done.
    """
    start = time.monotonic()
    before = ledger.progress()
    where = (setting.store, setting.task, setting.cap_nbytes, setting.threads)
    with resources_of(spec, *where, saves=trees is not None) as resources:
        closed = screen_and_close(
            resources, ledger, until, watch, "screening", trees=trees, until_stable=until_stable
        )
        if closed is None:
            return
    state, until = closed
    replays = None
    if spec.replays:
        replays = _replay(ledger, spec, setting, until, watch)
        if replays is None:
            return
    with resources_of(spec, *where) as resources:
        key = key_of(spec.seed, Purpose.RANK_TIE, until)
        found = survey(resources, state, key, replays)
    verdict = judge(spec, state, found)
    arrays = _verdict_arrays(state, found, verdict, until)
    facts = {
        "n_iterations": until,
        "largest_group": found.largest_group,
        "n_outstanding": found.ranking.n_outstanding,
        "n_decoys_above": int(np.count_nonzero(found.is_decoy[: verdict.n_above])),
        "marginal_cutoff": found.marginal_cutoff,
        "n_marginal": found.n_marginal,
        "seconds": time.monotonic() - start - (ledger.progress().seconds - before.seconds),
        "peak_nbytes": peak_resident_nbytes(),
    }
    ledger.set_meta("iterations", until)
    ledger.set_meta(CONCLUSION, facts)
    ledger.write_arrays(VERDICT, arrays)


def judge(spec: RunSpec, state: Elimination, found: Survey) -> Verdict:
    """Return the verdict on the pooled ranking."""
    level, ranking = exact_share(spec.fdr), found.ranking
    if found.comparison is not None:
        scores = np.where(state.rounds == state.rounds.max(), state.scores, 0.0)
        in_closing = ranking.closing_places >= 0
        scores = np.where(in_closing, scores[ranking.closing_places], 0.0)
        return certify(found.comparison, scores, strength(found.p_values), level)
    counted = ranking.closing_places[ranking.n_outstanding :]
    may_part = clear_drops(state.scores[counted], state.rounds[counted])
    return count_decoys(
        found.is_decoy,
        spec.decoys,
        found.largest_group,
        float(level),
        found.is_best,
        may_part,
        expected=found.n_tested * ranking.p_values,
    )


def _verdict_arrays(
    state: Elimination, found: Survey, verdict: Verdict, n_iterations: int
) -> dict[str, NDArray[Any]]:
    keep = ~found.is_decoy
    places = found.ranking.closing_places[keep]
    within = max(verdict.n_above, 1)
    # Of a round with no more items than that, every batch would agree.
    tells = np.array(state.sizes)[state.rounds] > within
    stability = np.where(tells, (state.batch_ranks < within).mean(axis=0), np.nan)
    unknown = places < 0
    return {
        "n_iterations": np.array(n_iterations),
        "features": found.ranking.items[keep],
        "tiers": verdict.tiers[keep],
        "levels": verdict.levels[keep],
        "scores": np.where(unknown, np.nan, state.scores[places]),
        "is_outstanding": (np.arange(len(keep)) < found.ranking.n_outstanding)[keep],
        "is_best": found.is_best[keep],
        "stability": np.where(unknown, np.nan, stability[places]),
        "groups": found.group_numbers[keep],
        "p_values": found.p_values[keep],
    }


def _replay(
    ledger: Ledger, spec: RunSpec, setting: Setting, n_iterations: int, watch: Watch
) -> NDArray[np.float64] | None:
    """Return best score and best strength of each replay, float64 (n_replays, 2).

    Those done already are taken up; None if stopped.
    """
    held = ledger.read_arrays(BESTS)
    if held is None or int(held["n_iterations"]) != n_iterations:
        held = {"bests": np.zeros((0, 2))}
    reached: NDArray[np.float64] = held["bests"]
    folder = ledger.run / REPLAYS_FOLDER
    for number in range(len(reached) + 1, spec.replays + 1):
        best = _best_of_replay(ledger, spec, setting, number, n_iterations, watch)
        if best is None:
            return None
        reached = np.vstack([reached, best])
        done = {"bests": reached, "n_iterations": np.array(n_iterations)}
        ledger.write_arrays(BESTS, done)
        shutil.rmtree(folder / str(number), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    return reached


def _best_of_replay(
    ledger: Ledger, spec: RunSpec, setting: Setting, number: int, n_iterations: int, watch: Watch
) -> tuple[float, float] | None:
    run = ledger.run / REPLAYS_FOLDER / str(number)
    run.parent.mkdir(exist_ok=True)
    if not run.exists():
        Ledger.create(run, {"spec": spec.to_json()}, {})
    replay = Ledger(run, writable=True, accept_loss=ledger.accepts_loss, part_of=ledger.run)
    exchangeable, key = setting.task.exchangeability(), key_of(spec.seed, Purpose.REPLAY, number)
    task = setting.task.permuted(exchangeable.permutation(key))
    del exchangeable  # its memory is the closing stage's
    where = (setting.store, task, setting.cap_nbytes, setting.threads)
    stage = f"replay {number} of {spec.replays}"
    try:
        with resources_of(spec, *where) as resources:
            seed = key_of(spec.seed, Purpose.REPLAY, number, Purpose.TREE)
            closed = screen_and_close(resources, replay, n_iterations, watch, stage, seed=seed)
            if closed is None:
                return None
            p_values = MarginalTests(resources).of_all()
            return bests(closed[0], p_values)
    finally:
        replay.close()
