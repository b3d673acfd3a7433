"""What a synthetic problem is, and its table: read by rows or columns, and written as text."""

import dataclasses
import gzip
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.files import published_file, published_folder
from srs_ooc.base.seeds import Purpose, below, derive_array, key_of
from srs_ooc.base.text import MB, ceil_div

# What a synthetic problem is, and the two ways its table is read: by rows and by columns.
#
# Every value is a multiple of 10**-4 with absolute value below 10, held as the integer number of
# those steps (a *cell*). A CSV file and a store made from one problem therefore agree exactly.

STEPS = 10_000
CELL_LIMIT = 99_999
PIECE_CELLS = 1 << 19
MAX_SIDE = 1 << 32
TARGET_NAME = "target"

Cells = NDArray[np.int32]


class Problem(ABC):
    """A table that can be computed anywhere, in any order, from its parameters and seed.

    Subclasses are frozen dataclasses: their fields are the parameters.
    """

    name: ClassVar[str]
    word: ClassVar[tuple[int, ...]] = ()
    """What keys have beside the seed, so that problems of one seed share no numbers."""

    n_rows: int
    n_features: int
    seed: int

    @abstractmethod
    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""

    @abstractmethod
    def target(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the class codes of rows ``start .. stop - 1``: uint8 (stop - start,)."""

    @abstractmethod
    def roles(self) -> dict[str, tuple[int, ...]]:
        """Return the relevant features by what they are: source positions, ascending.

        Relevant are those that carry information on the target.
        """

    @property
    def relevant(self) -> tuple[int, ...]:
        """Source positions of the relevant features, ascending."""
        return tuple(sorted(place for places in self.roles().values() for place in places))

    @property
    def blocks_with_cause(self) -> tuple[tuple[int, ...], ...]:
        """Features that stand in for one another; empty where each stands for itself."""
        return ()

    @cached_property
    def _stored(self) -> NDArray[np.uint32]:
        from srs_ooc.ingestion.ingest_options import stored_positions

        return stored_positions(self.n_features)

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        return columns(self, self._stored[start:stop])

    def _key(self, part: int) -> int:
        """Return the key of what is numbered ``part`` in the problem."""
        return key_of(Purpose.SYNTH, self.seed, *self.word, part)


def feature_name(position: int) -> str:
    """Return the name of the feature at a source position."""
    return f"f{position}"


def to_cells(values: NDArray[np.float64]) -> Cells:
    """Round values to cells, cut at the largest cell."""
    steps = np.rint(values * STEPS)
    return np.clip(steps, -CELL_LIMIT, CELL_LIMIT, out=steps).astype(np.int32)


def rows(problem: Problem, start: int, stop: int) -> NDArray[np.float64]:
    """Return rows ``start .. stop - 1`` as float64 (stop - start, n_features)."""
    columns = np.arange(problem.n_features, dtype=np.uint32)
    return problem.cells(start, stop, columns) / STEPS


def columns(problem: Problem, positions: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Return the features at ``positions`` as float64 (len(positions), n_rows)."""
    values = np.empty((len(positions), problem.n_rows))
    step = max(1, PIECE_CELLS // max(1, len(positions)))
    for start in range(0, problem.n_rows, step):
        stop = min(start + step, problem.n_rows)
        np.divide(problem.cells(start, stop, positions).T, STEPS, out=values[:, start:stop])
    return values


def check_shape(n_rows: int, n_features: int, seed: int) -> None:
    """Raise UsageError unless the table has a size that can be generated."""
    for option, value, least in (("--rows", n_rows, 2), ("--features", n_features, 1)):
        if not least <= value < MAX_SIDE:
            raise UsageError(
                f"{option}: expected a number from {least} to {MAX_SIDE - 1}, found {value}."
            )
    if seed < 0:
        raise UsageError(f"--seed: expected 0 or more, found {seed}.")


def distinct_places(key: int, n_places: int, n_features: int) -> NDArray[np.uint32]:
    """Return distinct random source positions, in the order drawn: uint32 (n_places,)."""
    drawn: dict[int, None] = {}
    for counter in count():
        drawn[below(key, counter, n_features)] = None
        if len(drawn) == n_places:
            break
    return np.array(list(drawn), dtype=np.uint32)


def find_planted(
    positions: NDArray[np.uint32], columns: NDArray[np.uint32]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find which of the ``columns`` asked for are planted at ``positions``, both distinct.

    Returns
    -------
    at, which : intp (n_found,)
        Places in ``columns``, ascending, and the place in ``positions`` of each.
    """
    order = np.argsort(positions)
    places = np.searchsorted(positions, columns, sorter=order)
    which = order[np.minimum(places, len(positions) - 1)]
    at = np.flatnonzero(positions[which] == columns)
    return at, which[at]


def describe(problem: Problem) -> dict[str, Any]:
    """Return the JSON-ready record that is written beside a table: problem, parameters, truth."""
    record: dict[str, Any] = {
        "problem": problem.name,
        "parameters": dataclasses.asdict(problem),  # type: ignore[call-overload]
        "target": TARGET_NAME,
        "relevant": list(map(feature_name, problem.relevant)),
        "roles": {role: list(map(feature_name, some)) for role, some in problem.roles().items()},
    }
    if problem.blocks_with_cause:
        record["blocks"] = [list(map(feature_name, some)) for some in problem.blocks_with_cause]
    return record


def pieces(n_rows: int, width: int) -> list[tuple[int, int]]:
    """Return row ranges of at most :data:`PIECE_CELLS` cells each, one row at the least."""
    step = max(1, PIECE_CELLS // max(1, width))
    return [(i * step, min((i + 1) * step, n_rows)) for i in range(ceil_div(n_rows, step))]


# Counter-based random numbers for tables: hashes of (key, row, column), made normal.

TILE_CELLS = 1 << 15
SEGMENT_BITS = 8
FRACTION_BITS = 52
SIGN_BIT = np.uint64(1 << 63)


def hash_grid(
    key: int, row_numbers: NDArray[np.integer], column_numbers: NDArray[np.integer]
) -> NDArray[np.uint64]:
    """Return one 64-bit hash per (row, column): uint64 (n rows, n columns), rows below 2**32."""
    counters = row_numbers.astype(np.uint64)[:, None] << np.uint64(32)
    return derive_array(key, counters | column_numbers.astype(np.uint64)[None, :])


def uniforms(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Map hashes to float64 uniform in [-1, 1)."""
    return (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


@cache
def _quantile_segments() -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Return intercepts, slopes and the first segment of the upper normal quantile.

    The tail probability is ``t * 2**-53`` for t in [0.5, 2**52). A segment is a value of the
    exponent and leading :data:`SEGMENT_BITS` fraction bits of the float64 t, so segments shrink
    with the tail and the largest error of the chords is below 10**-5 of a standard deviation.
    """
    shift = FRACTION_BITS - SEGMENT_BITS
    first = int(np.float64(0.5).view(np.uint64)) >> shift
    last = int(np.float64(2.0**52).view(np.uint64)) >> shift
    knots = (np.arange(first, last + 1, dtype=np.uint64) << np.uint64(shift)).view(np.float64)
    normal = NormalDist()
    quantiles = np.array([-normal.inv_cdf(t * 2.0**-53) for t in knots.tolist()])
    slopes = np.diff(quantiles) / np.diff(knots)
    return quantiles[:-1] - slopes * knots[:-1], slopes, first


def normals(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Map hashes to standard normal float64, by inversion: top bit the sign, low 52 the tail."""
    intercepts, slopes, first = _quantile_segments()
    tails = (hashes & np.uint64((1 << FRACTION_BITS) - 1)).astype(np.float64)
    tails += 0.5
    segments = tails.view(np.int64) >> (FRACTION_BITS - SEGMENT_BITS)
    segments -= first
    tails *= slopes[segments]
    tails += intercepts[segments]
    bits = tails.view(np.uint64)
    bits |= hashes & SIGN_BIT
    return tails


def noise_cells(key: int, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
    """Return standard normal cells of some rows: int32 (stop - start, len(columns)).

    A cell depends on the key, its row and its column only. Work goes in tiles that stay in cache.
    """
    out = np.empty((stop - start, len(columns)), dtype=np.int32)
    row_numbers = np.arange(start, stop, dtype=np.uint64)
    width = min(max(1, len(columns)), TILE_CELLS)
    height = max(1, TILE_CELLS // width)
    for top in range(0, stop - start, height):
        for left in range(0, len(columns), width):
            part = slice(top, top + height), slice(left, left + width)
            out[part] = to_cells(normals(hash_grid(key, row_numbers[part[0]], columns[part[1]])))
    return out


# A table as comma-separated text, by table lookup: every cell is one of 199,999 short strings.

NAMES_AT_ONCE = 1 << 16
GZIP_LEVEL = 1


@cache
def _words() -> NDArray[np.uint64]:
    """Return the text of each cell from -CELL_LIMIT up, comma included, padded to eight bytes."""
    values = (f"{step / STEPS:.4f}," for step in range(-CELL_LIMIT, CELL_LIMIT + 1))
    packed = b"".join(value.encode().ljust(8, b"\0") for value in values)
    return np.frombuffer(packed, dtype=np.uint64)


@cache
def _endings() -> NDArray[np.uint64]:
    """Return the text of each label with its line end, packed like a cell."""
    packed = b"".join(f"{label}\n".encode().ljust(8, b"\0") for label in range(256))
    return np.frombuffer(packed, dtype=np.uint64)


def _header(n_features: int) -> Iterator[bytes]:
    for start in range(0, n_features, NAMES_AT_ONCE):
        stop = min(start + NAMES_AT_ONCE, n_features)
        yield "".join(f"{feature_name(i)}," for i in range(start, stop)).encode()
    yield f"{TARGET_NAME}\n".encode()


def csv_pieces(problem: Problem) -> Iterator[bytes]:
    """Yield the table as CSV, header first and target last, in pieces of bounded size."""
    yield from _header(problem.n_features)
    width = min(problem.n_features, PIECE_CELLS)
    for start, stop in pieces(problem.n_rows, width):
        endings = _endings()[problem.target(start, stop)][:, None]
        for left in range(0, problem.n_features, width):
            right = min(left + width, problem.n_features)
            cells = problem.cells(start, stop, np.arange(left, right, dtype=np.uint32))
            cells += CELL_LIMIT
            words = _words()[cells]
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


# A problem as a store, without a CSV file in between.

N_THREADS = 2


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
    from srs_ooc.ingestion.writer import write_store
    from srs_ooc.store.manifest import Shape

    shape, form = Shape(problem.n_rows, problem.n_features), StoreForm()
    target = problem.target(0, problem.n_rows).astype(np.int32)
    labels = tuple(str(label) for label in range(int(target.max()) + 1))
    truth = describe(problem)
    source = {"format": "synth", "name": truth["problem"], "parameters": truth["parameters"]}
    write_store(
        folder,
        problem,
        target,
        TableFacts(TARGET_NAME, labels, source=source),
        text_blocks(feature_name(position) for position in range(problem.n_features)),
        form=form,
        batch_features=fit_batch(shape, form, 48 * MB)[0],
        n_threads=N_THREADS,
    )


# A problem written to disk: its table, all at once or not at all, and its truth beside it.

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
            with published_folder(out) as folder:
                write_problem(problem, folder)
                _write_truth(problem, out)
        else:
            with published_file(out) as scratch:
                write_csv(problem, scratch, compressed=name.endswith(".gz"))
                _write_truth(problem, out)


def _check_classes(problem: Problem) -> None:
    target = problem.target(0, problem.n_rows)
    if np.all(target == target[0]):
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


# Targets of problems: classes in given shares, and classes by an additive score in integers.


def shuffled_classes(key: int, n_rows: int, n_ones: int) -> NDArray[np.uint8]:
    """Return class 1 for ``n_ones`` rows chosen at random, 0 for the others: uint8 (n_rows,)."""
    order = np.argsort(derive_array(key, np.arange(n_rows, dtype=np.uint64)), kind="stable")
    classes = np.zeros(n_rows, dtype=np.uint8)
    classes[order[:n_ones]] = 1
    return classes


def signs(key: int, n: int) -> NDArray[np.int64]:
    """Return n random signs: int64 (n,) of -1 and 1."""
    bits = derive_array(key, np.arange(n, dtype=np.uint64)) >> np.uint64(63)
    return 2 * bits.astype(np.int64) - 1


def additive_classes(
    causes: Cells, directions: NDArray[np.int64], noise: Cells
) -> NDArray[np.uint8]:
    """Return whether a signed sum of causes plus noise is above 0: uint8 (n,).

    Parameters
    ----------
    causes : int32 (n, r)
        Cells of the causes. Sums are integers, so no class hangs on the order of adding.
    directions : int64 (r,)
        Sign of each cause.
    noise : int32 (n, 1)
        Added with half the weight of all causes together, max(1, round(sqrt(r) / 2)).
    """
    weight = max(1, round(math.sqrt(len(directions)) / 2))
    score = causes @ directions + weight * noise[:, 0].astype(np.int64)
    return (score > 0).astype(np.uint8)
