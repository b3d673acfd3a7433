"""What light workers of ``saturate_dask.py`` do: wait as long as growing would take.

A module of its own, so that its functions travel by name, as those of the package do.
"""

import os
import time
from dataclasses import dataclass

import numpy as np

from srs_ooc.base.records import Outcome
from srs_ooc.runs.batches import GrowJob, pack
from srs_ooc.runs.jobs import Batch

SPLITS = 120
"""Columns of a subspace that a tree of 1,000 rows of madelon splits on, about."""
WAIT = "SRS_OOC_WAIT_SECONDS"
"""What a light worker waits for each iteration."""


@dataclass(frozen=True)
class Timed(Batch):
    """A batch that was done, and when the work on it began."""

    begun: float = 0.0


def wait(version: str, job: GrowJob, batch: Batch) -> Timed:
    """Wait as long as growing would take; return outcomes as large as real ones."""
    begun, seconds = time.monotonic(), float(os.environ[WAIT]) * len(batch.parts)
    time.sleep(seconds)
    outcomes = {}
    for number, iteration in batch.parts.items():
        importance = np.zeros(len(iteration.features), np.int64)
        importance[:: len(importance) // SPLITS] = 1 << 30
        outcomes[number] = pack(Outcome(iteration.features, importance, 1 << 40))
    return Timed(outcomes, seconds, begun)
