"""Table 1 of the paper as computed beside as printed, and its Figure 1.

    python benchmarks/research/paper_table1.py [--plot figure1.png]

The figure shows the features found against iterations, RS and SRS, in the three scenarios; it
needs matplotlib, the table nothing.
"""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from theory_over_time import expected_found, time_quantile

from srs_ooc.methods.theory.paper_theory import Setting, expected_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The printed figures below are compared with, never computed from.
# (part, scenario, p, q, r, RS as printed, SRS as printed)
PRINTED: tuple[tuple[str, str, int, int, int, str, str], ...] = (
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
        settings = [Setting(scenario, p, q, r, alpha) for alpha in (0, 1)]
        rs, srs = (_cell(text, setting) for text, setting in zip(printed, settings, strict=True))
        found.append(Row(part, settings[0], rs, srs))
    return found


def _cell(printed: str, setting: Setting) -> Cell:
    time = expected_time(setting)
    return Cell(printed, math.inf if time is None else float(time))


def _number(text: str) -> float:
    """Return the value of ``a*10^b`` or ``10^b``."""
    digits, _, exponent = text.strip().rpartition("10^")
    return float(digits.rstrip("*") or 1) * 10.0 ** int(exponent)


def table_lines(found: list[Row]) -> list[str]:
    """Return Table 1 as lines; disagreements carry a mark."""
    lines = [
        "Table 1 of the paper: mean iterations to find all relevant features "
        "(see docs/research/errata.md)",
        f"{'':14}{'p':>7} {'q':>5} {'r':>4}  {'RS computed':>16} {'printed':>9}   "
        f"{'SRS computed':>16} {'printed':>9}",
    ]
    for row in found:
        setting = row.setting
        lines.append(
            f"({row.part}) {setting.scenario:<10}{setting.n_features:>7} "
            f"{setting.subspace_size:>5} {setting.n_relevant:>4}  "
            f"{_shown(row.rs)} {_shown(row.srs)}"
        )
    wrong = sum(not cell.agrees for row in found for cell in (row.rs, row.srs))
    lines.append(f"* {wrong} printed figures are not what the theorems give")
    return lines


def _shown(cell: Cell) -> str:
    return f"{cell.computed:>16,.1f} {cell.printed:>9}{' ' if cell.agrees else '*'} "


# Sizes from Table 1, one of each scenario.
PANELS: tuple[tuple[str, int, int, int], ...] = (
    ("chain", 10**4, 100, 3),
    ("clique", 10**4, 10**3, 4),
    ("marginal", 10**4, 100, 50),
)
N_POINTS = 120
COLOURS = {"RS": "#0072B2", "SRS": "#D55E00"}  # told apart by colour-blind readers


@dataclass(frozen=True)
class Curve:
    """Mean number found (``found``, float) after each of ``iterations`` (int)."""

    label: str
    iterations: list[int]
    found: list[float]


def curve(setting: Setting, last: int) -> Curve:
    """Return the mean number found on a logarithmic grid from 1 to ``last`` iterations."""
    steps = {round(last ** (point / (N_POINTS - 1))) for point in range(N_POINTS)}
    iterations = sorted(steps)
    label = "RS" if setting.n_held_max == 0 else "SRS"
    return Curve(label, iterations, expected_found(setting, iterations))


def panel_curves(scenario: str, p: int, q: int, r: int) -> list[Curve]:
    """Return the RS and SRS curves of one panel, up to where both have found all (99%)."""
    settings = [Setting(scenario, p, q, r, alpha) for alpha in (0, 1)]
    last = max(time_quantile(setting, 0.99) or 1 for setting in settings)
    return [curve(setting, last) for setting in settings]


def draw(path: Path) -> None:
    """Draw the three panels into ``path`` (the format follows its extension)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        _draw_panel(axes, *panel)
    figure.savefig(path, dpi=150)


def _draw_panel(axes: "Axes", scenario: str, p: int, q: int, r: int) -> None:
    for line in panel_curves(scenario, p, q, r):
        axes.plot(line.iterations, line.found, label=line.label, color=COLOURS[line.label])
    axes.set_xscale("log")
    axes.set_ylim(0, r * 1.05)
    axes.set_yticks(range(0, r + 1, max(1, math.ceil(r / 5))))
    axes.set_xlabel("iterations")
    axes.set_ylabel("relevant features found (mean)")
    axes.set_title(f"{scenario}: p = {p:,}, q = {q:,}, r = {r}")
    axes.legend(frameon=False)


def main() -> None:
    """Print the table; draw the figure where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", type=Path, metavar="FILE")
    given = parser.parse_args()
    print("\n".join(table_lines(rows())))
    if given.plot is not None:
        draw(given.plot)
        print(f"Figure 1 drawn: {given.plot}")


if __name__ == "__main__":
    main()
