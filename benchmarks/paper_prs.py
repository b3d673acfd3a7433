"""Parametric Random Subspace with trees on the paper's simulated problems (Tables 2, S8, S9).

    python benchmarks/paper_prs.py FOLDER [--epochs 3000] [--problems hypercube ...] [--files 1 2 3]

FOLDER holds ``NAME_1.npz`` and so on, each with X_train, y_train, X_valid, y_valid, X_test, y_test.
Each file is a process of its own; seconds are those of its processor. Needs scikit-learn.
"""

import argparse
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from measured import measure

RELEVANT = {
    "checkerboard": range(50, 201, 50),
    "friedman": range(50, 251, 50),
    "hypercube": range(50, 251, 50),
    "linear": range(10),
}
PUBLISHED = {  # score, average precision, sum of probabilities, models
    "checkerboard": ((0.29, 0.14), (0.60, 0.23), 7.3, 308_700),
    "friedman": ((0.83, 0.03), (0.95, 0.04), 7.8, 323_200),
    "hypercube": ((0.88, 0.04), (0.97, 0.06), 12.1, 162_600),
    "linear": ((0.78, 0.03), (0.67, 0.13), 12.7, 214_400),
}


def main() -> None:
    """Run the files asked for, print a line each and the means beside the published figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=3000)
    parser.add_argument("--patience", type=int)
    parser.add_argument("--problems", nargs="+", default=list(RELEVANT))
    parser.add_argument("--files", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        from prs_in_memory import run_file

        relevant = list(RELEVANT[given.folder.stem.split("_")[0]])
        one = run_file(given.folder, relevant, given.epochs, given.patience)
        given.one.write_text(json.dumps(one))
        return
    for problem in given.problems:
        found = [_measured(given, given.folder / f"{problem}_{i}.npz") for i in given.files]
        (score, spread), (ap, ap_spread), total, models = PUBLISHED[problem]
        means = {name: sum(f[name] for f in found) / len(found) for name in found[0]}
        print(
            f"{problem}: score {means['score']:.3f} (published {score} +- {spread}), "
            f"average precision {means['ap']:.2f} ({ap} +- {ap_spread}), "
            f"sum {means['sum']:.1f} ({total}), models {means['models']:,.0f} ({models:,}), "
            f"{means['seconds']:.0f} s, {means['peak_mb']:.0f} MB",
            flush=True,
        )


def _measured(given: argparse.Namespace, path: Path) -> dict[str, float]:
    with TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        words = [sys.executable, __file__, str(path), "--one", str(out)]
        words += ["--epochs", str(given.epochs)]
        words += [] if given.patience is None else ["--patience", str(given.patience)]
        done = measure(words)
        found: dict[str, float] = json.loads(out.read_text()) | {"peak_mb": done.peak_mb}
    print(f"  {path.stem}: {json.dumps({k: round(v, 3) for k, v in found.items()})}", flush=True)
    return found


if __name__ == "__main__":
    main()
