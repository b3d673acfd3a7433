"""A stage of a run beside its main loop: its states are small, and written whole."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import State, Stateful
from srs_ooc.runs.ledger.database import Ledger, Progress

_ITERATION, _ORIGIN = "iteration", "n_iterations"


class StageBook:
    """Commits one part as arrays of a ledger; the run's own progress stays as it is.

    Parameters
    ----------
    ledger : Ledger
        Open for writing.
    origin : int
        Iterations of the run that the stage follows: what a stage after another number left is not
        taken up.
    """

    def __init__(self, ledger: Ledger, origin: int) -> None:
        self._ledger, self._origin = ledger, origin

    def load(self, parts: Mapping[str, Stateful]) -> Progress:
        """Restore the stage's part; return where it stands."""
        ((name, part),) = parts.items()
        arrays = self._ledger.read_arrays(name)
        if arrays is None or int(arrays[_ORIGIN]) != self._origin:
            return Progress(0, 0, 0.0, 0)
        part.restore(_SavedArrays(arrays))
        return Progress(_iteration_of(arrays), 0, 0.0, 0)

    def commit(
        self, progress: Progress, states: Mapping[str, State], resident_nbytes: int
    ) -> float:
        """Write the part's arrays in one transaction; return the seconds it took."""
        start = time.monotonic()
        ((name, state),) = states.items()
        assert not state.pages
        assert state.facts is None
        where = {_ORIGIN: np.array(self._origin), _ITERATION: np.array(progress.iteration)}
        self._ledger.write_arrays(name, dict(state.arrays) | where)
        return time.monotonic() - start


def _iteration_of(arrays: dict[str, NDArray[Any]]) -> int:
    if _ITERATION in arrays:
        return int(arrays[_ITERATION])
    finished_rounds, tree = (int(i) for i in arrays["at"])  # before the iteration was written
    return 1000 * finished_rounds + tree


@dataclass(frozen=True)
class _SavedArrays:
    """A part of arrays alone; see :class:`srs_ooc.base.records.Saved`."""

    arrays: dict[str, NDArray[Any]]
    facts: None = None

    def length(self, name: str) -> int:
        return 0

    def fill(self, name: str, out: NDArray[Any], first_page: int = 0) -> None:
        raise AssertionError("a stage has no large arrays")
