"""Parametric Random Subspace on the paper's simulated problems (Tables 2, S8, S9).

    python benchmarks/paper_prs.py FOLDER [--model tree] [--epochs 3000] [--problems hypercube ...]
                                          [--files 1 2 3] [--seed 0]

FOLDER holds ``NAME_1.npz`` and so on, each with X_train, y_train, X_valid, y_valid, X_test, y_test.
Each file is a process of its own; seconds are those of its processor. Needs scikit-learn.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from simulated_files import add_options, means_of_files, relevant_of

# Score and average precision; of trees with their spread, the sum of probabilities, and models.
PUBLISHED: dict[str, dict[str, tuple[Any, ...]]] = {
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


def main() -> None:
    """Run the files asked for, print a line each and the means beside the published figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", choices=list(PUBLISHED), default="tree")
    parser.add_argument("--epochs", type=int, default=3000)
    parser.add_argument("--patience", type=int)
    parser.add_argument("--seed", type=int, default=0, help="of the subsets and the folds")
    add_options(parser)
    given = parser.parse_args()
    if given.one is not None:
        from prs_in_memory import run_file

        course = given.epochs, given.patience, given.model, given.seed
        one = run_file(given.folder, relevant_of(given.folder), *course)
        given.one.write_text(json.dumps(one))
        return
    options = ["--epochs", str(given.epochs), "--model", given.model, "--seed", str(given.seed)]
    options += [] if given.patience is None else ["--patience", str(given.patience)]
    asked = (given.folder, given.problems, given.files)
    for problem, means in means_of_files(__file__, options, *asked):
        print(
            f"{problem}: score {means['score']:.3f}, average precision {means['ap']:.2f}, "
            f"sum {means['sum']:.1f}, models {means['models']:,.0f}; published "
            f"{PUBLISHED[given.model][problem]}; {means['seconds']:.0f} s, "
            f"{means['peak_mb']:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
