"""What is expected of a run as it is made: T, and a quick estimate of its speed.

Imports little and allocates little: it works in the process of the run, under its cap.
"""

from srs_ooc.base.text import MB
from srs_ooc.planning.iterations import recommended_iterations
from srs_ooc.planning.memory import memory_plan
from srs_ooc.planning.parts import speed_of
from srs_ooc.planning.subject import Subject, class_counts_of
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.settling import DEFAULT_MEMORY_MB, Planned, Request
from srs_ooc.runs.spec import RunSpec, TrainingShape
from srs_ooc.store.store import Store

QUICK_SECONDS = 0.05
QUICK_CELLS = 250_000
"""For the estimate that a new run keeps: a quarter of a megabyte, and no time to speak of."""


def planned_run(
    store: Store, spec: RunSpec, shape: TrainingShape, inputs: Inputs, request: Request
) -> Planned:
    """Return what is expected of a run about to be made.

    The speed is a quick estimate: measuring would fill the run's memory once before it starts.
    """
    memory_mb = DEFAULT_MEMORY_MB if request.memory_mb is None else request.memory_mb
    subject = Subject(
        spec, shape, class_counts_of(store, inputs), memory_mb * MB, request.threads, store, inputs
    )
    iterations, reason = recommended_iterations(subject)
    quick = QUICK_SECONDS, QUICK_CELLS
    speed = speed_of(subject, memory_plan(subject), *quick, may_measure=False)
    return Planned(iterations, speed.seconds, reason)
