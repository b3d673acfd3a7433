"""For every test: its tier and marks; no property is timed; only its own memory counts."""

import functools
from collections import Counter
from contextlib import nullcontext

import pytest
from examples import number
from hypothesis import HealthCheck, settings

from srs_ooc.base.budget import growth_counted, process_nbytes, program_nbytes

settings.register_profile(
    "untimed",
    deadline=None,
    max_examples=number(settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=settings().derandomize,  # as the environment asked
)
settings.load_profile("untimed")

# A process is measured once, when its size is first asked for: now, before tests make it grow.
process_nbytes()
program_nbytes(0)

GROWTH_ROOMS = {"cli", "ingestion", "planning", "results", "store"}
"""Folders in whose tests what others loaded into the process is none of a cap's business."""
COUNT_ALL = {"test_ingest_memory", "test_rows"}
"""Files there that are about what counts, or fill the process themselves."""


@pytest.fixture(autouse=True, scope="module")
def _growth_only(request):
    counts_all = request.path.stem in COUNT_ALL or GROWTH_ROOMS.isdisjoint(request.path.parts)
    with nullcontext() if counts_all else growth_counted():
        yield


ROOMS = {"pins": "pins"}
"""Folders whose tests all have a mark."""
RARE = {"benchmarks"}
"""Folders whose slow tests no commit waits for: they are of scripts, not of the package."""
TIERS = "slow", "campaign"
"""What cases of a test are beyond the first and the second number of ``few``."""
STARTERS = {"command", "forked", "subprocess", "multiprocessing"}
"""A file of tests that imports one of these starts processes."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Give each test the marks that follow from what it is, before any are chosen by marks."""
    # The longest file first: last, it would keep one worker busy while the other waits.
    items.sort(key=lambda item: item.path.name != "test_every_machine.py")
    cases = Counter()
    for item in items:
        marks = [mark for room, mark in ROOMS.items() if room in item.path.parts]
        test = item.path, item.originalname
        cases[test] += 1
        few = item.get_closest_marker("few")
        most = [] if few is None else few.args
        marks += [mark for n, mark in zip(most, TIERS, strict=False) if cases[test] > n]
        is_slow = "slow" in marks or item.get_closest_marker("slow") is not None
        if is_slow and not RARE.isdisjoint(item.path.parts):
            marks.append("campaign")
        if getattr(item.function, "is_hypothesis_test", False):
            marks.append("property")
        if STARTERS & imported_by(item.module):
            marks.append("processes")
        for mark in marks:
            item.add_marker(mark)


@functools.cache
def imported_by(module):
    """The names of the modules that a module has imported at its top, or something of."""
    found = set()
    for value in vars(module).values():
        found |= {getattr(value, "__name__", None), getattr(value, "__module__", None)}
    return found
