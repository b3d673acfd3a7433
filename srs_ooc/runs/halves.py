"""Stability over rows: the same search and verdict on random halves of the rows.

Halves come in pairs that share no row (Shah and Samworth 2013, complementary pairs); strata,
classes and whole groups are shared out evenly. Each half has a seed of its own, so that chance in
the search counts too. No answer of the run depends on them.
"""

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import MB
from srs_ooc.evidence.decoys import deal_folds
from srs_ooc.runs.inputs import PLACES, Inputs, digest, inputs_of, places_of, spec_of
from srs_ooc.runs.jobs import WorkerStore
from srs_ooc.runs.ledger import HALVES_FOLDER, VALID, Ledger
from srs_ooc.runs.permutation_runs import (
    Doer,
    PermutationJob,
    fits_workers,
    from_workers,
    remove_part,
)
from srs_ooc.runs.resources import noting
from srs_ooc.runs.run_memory import LEDGER_NBYTES, check_stages
from srs_ooc.runs.run_verdict import candidates_of, read_verdict
from srs_ooc.runs.screening import Watch
from srs_ooc.runs.settling import UNTIL_STABLE, Request
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task, check_cluster, folds_of, training_response
from srs_ooc.store.store import Store

HALVES = "halves"
"""Name of the ledger's arrays with what halves select, and of the record of how many are asked."""
FIRST = 20
"""Features at the head of the ranking of each half that are compared."""
FEWEST = 2
"""Rows of each class that a half has at least."""
NOT_DONE = -1
DEALING_NBYTES = 180
"""Memory of a row where rows are dealt into halves: 137 bytes as measured, and what it is of."""


@dataclass(frozen=True)
class HalvesRecord:
    """What the halves of the rows that are done select.

    Attributes
    ----------
    n_asked : int
        Halves that were asked for.
    n_selected : list of int
        Features that each half selects, of those that are done.
    agreement : float or None
        Share of the first 20 features of a half that are among the first 20 of the half with the
        other rows, mean over pairs; None before a pair is done.
    features : uint32 (n,)
        Stored positions of the features that any half selects, ascending.
    counts : int64 (n,)
        In how many halves each is selected.
    """

    n_asked: int
    n_selected: list[int]
    agreement: float | None
    features: NDArray[np.uint32]
    counts: NDArray[np.int64]

    @property
    def n_halves(self) -> int:
        """Halves that are done."""
        return len(self.n_selected)

    def share(self, stored: int) -> float:
        """Return the share of halves that select a stored feature."""
        ends = (np.searchsorted(self.features, stored, side=side) for side in ("left", "right"))
        return int(self.counts[slice(*ends)].sum()) / self.n_halves

    def __str__(self) -> str:
        """Return it as one sentence, without a full stop."""
        few, many, middle = min(self.n_selected), max(self.n_selected), median(self.n_selected)
        heads = f"; their first {FIRST} agree by {self.agreement or 0:.2f}"
        return (
            f"{self.n_halves} halves of the rows select {few} to {many} features (median "
            f"{middle:g}){'' if self.agreement is None else heads}"
        )


def halves_asked(ledger: Ledger) -> int:
    """Return how many halves were asked for; 0 if none."""
    return int(ledger.meta(HALVES)) if ledger.has_meta(HALVES) else 0


def halves_of(ledger: Ledger) -> HalvesRecord | None:
    """Return what halves of the rows select, of as many iterations as the run has.

    None if no half is done. ``ledger`` is open for reading; the store is not needed.
    """
    arrays, n_asked = ledger.read_arrays(HALVES), halves_asked(ledger)
    n_iterations = ledger.progress().iteration
    if not n_asked or arrays is None or int(arrays["n_iterations"]) != n_iterations:
        return None
    n_selected = arrays["n_selected"]
    is_done = n_selected != NOT_DONE
    pairs = np.flatnonzero(is_done[::2] & is_done[1::2])
    shares = [_overlap(*arrays["first"][2 * i : 2 * i + 2]) for i in pairs.tolist()]
    return HalvesRecord(
        max(n_asked, int(is_done.sum())),
        n_selected[is_done].tolist(),
        float(np.mean(shares)) if shares else None,
        arrays["features"],
        arrays["counts"],
    )


