"""What light workers of ``saturate_dask.py`` do: wait as long as growing would take.

A module of its own, so that its functions travel by name, as those of the package do.
"""

import os
import time
from dataclasses import dataclass

import numpy as np

from srs_ooc.base.records import Outcome
from srs_ooc.runs.jobs import Order, Reply
from srs_ooc.runs.resources import Job, pack

SPLITS = 120
"""Columns of a subspace that a tree of 1,000 rows of madelon splits on, about."""
WAIT = "SRS_OOC_WAIT_SECONDS"
"""What a light worker waits for each iteration."""


@dataclass(frozen=True)
class Timed(Reply):
    """A reply with its order's first iteration, and when the work on it began."""

    number: int
    begun: float


def wait(version: str, job: Job, order: Order) -> Timed:
    """Wait as long as growing would take; return outcomes as large as real ones."""
    begun, seconds = time.monotonic(), float(os.environ[WAIT]) * len(order.parts)
    time.sleep(seconds)
    outcomes = []
    for iteration in (part.what for part in order.parts):
        importance = np.zeros(len(iteration.features), np.int64)
        importance[:: len(importance) // SPLITS] = 1 << 30
        outcomes.append(pack(Outcome(iteration.features, importance, 1 << 40)))
    return Timed(outcomes, seconds, order.parts[0].number, begun)
