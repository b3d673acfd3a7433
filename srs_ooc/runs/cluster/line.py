"""The way to workers: orders of the parts of a job go one way, replies come back.

A job is anything with many parts that do not depend on each other: the iterations of a round, the
targets of a network, permutation runs, folds. What a part is, only the job's own desk knows.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Tell = Callable[[int, int], bool]
"""Says how far a part is, by its number; returns whether the part is still wanted."""


@dataclass(frozen=True)
class Part:
    """A part of a job: its number, and what its desk needs to know of it."""

    number: int
    what: Any


@dataclass(frozen=True)
class Order:
    """Parts that are done together; Dask looks into lists for its own things, but not into this."""

    parts: list[Part]


@dataclass(frozen=True)
class Reply:
    """What came of an order: an outcome for each part, and the seconds of the work."""

    outcomes: list[Any]
    seconds: float


class Doer(Protocol):
    """Where parts of a job are done."""

    def work(self, parts: list[Part], tell: Tell) -> Reply:
        """Do parts; as many threads call it at once as it was made for."""

    def close(self) -> None:
        """Let go of all that was prepared."""


class AnyDesk(Doer, Protocol):
    """A job, prepared for in a worker."""

    @property
    def job(self) -> "AnyJob":
        """The job."""


class AnyJob(Protocol):
    """What a worker prepares for once."""

    @property
    def token(self) -> str:
        """Unlike that of any other job."""

    @property
    def run(self) -> str:
        """Jobs with the same take each other's place in a worker."""

    @property
    def label(self) -> str:
        """What its tasks are called."""

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""

    @property
    def tells(self) -> bool:
        """Whether its parts take so long that they say how far they are."""

    def desk(self, n_threads: int) -> AnyDesk:
        """Prepare for it, in a worker that does ``n_threads`` orders at once."""


class Sent(Protocol):
    """An order on its way."""

    def result(self) -> Reply:
        """Wait for what came of it; raises an error of this package where nothing can."""

    def when_done(self, tell: Callable[[], Any]) -> None:
        """Have ``tell`` called, in any thread, once there is a result or an error."""

    def is_done(self) -> bool:
        """Return whether there is a result, or an error."""

    def cancel(self) -> None:
        """Say that it is not wanted any more."""


class Line(Protocol):
    """The way to the workers of one job."""

    def send(self, order: Order) -> Sent:
        """Have an order done."""

    def n_threads(self) -> int:
        """Return how many threads the workers have now; 0 if there are none."""

    def look(self) -> None:
        """See whether there is still somebody to wait for; raises a RunError where there is not."""

    def told(self) -> Mapping[int, int]:
        """Return how far parts said they are, by their numbers."""

    def close(self) -> None:
        """Nothing more will be sent."""


@dataclass(frozen=True)
class Standing:
    """How a cluster stands.

    Attributes
    ----------
    n_workers, n_threads : int
        Workers there are now, and the threads of all; 0 where no scheduler answers.
    n_orders, n_parts : int
        Orders that are out, under way or waiting for a worker, and the parts in them.
    """

    n_workers: int
    n_threads: int
    n_orders: int
    n_parts: int


def digest_of(identity: Mapping[str, Any]) -> str:
    """Return a short digest of an identity in JSON."""
    text = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
