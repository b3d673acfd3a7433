"""Orders as tasks of a Dask worker: whether they are still wanted, and how far they are."""

import time
from typing import Any

from srs_ooc.runs.cluster.line import AnyJob, Order, Reply, Tell
from srs_ooc.runs.cluster.worker import work_order

TELL_SECONDS = 1.0
"""Between two words of a worker on how far a part is."""
ASK_SECONDS = 0.2
"""Between two looks at whether a part is still wanted."""
CANCELLED = "cancelled"
"""State of a task that nobody waits for any more: its client is gone, or has said so."""


def topic_of(token: str) -> str:
    """Return the topic of Dask's events under which parts of a job say how far they are."""
    return f"srs_ooc-{token}"


def work_on_dask(version: str, job: AnyJob, order: Order) -> Reply:
    """Do an order in a Dask worker, which does as many at once as it has threads."""
    from distributed import get_worker

    worker = get_worker()
    tell = teller(worker, job) if job.tells else asker(worker)
    return work_order(version, job, order, worker.state.nthreads, tell)


def asker(worker: Any) -> Tell:
    """Return what says whether the task of the calling thread is still wanted."""
    key, looked, answer = worker.get_current_task(), 0.0, True

    def is_wanted(_: int, __: int) -> bool:
        nonlocal looked, answer
        now = time.monotonic()
        if now - looked >= ASK_SECONDS:
            task = worker.state.tasks.get(key)
            looked, answer = now, task is not None and task.state != CANCELLED
        return answer

    return is_wanted


def teller(worker: Any, job: AnyJob) -> Tell:
    """Return what says how far a part is, now and then, and whether it is still wanted."""
    is_wanted, told = asker(worker), 0.0

    def tell(number: int, done: int) -> bool:
        nonlocal told
        now = time.monotonic()
        if now - told >= TELL_SECONDS:
            told = now
            worker.log_event(topic_of(job.token), [number, done])
        return is_wanted(number, done)

    return tell
