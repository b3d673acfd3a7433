"""The picture of the front page: processor time and peak memory of each method on one table.

    python benchmarks/research/front_page.py

reads the table of madelon in docs/research/selection.md, which `benchmarks/selection.py` printed,
and draws docs/images/peers.svg.
"""

import argparse
import re
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parents[2] / "docs"
PROBLEM = "madelon: n = 1,000, p = 50,000"
OURS = "srs-ooc"
PLACES = {  # of a name beside its point, where the usual one would cover another
    "random forest": (-8, 4, "right"),
    "mutual information": (-8, -14, "right"),
    "LightGBM": (-8, 4, "right"),
    "Boruta": (-8, 6, "right"),
}
GREY = "#808080"  # legible on a light page and on a dark one


def rows_of(page: str, problem: str) -> list[dict[str, str]]:
    """Return the rows of the table under the heading that begins with ``problem``."""
    section = re.search(
        rf"^### {re.escape(problem)}.*?(?=^### |\Z)", page, re.MULTILINE | re.DOTALL
    )
    if section is None:
        raise SystemExit(
            f"expected a heading '### {problem}' in docs/research/selection.md, found none."
        )
    lines = [line for line in section[0].splitlines() if line.startswith("|")]
    head, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(head, cells, strict=True)) for cells in body]


def draw(rows: list[dict[str, str]], out: Path) -> None:
    """Draw one point a method; hollow where it ran out of time."""
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "srs-ooc", "font.size": 10})
    mpl.rcParams.update(dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), GREY))
    mpl.rcParams.update(dict.fromkeys(("xtick.color", "ytick.color"), GREY))
    figure, axes = plt.subplots(figsize=(7.2, 4.2))
    for row in rows:
        ours, done = row["method"] == OURS, row["F1"] != "-"
        x, y = float(row["CPU s"]), float(row["peak MB"])
        colour = "#009688" if ours else GREY
        axes.plot(
            x, y, "o", color=colour, fillstyle="full" if done else "none", ms=9 if ours else 6
        )
        method = row["method"].split(",")[0]
        dx, dy, side = PLACES.get(method, (8, 4, "left"))
        axes.annotate(
            method + (f"  {row['F1']}" if done else ""),
            (x, y),
            (dx, dy),
            textcoords="offset points",
            color=colour,
            ha=side,
            fontweight="bold" if ours else "normal",
        )
    axes.set(xscale="log", yscale="log", xlabel="seconds of processor time")
    axes.set(ylabel="peak memory, MB", xlim=(2, 900))
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    out.parent.mkdir(exist_ok=True)
    figure.savefig(out, transparent=True, metadata={"Date": None})


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=DOCS / "images" / "peers.svg")
    rows = rows_of((DOCS / "research" / "selection.md").read_text(encoding="utf-8"), PROBLEM)
    elsewhere = ("tier core", "knockoffs")  # no method of its own; on a smaller table
    shown = [row for row in rows if not any(name in row["method"] for name in elsewhere)]
    draw(shown, parser.parse_args().out)


if __name__ == "__main__":
    main()
