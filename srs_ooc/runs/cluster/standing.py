"""How a cluster stands, noted in a run now and then, for those who look at the run."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from srs_ooc.base.records import Step
from srs_ooc.runs.cluster.orders import Cluster
from srs_ooc.runs.ledger import Ledger

NOTE_SECONDS = 5.0
"""Between two notes."""
CLUSTER = "cluster"
"""Record of the ledger with the last note; no part of a run's identity."""


@dataclass(frozen=True)
class ClusterNote:
    """How a cluster stood when a run was last at work on it.

    Attributes
    ----------
    workers, threads : int
        Workers there were, and the threads of all.
    orders, waiting : int
        Orders that were out, and the iterations, targets or runs in them.
    stage, unit : str
        What was worked on, and what ``done`` and ``total`` count.
    done, total : int
        How far that was.
    a_second : float or None
        Units done a second since the note before; None in the first of a stage.
    noted : float
        When, in seconds since 1970.
    """

    workers: int
    threads: int
    orders: int
    waiting: int
    stage: str
    unit: str
    done: int
    total: int
    a_second: float | None
    noted: float

    @classmethod
    def of(cls, ledger: Ledger) -> "ClusterNote | None":
        """Return the last note in a ledger; None if its run was never on a cluster.

        Raises
        ------
        RunError
            If it is damaged.
        """
        return cls(**ledger.meta(CLUSTER)) if ledger.has_meta(CLUSTER) else None


def noting(
    ledger: Ledger, cluster: Cluster | None, watch: Callable[[Step], bool]
) -> Callable[[Step], bool]:
    """Return ``watch``, with how the cluster stands noted in the ledger every few seconds."""
    return watch if cluster is None else _Noting(ledger, cluster, watch)


class _Noting:
    """Watches steps, and notes."""

    def __init__(self, ledger: Ledger, cluster: Cluster, watch: Callable[[Step], bool]) -> None:
        self._ledger, self._cluster, self._watch = ledger, cluster, watch
        self._last: tuple[float, Step] | None = None
        self._next = 0.0

    def __call__(self, step: Step) -> bool:
        now = time.monotonic()
        if now >= self._next:
            self._ledger.set_meta(CLUSTER, self._note(now, step))
            self._last, self._next = (now, step), now + NOTE_SECONDS
        return self._watch(step)

    def _note(self, now: float, step: Step) -> dict[str, Any]:
        stands, rate = self._cluster.standing(), None
        if self._last is not None and self._last[1].stage == step.stage:
            begun, before = self._last
            rate = round((step.done - before.done) / max(now - begun, 1e-3), 3)
        return asdict(
            ClusterNote(
                stands.n_workers,
                stands.n_threads,
                stands.n_orders,
                stands.n_parts,
                step.stage,
                step.unit,
                step.done,
                step.total,
                rate,
                round(time.time(), 3),
            )
        )
