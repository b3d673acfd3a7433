"""A problem written to disk: its table, all at once or not at all, and its truth beside it."""

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from srs_ooc.base.arrays import Uints
from srs_ooc.base.errors import UsageError
from srs_ooc.base.files import check_free, explained, published_file, published_folder
from srs_ooc.base.text import MB
from srs_ooc.synthetic import problems
from srs_ooc.synthetic.cells import CELL_LIMIT, STEPS
from srs_ooc.synthetic.problems import Problem

# Every cell of a text is one of 199,999 short strings.
NAMES_AT_ONCE = 1 << 16
GZIP_LEVEL = 1
WORK_NBYTES = 48 * MB
N_THREADS = 2
TRUTH_SUFFIX = ".truth.json"


@cache
def _words() -> Uints:
    """Return the text of each cell from -CELL_LIMIT up, comma included, padded to eight bytes."""
    values = (f"{step / STEPS:.4f}," for step in range(-CELL_LIMIT, CELL_LIMIT + 1))
    packed = b"".join(value.encode().ljust(8, b"\0") for value in values)
    return np.frombuffer(packed, dtype=np.uint64)


@cache
def _endings() -> Uints:
    """Return the text of each label with its line end, packed like a cell."""
    packed = b"".join(f"{label}\n".encode().ljust(8, b"\0") for label in range(256))
    return np.frombuffer(packed, dtype=np.uint64)


def csv_pieces(problem: Problem) -> Iterator[bytes]:
    """Yield the table as CSV, header first and target last, in pieces of bounded size."""
    for start in range(0, problem.n_features, NAMES_AT_ONCE):
        stop = min(start + NAMES_AT_ONCE, problem.n_features)
        yield "".join(f"{problems.feature_name(i)}," for i in range(start, stop)).encode()
    yield f"{problems.TARGET_NAME}\n".encode()
    width = min(problem.n_features, problems.PIECE_CELLS)
    for start, stop in problems.pieces(problem.n_rows, width):
        endings = _endings()[problem.target(start, stop)][:, None]
        for left in range(0, problem.n_features, width):
            right = min(left + width, problem.n_features)
            cells = problem.cells(start, stop, np.arange(left, right, dtype=np.uint32))
            words = _words()[cells + CELL_LIMIT]
            if right == problem.n_features:
                words = np.hstack([words, endings])
            yield words.tobytes().translate(None, b"\0")


def write_csv(problem: Problem, path: Path, *, compressed: bool) -> None:
    """Write the table to ``path`` as CSV, gzipped if ``compressed``; equal problems, equal bytes.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    with path.open("wb") as plain:
        if not compressed:
            plain.writelines(csv_pieces(problem))
            return
        # No name and no time in the gzip header, so that equal tables are equal files.
        with gzip.GzipFile("", "wb", GZIP_LEVEL, plain, mtime=0) as zipped:
            zipped.writelines(csv_pieces(problem))


def write_problem(problem: Problem, folder: Path) -> None:
    """Write the files of a store into an empty folder, as ingesting the CSV file would.

    Only the manifest differs: it names the problem as the source.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    from srs_ooc.ingestion.ingest_memory import StoreForm, fit_batch
    from srs_ooc.ingestion.rows import TableFacts
    from srs_ooc.ingestion.scratch import text_blocks
    from srs_ooc.ingestion.writer import CodedTable, write_store
    from srs_ooc.store.manifest import Shape

    shape = Shape(problem.n_rows, problem.n_features)
    target = problem.target(0, problem.n_rows).astype(np.int32)
    labels = tuple(str(label) for label in range(int(target.max()) + 1))
    truth = problems.describe(problem)
    source = {"format": "synth", "name": truth["problem"], "parameters": truth["parameters"]}
    write_store(
        folder,
        CodedTable(problem),
        TableFacts(problems.TARGET_NAME, labels, source=source, arrays={"target": target}),
        text_blocks(problems.feature_name(position) for position in range(problem.n_features)),
        batch_features=fit_batch(shape, StoreForm(), WORK_NBYTES)[0],
        n_threads=N_THREADS,
    )


def truth_path(out: Path) -> Path:
    """Return where the truth of the table at ``out`` is written."""
    return out.with_name(out.name + TRUTH_SUFFIX)


def write_table(problem: Problem, out: Path) -> None:
    """Write ``problem`` to ``out``: CSV if named ``.csv`` or ``.csv.gz``, a store if ``.zarr``.

    The truth goes to :func:`truth_path` just before the table appears.

    Raises
    ------
    UsageError
        If the ending is another, the table has one class only, or it or its truth exists.
    StoreError
        If they cannot be written.
    """
    name = out.name
    if not name.endswith((".csv", ".csv.gz", ".zarr")):
        raise UsageError(f"{out}: expected a name ending in .csv, .csv.gz or .zarr.")
    target = problem.target(0, problem.n_rows)
    if np.all(target == target[0]):
        raise UsageError(
            f"--rows {problem.n_rows}: expected a table of at least two classes, found one class. "
            "Ask for more rows, or another --seed."
        )
    check_free(out)
    check_free(truth_path(out))
    is_store = name.endswith(".zarr")
    with explained(out), (published_folder if is_store else published_file)(out) as scratch:
        if is_store:
            write_problem(problem, scratch)
        else:
            write_csv(problem, scratch, compressed=name.endswith(".gz"))
        with published_file(truth_path(out)) as beside:
            beside.write_text(
                json.dumps(problems.describe(problem), indent=1) + "\n", encoding="utf-8"
            )
