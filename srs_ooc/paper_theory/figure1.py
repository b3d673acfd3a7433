"""The paper's Figure 1: features found against iterations, RS and SRS, in the three scenarios.

The curves need no plotting library; only :func:`draw` imports matplotlib.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from srs_ooc.base.errors import UsageError
from srs_ooc.paper_theory.settings import Scenario, Setting
from srs_ooc.paper_theory.times import expected_found, time_quantile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Sizes from Table 1, one of each scenario.
PANELS: tuple[tuple[Scenario, int, int, int], ...] = (
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


def panel_curves(scenario: Scenario, p: int, q: int, r: int) -> list[Curve]:
    """Return the RS and SRS curves of one panel, up to where both have found all (99%)."""
    settings = [Setting.of(scenario, p, q, r, alpha) for alpha in (0, 1)]
    last = max(time_quantile(setting, 0.99) or 1 for setting in settings)
    return [curve(setting, last) for setting in settings]


def draw(path: Path) -> None:
    """Draw the three panels into ``path`` (the format follows its extension).

    Raises
    ------
    UsageError
        If matplotlib is not installed, or knows no such format, or the file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(
            "--plot needs matplotlib, which is not installed: pip install 'srs-ooc[plot]'"
        ) from None
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        _draw_panel(axes, *panel)
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise UsageError(f"--plot: cannot write {path}: {error}") from None


def _draw_panel(axes: "Axes", scenario: Scenario, p: int, q: int, r: int) -> None:
    for line in panel_curves(scenario, p, q, r):
        axes.plot(line.iterations, line.found, label=line.label, color=COLOURS[line.label])
    axes.set_xscale("log")
    axes.set_ylim(0, r * 1.05)
    axes.set_yticks(range(0, r + 1, max(1, math.ceil(r / 5))))
    axes.set_xlabel("iterations")
    axes.set_ylabel("relevant features found (mean)")
    axes.set_title(f"{scenario}: p = {p:,}, q = {q:,}, r = {r}")
    axes.legend(frameon=False)
