"""The picture of docs/research/benchmarks.md: what stages take, beside what bounds them.

    python benchmarks/scale.py sizes --folder FOLDER --peers --only 1000x1000000 50x1000000
    python benchmarks/bounds.py --folder FOLDER [--repeats 3] [--out docs/images/bounds.svg]

A bound is the time that the same work would take at the speed of one part of the machine, measured
beside it: its processors, its memory, its disk. Each is drawn as a share of the time that was
taken: what lies at 1 is all there is to be had. Runs are those in FOLDER/sizes.jsonl. Ingests, of a
``.npy`` and of a CSV, are measured here by ``ingest_stages.py``; their processors' bound is reading
and checking the file, coding and compressing alone, shared by all cores, and so leaves out what
parses text and turns rows into columns; their disk's is the store, written and synced.
"""

import argparse
import json
import os
from pathlib import Path

from ingest_stages import Stages, make, stages

COLOURS = {"processors": "#0072B2", "memory": "#009E73", "disk": "#D55E00"}

Bounds = dict[str, float]
"""Seconds by what bounds; under ``took`` what the work took."""


def bounds_of_ingest(found: Stages) -> Bounds:
    """Return the bounds of an ingest."""
    alone = {name.split(": ")[1]: wall for name, (wall, _) in found.items() if ": " in name}
    written = sum(seconds for name, seconds in alone.items() if name.startswith("write"))
    by_cores = (sum(alone.values()) - written) / (os.cpu_count() or 1)
    return {"took": found["all"][0], "processors": by_cores, "disk": written}


def bounds_of_runs(path: Path) -> dict[str, Bounds]:
    """Return the bounds of the runs in a file of ``scale.py sizes``."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    names = {"took": "took", "processors": "work", "memory": "memory", "disk": "disk"}
    return {
        f"run, {' x '.join(f'{int(n):,}' for n in record['size'].split('x'))}": {
            to: record[of] for to, of in names.items()
        }
        for record in records
        if record["who"] == "bound"
    }


def draw(found: dict[str, Bounds], out: Path) -> None:
    """Draw the bounds of each piece of work, those of one in a line."""
    import matplotlib as mpl

    mpl.rcParams["svg.hashsalt"] = "srs-ooc"  # the same file each time
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 0.8 + 0.5 * len(found)), layout="constrained")
    for place, bounds in enumerate(found.values()):
        axes.plot([0, 1], [place, place], color="#D0D0D6", zorder=1)
        for what in bounds.keys() & COLOURS.keys():
            share = bounds[what] / bounds["took"]
            axes.scatter(share, place, s=48, color=COLOURS[what], zorder=2)
    for what, colour in COLOURS.items():
        axes.scatter([], [], s=48, color=colour, label=what)
    took = [f"{work}: {bounds['took']:.2g} s" for work, bounds in found.items()]
    axes.set(xlim=(-0.02, 1), xlabel="bound, as a share of the time taken")
    axes.set_yticks(range(len(took)), took)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.3, 1.2), ncols=3)
    figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None)


def main() -> None:
    """Measure the ingests, and draw them with the runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("docs/images/bounds.svg"))
    asked = parser.parse_args()
    found = {}
    no_options: list[str] = []
    with make(1000, 400_000) as (npy, target, csv):
        for table, options in (npy, target), (csv, no_options):
            name = f"ingest, {table.suffix} of {table.stat().st_size / 1e6:,.0f} MB"
            found[name] = bounds_of_ingest(stages(table, options, asked.repeats))
    found |= bounds_of_runs(asked.folder / "sizes.jsonl")
    for work, bounds in found.items():
        print(work, {what: round(seconds, 2) for what, seconds in bounds.items()})
    draw(found, asked.out)


if __name__ == "__main__":
    main()
