"""The picture of README: the default run's q-values beside those of a rank test of each column.

    python benchmarks/first_picture.py [--seed 1] [--out docs/images/first.svg]

The table is README's: 500 rows, 3,000 columns, 20 of them relevant, most only together. The rank
test is SciPy's, its q-values those of Benjamini and Hochberg. Takes matplotlib and ten seconds.
"""

import argparse
import csv
import json
import math
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from measured import find_srs_ooc
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, mannwhitneyu

LEVEL = 0.1
TABLE = "synth madelon data.csv --rows 500 --features 3000 --relevant 20 --seed"


def run(folder: Path, line: str) -> str:
    """Run a command of ``srs-ooc`` in ``folder``; return what it prints."""
    command = [find_srs_ooc(), *line.split()]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def q_values_of_run(folder: Path) -> dict[str, float]:
    """Search the table in ``folder``; return the q-value of each column, 1 where it has none."""
    run(folder, "ingest data.csv data.zarr")
    run(folder, "run data.zarr --memory-mb 256")
    rows = csv.DictReader(run(folder, "features data.run --csv").splitlines())
    return {row["name"]: float(row["q_value"] or 1) for row in rows}


def q_values_of_rank_tests(path: Path) -> dict[str, float]:
    """Test each column of a table alone; return its q-value by name."""
    with path.open(encoding="utf-8") as file:
        *names, _ = file.readline().split(",")
        values = np.loadtxt(file, delimiter=",")
    of_one = values[:, -1] == 1
    p_values = mannwhitneyu(values[of_one, :-1], values[~of_one, :-1]).pvalue
    return dict(zip(names, false_discovery_control(p_values).tolist(), strict=True))


def draw(
    ours: NDArray[np.float64], alone: NDArray[np.float64], true: NDArray[np.bool_], out: Path
) -> None:
    """Draw the q-values of each column by both, one column a point."""
    import matplotlib as mpl

    mpl.rcParams["svg.hashsalt"] = "srs-ooc"  # the same file each time
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    x, y, level = -np.log10(alone), -np.log10(ours), -math.log10(LEVEL)
    others = f"the other {int((~true).sum()):,}"
    axes.scatter(x[~true], y[~true], s=9, color="#8C8C94", rasterized=True, label=others)
    relevant = f"the {int(true.sum())} relevant columns"
    axes.scatter(x[true], y[true], s=32, color="#D55E00", zorder=3, label=relevant)
    axes.axvline(level, color="black", lw=0.8, ls=":")
    axes.axhline(level, color="black", lw=0.8, ls=":")
    across, upright = axes.get_yaxis_transform(), axes.get_xaxis_transform()
    axes.text(0.99, level + 0.2, "selected by the run", transform=across, ha="right")
    beside = "selected by rank tests"
    axes.text(level + 0.04, 0.99, beside, transform=upright, rotation=90, va="top")
    axes.set(xlabel="rank test of each column: -log10 q-value", ylabel="srs-ooc: -log10 q-value")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center right")
    figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None)


def main() -> None:
    """Make the table, search it, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, help="of the table")
    parser.add_argument("--out", type=Path, default=Path("docs/images/first.svg"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        run(folder, f"{TABLE} {asked.seed}")
        relevant = set(json.loads((folder / "data.csv.truth.json").read_text())["relevant"])
        by_run = q_values_of_run(folder)
        by_rank = q_values_of_rank_tests(folder / "data.csv")
    true = np.array([name in relevant for name in by_run])
    ours, alone = np.array([[by_run[name], by_rank[name]] for name in by_run]).T
    for name, found in (("srs-ooc", ours <= LEVEL), ("rank tests", alone <= LEVEL)):
        print(f"{name}: {(found & true).sum()} relevant and {(found & ~true).sum()} other columns")
    draw(ours, alone, true, asked.out)


if __name__ == "__main__":
    main()
