"""Random Subspace Ensemble with trees on the PRS paper's simulated problems (Table S8).

    python benchmarks/paper_rase.py FOLDER [--rounds 10] [--problems hypercube ...]

FOLDER holds ``NAME_1.npz`` and so on, each with X_train, y_train, X_valid, y_valid, X_test, y_test.
Each file is a process of its own; seconds are those of its processor. Models a second are those of
its first iteration, beside loops over scikit-learn's trees in the same process: one that fits and
predicts, one that calls cross_val_score. Needs scikit-learn.
"""

import argparse
import json
from pathlib import Path

from simulated_files import add_options, means_of_files, relevant_of

PUBLISHED = {  # score, average precision, features of a kept subspace
    "checkerboard": ((0.25, 0.15), (0.77, 0.24), (10.23, 1.18)),
    "friedman": ((0.77, 0.03), (0.79, 0.14), (10.40, 2.87)),
    "hypercube": ((0.86, 0.07), (0.89, 0.13), (12.43, 0.83)),
    "linear": ((0.77, 0.05), (0.54, 0.12), (12.66, 0.42)),
}


def main() -> None:
    """Run the files asked for, print a line each and the means beside the published figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=10)
    add_options(parser)
    given = parser.parse_args()
    if given.one is not None:
        from rase_in_memory import run_file

        one = run_file(given.folder, relevant_of(given.folder), given.rounds)
        given.one.write_text(json.dumps(one))
        return
    asked = (["--rounds", str(given.rounds)], given.folder, given.problems, given.files)
    for problem, means in means_of_files(__file__, *asked):
        beside = (
            f"{what} {means[name]:.3f} (published {mean} +- {spread})"
            for (what, name), (mean, spread) in zip(
                (("score", "score"), ("average precision", "ap"), ("size", "size")),
                PUBLISHED[problem],
                strict=True,
            )
        )
        print(
            f"{problem}, {given.rounds} rounds: {', '.join(beside)}, {means['seconds']:.0f} s, "
            f"{means['peak_mb']:.0f} MB, {means['models_a_second']:,.0f} models a second "
            f"({means['trees_a_second']:,.0f} trees grown): "
            f"{means['times_fit_predict']:.0f} times a loop of fit and predict, "
            f"{means['times_cross_val_score']:.0f} times one of cross_val_score",
            flush=True,
        )


if __name__ == "__main__":
    main()
