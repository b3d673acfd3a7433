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
from srs_ooc.evidence.params import EVIDENCE, FIRST_EVIDENCE
from srs_ooc.runs.item_tests import MarginalTests
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.ledger.records import PERMUTATIONS_FOLDER
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.screening import RunContext, Watch, screen_and_close
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
    for number in range(len(reached) + 1, spec.permutations + 1):
        best = _best_of_run(ledger, spec, context, number, n_iterations, watch)
        if best is None:
            return None
        reached = np.vstack([reached, best])
        _keep(ledger, reached, n_iterations)
        _remove(folder / str(number))
    shutil.rmtree(folder, ignore_errors=True)
    return reached


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
    """Return what the permutation runs that are done reached; None if stopped.

    Of an earlier version of the evidence, scores hold, as the trees are the same; strengths would
    be compared with those of other tests, and are computed anew.
    """
    held = ledger.read_arrays(BESTS)
    if held is None or int(held["n_iterations"]) != n_iterations:
        return np.zeros((0, 2))
    reached: NDArray[np.float64] = held["bests"]
    if int(held.get("evidence", FIRST_EVIDENCE)) == EVIDENCE:
        return reached
    reached = reached.copy()
    for i in range(len(reached)):
        if not watch(
            Step("permutation runs done before, tested anew", i, len(reached), unit="runs")
        ):
            return None
        with _resources(spec, context, i + 1) as resources:
            reached[i, 1] = best_strength(MarginalTests(resources).of_all())
    _keep(ledger, reached, n_iterations)
    return reached


def _keep(ledger: Ledger, reached: NDArray[np.float64], n_iterations: int) -> None:
    done = {
        "bests": reached,
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


def _best_of_run(
    ledger: Ledger, spec: RunSpec, context: RunContext, number: int, n_iterations: int, watch: Watch
) -> tuple[float, float] | None:
    run = ledger.run / PERMUTATIONS_FOLDER / str(number)
    run.parent.mkdir(exist_ok=True)
    if not run.exists():
        Ledger.create(run, {"spec": spec.to_json()}, {})
    permuted = Ledger(run, writable=True, accept_loss=ledger.accepts_loss, part_of=ledger.run)
    stage = f"permutation run {number} of {spec.permutations}"
    try:
        with _resources(spec, context, number) as resources:
            seed = key_of(spec.seed, Purpose.PERMUTATION, number, Purpose.TREE)
            closed = screen_and_close(resources, permuted, n_iterations, watch, stage, seed=seed)
            if closed is None:
                return None
            return best_score(closed[0]), best_strength(MarginalTests(resources).of_all())
    finally:
        permuted.close()
