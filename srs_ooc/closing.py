"""Growing the closing stage's trees, committed to the ledger as it goes."""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

from srs_ooc.evidence.elimination import TREES, Elimination
from srs_ooc.executors import Executor
from srs_ooc.ledger import Ledger
from srs_ooc.records import Outcome

COMMIT_SECONDS = 1.0
STATE = "closing"
"""Arrays of the ledger that hold where the stage stands."""


class Closing:
    """Grows the rounds of one elimination.

    Parameters
    ----------
    stage : Elimination
        Advanced in place.
    executor : Executor
        Grows its trees.
    ledger : Ledger
        Open for writing.
    n_iterations : int
        Iterations of the screen that the stage's survivors come from.
    """

    def __init__(
        self, stage: Elimination, executor: Executor, ledger: Ledger, n_iterations: int
    ) -> None:
        self.stage, self._executor, self._ledger = stage, executor, ledger
        self._n_iterations = n_iterations

    def advance(self, keep_going: Callable[[int, int], bool]) -> None:
        """Grow until all rounds are over, or ``keep_going(trees done, of so many)`` says no."""
        next_commit = time.monotonic() + COMMIT_SECONDS
        going = True
        while going and not self.stage.is_over:
            pending: deque[Future[Outcome]] = deque()
            proposed = self.stage.tree
            while going and self.stage.tree < TREES and not self.stage.is_over:
                while proposed < TREES and len(pending) < self._executor.max_ahead:
                    pending.append(self._executor.submit(self.stage.subspace(proposed)))
                    proposed += 1
                self.stage.add(pending.popleft().result())
                if time.monotonic() >= next_commit:
                    self._commit()
                    next_commit = time.monotonic() + COMMIT_SECONDS
                going = keep_going(self.stage.n_trees_done, self.stage.n_trees)
                if self.stage.tree == 0:
                    break
            for future in pending:
                future.cancel()
        self._commit()

    def _commit(self) -> None:
        done = {"n_iterations": np.array(self._n_iterations)}
        self._ledger.write_arrays(STATE, self.stage.to_arrays() | done)
