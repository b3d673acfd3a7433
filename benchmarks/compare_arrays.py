"""Child processes of ``compare_methods.py``: what needs NumPy and scikit-learn.

python -m compare_arrays ingest FILE.npz STORE
python -m compare_arrays score STORE N_TRAIN N_BEST < names
python -m compare_arrays peer STORE N_TRAIN NAME
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import f_classif, f_regression

import srs_ooc

TREES = 500


def ingest(path: Path, store: Path) -> None:
    """Make a store of a file of the PRS paper, the rows to learn from first; print how many."""
    parts = ("train", "valid", "test")
    with np.load(path) as data:
        values = np.concatenate([data[f"X_{part}"] for part in parts])
        target = np.concatenate([data[f"y_{part}"] for part in parts])
        n_train = len(data["y_train"]) + len(data["y_valid"])
    is_regression = len(np.unique(target)) > 2
    said = target if is_regression else [f"c{int(label)}" for label in target]
    srs_ooc.ingest(values, store, target=said)
    print(n_train)


def read(store: Path, names: list[str]) -> tuple[NDArray[np.float64], NDArray[Any], bool]:
    """Return values (rows, names), target (rows,), and whether it is numbers."""
    opened = srs_ooc.open_store(store)
    is_regression = opened.manifest.task == "regression"
    return srs_ooc.read(opened, names).to_numpy(), opened.target(), is_regression


def forest(is_regression: bool) -> Any:
    """Return scikit-learn's forest."""
    kind = RandomForestRegressor if is_regression else RandomForestClassifier
    return kind(TREES, random_state=0, n_jobs=1)


def score(store: Path, n_train: int, n_best: int) -> None:
    """Print what a forest on the first features of a ranking scores on the other rows."""
    names = sys.stdin.read().split()[:n_best]
    values, target, is_regression = read(store, names)
    fitted = forest(is_regression).fit(values[:n_train], target[:n_train])
    print(fitted.score(values[n_train:], target[n_train:]))


def peer(store: Path, n_train: int, name: str) -> None:
    """Print the names ranked by a peer that holds the table in memory."""
    names = list(srs_ooc.open_store(store).names)
    values, target, is_regression = read(store, names)
    values, target = values[:n_train], target[:n_train]
    if name.startswith("forest"):
        worth = forest(is_regression).fit(values, target).feature_importances_
    else:
        worth = np.nan_to_num((f_regression if is_regression else f_classif)(values, target)[0])
    print(json.dumps([names[i] for i in np.argsort(-worth, kind="stable")]))


def main() -> None:
    """Do one of them."""
    what, first, *others = sys.argv[1:]
    if what == "ingest":
        ingest(Path(first), Path(others[0]))
    elif what == "score":
        score(Path(first), int(others[0]), int(others[1]))
    else:
        peer(Path(first), int(others[0]), others[1])


if __name__ == "__main__":
    main()
