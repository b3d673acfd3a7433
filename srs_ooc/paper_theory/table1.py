"""The paper's Table 1: as computed, beside as printed.

The printed figures below are the only numbers in this package taken from the paper; they are
compared with, never computed from.
"""

import math
from dataclasses import dataclass

from srs_ooc.paper_theory.settings import Scenario, Setting
from srs_ooc.paper_theory.times import expected_time

# (part, scenario, p, q, r, RS as printed, SRS as printed)
PRINTED: tuple[tuple[str, Scenario, int, int, int, str, str], ...] = (
    ("a", "chain", 10**4, 100, 1, "100", "100"),
    ("a", "chain", 10**4, 100, 2, "10100", "200"),
    ("a", "chain", 10**4, 100, 3, "> 10^6", "301"),
    ("a", "chain", 10**4, 100, 5, "> 10^10", "506"),
    ("a", "chain", 10**5, 100, 3, "> 10^9", "3028"),
    ("b", "clique", 10**4, 100, 1, "100", "100"),
    ("b", "clique", 10**4, 100, 2, "30300", "10302"),
    ("b", "clique", 10**4, 100, 3, "5*10^6", "10^6"),
    ("b", "clique", 10**4, 100, 4, "9*10^8", "10^8"),
    ("b", "clique", 10**4, 10**3, 4, "83785", "11635"),
    ("c", "marginal", 10**4, 100, 10, "291", "312"),
    ("c", "marginal", 10**4, 100, 50, "448", "757"),
    ("c", "marginal", 10**4, 100, 90, "506", "2797"),
    ("c", "marginal", 10**4, 100, 100, "1123", "16187"),
    ("c", "marginal", 25000, 100, 50, "1123", "1900"),
)


@dataclass(frozen=True)
class Cell:
    """One figure of Table 1: its text in the paper, and what it should be."""

    printed: str
    computed: float

    @property
    def agrees(self) -> bool:
        """Whether the computed figure is what the printed one says."""
        return consistent(self.printed, self.computed)


@dataclass(frozen=True)
class Row:
    """One row of Table 1."""

    part: str
    setting: Setting
    rs: Cell
    srs: Cell


def consistent(printed: str, computed: float) -> bool:
    """Return whether a printed figure states ``computed``.

    A bound (``> 10^6``) must hold; a figure of one digit (``5*10^6``) must be the nearest one; a
    whole number may be rounded or truncated, as most of the table is.
    """
    if printed.startswith(">"):
        return computed > _number(printed[1:])
    if "^" in printed:
        unit = 10.0 ** math.floor(math.log10(computed))
        return _number(printed) == round(computed / unit) * unit
    return -1.0 < int(printed) - computed < 1.0


def rows() -> list[Row]:
    """Return Table 1 with each figure computed."""
    found = []
    for part, scenario, p, q, r, *printed in PRINTED:
        settings = [Setting.of(scenario, p, q, r, alpha) for alpha in (0, 1)]
        rs, srs = (_cell(text, setting) for text, setting in zip(printed, settings, strict=True))
        found.append(Row(part, settings[0], rs, srs))
    return found


def _cell(printed: str, setting: Setting) -> Cell:
    time = expected_time(setting)
    return Cell(printed, math.inf if time is None else time.value)


def _number(text: str) -> float:
    """Return the value of ``a*10^b`` or ``10^b``."""
    digits, _, exponent = text.strip().rpartition("10^")
    return float(digits.rstrip("*") or 1) * 10.0 ** int(exponent)
