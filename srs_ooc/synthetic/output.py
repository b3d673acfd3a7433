"""A problem written to disk: its table, all at once or not at all, and its truth beside it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from srs_ooc.base.errors import UsageError
from srs_ooc.base.files import published_file, published_folder
from srs_ooc.synthetic.problem import Problem, describe
from srs_ooc.synthetic.text import write_csv

TRUTH_SUFFIX = ".truth.json"


def truth_path(out: Path) -> Path:
    """Return where the truth of the table at ``out`` is written."""
    return out.with_name(out.name + TRUTH_SUFFIX)


def write_table(problem: Problem, out: Path) -> None:
    """Write ``problem`` to ``out``: CSV if named ``.csv`` or ``.csv.gz``, a store if ``.zarr``.

    The truth goes to :func:`truth_path` just before the table appears.

    Raises
    ------
    UsageError
        If the ending is another, the table has one class only, or it or its truth exists or
        cannot be written.
    """
    name = out.name
    if not name.endswith((".csv", ".csv.gz", ".zarr")):
        raise UsageError(f"{out}: expected a name ending in .csv, .csv.gz or .zarr.")
    _check_classes(problem)
    with _explained(out):
        for path in (out, truth_path(out)):
            if path.exists():
                raise FileExistsError(f"{path} exists")
        if name.endswith(".zarr"):
            from srs_ooc.synthetic.store import write_problem

            with published_folder(out) as folder:
                write_problem(problem, folder)
                _write_truth(problem, out)
        else:
            with published_file(out) as scratch:
                write_csv(problem, scratch, compressed=name.endswith(".gz"))
                _write_truth(problem, out)


def _check_classes(problem: Problem) -> None:
    target = problem.target(0, problem.n_rows)
    if target.dtype == np.uint8 and np.all(target == target[0]):
        raise UsageError(
            f"--rows {problem.n_rows}: expected a table of at least two classes, found one class. "
            "Ask for more rows, or another --seed."
        )


def _write_truth(problem: Problem, out: Path) -> None:
    with published_file(truth_path(out)) as scratch:
        scratch.write_text(json.dumps(describe(problem), indent=1) + "\n", encoding="utf-8")


@contextmanager
def _explained(out: Path) -> Iterator[None]:
    """Turn errors of the file system into messages to the user."""
    try:
        yield
    except FileExistsError as error:
        raise UsageError(
            f"{error}; expected a free name. Choose another name, or remove it."
        ) from error
    except OSError as error:
        raise UsageError(
            f"{out}: expected a place that can be written, found: {error.strerror or error}. "
            "Choose another folder or free some space; no table was left there."
        ) from error
