"""What a new part must pass: a format, a sampler, a learner, an executor, a column score.

Each function takes a part, or what makes one, and raises ``AssertionError`` saying which rule is
broken. A part that passes works in a run: stopped, resumed, with any number of workers. See
docs/extending.md.
"""

from srs_ooc.testing.books import MemoryBook
from srs_ooc.testing.executors import check_executor
from srs_ooc.testing.learners import check_learner
from srs_ooc.testing.samplers import check_sampler
from srs_ooc.testing.scores import check_score
from srs_ooc.testing.tables import check_table

__all__ = [
    "MemoryBook",
    "check_executor",
    "check_learner",
    "check_sampler",
    "check_score",
    "check_table",
]
