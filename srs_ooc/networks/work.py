"""The targets of a network: done by threads here or by workers elsewhere, kept in their order."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import peak_resident_nbytes, resident_nbytes
from srs_ooc.base.records import Step
from srs_ooc.networks.book import EdgeBook
from srs_ooc.networks.genes import Genes
from srs_ooc.networks.responses import target_values
from srs_ooc.runs.batches import LOOK_SECONDS, Spread
from srs_ooc.runs.engine import COMMIT_SECONDS, COMMIT_SHARE
from srs_ooc.runs.jobs import Line, Part
from srs_ooc.store.store import Store

Watch = Callable[[Step], bool]
STAGE = "network"


class TargetWork:
    """Has the regulators weighed of all targets that a book does not hold yet.

    Parameters
    ----------
    store : Store
        The store.
    genes : Genes
        Regulators and targets.
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    line : Line
        The way to who weighs them; closed when the work ends.
    n_ahead : int
        Targets begun at most after the first one that is not done.
    n_together : int
        Targets at most that are worked on one after another without a word in between.
    """

    def __init__(
        self,
        store: Store,
        genes: Genes,
        rows: NDArray[np.int32] | None,
        line: Line,
        n_ahead: int,
        n_together: int = 1,
    ) -> None:
        self._store, self._genes, self._rows = store, genes, rows
        self._line, self._spread = line, Spread(line, n_ahead, n_together)

    def run(self, book: EdgeBook, watch: Watch) -> bool:
        """Work until all targets are done, or ``watch`` says no; return whether all are.

        What is done is committed at least every second or so, and at the end.
        """
        start, n_targets = time.monotonic(), len(self._genes.targets)
        before, next_commit = book.committed, start + COMMIT_SECONDS

        def commit() -> float:
            seconds = before.seconds + time.monotonic() - start
            peak = max(before.peak_nbytes, peak_resident_nbytes())
            return book.commit(seconds, resident_nbytes(), peak)

        try:
            for weights in self._in_order(book.n_done, lambda: watch(_step(book, n_targets))):
                book.add(weights)
                if book.is_full or time.monotonic() >= next_commit:
                    pause = max(COMMIT_SECONDS, COMMIT_SHARE * commit())
                    next_commit = time.monotonic() + pause
        finally:
            self._line.close()
        if book.n_done > book.committed.iteration:
            commit()
        watch(_step(book, n_targets))
        return book.n_done == n_targets

    def _in_order(self, first: int, goes_on: Callable[[], bool]) -> Iterator[NDArray[np.float64]]:
        """Yield the weights of each target from the ``first`` on; end early where told to."""
        targets = self._genes.targets[first:]
        values = target_values(self._store, targets, self._rows)
        pairs = zip(targets.tolist(), values, strict=True)
        parts = (Part(number, pair) for number, pair in enumerate(pairs, first))
        early: dict[int, NDArray[np.float64]] = {}
        for number, weights in self._spread.results(parts, goes_on):
            early[number] = weights
            while first in early:
                yield early.pop(first)
                first += 1


def _step(book: EdgeBook, n_targets: int) -> Step:
    return Step(STAGE, book.n_done, n_targets, unit="targets")


def is_done(future: "Future[Any]") -> bool:
    """Wait a little; return whether the work is done."""
    try:
        future.exception(LOOK_SECONDS)
    except TimeoutError:
        return future.done()
    return True
