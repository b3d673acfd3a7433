"""Runs on some of the rows, and stability: the same search on random halves of the rows.

Halves come in pairs that share no row (Shah and Samworth 2013, complementary pairs); strata,
classes and whole groups are shared out evenly. Each half has a seed of its own, so that chance in
the search counts too. No answer of the run depends on them.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Ints, Uints32
from srs_ooc.runs.jobs import WorkerStore
from srs_ooc.runs.ledger import HALVES_FOLDER
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.run import Run
from srs_ooc.runs.verdict import Verdict, candidates_of
from srs_ooc.runs.whole_runs import (
    WholeRunJob,
    fits_workers,
    remove_part,
    select_within,
)

FIRST = 20
"""Features at the head of the ranking of each half that are compared."""

Half = dict[str, Any]
"""What a half selects, as the ledger keeps it: ``n_iterations`` of the run, ``n_selected``, which
features (``selected``, at most 30,000), and the first of its ranking (``first``); uint32; of how
many (``n_ranked``)."""


@dataclass(frozen=True)
class HalvesRecord:
    """What the halves of the rows that are done select.

    Attributes
    ----------
    n_selected : list of int
        Features that each half selects, of those that are done.
    agreement : float or None
        Share of the first 20 features of a half that are among the first 20 of the half with the
        other rows, mean over pairs; None before a pair is done, and of 20 features or fewer.
    by_chance : float
        The same, expected of rankings in an order made by chance.
    features : uint32 (n,)
        Stored positions of the features that any half selects, ascending.
    counts : int64 (n,)
        In how many halves each is selected.
    """

    n_selected: list[int]
    agreement: float | None
    by_chance: float
    features: Uints32
    counts: Ints

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
        n, heads, why = self.n_selected, "", ""
        if self.agreement is not None:
            by_chance = f"{self.by_chance:.2f} by chance"
            heads = f"; their first {FIRST} agree by {self.agreement:.2f} ({by_chance})"
        if not median(n):
            why = "; half of the rows shows only what is some 1.4 times as strong as all rows show"
        return (
            f"{len(n)} halves of the rows select {min(n):,} to {max(n):,} features (median "
            f"{median(n):,.10g}){heads}{why}"
        )


def halves_of(ledger: Run) -> HalvesRecord | None:
    """Return what halves of the rows select, of as many iterations as the run has.

    None if no half is done. ``ledger`` is open for reading; the store is not needed.
    """
    n_asked = ledger.n_halves
    halves = halves_done(ledger, n_asked)
    if not halves:
        return None
    firsts = [
        (halves[i]["first"], halves[i + 1]["first"])
        for i in range(0, n_asked, 2)
        if i in halves and i + 1 in halves
    ]
    by_chance = min(FIRST / max(int(next(iter(halves.values()))["n_ranked"]), 1), 1.0)
    shares = [len(np.intersect1d(a, b)) / max(len(a), len(b), 1) for a, b in firsts]
    selected = np.concatenate([half["selected"] for half in halves.values()])
    return HalvesRecord(
        [int(half["n_selected"]) for half in halves.values()],
        float(np.mean(shares)) if shares and by_chance < 1 else None,
        by_chance,
        *np.unique(selected, return_counts=True),
    )


def halves_done(ledger: Run, n_halves: int) -> dict[int, Half]:
    """Return what is kept of those of the first so many halves that are done, by number."""
    kept = {number: ledger.read_arrays(f"half-{number}") for number in range(n_halves)}
    now = ledger.progress().iteration
    return {i: half for i, half in kept.items() if half is not None and half["n_iterations"] == now}


# The runs on halves, here or by workers.


class HalfJob(WholeRunJob):
    """The run on any half of the rows, here or by workers; its identity is the run's."""

    label = "half"
    stage = "halves"

    def steps(self, plan: Plan, number: int, what: Run | None, folder: Path) -> Iterator[Half]:
        """Yield what a half selects; ``what`` is the run in whose folder that on it is, if any."""
        select_within(folder, plan.half(number), what)
        n_features = plan.store.n_features
        with Run(folder, writable=False) as within:
            first, selected, n_selected = candidates_of(within, n_features)
            verdict, excluded = Verdict.of(within), within.inputs.excluded
            n_iterations = within.progress().iteration
        yield {
            "n_iterations": n_iterations,
            "n_selected": n_selected,
            "selected": selected,
            "first": (first if verdict is None else verdict.order)[:FIRST],
            "n_ranked": n_features - (0 if excluded is None else len(excluded)),
        }


def select_by_halves(ledger: Run, plan: Plan) -> None:
    """Do the runs on halves that are missing, each kept once done, until told to stop.

    ``ledger`` is that of a run that is done, open for writing.
    """
    n_halves, n_iterations = plan.request.halves or 0, ledger.progress().iteration
    plan, cluster = plan.asked(iterations=n_iterations), plan.request.cluster
    folder, done = ledger.run / HALVES_FOLDER, halves_done(ledger, n_halves)
    folders = [folder / str(number) for number in range(n_halves)]
    missing = [number for number in range(n_halves) if number not in done]
    memory_mb = plan.request.cap_mb if cluster is None else cluster.worker_memory_mb
    place = WorkerStore.of(plan.store, memory_mb)
    job = HalfJob(place, plan.spec.to_json(), plan.inputs, n_iterations)
    found = job.one_by_one(plan, dict.fromkeys(missing, ledger), folders)
    if cluster is not None and missing and fits_workers(cluster, plan, "halves"):
        found = job.by_workers(plan, dict.fromkeys(missing))
    for number, half in found:
        ledger.write_arrays(f"half-{number}", half)
        remove_part(folders[number])
    if len(halves_done(ledger, n_halves)) == n_halves:
        shutil.rmtree(folder, ignore_errors=True)
