"""The results as Markdown tables, and what was to be reached beside what was."""

import math
from collections.abc import Iterable
from statistics import mean, stdev

from selection_parts.cache import Result
from selection_parts.methods import METHODS
from selection_parts.problems import Problem

COLUMNS = (
    "method", "seeds", "selected", "power", "false share", "F1", "average precision", "seconds",
    "CPU s", "peak MB",
)  # fmt: skip
LEVEL = 0.1
NULL_SHARE = 4 / 20


def standard_error(values: list[float]) -> float:
    """Return the standard error of a mean, 0 for a single value."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _values(results: Iterable[Result], name: str) -> list[float]:
    found = (getattr(result.scores, name) for result in results if result.scores is not None)
    return [value for value in found if value is not None]


def _mean(values: list[float], form: str = ".2f") -> str:
    return f"{mean(values):{form}}" if values else "-"


def row(label: str, results: list[Result]) -> str:
    """Return the line of one method on one problem: means over seeds."""
    n_late = sum(result.scores is None for result in results)
    seeds = str(len(results)) + (f" ({n_late} out of time)" if n_late else "")
    false = _values(results, "false_share")
    spread = f" ± {standard_error(false):.3f}" if len(false) > 1 else ""
    cells = [
        label,
        seeds,
        _mean(_values(results, "n_selected"), ".1f"),
        _mean(_values(results, "power")),
        _mean(false, ".3f") + spread,
        _mean(_values(results, "f1")),
        _mean(_values(results, "average_precision")),
        _mean([result.seconds for result in results], ".1f"),
        _mean([result.cpu_seconds for result in results], ".1f"),
        _mean([result.peak_mb for result in results], ".0f"),
    ]
    return "| " + " | ".join(cells) + " |"


def table(problem: Problem, results: list[Result]) -> str:
    """Return the table of one problem."""
    shape = f"n = {problem.n_rows:,}, p = {problem.n_features:,}"
    lines = [
        f"### {problem.name}: {shape} ({problem.kind})\n",
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
    ]
    for name, method in METHODS.items():
        own = [result for result in results if result.key.method == name]
        if own:
            lines.append(row(method.label, own))
    return "\n".join(lines) + "\n"


def reach(problem: Problem, results: list[Result]) -> list[str]:
    """Return for each judge of ours whether its false share is within what is to be reached.

    At most the level plus two standard errors; on a null at most 4 of 20 seeds with a selection.
    """
    lines = []
    for name in (name for name, method in METHODS.items() if method.is_ours):
        false = _values((r for r in results if r.key.method == name), "false_share")
        if not false:
            continue
        bound = NULL_SHARE if problem.kind == "null" else LEVEL + 2 * standard_error(false)
        verdict = "holds" if mean(false) <= bound else "FAILS"
        lines.append(
            f"| {problem.name} | {name} | {mean(false):.3f} | {bound:.3f} | {len(false)} | "
            f"{verdict} |"
        )
    return lines


def overview(problems: list[Problem], results: list[Result]) -> str:
    """Return one table of all problems and methods: power / false share, CPU seconds, peak MB."""
    found = {result.key.method for result in results}
    methods = [name for name in METHODS if name in found]
    lines = [
        "| problem | " + " | ".join(METHODS[name].label for name in methods) + " |",
        "|---" * (len(methods) + 1) + "|",
    ]
    for problem in problems:
        on_it = [result for result in results if result.key.problem == problem.name]
        cells = [_cell([r for r in on_it if r.key.method == name]) for name in methods]
        if any(cells):
            lines.append(f"| {problem.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(results: list[Result]) -> str:
    if not results:
        return ""
    peak = f"{mean(result.peak_mb for result in results):.0f} MB"
    done = [result for result in results if result.scores is not None]
    late = f", {len(results) - len(done)} out of time" if len(done) < len(results) else ""
    if not done:
        return f"out of time, {peak}"
    power, false = _mean(_values(done, "power")), _mean(_values(done, "false_share"))
    cpu = mean(result.cpu_seconds for result in done)
    return f"{power} / {false}, {cpu:.0f} s, {peak} ({len(done)}{late})"
