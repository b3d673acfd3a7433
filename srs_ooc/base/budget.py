"""The memory budget: a cap on the whole process, and what is granted under it.

In a program of the user's own, such as a notebook, a cap is on growth: see :func:`growth_counted`.
"""

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import psutil

from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB, ceil_div, megabytes

PROCESS_NBYTES = 56 * MB
"""Published allowance for the interpreter, the libraries of a run, and Python objects."""

GROWTH_NBYTES = 6 * MB
"""What a process may still load and leave unreturned after its budget is drawn up."""


NAMED_NBYTES = 4 * MB
"""What the program's own size may differ by from one start to the next; a cap that is named holds
so much more than the work needs, so that it works when it is given."""


_start: ContextVar[tuple[int, int] | None] = ContextVar("srs_ooc_start", default=None)
"""The size of the process, and its largest so far, when only growth began to count."""


@contextmanager
def growth_counted() -> Iterator[None]:
    """Have caps be on growth in the block: what is resident when it begins does not count.

    For calls from a program of the user's own, whose tables and libraries are none of a cap's
    business. Blocks may be nested; the outermost counts.
    """
    if _start.get() is not None:
        yield
        return
    token = _start.set((_resident(), _peak_resident()))
    try:
        yield
    finally:
        _start.reset(token)


def growth_counts() -> bool:
    """Return whether caps are on growth here."""
    return _start.get() is not None


def resident_nbytes() -> int:
    """Return the resident size of this process now; where only growth counts, its growth."""
    start = _start.get()
    return _resident() if start is None else max(0, _resident() - start[0])


def peak_resident_nbytes() -> int:
    """Return the largest resident size of this process so far; where only growth counts, that.

    A largest size from before growth began to count says nothing of it: then the growth now.
    """
    (before, peak_before), peak = _start.get() or (0, 0), _peak_resident()
    return resident_nbytes() if peak <= peak_before else peak - before


def _resident() -> int:
    return int(psutil.Process().memory_info().rss)


def _peak_resident() -> int:
    """Return the largest size so far from the kernel's record of this program's memory.

    Not ``ru_maxrss``, which a large parent passes on; where there is no record, the size now.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        return _resident()


_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of glibc's malloc.h


def give_back(smallest_nbytes: int | None = None) -> None:
    """Give memory that is free back to the system, where glibc keeps it in this process.

    With ``smallest_nbytes``, freed blocks of so many and more go back at once from now on, and of
    smaller ones about a megabyte stays: growing trees takes longer then. New threads share a heap,
    as from heaps of their own not all can be given back.
    """
    library = ctypes.CDLL(None)
    if not (hasattr(library, "malloc_trim") and hasattr(library, "mallopt")):
        return
    if smallest_nbytes is not None:
        library.mallopt(_MMAP_THRESHOLD, smallest_nbytes)
        library.mallopt(_TRIM_THRESHOLD, 1 << 20)
        library.mallopt(_ARENA_MAX, 1)
    library.malloc_trim(0)


def process_nbytes() -> int:
    """Return what this process takes for itself, no less than published.

    Measured once, when it is first asked for, before there is work: all stages of a command then
    count with the same size, as memory that one stage frees is used again by the next. Where only
    growth counts, what is published, for what is loaded meanwhile.
    """
    own = PROCESS_NBYTES
    return own if growth_counts() else max(own, _first_nbytes() + GROWTH_NBYTES)


def program_nbytes(published: int) -> int:
    """Return what this process takes before there is work: what is published, if that holds it.

    What is larger is rounded up to a multiple of :data:`NAMED_NBYTES`, and so much more, so that it
    is nearly always the same from one start to the next.
    """
    if growth_counts() or _first_nbytes() + NAMED_NBYTES // 2 <= published:
        return published
    return max(published, (ceil_div(_first_nbytes(), NAMED_NBYTES) + 1) * NAMED_NBYTES)


@cache
def _first_nbytes() -> int:
    return _resident()


def cap_to_name(n_bytes: int) -> int:
    """Return the cap to name in MB where the work was found to need ``n_bytes`` in all."""
    return ceil_div(n_bytes + NAMED_NBYTES, MB)


@dataclass(frozen=True)
class Lease:
    """Memory granted: what for, and how much."""

    purpose: str
    n_bytes: int


def total_nbytes(leases: Iterable[Lease]) -> int:
    """Return what some leases are of together."""
    return sum(lease.n_bytes for lease in leases)


def refusal(
    cap_nbytes: int, work: str, leases: list[Lease], least_mb: int, option: str = "--memory-mb"
) -> BudgetError:
    """Return the refusal of a cap that cannot hold what some work needs at once."""
    parts = ", ".join(f"{lease.purpose} {megabytes(lease.n_bytes):g}" for lease in leases)
    error = BudgetError(
        f"{option} {megabytes(cap_nbytes):g} cannot hold {work}, in MB: {parts}. The smallest cap "
        f"that works is {option} {least_mb}."
    )
    error.least_mb = least_mb
    return error


@dataclass
class Budget:
    """Grants leases under a cap.

    Parameters
    ----------
    cap_nbytes : int
        Cap on the peak resident memory of the whole process.
    leases : list of Lease
        What is granted besides the process; its own becomes the first.
    process_nbytes : int, optional
        What the process itself takes; :func:`process_nbytes` if not given.
    later_nbytes : int
        What another stage of the same command needs besides the process. It grants nothing, but a
        cap that is named holds it too.
    """

    cap_nbytes: int
    leases: list[Lease] = field(default_factory=list)
    process_nbytes: int | None = None
    later_nbytes: int = 0

    def __post_init__(self) -> None:
        own = process_nbytes() if self.process_nbytes is None else self.process_nbytes
        leases, self.leases = self.leases, [Lease("interpreter and libraries", own)]
        for lease in leases:
            self.grant(lease.purpose, lease.n_bytes)

    @property
    def free_nbytes(self) -> int:
        """Bytes not granted yet; negative if the cap is exceeded already."""
        return self.cap_nbytes - total_nbytes(self.leases)

    def grant(self, purpose: str, n_bytes: int) -> None:
        """Record a lease without asking whether it fits; :meth:`check` asks for all at once."""
        if n_bytes:
            self.leases.append(Lease(purpose, n_bytes))

    def grant_more(self, purpose: str, n_bytes: int, most: int) -> int:
        """Grant as much again while the cap holds it, at most so often; return how often."""
        n_granted = 0
        while n_granted < most and n_bytes <= self.free_nbytes:
            self.grant(purpose, n_bytes)
            n_granted += 1
        return n_granted

    def check(self, option: str = "--memory-mb") -> None:
        """Refuse a cap, as an option gives it, that cannot hold what was granted.

        Raises
        ------
        BudgetError
            With every lease, and the smallest cap that would do.
        """
        if self.free_nbytes >= 0:
            return
        leases = [*self.leases, Lease("differences between starts", NAMED_NBYTES)]
        most = max(total_nbytes(leases), leases[0].n_bytes + self.later_nbytes + NAMED_NBYTES)
        if most > total_nbytes(leases):
            leases.append(Lease("more at a later stage", most - total_nbytes(leases)))
        raise refusal(self.cap_nbytes, "the work", leases, ceil_div(most, MB), option)


def check_stages(cap_nbytes: int, stages: list[list[Lease]]) -> None:
    """Check that a cap holds each of some stages, which follow each other.

    Raises
    ------
    BudgetError
        If it cannot, with all that the largest of them needs.
    """
    Budget(cap_nbytes, max(stages, key=total_nbytes)).check()


def n_cores() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
