"""Permutation runs: the same search on permuted targets, and the best that each reaches."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.judges import EVIDENCE, FIRST_EVIDENCE
from srs_ooc.runs.item_tests import MarginalTests
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.ledger.records import PERMUTATIONS_FOLDER
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.screening import Books, RunContext, Watch, screen_and_close
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.survey import best_score, best_strength

BESTS = "replays"
"""Arrays of the ledger with what permutation runs reached; by the word of its first format."""


def bests_of_permutation_runs(
    ledger: Ledger, spec: RunSpec, context: RunContext, n_iterations: int, watch: Watch
) -> NDArray[np.float64] | None:
    """Return best score and best strength of each permutation run, float64 (n_permutations, 2).

    Those done already are taken up; None if stopped.
    """
    reached = _done_before(ledger, spec, context, n_iterations, watch)
    if reached is None:
        return None
    folder = ledger.run / PERMUTATIONS_FOLDER
    found = _spread_over_workers if context.cluster is not None else _one_after_another
    missing = [i + 1 for i in range(spec.permutations) if np.isnan(reached[i, 0])]
    for number, best in found(ledger, spec, context, missing, n_iterations, watch):
        reached[number - 1] = best
        _keep(ledger, reached, n_iterations)
        _remove(folder / str(number))
    if np.isnan(reached).any():
        return None
    shutil.rmtree(folder, ignore_errors=True)
    return reached


Best = tuple[float, float]


def _one_after_another(
    ledger: Ledger,
    spec: RunSpec,
    context: RunContext,
    numbers: list[int],
    n_iterations: int,
    watch: Watch,
) -> Iterator[tuple[int, Best]]:
    """Yield the bests of permutation runs, each committed and gone on with; end if stopped."""
    for number in numbers:
        run = ledger.run / PERMUTATIONS_FOLDER / str(number)
        run.parent.mkdir(exist_ok=True)
        if not run.exists():
            Ledger.create(run, {"spec": spec.to_json()}, {})
        permuted = Ledger(run, writable=True, accept_loss=ledger.accepts_loss, part_of=ledger.run)
        try:
            stage = f"permutation run {number} of {spec.permutations}"
            books = Books.of(permuted)
            best = best_of(spec, context, number, n_iterations, watch, books, stage)
        finally:
            permuted.close()
        if best is None:
            return
        yield number, best


def _spread_over_workers(
    ledger: Ledger,
    spec: RunSpec,
    context: RunContext,
    numbers: list[int],
    n_iterations: int,
    watch: Watch,
) -> Iterator[tuple[int, Best]]:
    """Yield the bests of permutation runs as workers are done with them; end if stopped.

    Where a worker's memory does not hold a whole run, they come one after another, each with its
    trees grown by all workers.
    """
    from srs_ooc.runs.cluster.permutations import bests_from_workers, fits_workers

    if fits_workers(spec, context):
        yield from bests_from_workers(spec, context, numbers, n_iterations, watch)
    else:
        yield from _one_after_another(ledger, spec, context, numbers, n_iterations, watch)


def best_of(
    spec: RunSpec,
    context: RunContext,
    number: int,
    n_iterations: int,
    watch: Watch,
    books: Books,
    stage: str,
) -> Best | None:
    """Return the best score and the best strength that a permutation run reaches.

    Parameters
    ----------
    spec : RunSpec
        The identity of the run that it is compared with.
    context : RunContext
        What that is worked on with.
    number : int
        Of the permutation run, from 1.
    n_iterations : int
        Of its screen.
    watch : callable
        Told where it stands; None is returned if it says no.
    books : Books
        Where the screen and the closing stage are committed to.
    stage : str
        What its steps are called.
    """
    with _resources(spec, context, number) as resources:
        seed = key_of(spec.seed, Purpose.PERMUTATION, number, Purpose.TREE)
        closed = screen_and_close(resources, books, n_iterations, watch, stage, seed=seed)
        if closed is None:
            return None
        return best_score(closed[0]), best_strength(MarginalTests(resources).of_all())


def _remove(run: Path) -> None:
    """Remove a permutation run, under another name first: a kill leaves no half of one."""
    gone = run.with_name(f"{run.name}.removed")
    shutil.rmtree(gone, ignore_errors=True)
    with suppress(OSError):
        run.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _done_before(
    ledger: Ledger, spec: RunSpec, context: RunContext, n_iterations: int, watch: Watch
) -> NDArray[np.float64] | None:
    """Return what the permutation runs that are done reached, NaN for others; None if stopped.

    Of an earlier version of the evidence, scores hold, as the trees are the same; strengths would
    be compared with those of other tests, and are computed anew.
    """
    reached = np.full((spec.permutations, 2), np.nan)
    held = ledger.read_arrays(BESTS)
    if held is None or int(held["n_iterations"]) != n_iterations:
        return reached
    before = held["bests"]
    reached[: len(before)] = before
    if int(held.get("evidence", FIRST_EVIDENCE)) == EVIDENCE:
        return reached
    done = np.flatnonzero(~np.isnan(reached[:, 0])).tolist()
    for i in done:
        if not watch(Step("permutation runs done before, tested anew", i, len(done), unit="runs")):
            return None
        with _resources(spec, context, i + 1) as resources:
            reached[i, 1] = best_strength(MarginalTests(resources).of_all())
    _keep(ledger, reached, n_iterations)
    return reached


def _keep(ledger: Ledger, reached: NDArray[np.float64], n_iterations: int) -> None:
    n_begun = int(np.flatnonzero(~np.isnan(reached[:, 0])).max(initial=-1)) + 1
    done = {
        "bests": reached[:n_begun],
        "n_iterations": np.array(n_iterations),
        "evidence": np.array(EVIDENCE),
    }
    ledger.write_arrays(BESTS, done)


@contextmanager
def _resources(spec: RunSpec, context: RunContext, number: int) -> Iterator[Resources]:
    """Yield the resources of a permutation run, with its target."""
    key = key_of(spec.seed, Purpose.PERMUTATION, number)
    exchangeable = context.task.exchangeability()
    task = context.task.permuted(exchangeable.permutation(key))
    del exchangeable  # its memory is the closing stage's
    with replace(context, task=task).resources(spec) as resources:
        yield resources
