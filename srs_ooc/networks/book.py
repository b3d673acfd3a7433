"""What is on disk of a network: its identity, and the weights of the targets that are done."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import RunError
from srs_ooc.base.records import State, Stateful
from srs_ooc.base.text import MB
from srs_ooc.runs.inputs import N_TARGETS, NETWORK
from srs_ooc.runs.ledger import Ledger, Progress

SHARD_NBYTES = 2 * MB
"""Weights of so many targets are written together as about so many bytes take."""
COPIES = 5
"""Copies of a shard that are there at once while it is written or read."""
UNUSED = frozenset({"grid", "smoothness"})
"""Options that earlier versions took, wrote down, and did nothing with."""
EARLIER = {"thresholds": "rank"}
"""What networks of earlier versions were made with where they do not say."""
JOINT = "joint"
"""Under which the ledger keeps where the work on all targets together stands."""


class EdgeBook:
    """The weights of a network's edges, target by target, in a ledger.

    Parameters
    ----------
    ledger : Ledger
        Open; for writing if weights are to be added.
    n_targets, n_regulators : int
        Its shape.

    Attributes
    ----------
    n_regulators : int
        As given.
    n_done : int
        Targets, in their order, whose weights were added.
    """

    def __init__(self, ledger: Ledger, n_targets: int, n_regulators: int) -> None:
        self._ledger, self.n_regulators = ledger, n_regulators
        self._shard_targets = shard_targets(n_targets, n_regulators)
        self.committed = ledger.progress()
        self.n_done = self.committed.iteration
        self._shard = np.zeros((self._shard_targets, n_regulators))
        if n_here := self.n_done % self._shard_targets:
            self._shard[:n_here] = self._read(self.n_done // self._shard_targets, n_here)

    @property
    def is_full(self) -> bool:
        """Whether what was added since the last shard must be committed before more is."""
        at_end = self.n_done % self._shard_targets == 0
        return at_end and self.n_done > self.committed.iteration

    def add(self, weights: NDArray[np.float64]) -> None:
        """Take the weights of the next target, float64 (n_regulators,)."""
        self._shard[self.n_done % self._shard_targets] = weights
        self.n_done += 1

    @property
    def n_epochs(self) -> int:
        """Epochs of all targets together, as committed; 0 where targets are worked on alone."""
        return int(self._ledger.meta(JOINT)["epoch"]) if self._ledger.has_meta(JOINT) else 0

    def load(self, parts: Mapping[str, Stateful]) -> None:
        """Restore what was committed beside the weights, by name."""
        self._ledger.load(parts)

    def commit(
        self,
        seconds: float,
        resident_nbytes: int,
        peak_nbytes: int,
        states: Mapping[str, State] = MappingProxyType({}),
    ) -> float:
        """Write what was added, and states beside it, in one transaction; return its seconds."""
        parts = dict(states)
        if self.n_done > self.committed.iteration:
            number = (self.n_done - 1) // self._shard_targets
            n_here = self.n_done - number * self._shard_targets
            parts[_name(number)] = State(arrays={"weights": self._shard[:n_here]})
        progress = Progress(self.n_done, 0, seconds, peak_nbytes)
        taken = self._ledger.commit(progress, parts, resident_nbytes)
        self.committed = progress
        return taken

    def shards(self) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield (first target, weights of some, float64 (n, n_regulators)) of all that are done."""
        for first in range(0, self.committed.iteration, self._shard_targets):
            n_here = min(self._shard_targets, self.committed.iteration - first)
            yield first, self._read(first // self._shard_targets, n_here)

    def _read(self, number: int, n_here: int) -> NDArray[np.float64]:
        arrays = self._ledger.read_arrays(_name(number))
        if arrays is None or arrays["weights"].shape != (n_here, self.n_regulators):
            found = "none" if arrays is None else f"some of shape {arrays['weights'].shape}"
            raise RunError(
                f"{self._ledger.run}: expected the weights of {n_here} targets from "
                f"{number * self._shard_targets} on, found {found}. The ledger is damaged; restore "
                "it from a copy. Nothing was started afresh."
            )
        return np.asarray(arrays["weights"], np.float64)


def _name(number: int) -> str:
    return f"edges.{number}"


def shard_targets(n_targets: int, n_regulators: int) -> int:
    """Return how many targets' weights are written together."""
    return max(1, min(n_targets, SHARD_NBYTES // (8 * n_regulators)))


def shard_nbytes(n_targets: int, n_regulators: int) -> int:
    """Return the bytes of writing or reading a shard, all copies included."""
    return COPIES * 8 * n_regulators * shard_targets(n_targets, n_regulators)


def open_book(folder: Path, identity: dict[str, Any], n_targets: int) -> Ledger:
    """Open the ledger of a network for writing, creating it if there is none.

    Parameters
    ----------
    folder : Path
        Where it is, or is to be.
    identity : dict
        What the weights depend on, JSON-ready.
    n_targets : int
        Targets to be worked on, for those who look at it meanwhile.

    Raises
    ------
    RunError
        If what is there is a run, or a network of another identity: the differences are named.
    """
    if not folder.exists():
        Ledger.create(folder, {NETWORK: identity, N_TARGETS: n_targets}, {})
        return Ledger(folder, writable=True)
    ledger = Ledger(folder, writable=True)
    try:
        _check_same(ledger, identity)
    except BaseException:
        ledger.close()
        raise
    return ledger


def _check_same(ledger: Ledger, identity: dict[str, Any]) -> None:
    if not ledger.has_meta(NETWORK):
        raise RunError(
            f"{ledger.run}: expected the folder of a network, found a run of `srs-ooc run`. Name "
            "another folder with --run."
        )
    kept = {name: EARLIER[name] for name in EARLIER.keys() & identity.keys()}
    kept |= ledger.meta(NETWORK)
    names = sorted((kept | identity).keys() - UNUSED)
    differ = [name for name in names if kept.get(name) != identity.get(name)]
    if differ:
        said = ", ".join(
            f"{name.replace('_', '-')} {kept.get(name)} (asked for: {identity.get(name)})"
            for name in differ
        )
        raise RunError(
            f"{ledger.run}: a network was begun there with {said}. Ask for the same to go on with "
            "it, or name another folder with --run."
        )
