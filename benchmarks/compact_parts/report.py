"""The table of the benchmark of small sets."""

import json
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

SIZES = ("5", "10", "20", "50", "own")


def report(cache: Path, tables: list[str], methods: list[str]) -> str:
    """Return the tables in Markdown: the mean of all, then each."""
    found = {
        (file.stem.split("--")[0], int(file.stem.split("--")[1]), file.stem.split("--")[2]):
        json.loads(file.read_text()) for file in sorted(cache.glob("*.json"))
    }  # fmt: skip
    parts = [_table("mean of the tables", tables, methods, found)]
    parts += [_table(name, [name], methods, found) for name in tables]
    return "\n\n".join(part for part in parts if part)


def _table(title: str, tables: list[str], methods: list[str], found: dict[Any, Any]) -> str:
    lines = [
        f"### {title}\n",
        "| method | halves | 5 | 10 | 20 | 50 | own choice | features of it | CPU s |",
        "|---" * 9 + "|",
    ]
    for method in methods:
        halves = {t: [s for (n, s, m) in found if n == t and m == method] for t in tables}
        n_halves = min(len(seeds) for seeds in halves.values())
        if not n_halves:
            continue
        cells = [
            _cell([[found[t, s, method]["accuracy"].get(size) for s in halves[t]] for t in tables])
            for size in SIZES
        ]
        own = [found[t, s, method]["n_own"] for t in tables for s in halves[t]]
        seconds = [found[t, s, method]["seconds"] for t in tables for s in halves[t]]
        n_own = "-" if own[0] is None else f"{mean(own):.0f}"
        lines.append(
            f"| {method} | {n_halves} | {' | '.join(cells)} | {n_own} | {mean(seconds):.1f} |"
        )
    return "\n".join(lines)


def _cell(by_table: list[list[tuple[float, float] | None]]) -> str:
    """Return the mean over tables of the mean over halves, forest / machine, and its error."""
    pairs = [np.array([pair for pair in halves if pair is not None]) for halves in by_table]
    if any(len(values) == 0 for values in pairs):
        return "-"
    means = np.mean([values.mean(axis=0) for values in pairs], axis=0)
    both = [values.mean(axis=1) for values in pairs]
    n = min(len(values) for values in both)
    error = np.sqrt(sum(values.var(ddof=1) / len(values) for values in both)) / len(both)
    spread = f" ± {error:.3f}" if n > 1 else ""
    return f"{means[0]:.3f} / {means[1]:.3f}{spread}"
