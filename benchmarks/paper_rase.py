"""Random Subspace Ensemble on the PRS paper's simulated problems (Table S8).

    python benchmarks/paper_rase.py FOLDER [--rounds 10] [--problems hypercube ...] [--model knn]
    python benchmarks/paper_rase.py FOLDER --problems hypercube linear --model lda --criterion ric

FOLDER holds ``NAME_1.npz`` and so on, each with X_train, y_train, X_valid, y_valid, X_test, y_test.
Each file is a process of its own; seconds are those of its processor. With trees it says how many
models a second the first iteration judges, beside loops over scikit-learn's trees in the same
process: one that fits and predicts, one that calls cross_val_score. The paper has figures of
cross-validation with trees, nearest neighbours and support vectors, and none of the criteria ric
and ebic nor of their other models. Needs scikit-learn.
"""

import argparse
import json
from pathlib import Path

from simulated_files import add_options, means_of_files, relevant_of

PUBLISHED = {  # score, average precision, features of a kept subspace
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


def main() -> None:
    """Run the files asked for, print a line each and the means beside the published figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name, usual in SETTINGS.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--model", choices=[*PUBLISHED, *UNPUBLISHED], default="tree")
    parser.add_argument("--criterion", choices=["cv", "ric", "ebic"], default="cv")
    add_options(parser)
    given = parser.parse_args()
    settings = {name: int(getattr(given, name)) for name in SETTINGS}
    if given.one is not None:
        from rase_in_memory import run_file

        asked_of = settings | {"criterion": given.criterion}
        one = run_file(given.folder, relevant_of(given.folder), asked_of, given.model)
        given.one.write_text(json.dumps(one))
        return
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    words += ["--model", given.model, "--criterion", given.criterion]
    asked = (words, given.folder, given.problems, given.files)
    for problem, means in means_of_files(__file__, *asked):
        published = PUBLISHED[given.model][problem] if given.model in PUBLISHED else None
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
    main()
