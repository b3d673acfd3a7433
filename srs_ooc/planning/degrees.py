"""Expected iterations to find features informative only beside others (Section 4.2, chaining)."""

import math
from dataclasses import dataclass

from srs_ooc.paper_theory.settings import Setting
from srs_ooc.paper_theory.times import expected_time
from srs_ooc.planning.subject import Subject

MAX_DEGREE = 3


@dataclass(frozen=True)
class DegreeTime:
    """Mean iterations until the features of degree 0 up to ``degree`` of a chain are found.

    ``rs`` is for alpha = 0 and ``srs`` for the run's alpha; None where they are never found, or
    beyond 1.7e308. The times are those of infinite samples; ``rows_there`` is what there is of
    rows, on average, in a node below ``degree`` even splits, where the feature has to show.
    """

    degree: int
    rows_there: float
    rs: float | None
    srs: float | None


def degree_times(subject: Subject) -> list[DegreeTime]:
    """Return the times of degrees 0 to 3, with infinite samples and K = q."""
    p = subject.n_items
    return [
        DegreeTime(
            degree,
            subject.shape.n_rows / 2**degree,
            _time(subject, degree, "0"),
            _time(subject, degree, subject.spec.alpha),
        )
        for degree in range(min(MAX_DEGREE + 1, p))
    ]


def _time(subject: Subject, degree: int, alpha: str) -> float | None:
    p, q = subject.n_items, subject.spec.subspace_size
    time = expected_time(Setting.of("chain", p, q, degree + 1, alpha))
    return time.value if time is not None and math.isfinite(time.value) else None
