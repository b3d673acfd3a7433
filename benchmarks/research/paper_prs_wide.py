"""PRS on wide real tables: arcene and others (Tables S13, S16, S17 of its paper).

    python benchmarks/research/paper_prs_wide.py FOLDER [--tables arcene ...] [--screen 500]

FOLDER holds ``NAME.csv.gz``, the class in the column ``target``. As in the paper: five folds; of
the rows that are not in a fold, four fifths are learnt from and one fifth is held out; the penalty
is that of 1e-4 to 1e-1 whose ensemble errs least on the rows held out (of equal ones the one with
the lower loss there, then the larger penalty); ``by_loss`` is the accuracy with the one of the
lowest loss there, since a few dozen rows tell accuracies apart badly. Unlike the paper, PRS learns
on the features that a screen on the rows learnt from ranks first (``--screen``), as its steps are
short beyond a thousand features (docs/methods/prs.md, Many features). ``--screen 0`` leaves that
out.

Accuracies are those of the run's saved trees. Beside them, on the same folds and all features, a
forest of scikit-learn of 500 trees. Seconds are of the processor. Needs scikit-learn and pandas.
"""

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split

import srs_ooc

WIDE = {  # mean and deviation over five folds: PRS with trees, a forest, features of a subset
    "arcene": ((0.81, 0.05), (0.78, 0.05), 128),
    "prostate_ge": ((0.88, 0.11), (0.90, 0.08), 226),
    "tox_171": ((0.75, 0.05), (0.71, 0.06), 173),
}
PENALTIES = ("0.0001", "0.001", "0.01", "0.1")


def ids(rows: Any) -> list[str]:
    """Return the row ids of a store whose rows are numbered."""
    return [str(row + 1) for row in sorted(rows)]


class Table:
    """A table in memory, to score on, and as a store, to learn from."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder, self.store = folder, folder / "table.zarr"
        self.values = pd.read_csv(source)
        self.target = self.values.pop("target").astype(str).to_numpy()
        srs_ooc.ingest(source, self.store)

    def right(self, run: srs_ooc.Result, rows: Any) -> tuple[float, float]:
        """Return the accuracy and the log-loss of a run's saved trees."""
        said = run.predict(self.values.iloc[rows])
        classes = sorted(set(self.target))
        shares = said[[f"probability_{label}" for label in classes]].to_numpy()
        accuracy = float((said["prediction"].astype(str).to_numpy() == self.target[rows]).mean())
        return accuracy, float(log_loss(self.target[rows], shares, labels=classes))


@dataclass(frozen=True)
class Tried:
    """A penalty: how its ensemble does on the rows held out."""

    penalty: float
    accuracy: float
    loss: float
    run: srs_ooc.Result


def one_fold(
    table: Table, fold: int, learnt: Any, held: Any, test: Any, given: argparse.Namespace
) -> dict[str, float]:
    """Return what PRS and a forest come to on the rows of one fold."""
    begun = time.process_time()
    tried: list[Tried] = []
    for penalty in PENALTIES:
        run = srs_ooc.run(
            table.store, out=table.folder / f"{fold}-{penalty}.run", method="prs", sparsity=penalty,
            rows=ids([*learnt, *held]), validation_rows=ids(held), screen=given.screen or None,
            epochs=given.epochs, patience=given.patience, save_trees=True,
        )  # fmt: skip
        accuracy, loss = table.right(run, held)
        tried.append(Tried(float(penalty), accuracy, loss, run))
    best = max(tried, key=lambda one: (one.accuracy, -one.loss, one.penalty))
    least = min(tried, key=lambda one: one.loss)
    seconds = time.process_time() - begun
    forest = RandomForestClassifier(500, random_state=fold, n_jobs=1)
    both = np.sort([*learnt, *held])
    forest.fit(table.values.iloc[both], table.target[both])
    found = {
        "prs": table.right(best.run, test)[0],
        "by_loss": table.right(least.run, test)[0],
        "forest": float(forest.score(table.values.iloc[test], table.target[test])),
        "features": float(sum(record["score"] for record in best.run.features("records"))),
        "models": float(sum(one.run.status.iterations for one in tried)),
        "seconds": seconds,
    }
    words = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
    print(
        f"  fold {fold + 1}: penalty {best.penalty:g}, by loss {least.penalty:g}, {words}",
        flush=True,
    )
    return found


def measure_table(name: str, given: argparse.Namespace) -> None:
    """Print each fold of a table, and their means beside the published figures."""
    with tempfile.TemporaryDirectory() as scratch:
        table = Table(given.folder / f"{name}.csv.gz", Path(scratch))
        folds = StratifiedKFold(5, shuffle=True, random_state=given.seed)
        found = []
        for fold, (others, test) in enumerate(folds.split(table.values, table.target)):
            learnt, held = train_test_split(
                others, test_size=0.2, stratify=table.target[others], random_state=given.seed
            )
            found.append(one_fold(table, fold, learnt, held, test, given))
    means = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    spread = float(np.std([one["prs"] for one in found], ddof=1))
    (prs, of_prs), (forest, of_forest), features = WIDE[name]
    print(
        f"{name}: PRS {means['prs']:.3f} +- {spread:.3f} (published {prs} +- {of_prs}), penalty by "
        f"loss {means['by_loss']:.3f}, forest "
        f"{means['forest']:.3f} ({forest} +- {of_forest}), "
        f"features {means['features']:.0f} ({features}), "
        f"{means['models']:,.0f} models, {means['seconds']:.0f} s a fold",
        flush=True,
    )


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", nargs="+", default=list(WIDE), choices=list(WIDE))
    parser.add_argument("--screen", type=int, default=500, help="features; 0 for all")
    parser.add_argument("--epochs", type=int, default=3000)
    parser.add_argument("--patience", type=int)
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    given = parser.parse_args()
    for name in given.tables:
        measure_table(name, given)


if __name__ == "__main__":
    main()
