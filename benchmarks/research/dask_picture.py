"""The picture of cluster-measured.md: how many waiting workers one process keeps busy.

    python benchmarks/research/dask_picture.py

reads the table in docs/research/cluster-measured.md, which `benchmarks/saturate_dask.py` printed,
and draws docs/images/dask_workers.svg. Dashed lines are extrapolated from the table's times.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

DOCS = Path(__file__).parents[2] / "docs"
HEAD = "| workers | ms an iteration |"
GREY = "#808080"  # legible on a light page and on a dark one
WIDTHS = np.geomspace(4, 1024, 100)


def rows_of(page: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the table, by the names of its columns."""
    lines = iter(page[page.index(HEAD) :].splitlines())
    names = [name.strip() for name in next(lines).strip("|").split("|")]
    for line in lines:
        if not line.startswith("|"):
            return
        if not line.startswith("|---"):
            yield dict(zip(names, (c.strip() for c in line.strip("|").split("|")), strict=True))


def number(cell: str) -> float:
    """Return what a cell holds."""
    return float(cell.replace(",", ""))


def draw_rates(axes: Axes, rows: list[dict[str, str]]) -> None:
    """Draw iterations a second without rounds, and what own times allow."""
    alone = [row for row in rows if row["round"] == "none"]
    for color, wait in enumerate(sorted({number(row["ms an iteration"]) for row in alone})):
        mine = [row for row in alone if number(row["ms an iteration"]) == wait]
        workers = [number(row["workers"]) for row in mine]
        rates = [number(row["iterations a second"]) for row in mine]
        axes.plot(workers, rates, f"oC{color}", label=f"{wait:g} ms an iteration")
        own = min(max(number(r["own ms: coordinator"]), number(r["scheduler"])) for r in mine)
        axes.plot(WIDTHS, np.minimum(WIDTHS * 1e3 / wait, 1e3 / own), f"--C{color}", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="workers", ylabel="iterations a second")
    axes.set_xticks([4, 16, 64, 256, 1024], ["4", "16", "64", "256", "1,024"])
    axes.set_xticks([], minor=True)


def draw_rounds(axes: Axes, rows: list[dict[str, str]]) -> None:
    """Draw the share of workers at work against the length of rounds."""
    rounds = [row for row in rows if row["round"] != "none"]
    for workers in sorted({number(row["workers"]) for row in rounds}):
        for wait in sorted({number(row["ms an iteration"]) for row in rounds}):
            points = [
                (number(row["round"]) / workers, number(row["share at work"]))
                for row in rounds
                if (number(row["workers"]), number(row["ms an iteration"])) == (workers, wait)
            ]
            if points:
                each, share = zip(*sorted(points), strict=True)
                axes.plot(each, share, "o-", label=f"{workers:g} workers, {wait:g} ms")
    axes.set(xscale="log", xlabel="iterations of a round for each worker", ylim=(0, 1))
    axes.set(ylabel="share of workers at work")
    axes.set_xticks([4, 16, 64], ["4", "16", "64"])
    axes.set_xticks([], minor=True)


def draw(rows: list[dict[str, str]], out: Path) -> None:
    """Draw both."""
    plt.rcParams |= {
        "text.color": GREY, "axes.labelcolor": GREY, "axes.edgecolor": GREY,
        "xtick.color": GREY, "ytick.color": GREY, "svg.hashsalt": "srs-ooc", "font.size": 9,
    }  # fmt: skip
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2))
    draw_rates(left, rows)
    draw_rounds(right, rows)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize="small", frameon=False)
    figure.tight_layout()
    figure.savefig(out, transparent=True, metadata={"Date": None})


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=DOCS / "images" / "dask_workers.svg")
    page = (DOCS / "research" / "cluster-measured.md").read_text(encoding="utf-8")
    draw(list(rows_of(page)), parser.parse_args().out)


if __name__ == "__main__":
    main()
