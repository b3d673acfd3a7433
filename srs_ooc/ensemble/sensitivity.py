"""Sensitivity of a run's trees to each feature they use (RFEST), in one pass over rows and trees.

Of a feature j, R(j) = accuracy on some rows less the accuracy with j altered in each of them
(supplement of RFEST, proof of Theorem I.1). The rows are such that training did not see: out of
bag, each asked of the trees that were not grown on it, or held out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Budget, process_nbytes
from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Step
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.ensemble.altered import AUTO, FLIPS, codes_mirrored
from srs_ooc.ensemble.ensemble import NODE_NBYTES
from srs_ooc.ensemble.item_codes import Codes, ItemCodes
from srs_ooc.ensemble.sensitivity_memory import (
    MOST_REPEATS,
    VOTES_NBYTES,
    check_reading,
    walking_leases,
)
from srs_ooc.ensemble.sensitivity_scores import Sensitivities, Tally, scores_of
from srs_ooc.ensemble.unseen import Unseen, Votes, unseen_rows
from srs_ooc.runs.inputs import InputFiles, find_store, inputs_of, resolve, spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import decoy_families
from srs_ooc.runs.run_memory import n_cores
from srs_ooc.runs.run_trees import TreeReader
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task, training_response
from srs_ooc.store.store import Store
from srs_ooc.trees.response import Response, TrainingRows
from srs_ooc.trees.saved import PROBE_SPLIT, Effects, Trees, add_effects

REPEATS = 5
"""Permutations by default."""
Watch = Callable[[Step], object]


@dataclass(frozen=True)
class Asked:
    """What is asked of a run's trees.

    Attributes
    ----------
    rows : Path or None
        File of row ids; None for those out of bag.
    flip : {'auto', 'mirror', 'permute'}
        How features are altered.
    repeats : int
        Permutations.
    """

    rows: Path | None = None
    flip: str = AUTO
    repeats: int = REPEATS


@dataclass(frozen=True)
class _Used:
    """What trees use: items, ascending; how many trees there are, and the most nodes at a time."""

    items: NDArray[np.int64]
    n_trees: int
    largest: int


def sensitivity(
    run: Path,
    asked: Asked,
    *,
    memory_nbytes: int = 512 * MB,
    threads: int | None = None,
    store: Place | None = None,
    watch: Watch = lambda _: None,
) -> Sensitivities:
    """Return what altering each feature does to what a run's trees say, as of its last commit.

    Parameters
    ----------
    run : Path
        A run with saved trees; it may be going on.
    asked : Asked
        Rows, and how features are altered.
    memory_nbytes : int
        Cap on the resident memory of the whole process.
    threads : int, optional
        Threads that share the rows; the cores of this machine if not given.
    store : path or URL, optional
        The store of the run, if it was moved.
    watch : callable, optional
        Told where the work stands after each part of the trees.

    Raises
    ------
    SrsOocError
        If the run keeps no trees, the store is another, rows are unknown or were trained on, a
        feature cannot be altered so, or the cap is too small.
    """
    if not 1 <= asked.repeats <= MOST_REPEATS:
        raise UsageError(f"--repeats: expected 1 to {MOST_REPEATS}, found {asked.repeats}.")
    if asked.flip not in FLIPS:
        raise UsageError(f"--flip: expected {', '.join(FLIPS)}, found {asked.flip!r}.")
    process_nbytes()  # of the program alone, before there is work
    ledger = Ledger(run, writable=False)
    try:
        spec, trees, opened = spec_of(ledger), TreeReader(ledger), find_store(ledger, store)
        _check_averages(run, spec)
        with opened.unchanged():
            files = InputFiles.of(opened, None, asked.rows)
            check_reading(trees, opened, spec, files, memory_nbytes)
            named = resolve(opened, files).rows
            inputs = inputs_of(ledger)
            used = _used_by(trees)
            task = Task.of_run(spec, opened, inputs)
            unseen = unseen_rows(run, spec, opened, task, named)
            measuring = _Measuring.of(spec, opened, task, unseen, used, asked)
            threads = threads or n_cores()
            return measuring.run(trees, memory_nbytes, threads, watch)
    finally:
        ledger.close()


def _check_averages(run: Path, spec: RunSpec) -> None:
    if spec.method.splits_rows:
        raise UsageError(
            f"{run}: expected a run whose trees were all grown on the same rows and are averaged, "
            f"found --method {spec.run.method}, which holds rows out and has trees vote. Its own "
            "scores say what features are worth: `srs-ooc features RUN`."
        )


def _used_by(trees: TreeReader) -> _Used:
    items, n_trees, largest = np.zeros(0, np.int64), 0, 0
    for batch in trees.batches():
        items = np.union1d(items, batch.feature[batch.feature >= 0])
        n_trees += len(batch.root)
        largest = max(largest, len(batch.feature))
    return _Used(items, n_trees, largest)


@dataclass(frozen=True)
class _Measuring:
    """All that is needed to measure, besides trees and memory."""

    spec: RunSpec
    store: Store
    task: Task
    response: Response
    unseen: Unseen
    used: _Used
    items: NDArray[np.int64]
    mirrored: NDArray[np.uint16]
    n_repeats: int
    flip: str

    @classmethod
    def of(
        cls,
        spec: RunSpec,
        store: Store,
        task: Task,
        unseen: Unseen,
        used: _Used,
        asked: Asked,
    ) -> "_Measuring":
        """Settle what is altered: decoys too, where they have values at all of the rows."""
        items = used.items
        if not unseen.are_out_of_bag:
            items = items[items < store.n_features]
        mirrored = codes_mirrored(store, items % store.n_features, asked.flip)
        n_repeats = asked.repeats if (mirrored == 0).any() else 1
        response = training_response(task)
        return cls(
            spec, store, task, response, unseen, used, items, mirrored, n_repeats, asked.flip
        )

    def _rows_at_a_time(self, cap_nbytes: int) -> int:
        """Return how many rows the cap holds together."""
        nodes = NODE_NBYTES * self.used.largest
        budget = Budget(cap_nbytes)
        budget.leases += walking_leases(
            self.spec, self.store, len(self.items), self.n_repeats, nodes
        )
        budget.check()
        row = budget.leases[-1].n_bytes
        return int(min(len(self.unseen.rows), budget.free_nbytes // row + 1))

    def run(self, trees: TreeReader, cap_nbytes: int, threads: int, watch: Watch) -> Sensitivities:
        """Walk all trees by all rows, some rows at a time."""
        n_rows = self._rows_at_a_time(cap_nbytes)
        training = TrainingRows.of(self.response, self.spec.learner.impurity)
        votes = Votes(self.spec, training, self.unseen)
        tally = Tally.of(self.store, self.task, self.response, self.unseen, len(self.items))
        with self.store.columns(mapped=False) as columns:
            codes = self._codes(columns)
            starts = range(0, len(self.unseen.rows), n_rows)
            done, total = 0, len(starts) * self.n_repeats * self.used.n_trees
            for first in starts:
                rows = slice(first, min(first + n_rows, len(self.unseen.rows)))
                plain, altered = codes.read(rows)
                for repeat, other in enumerate(altered):
                    found = Effects.none(plain.shape[1], len(self.items), self.response.n_classes)
                    for n_more in self._walk(trees, plain, other, votes, rows, found, threads):
                        done += n_more
                        watch(Step("sensitivity", done, total, unit="trees"))
                    tally.add(found, rows, threads, counts_rows=repeat == 0)
                    del found
        return scores_of(
            tally, self.store, self.items, self.mirrored, self.n_repeats, self._facts()
        )

    def _codes(self, columns: Any) -> ItemCodes:
        families = decoy_families(self.spec, self.task) if self.unseen.are_out_of_bag else None
        rows = self.task.rows
        trained = np.arange(self.store.n_rows, dtype=np.int32) if rows is None else rows
        return ItemCodes(
            columns,
            self.items,
            self.mirrored,
            self.unseen,
            trained,
            families,
            self.n_repeats,
            self.spec.seed,
        )

    def _walk(
        self,
        trees: TreeReader,
        codes: Codes,
        altered: Codes,
        votes: Votes,
        rows: slice,
        out: Effects,
        threads: int,
    ) -> Iterator[int]:
        """Add what all trees say of some rows; yield how many were walked, part by part."""
        first, together = 0, max(1, VOTES_NBYTES // max(1, codes.shape[1]))
        for batch in trees.batches():
            slot = self._slots(batch)
            for some in range(0, len(batch.root), together):
                part = _some_of(batch, slice(some, some + together))
                numbers = range(first + some, first + some + len(part.root))
                add_effects(
                    part,
                    slot,
                    codes,
                    altered,
                    out,
                    votes.of(numbers, rows),
                    regression=self.response.is_regression,
                    n_threads=threads,
                )
                yield len(numbers)
            first += len(batch.root)

    def _slots(self, batch: Trees) -> NDArray[np.int64]:
        """Return the slot of each split; decoys without values count as a probe does."""
        slot = batch.feature.copy()
        at_split = np.flatnonzero(slot >= 0)
        items = slot[at_split]
        places = np.searchsorted(self.items, items)
        is_there = self.items[np.minimum(places, len(self.items) - 1)] == items
        slot[at_split] = np.where(is_there, places, PROBE_SPLIT)
        return slot

    def _facts(self) -> dict[str, Any]:
        return {
            "n_rows_asked": len(self.unseen.rows),
            "out_of_bag": self.unseen.are_out_of_bag,
            "n_trees": self.used.n_trees,
            "flip": self.flip,
        }


def _some_of(trees: Trees, some: slice) -> Trees:
    """Return some of the trees; their nodes stay where they are."""
    values = dict(vars(trees))
    return Trees(**values | {"root": trees.root[some]})
