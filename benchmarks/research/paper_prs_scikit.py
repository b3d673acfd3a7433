"""PRS beside what scikit-learn has, by two subcommands.

``peers``: How hard the PRS paper's simulated files at hand are: forests and boosting on the same
files.

    python benchmarks/research/paper_prs_scikit.py peers FOLDER [--problems linear ...]
        [--files 1 2 3]

The paper's figures are means of ten files of each problem; FOLDER holds three (see
``paper_simulated.py``). So the two methods of its Table 2 that scikit-learn has are run on these,
by Appendix D.3: 100 trees, the features of a node (forest) or the depth (boosting) chosen on the
validation rows, ranked by impurity. A difference from their published figures is one of the files.

For ``linear`` also how well a model of the right form ranks: logistic regression on the training
rows; and what each relevant feature weighs, in percent of the largest: its coefficients on the
relevant features alone and all rows. Needs scikit-learn.

``real``: Parametric Random Subspace on wide real tables: arcene and others (Tables S13, S16, S17).

    python benchmarks/research/paper_prs_scikit.py real FOLDER [--tables arcene ...] [--screen 500]

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
import sys
import tempfile
import time
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split

import srs_ooc

sys.path.append(str(Path(__file__).parents[1]))  # the modules that all benchmarks share

from measured import subcommand
from paper_simulated import RELEVANT, relevant_of

N_TREES, MOST_DEPTH = 100, 10
SHARES = (100, 50, 20, 10, 5, 3, 2, 1)
PUBLISHED = {  # Table 2: score and average precision of the forest, then of boosting
    "checkerboard": (((-0.03, 0.05), (0.44, 0.22)), ((-0.09, 0.10), (0.40, 0.24))),
    "friedman": (((0.73, 0.04), (0.68, 0.03)), ((0.86, 0.03), (0.87, 0.04))),
    "hypercube": (((0.85, 0.07), (0.92, 0.12)), ((0.86, 0.06), (0.90, 0.10))),
    "linear": (((0.77, 0.06), (0.68, 0.13)), ((0.85, 0.04), (0.70, 0.15))),
}


def chosen(models: list[Any], data: Any) -> Any:
    """Return the model that, fitted on the training rows, predicts the validation rows best."""
    fitted = [model.fit(data["X_train"], data["y_train"]) for model in models]
    scores = [model.score(data["X_valid"], data["y_valid"]) for model in fitted]
    return fitted[int(np.argmax(scores))]


def forests(p: int, seed: int, *, of_classes: bool) -> list[Any]:
    """Return the forests that are tried, one for each number of features of a node."""
    kind = RandomForestClassifier if of_classes else RandomForestRegressor
    widths = sorted({1, isqrt(p)} | {max(1, p // share) for share in SHARES})
    return [kind(N_TREES, max_features=width, random_state=seed) for width in widths]


def boostings(seed: int, *, of_classes: bool) -> list[Any]:
    """Return what boosting is tried with, one for each depth."""
    kind = GradientBoostingClassifier if of_classes else GradientBoostingRegressor
    depths = range(1, MOST_DEPTH + 1)
    return [kind(n_estimators=N_TREES, max_depth=depth, random_state=seed) for depth in depths]


def found(model: Any, data: Any, is_relevant: NDArray[np.bool_]) -> tuple[float, float]:
    """Return a fitted model's score on the test rows and its ranking's average precision."""
    ranking = average_precision_score(is_relevant, model.feature_importances_)
    return float(model.score(data["X_test"], data["y_test"])), float(ranking)


def of_right_form(data: Any, is_relevant: NDArray[np.bool_]) -> str:
    """Return how well logistic regression ranks, and what each relevant feature weighs, as words.

    Weights are in percent of the largest.
    """
    parts = ("train", "valid", "test")
    x = np.concatenate([data[f"X_{part}"] for part in parts])[:, is_relevant]
    y = np.concatenate([data[f"y_{part}"] for part in parts])
    sizes = np.sort(np.abs(LogisticRegression(C=100.0).fit(x, y).coef_[0]))
    model = LogisticRegression(C=0.1, max_iter=1000).fit(data["X_train"], data["y_train"])
    ranking = average_precision_score(is_relevant, np.abs(model.coef_[0]))
    weights = " ".join(f"{size:.0f}" for size in 100 * sizes / sizes.max())
    return f", logistic regression {ranking:.2f}, weights {weights}"


def of_file(path: Path, n_seeds: int) -> NDArray[np.float64]:
    """Return the means over seeds of a file's figures, (forest and boosting, score and ranking)."""
    data = dict(np.load(path))
    p, of_classes = data["X_train"].shape[1], len(np.unique(data["y_train"])) == 2
    is_relevant = np.isin(np.arange(p), relevant_of(path))
    figures = []
    for seed in range(n_seeds):
        tried = forests(p, seed, of_classes=of_classes), boostings(seed, of_classes=of_classes)
        figures.append([found(chosen(models, data), data, is_relevant) for models in tried])
    means: NDArray[np.float64] = np.mean(figures, 0)
    more = of_right_form(data, is_relevant) if path.stem.startswith("linear") else ""
    print(f"  {path.stem}: {as_text(means)}{more}", flush=True)
    return means


def peers_main() -> None:
    """Print what each file gives, and the means beside the published figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--problems", nargs="+", choices=list(RELEVANT), default=list(RELEVANT))
    parser.add_argument("--files", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    for problem in given.problems:
        paths = [given.folder / f"{problem}_{number}.npz" for number in given.files]
        means = np.mean([of_file(path, given.seeds) for path in paths], 0)
        print(f"{problem}: {as_text(means)}; published {PUBLISHED[problem]}", flush=True)


def as_text(figures: NDArray[np.float64]) -> str:
    """Return scores and average precisions as words."""
    kinds = zip(("forest", "boosting"), figures, strict=True)
    return ", ".join(f"{kind} {score:.3f} {ranking:.2f}" for kind, (score, ranking) in kinds)


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


def real_main() -> None:
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
    subcommand(peers=peers_main, real=real_main)
