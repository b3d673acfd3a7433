"""PRS and RaSE on the PRS paper's simulated problems, by two subcommands.

    python benchmarks/paper_simulated.py prs FOLDER [--model tree] [--epochs 3000] [--seed 0]
                                         [--problems hypercube ...] [--files 1 2 3]
    python benchmarks/paper_simulated.py rase FOLDER [--rounds 10] [--problems ...] [--model knn]
    python benchmarks/paper_simulated.py rase FOLDER --problems linear --model lda --criterion ric

FOLDER holds ``NAME_1.npz`` and so on, each with X_train, y_train, X_valid, y_valid, X_test, y_test.
Each file is a process of its own; seconds are those of its processor. Needs scikit-learn.

``prs``: Parametric Random Subspace (Tables 2, S8, S9).

``rase``: Random Subspace Ensemble (Table S8). With trees it says how many models a second the first
iteration judges, beside loops over scikit-learn's trees in the same process: one that fits and
predicts, one that calls cross_val_score. The paper has figures of cross-validation with trees,
nearest neighbours and support vectors, and none of the criteria ric and ebic nor of their other
models.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measured import measure, subcommand

RELEVANT = {
    "checkerboard": range(50, 201, 50),
    "friedman": range(50, 251, 50),
    "hypercube": range(50, 251, 50),
    "linear": range(10),
}
Figures = dict[str, float]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add which problems and files to work on; ``--one`` is a process for a single file."""
    parser.add_argument("--problems", nargs="+", default=list(RELEVANT))
    parser.add_argument("--files", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)


def relevant_of(file: Path) -> list[int]:
    """Return the relevant features of the problem that a file is named after."""
    return list(RELEVANT[file.stem.split("_")[0]])


def means_of_files(
    method: str, options: list[str], folder: Path, problems: list[str], files: list[int]
) -> Iterator[tuple[str, Figures]]:
    """Yield each problem with the means of its files' figures, having printed those of each.

    Parameters
    ----------
    method : str
        The subcommand that is started for each file, with ``--one`` for where figures go.
    options : list of str
        Its other arguments.
    folder : Path
        Where the files lie.
    problems : list of str
        Their names.
    files : list of int
        Their numbers.
    """
    for problem in problems:
        paths = [folder / f"{problem}_{i}.npz" for i in files]
        found = [_figures(method, options, path) for path in paths]
        yield problem, {name: sum(f[name] for f in found) / len(found) for name in found[0]}


def _figures(method: str, options: list[str], path: Path) -> Figures:
    with TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        done = measure([sys.executable, __file__, method, str(path), "--one", str(out), *options])
        found: Figures = json.loads(out.read_text()) | {"peak_mb": done.peak_mb}
    print(f"  {path.stem}: {json.dumps({k: round(v, 3) for k, v in found.items()})}", flush=True)
    return found


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", choices=list(PUBLISHED_PRS), default="tree")
    parser.add_argument("--epochs", type=int, default=3000)
    parser.add_argument("--patience", type=int)
    parser.add_argument("--seed", type=int, default=0, help="of the subsets and the folds")
    add_options(parser)
    given = parser.parse_args()
    if given.one is not None:
        from in_memory import run_prs

        course = given.epochs, given.patience, given.model, given.seed
        one = run_prs(given.folder, relevant_of(given.folder), *course)
        given.one.write_text(json.dumps(one))
        return
    options = ["--epochs", str(given.epochs), "--model", given.model, "--seed", str(given.seed)]
    options += [] if given.patience is None else ["--patience", str(given.patience)]
    asked = (given.folder, given.problems, given.files)
    for problem, means in means_of_files("prs", options, *asked):
        print(
            f"{problem}: score {means['score']:.3f}, average precision {means['ap']:.2f}, "
            f"sum {means['sum']:.1f}, models {means['models']:,.0f}; published "
            f"{PUBLISHED_PRS[given.model][problem]}; {means['seconds']:.0f} s, "
            f"{means['peak_mb']:.0f} MB",
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name, usual in SETTINGS.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--model", choices=[*PUBLISHED_RASE, *UNPUBLISHED], default="tree")
    parser.add_argument("--criterion", choices=["cv", "ric", "ebic"], default="cv")
    add_options(parser)
    given = parser.parse_args()
    settings = {name: int(getattr(given, name)) for name in SETTINGS}
    if given.one is not None:
        from in_memory import run_rase

        asked_of = settings | {"criterion": given.criterion}
        one = run_rase(given.folder, relevant_of(given.folder), asked_of, given.model)
        given.one.write_text(json.dumps(one))
        return
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    words += ["--model", given.model, "--criterion", given.criterion]
    asked = (words, given.folder, given.problems, given.files)
    for problem, means in means_of_files("rase", *asked):
        published = PUBLISHED_RASE[given.model][problem] if given.model in PUBLISHED_RASE else None
        if given.criterion != "cv":
            published = None
        names = (("score", "score"), ("average precision", "ap"), ("size", "size"))
        beside = (
            f"{what} {means[name]:.3f}"
            + (f" (published {published[i][0]} +- {published[i][1]})" if published else "")
            for i, (what, name) in enumerate(names)
        )
        speed = ""
        if "models_a_second" in means:
            speed = (
                f", {means['models_a_second']:,.0f} models a second "
                f"({means['trees_a_second']:,.0f} trees grown): "
                f"{means['times_fit_predict']:.0f} times a loop of fit and predict, "
                f"{means['times_cross_val_score']:.0f} times one of cross_val_score"
            )
        print(
            f"{problem}, {given.model}, {given.rounds} rounds of {given.models} models, each the "
            f"best of {given.candidates} by {given.criterion}: {', '.join(beside)}, "
            f"{means['seconds']:.0f} s, {means['peak_mb']:.0f} MB{speed}",
            flush=True,
        )


if __name__ == "__main__":
    subcommand(prs=prs_main, rase=rase_main)