def _overlap(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Return the share of the features of two heads, padded with -1, that are in both."""
    first, second = first[first >= 0], second[second >= 0]
    return len(np.intersect1d(first, second)) / max(1, len(first), len(second))


# How rows are dealt, and whether they can be.


def pair_of(spec: RunSpec, store: Store, inputs: Inputs, number: int) -> list[Inputs]:
    """Return what the two halves of a pair, counted from 0, are trained on.

    Raises
    ------
    UsageError
        If there is one group of rows, or a half gets fewer than two rows of a class.
    """
    task = Task.of(store, inputs, exchanges=True)
    rows = np.arange(store.n_rows, dtype=np.int32) if inputs.rows is None else inputs.rows
    key, units = key_of(spec.seed, Purpose.HALVES, number), (task.strata, task.groups)
    half_of = deal_folds(key, 2, task.target, *units, option="--halves")
    for code in np.unique(task.target).tolist() if task.classes else ():
        n_least = np.bincount(half_of[task.target == code], minlength=2).min()
        if n_least < FEWEST:
            raise UsageError(
                f"--halves: expected at least {FEWEST} rows of each class in each half of the rows "
                f"(groups stay whole), found {n_least} of class {task.classes[code]!r}. Get more "
                "rows of it, or leave it out with --rows."
            )
    return [Inputs(inputs.excluded, rows[half_of == half]) for half in range(2)]


def check_halves(
    spec: RunSpec, store: Store, inputs: Inputs, request: Request, n_halves: int, cap_mb: int
) -> None:
    """Check that the search can be done on each half of the rows.

    Raises
    ------
    UsageError
        If the run selects nothing or was given what may come from all rows, or a half has too few
        rows.
    BudgetError
        If the cap cannot hold dealing the rows. What a half takes after that is less than the run.
    """
    if spec.judge == "none" or inputs.weights is not None:
        found = "--judge none" if spec.judge == "none" else "--scores FILE, which may know all rows"
        raise UsageError(
            f"--halves: expected a run that selects features by the rows it is given, found one "
            f"with {found}. Leave --halves out, or begin a run of other options."
        )
    if request.cluster is not None:
        check_cluster(spec)
    n_rows = store.n_rows if inputs.rows is None else len(inputs.rows)
    dealing = Lease(f"dealing {n_rows} rows into halves", DEALING_NBYTES * n_rows)
    check_stages(cap_mb * MB, [[Lease("ledger", LEDGER_NBYTES), dealing]])
    with store.unchanged():
        for number in range(n_halves // 2):
            for half in pair_of(spec, store, inputs, number):
                task = Task.of_run(spec, store, half)
                try:
                    training_response(task)
                    folds_of(spec, task)
                    if spec.concludes:
                        task.check_exchangeable(spec)
                except UsageError as error:
                    raise UsageError(f"--halves, of half of the rows: {error}") from error


# The runs on halves, here or by workers.

Half = tuple[int, NDArray[np.uint32], NDArray[np.uint32]]
"""How many features a half selects, which (the 30,000 of most importance), and its first."""


def select_within(
    folder: Path,
    spec: RunSpec,
    inputs: Inputs,
    n_iterations: int,
    store: Store,
    request: Request,
    watch: Watch,
) -> bool:
    """Repeat a run on some of its rows, in ``folder``; return whether it is done.

    What is there of it already is gone on with. ``request`` says memory and workers.
    """
    from srs_ooc.runs.session import is_done, work_on  # which has halves worked on, too

    if not folder.exists():
        meta = {
            "spec": replace(spec, rows=str(digest(inputs.rows, "rows"))).to_json(),
            PLACES: places_of(store.place, folder),
            "memory_mb": request.cap_mb,
            "iterations": n_iterations,
            UNTIL_STABLE: False,
            VALID: None,
        }
        given = {name: array for name, array in vars(inputs).items() if array is not None}
        folder.parent.mkdir(parents=True, exist_ok=True)
        Ledger.create(folder, meta, given)
    with closing(Ledger(folder, writable=True)) as within:
        work_on(within, store, replace(request, iterations=n_iterations), watch)
        return is_done(within, n_iterations)


@dataclass(frozen=True)
class HalfJob(PermutationJob):
    """What a worker needs to do the run on any half; its identity is the run's."""

    label = "half"

    def doer(self, spec: RunSpec, store: Store) -> Doer:
        """Return what does a run in a worker."""

        def one(number: int, _: Any, cap_nbytes: int, watch: Watch) -> Half | None:
            request = Request(memory_mb=cap_nbytes // MB, threads=1)
            with TemporaryDirectory(prefix="srs-ooc-") as folder:
                return self.select(number, spec, store, Path(folder) / "half.run", request, watch)

        return one

    def select(
        self,
        number: int,
        spec: RunSpec,
        store: Store,
        folder: Path,
        request: Request,
        watch: Watch,
    ) -> Half | None:
        """Return what a half, counted from 0, selects; None if ``watch`` says no."""
        inputs = pair_of(spec, store, self.inputs, number // 2)[number % 2]
        spec = spec.with_seed(key_of(spec.seed, Purpose.HALVES, number, Purpose.TREE))
        if not select_within(folder, spec, inputs, self.n_iterations, store, request, watch):
            return None
        with closing(Ledger(folder, writable=False)) as within:
            features, selected, n_selected = candidates_of(within, store.n_features)
            verdict = read_verdict(within) if spec.concludes else None
        return n_selected, selected, (features if verdict is None else verdict[1])[:FIRST]


def select_by_halves(
    ledger: Ledger, store: Store, request: Request, n_halves: int, watch: Watch
) -> None:
    """Do the run on the halves that are missing, each committed once done, or until told to stop.

    Parameters
    ----------
    ledger : Ledger
        Of a run that is done, open for writing.
    store : Store
        Its store.
    request : Request
        Memory and workers.
    n_halves : int
        Halves in all; even.
    watch : callable
        Told where the work stands; says whether to go on.
    """
    spec, inputs, cluster = spec_of(ledger), inputs_of(ledger), request.cluster
    request = Request(
        memory_mb=request.memory_mb or int(ledger.meta("memory_mb")),
        threads=request.threads,
        cluster=cluster,
    )
    place = WorkerStore.of(store, request.cap_mb if cluster is None else cluster.worker_memory_mb)
    job = HalfJob(place, spec.to_json(), inputs, ledger.progress().iteration)
    watch, folder = noting(ledger, cluster, watch), ledger.run / HALVES_FOLDER
    held = _held(ledger, n_halves)
    missing = np.flatnonzero(held["n_selected"][:n_halves] == NOT_DONE).tolist()

    def one_by_one() -> Iterator[tuple[int, Half]]:
        for number in missing:

            def named(step: Step, stage: str = f"half {number + 1} of {n_halves}") -> bool:
                return watch(replace(step, stage=f"{stage}, {step.stage}".rstrip(", ")))

            found = job.select(number, spec, store, folder / str(number), request, named)
            if found is None:
                return
            yield number, found

    found = one_by_one()
    if cluster is not None and missing and fits_workers(cluster, spec, store, inputs, "halves"):
        parts = dict.fromkeys(missing)
        found = from_workers(cluster, job, parts, "halves", job.n_iterations, watch)
    for number, half in found:
        _keep(ledger, held, number, half)
        remove_part(folder / str(number))
    if NOT_DONE not in held["n_selected"][:n_halves]:
        shutil.rmtree(folder, ignore_errors=True)


def _held(ledger: Ledger, n_halves: int) -> dict[str, NDArray[Any]]:
    """Return what is kept of halves, with room for so many; nothing of other iterations."""
    n_iterations = np.array(ledger.progress().iteration)
    held = ledger.read_arrays(HALVES)
    if held is None or held["n_iterations"] != n_iterations:
        none = np.zeros(0, np.uint32)
        held = {"n_iterations": n_iterations, "features": none, "counts": none.astype(np.int64)}
        held |= {"n_selected": np.zeros(0, np.int64), "first": np.zeros((0, FIRST), np.int64)}
    n_more = max(0, n_halves - len(held["n_selected"]))
    for name, width in (("n_selected", ()), ("first", (FIRST,))):
        held[name] = np.concatenate([held[name], np.full((n_more, *width), NOT_DONE)])
    return held


def _keep(ledger: Ledger, held: dict[str, NDArray[Any]], number: int, half: Half) -> None:
    """Add what a half selects to what is kept, in one commit."""
    n_selected, selected, first = half
    held["n_selected"][number], held["first"][number, : len(first)] = n_selected, first
    times = np.concatenate([np.repeat(held["features"], held["counts"]), selected])
    held["features"], held["counts"] = np.unique(times, return_counts=True)
    ledger.write_arrays(HALVES, held)
