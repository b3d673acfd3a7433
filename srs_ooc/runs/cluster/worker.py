"""The work of a worker process: one desk for each run, and the orders done at it."""

import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from srs_ooc import __version__
from srs_ooc.base.errors import RunError, SrsOocError
from srs_ooc.runs.cluster.line import AnyDesk, AnyJob, Order, Part, Reply, Tell

MOST_RUNS = 4
"""Runs whose desks a process keeps; the one that was not used for longest makes room."""


MOST_OVER = 100
"""Stages that are over, of which late orders are known as such."""


class Desks:
    """The desks of this process, each for the last job of a run."""

    def __init__(self) -> None:
        self._desks: dict[str, AnyDesk] = {}
        self._users: dict[AnyDesk, int] = {}
        self._over: deque[str] = deque(maxlen=MOST_OVER)
        self._changed = Condition()

    @contextmanager
    def at(self, job: AnyJob, n_threads: int) -> Iterator[AnyDesk]:
        """Yield the desk of ``job``, made if it is not there; errors as of its ``desk``."""
        with self._changed:
            if job.token in self._over:
                raise RunError("expected work on a stage under way, found an order of one before.")
            desk = self._desks.pop(job.run, None)
            while desk is not None and desk.job.token != job.token:
                if self._users[desk] == 0:
                    self._close(desk)
                    desk = None
                    break
                self._desks[job.run] = desk
                self._changed.wait()  # an earlier stage's last batches
                desk = self._desks.pop(job.run, None)
            if desk is None:
                self._make_room()
                desk = job.desk(n_threads)
                self._users[desk] = 0
            self._desks[job.run] = desk  # last in order: used last
            self._users[desk] += 1
        try:
            yield desk
        finally:
            with self._changed:
                self._users[desk] -= 1
                self._close_if_over(desk)
                self._changed.notify_all()

    def _make_room(self) -> None:
        for run in list(self._desks):
            if len(self._desks) < MOST_RUNS:
                return
            if self._users[self._desks[run]] == 0:
                self._close(self._desks.pop(run))

    def _close(self, desk: AnyDesk) -> None:
        del self._users[desk]
        desk.close()

    def _close_if_over(self, desk: AnyDesk) -> None:
        if desk.job.token in self._over and self._users[desk] == 0:
            self._desks.pop(desk.job.run)
            self._close(desk)

    def forget(self, token: str) -> None:
        """Close the desk of the job with ``token`` once nothing is at work; make none again."""
        with self._changed:
            self._over.append(token)
            for desk in list(self._desks.values()):
                self._close_if_over(desk)

    def is_over(self, token: str) -> bool:
        """Return whether the job with ``token`` is over."""
        return token in self._over


DESKS = Desks()


def wanted(_: int, __: int) -> bool:
    """Say that a part is wanted, however far it is."""
    return True


def work(job: AnyJob, parts: list[Part], n_threads: int = 1, tell: Tell = wanted) -> Reply:
    """Do parts of ``job`` in this process, in which up to ``n_threads`` orders are done at once.

    Raises
    ------
    StoreError
        If the store is not here, or is another, or cannot be read.
    BudgetError
        If a worker's memory cannot hold the work.
    """

    def goes_on(number: int, done: int) -> bool:
        return tell(number, done) and not DESKS.is_over(job.token)

    try:
        with DESKS.at(job, n_threads) as desk:
            return desk.work(parts, goes_on)
    except SrsOocError as error:
        raise type(error)(f"worker on {socket.gethostname()}: {error}") from error


def forget(token: str) -> None:
    """Close the desk of the job with ``token`` in this process; later orders are in vain."""
    DESKS.forget(token)


def work_order(
    version: str, job: AnyJob, order: Order, n_threads: int, tell: Tell = wanted
) -> Reply:
    """Do what was ordered by a process with ``version`` of the package.

    Raises
    ------
    RunError
        If that is not the version of this one. Other errors as of :func:`work`.
    """
    if version != __version__:
        raise RunError(
            f"worker on {socket.gethostname()}: expected srs-ooc {version}, as where the run is, "
            f"found {__version__}. Install the same version on all machines and resume the run."
        )
    return work(job, order.parts, n_threads, tell)
