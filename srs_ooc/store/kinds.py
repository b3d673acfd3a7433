"""Kinds of feature, by number and by name."""

from collections.abc import Mapping

NUMERIC, INTEGER, BOOLEAN, CATEGORICAL, CONSTANT = range(5)
"""Kinds of feature, as a store holds them."""
KINDS = {
    "numeric": NUMERIC,
    "integer": INTEGER,
    "boolean": BOOLEAN,
    "categorical": CATEGORICAL,
    "constant": CONSTANT,
}
NAMES = tuple(KINDS)
"""Names of the kinds, by number."""


def describe_counts(counts: Mapping[str, int]) -> str:
    """Return counts by kind for people; kinds of which there are none are left out."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)
