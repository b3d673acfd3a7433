"""PRS and RaSE on the PRS paper's simulated problems, by two subcommands.

    python benchmarks/research/paper_simulated.py prs FOLDER [--model tree] [--epochs 3000]
        [--seed 0] [--problems hypercube ...] [--files 1 2 3]
    python benchmarks/research/paper_simulated.py rase FOLDER [--rounds 10] [--model knn]
    python benchmarks/research/paper_simulated.py rase FOLDER --problems linear --model lda
        --criterion ric

FOLDER holds ``NAME_1.npz`` and so on, each with X_train, y_train, X_valid, y_valid, X_test, y_test.
Each file is a run on the rows before the test, those of validation held out; the score is that of
its saved trees on the test (other models are not saved). Trees have thresholds midway between
values, as scikit-learn's do.
Seconds are of the processor, one thread. Needs scikit-learn.

``prs``: Parametric Random Subspace (Tables 2, S8, S9).

``rase``: Random Subspace Ensemble (Table S8). The paper has figures of cross-validation with trees,
nearest neighbours and support vectors, and none of the criteria ric and ebic nor of their other
models.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, average_precision_score, r2_score

import srs_ooc

sys.path.append(str(Path(__file__).parents[1]))  # the modules that all benchmarks share

from measured import subcommand

RELEVANT = {
    "checkerboard": range(50, 201, 50),
    "friedman": range(50, 251, 50),
    "hypercube": range(50, 251, 50),
    "linear": range(10),
}
PARTS = ("train", "valid", "test")
Figures = dict[str, float]


def parser_of() -> argparse.ArgumentParser:
    """Return a parser that knows which problems and files to work on, and how."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--problems", nargs="+", choices=list(RELEVANT), default=list(RELEVANT))
    parser.add_argument("--files", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--thresholds", choices=["rank", "value"], default="value", help="of trees")
    parser.add_argument("--seed", type=int, default=0, help="of the subsets and the folds")
    return parser


def relevant_of(file: Path) -> list[int]:
    """Return the relevant features of the problem that a file is named after."""
    return list(RELEVANT[file.stem.split("_")[0]])


def means_of_files(
    given: argparse.Namespace, options: dict[str, Any]
) -> Iterator[tuple[str, Figures]]:
    """Yield each problem with the means of its files' figures, having printed those of each."""
    if given.model == "tree":
        options = options | {"thresholds": given.thresholds, "save_trees": True}
    for problem in given.problems:
        found = []
        for number in given.files:
            path = given.folder / f"{problem}_{number}.npz"
            found.append(of_file(path, options | {"model": given.model, "seed": given.seed}))
            shown = {name: round(value, 3) for name, value in found[-1].items()}
            print(f"  {path.stem}: {json.dumps(shown)}", flush=True)
        yield problem, {name: sum(f[name] for f in found) / len(found) for name in found[0]}


def of_file(path: Path, options: dict[str, Any]) -> Figures:
    """Run on one file; return what it came to.

    ``score`` is R2 or accuracy on the test rows, where trees are saved; ``sum`` is that of the
    features' scores.
    """
    data = np.load(path)
    values = np.concatenate([data[f"X_{part}"] for part in PARTS])
    target = np.concatenate([data[f"y_{part}"] for part in PARTS])
    n_train = len(data["y_train"])
    n_seen = n_train + len(data["y_valid"])
    is_regression = len(np.unique(target)) > 2
    target = target if is_regression else target.astype(int)
    ids = [str(i + 1) for i in range(len(target))]
    with TemporaryDirectory() as name:
        store, run = Path(name) / "t.zarr", Path(name) / "t.run"
        task = "regression" if is_regression else "classification"
        srs_ooc.ingest(values, store, target=target, task=task, code_dtype="uint16")
        begun = time.process_time()
        result = srs_ooc.run(
            store, out=run, rows=ids[:n_seen], validation_rows=ids[n_train:n_seen], threads=1,
            **options,
        )  # fmt: skip
        found = {"seconds": time.process_time() - begun, "models": result.status.iterations}
        if options.get("save_trees"):
            said = [row["prediction"] for row in result.predict(values[n_seen:], kind="records")]
            judge = r2_score if is_regression else accuracy_score
            found["score"] = float(judge(target[n_seen:], np.array(said, target.dtype)))
        scores = np.zeros(values.shape[1])
        for row in result.features("records"):
            scores[int(row["name"][1:])] = row["score"]
    is_relevant = np.isin(np.arange(values.shape[1]), relevant_of(path))
    found["ap"] = float(average_precision_score(is_relevant, scores))
    return found | {"sum": float(scores.sum())}


# Score and average precision; of trees with their spread, the sum of probabilities, and models.
PUBLISHED_PRS: dict[str, dict[str, tuple[Any, ...]]] = {
    "tree": {
        "checkerboard": ((0.29, 0.14), (0.60, 0.23), 7.3, 308_700),
        "friedman": ((0.83, 0.03), (0.95, 0.04), 7.8, 323_200),
        "hypercube": ((0.88, 0.04), (0.97, 0.06), 12.1, 162_600),
        "linear": ((0.78, 0.03), (0.67, 0.13), 12.7, 214_400),
    },
    "knn": {
        "checkerboard": (0.60, 0.92),
        "friedman": (0.88, 1.00),
        "hypercube": (0.90, 0.94),
        "linear": (0.88, 0.73),
    },
    "svm": {
        "checkerboard": (0.62, 0.98),
        "friedman": (0.90, 0.98),
        "hypercube": (0.88, 0.90),
        "linear": (0.92, 0.80),
    },
}


def prs_main() -> None:
    """Run the files asked for, print a line each and the means beside the published figures."""
    parser = parser_of()
    parser.add_argument("--model", choices=list(PUBLISHED_PRS), default="tree")
    parser.add_argument("--epochs", type=int, default=3000)
    parser.add_argument("--patience", type=int)
    given = parser.parse_args()
    options = {"method": "prs", "epochs": given.epochs, "patience": given.patience}
    for problem, means in means_of_files(given, options):
        print(
            f"{problem}: score {means.get('score', nan):.3f}, average precision {means['ap']:.2f}, "
            f"sum {means['sum']:.1f}, models {means['models']:,.0f}; published "
            f"{PUBLISHED_PRS[given.model][problem]}; {means['seconds']:.0f} s",
            flush=True,
        )


PUBLISHED_RASE = {  # score, average precision, features of a kept subspace
    "tree": {
        "checkerboard": ((0.25, 0.15), (0.77, 0.24), (10.23, 1.18)),
        "friedman": ((0.77, 0.03), (0.79, 0.14), (10.40, 2.87)),
        "hypercube": ((0.86, 0.07), (0.89, 0.13), (12.43, 0.83)),
        "linear": ((0.77, 0.05), (0.54, 0.12), (12.66, 0.42)),
    },
    "knn": {
        "checkerboard": ((0.61, 0.05), (1.00, 0.00), (4.96, 0.76)),
        "friedman": ((0.87, 0.03), (0.97, 0.06), (5.67, 0.51)),
        "hypercube": ((0.92, 0.04), (0.94, 0.09), (5.28, 0.66)),
        "linear": ((0.88, 0.04), (0.67, 0.12), (10.85, 1.92)),
    },
    "svm": {
        "checkerboard": ((0.62, 0.07), (1.00, 0.00), (4.51, 0.59)),
        "friedman": ((0.90, 0.05), (0.98, 0.05), (6.51, 0.97)),
        "hypercube": ((0.90, 0.05), (0.92, 0.12), (10.23, 2.32)),
        "linear": ((0.91, 0.02), (0.75, 0.10), (15.06, 0.47)),
    },
}
SETTINGS = {"rounds": 10, "models": 100, "candidates": 500}
"""The paper's."""
UNPUBLISHED = ("lda", "qda", "linear")
"""Models that Table S8 does not have."""


def rase_main() -> None:
    """Run the files asked for, print a line each and the means beside the published figures."""
    parser = parser_of()
    for name, usual in SETTINGS.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--model", choices=[*PUBLISHED_RASE, *UNPUBLISHED], default="tree")
    parser.add_argument("--criterion", choices=["cv", "ric", "ebic"], default="cv")
    given = parser.parse_args()
    options = {name: getattr(given, name) for name in SETTINGS}
    options |= {"method": "rase", "criterion": given.criterion}
    for problem, means in means_of_files(given, options):
        published = PUBLISHED_RASE[given.model][problem] if given.model in PUBLISHED_RASE else None
        if given.criterion != "cv":
            published = None
        names = (("score", "score"), ("average precision", "ap"), ("size", "sum"))
        beside = (
            f"{what} {means[name]:.3f}"
            + (f" (published {published[i][0]} +- {published[i][1]})" if published else "")
            for i, (what, name) in enumerate(names)
            if name in means
        )
        print(
            f"{problem}, {given.model}, {given.rounds} rounds of {given.models} models, each the "
            f"best of {given.candidates} by {given.criterion}: {', '.join(beside)}, "
            f"{means['seconds']:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    subcommand(prs=prs_main, rase=rase_main)
