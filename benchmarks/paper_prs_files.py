"""How hard the PRS paper's simulated files at hand are: forests and boosting on the same files.

    python benchmarks/paper_prs_files.py FOLDER [--problems linear ...] [--files 1 2 3] [--seeds 3]

The paper's figures are means of ten files of each problem; FOLDER holds three (see
``paper_prs.py``). So the two methods of its Table 2 that scikit-learn has are run on these, by
Appendix D.3: 100 trees, the features of a node (forest) or the depth (boosting) chosen on the
validation rows, ranked by impurity. A difference from their published figures is one of the files.

For ``linear`` also how well a model of the right form ranks: logistic regression on the training
rows; and what each relevant feature weighs, in percent of the largest: its coefficients on the
relevant features alone and all rows. Needs scikit-learn.
"""

import argparse
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simulated_files import RELEVANT, relevant_of
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

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


def main() -> None:
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


if __name__ == "__main__":
    main()
