"""Figure 2 of the paper: F1 of the selection over iterations, for three alpha and two sizes.

Claim: with memory (alpha 0.5 and 1) the selection is better than without (alpha 0, Random
Subspace), at q = 5% and q = 0.5% of the features. The paper has p = 50,000 features, 20 of them
relevant, like madelon; it does not say how many rows (1,000 here).

One run per setting is advanced in steps and read after each. Runs and points are kept in the
folder, so the same command goes on where it was stopped, also to more iterations.

    python benchmarks/research/figure2.py --folder FOLDER [--judge probe] [--iterations 10000]
        [--p 50000]

writes FOLDER/figure2-JUDGE.csv and FOLDER/figure2-JUDGE.png.
"""

import argparse
import csv
import json
import sys
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # the modules that all benchmarks share

from measured import Results, features_of, said, srs_ooc
from selection import Units, position_of, score, truth_of

ALPHAS = ("0", "0.5", "1")
SHARES = ("0.05", "0.005")
N_ROWS, N_RELEVANT = 1000, 20


@dataclass(frozen=True)
class Point:
    """What one run had selected after some iterations."""

    q_share: str
    alpha: str
    iterations: int
    selected: int
    power: float
    false_share: float
    f1: float


class Figure:
    """The runs of one judge on one table, and the points read from them.

    Parameters
    ----------
    arguments : argparse.Namespace
        The command line.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.judge, self.n_features, self.seed = arguments.judge, arguments.p, arguments.seed
        self.folder = arguments.folder / f"p{self.n_features}-seed{self.seed}"
        self.stem = arguments.folder / f"figure2-{self.judge}"
        self.steps = [
            arguments.iterations * i // arguments.steps for i in range(1, 1 + arguments.steps)
        ]
        self.folder.mkdir(parents=True, exist_ok=True)
        self.results = Results(self.folder / f"points-{self.judge}.jsonl")
        self.store = self.folder / "table.zarr"

    def make_store(self) -> Units:
        """Make the table if it is not there, and return what is relevant."""
        if not self.store.exists():
            (self.folder / "table.zarr.truth.json").unlink(missing_ok=True)
            sizes = ("--rows", N_ROWS, "--features", self.n_features, "--relevant", N_RELEVANT)
            srs_ooc("synth", "madelon", self.store, *sizes, "--seed", self.seed)
        return truth_of(self.store)

    def points(self) -> list[Point]:
        """Return the points read so far."""
        return [Point(**record) for record in self.results.records]

    def advance(self, q_share: str, alpha: str, truth: Units) -> None:
        """Bring one run to the last step, reading it after each."""
        run = self.folder / f"{self.judge}-q{q_share}-a{alpha}.run"
        known = {p.iterations for p in self.points() if (p.q_share, p.alpha) == (q_share, alpha)}
        done = iterations_of(run)
        for step in self.steps:
            if step < done or step in known:
                continue
            if step > done:
                q = max(1, int(float(q_share) * self.n_features))
                options = (
                    "--judge",
                    self.judge,
                    "--with",
                    f"alpha={alpha}",
                    "--q",
                    q,
                    "--seed",
                    self.seed,
                )
                srs_ooc("run", self.store, "--out", run, *options, "--iterations", step)
            self._add(self._read(run, q_share, alpha, step, truth))

    def _read(self, run: Path, q_share: str, alpha: str, step: int, truth: Units) -> Point:
        found = [position_of(record["name"]) for record in features_of(run, "--selected")]
        scores = score(truth, found, ())
        figures = (scores[name] for name in ("selected", "power", "false share", "F1"))
        return Point(q_share, alpha, step, *figures)

    def _add(self, point: Point) -> None:
        self.results.add(asdict(point))
        print(point, file=sys.stderr, flush=True)

    def write(self) -> None:
        """Write the table and the plot."""
        points = sorted(self.points(), key=lambda p: (p.q_share, p.alpha, p.iterations))
        with self.stem.with_suffix(".csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(Point)])
            writer.writerows(astuple(point) for point in points)
        plot(points, self.n_features, self.judge, self.stem.with_suffix(".png"))


def iterations_of(run: Path) -> int:
    """Return how many iterations a run has done, 0 if there is none."""
    if not run.exists():
        return 0
    return int(json.loads(said("status", run, "--json"))["iterations"])


def plot(points: list[Point], n_features: int, judge: str, out: Path) -> None:
    """Draw F1 over iterations, a panel for each size and a line for each alpha."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(SHARES), figsize=(10, 4), sharey=True)
    for panel, share in zip(panels, SHARES, strict=True):
        for alpha in ALPHAS:
            own = [p for p in points if (p.q_share, p.alpha) == (share, alpha)]
            line = [(0, 0.0), *((p.iterations, p.f1) for p in own)]
            panel.plot(*zip(*line, strict=True), marker=".", label=f"alpha = {alpha}")
        panel.set_title(f"q = {float(share):.1%} of {n_features:,}, judge {judge}")
        panel.set_xlabel("iterations")
        panel.set_ylim(-0.02, 1.02)
    panels[0].set_ylabel("F1")
    panels[0].legend()
    figure.tight_layout()
    figure.savefig(out, dpi=120)


def main() -> None:
    """Advance every run to its last step and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--judge", choices=("probe", "tests"), default="probe")
    parser.add_argument("--iterations", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=20, help="points of each line")
    parser.add_argument("--p", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shares", nargs="+", default=SHARES, choices=SHARES, help="q / p")
    parser.add_argument("--alphas", nargs="+", default=ALPHAS, choices=ALPHAS)
    arguments = parser.parse_args()
    figure = Figure(arguments)
    truth = figure.make_store()
    for q_share in arguments.shares:
        for alpha in arguments.alphas:
            figure.advance(q_share, alpha, truth)
    figure.write()


if __name__ == "__main__":
    main()
