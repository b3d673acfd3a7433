"""Properties: what states them, and how many examples one is tried on.

A test says how many make it sure. ``SRS_OOC_EXAMPLES`` is the share of them that is tried: all of
them where it is not set, a fifth in ``make test``. ``make test-slow`` tries all on every property.
"""

import math
import os

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

__all__ = ["assume", "example", "examples", "given", "number", "st"]

LEAST = 8
"""Examples of a property at whatever share: the simplest ones are found among the first."""


def number(n):
    """The share that is tried of ``n`` examples."""
    return min(n, max(LEAST, math.ceil(n * float(os.environ.get("SRS_OOC_EXAMPLES", "1")))))


def examples(n):
    """The settings of a property that ``n`` examples make sure."""
    return settings(max_examples=number(n))
