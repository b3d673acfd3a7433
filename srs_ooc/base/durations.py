"""Durations as people read them."""

_UNITS = (("years", 365.25 * 86400), ("days", 86400.0), ("h", 3600.0), ("min", 60.0))
LONG_SECONDS = 3600.0
"""From here on what work will take is said before it begins, with what there is to be done."""
_FEWEST = 2
"""Of a unit there are at least so many, or the next smaller one is taken."""


def describe_seconds(seconds: float) -> str:
    """Return a duration in a unit that suits it, such as ``'2.98 ms'``, ``'57.7 min'``."""
    if seconds < 1.0:
        return f"{1000 * seconds:.3g} ms"
    for unit, size in _UNITS:
        if seconds >= _FEWEST * size:
            return f"{_three(seconds / size)} {unit}"
    return f"{seconds:.3g} s"


def _three(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
