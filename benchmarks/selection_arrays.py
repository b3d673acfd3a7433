"""A child process: the table of a problem as NumPy files, for methods that hold it in memory.

    python make_arrays.py FOLDER [--real TABLE.csv.gz --seed S]

Without ``--real``: from the truth beside FOLDER/table.zarr. With it: the table with its target
permuted by the seed, also as FOLDER/table.csv.
"""

import argparse
import gzip
import json
from pathlib import Path

import numpy as np

PIECE_ROWS = 100


def synthetic(folder: Path) -> None:
    """Write the arrays of a generated table, piece by piece."""
    from more_problems import PROBLEMS

    from srs_ooc.synthetic.problems import rows

    record = json.loads((folder / "table.zarr.truth.json").read_text())
    problem = PROBLEMS[record["problem"]](**record["parameters"])
    shape = (problem.n_rows, problem.n_features)
    values = np.lib.format.open_memmap(folder / "values.npy", "w+", np.float32, shape)
    for start in range(0, problem.n_rows, PIECE_ROWS):
        stop = min(start + PIECE_ROWS, problem.n_rows)
        values[start:stop] = rows(problem, start, stop)
    target = problem.target(0, problem.n_rows)
    is_regression = target.dtype == np.float64
    np.save(folder / "target.npy", target if is_regression else target.astype(np.int64))


def permuted(folder: Path, source: Path, seed: int) -> None:
    """Write a real table whose target is permuted, as CSV and as arrays."""
    header, *lines = gzip.decompress(source.read_bytes()).decode().splitlines()
    values, as_given = zip(*(line.rsplit(",", 1) for line in lines), strict=True)
    labels = np.random.default_rng(seed).permutation(as_given)
    joined = (f"{value},{label}" for value, label in zip(values, labels, strict=True))
    (folder / "table.csv").write_text("\n".join([header, *joined]) + "\n")
    np.save(folder / "values.npy", np.array([line.split(",") for line in values], np.float32))
    np.save(folder / "target.npy", np.unique(labels, return_inverse=True)[1])


def main() -> None:
    """Read the options and write the files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.real is None:
        synthetic(arguments.folder)
    else:
        permuted(arguments.folder, arguments.real, arguments.seed)


if __name__ == "__main__":
    main()
