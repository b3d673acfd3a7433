"""Synthetic problems by name, and their tables: read by rows or columns, written as text or stores.

A new problem is a class here and a line in the table at the end.
"""

import gzip
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.files import check_free, explained, published_file, published_folder
from srs_ooc.base.seeds import Purpose, below, derive, derive_array, key_of, scale_below
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.native.numerics import products

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
    for start, stop in pieces(problem.n_rows, len(positions)):
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
    counter = count()
    while len(drawn) < n_places:
        drawn[below(key, next(counter), n_features)] = None
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
        "parameters": asdict(problem),  # type: ignore[call-overload]
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

WORK_NBYTES = 48 * MB
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
        batch_features=fit_batch(shape, form, WORK_NBYTES)[0],
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
        If the ending is another, the table has one class only, or it or its truth exists.
    StoreError
        If they cannot be written.
    """
    name = out.name
    if not name.endswith((".csv", ".csv.gz", ".zarr")):
        raise UsageError(f"{out}: expected a name ending in .csv, .csv.gz or .zarr.")
    _check_classes(problem)
    check_free(out)
    check_free(truth_path(out))
    with explained(out):
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


# Features planted at random places.

MAX_RELEVANT = 1000
_PLACES = 1


@dataclass(frozen=True)
class Planted(Problem):
    """A table of which some features, at random positions, are relevant.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    n_relevant : int
        Relevant features, 1 to :attr:`most_relevant`.
    seed : int
        Seed of the table.

    Raises
    ------
    UsageError
        If a parameter is outside its range.
    """

    most_relevant: ClassVar[int] = MAX_RELEVANT

    n_rows: int
    n_features: int
    n_relevant: int
    seed: int

    def __post_init__(self) -> None:
        check_shape(self.n_rows, self.n_features, self.seed)
        most = min(self.n_features, self.most_relevant)
        if not 1 <= self.n_relevant <= most:
            raise UsageError(
                f"--relevant: expected 1 to {most} (at most --features and at most "
                f"{self.most_relevant}), found {self.n_relevant}."
            )

    @cached_property
    def positions(self) -> NDArray[np.uint32]:
        """Source positions of the relevant features, first to last: uint32 (n_relevant,)."""
        return distinct_places(self._key(_PLACES), self.n_relevant, self.n_features)


# Madelon: two classes that differ only in how several features go together.
#
# After the generator of the data set of that name (Guyon 2003, "Design of experiments of the NIPS
# 2003 variable selection benchmark"): Gaussian clusters on vertices of a hypercube, classes given
# to vertices at random, linear combinations of the coordinates as redundant features, all else
# noise. With 20 relevant features among 500 it is as hard as the published table; see `CLASS_SEP`.

MAX_CLUSTERS = 32
CLASS_SEP = 2.0
"""Half the side of the hypercube, in units of a cluster's scale.

Accuracy of 200 extra-trees in 3-fold cross-validation at 2,600 rows, published table against three
seeds of this one: 0.86 against 0.87 to 0.90 on all 500 features (every feature a candidate), 0.90
against 0.90 to 0.93 on the 20 relevant; logistic regression on those 0.60 against 0.57 to 0.70.
"""
FLIPPED = 0.01


_VERTICES, _MIXING, _WEIGHTS, _CLUSTER, _POINT, _FLIP, _MADELON_NOISE = 2, 3, 4, 5, 6, 7, 8


class Madelon(Planted):
    """A madelon-like table.

    Of ``n_relevant`` features, d = max(1, n_relevant // 4) are informative: coordinates of
    min(2**d, 32) Gaussian clusters of equal size, centred on vertices of a hypercube of side
    ``2 * CLASS_SEP``, each with a random covariance. Half the vertices, at random, belong to each
    class. The other relevant features are random linear combinations of the informative ones. All
    features have mean 0 and variance 1, so scale is not informative. One label in a hundred is
    flipped.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    n_relevant : int
        Informative and redundant features together, 1 to 1000; they lie at random positions.
    seed : int
        Seed of the table.

    Raises
    ------
    UsageError
        If a parameter is outside its range.
    """

    name = "madelon"

    @property
    def n_informative(self) -> int:
        """Dimension d of the hypercube."""
        return max(1, self.n_relevant // 4)

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        out = noise_cells(self._key(_MADELON_NOISE), start, stop, columns)
        at, which = find_planted(self.positions, columns)
        if len(at):
            for low, high in pieces(stop - start, 4 * self.n_relevant):
                values = self._relevant(start + low, start + high)
                out[low:high, at] = to_cells(values[:, which])
        return out

    def target(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        rows = np.arange(start, stop, dtype=np.uint64)
        flipped = derive_array(self._key(_FLIP), rows) < np.uint64(int(FLIPPED * 2.0**64))
        labels: NDArray[np.uint8] = (self._cluster[start:stop] & np.uint8(1)) ^ flipped
        return labels

    def roles(self) -> dict[str, tuple[int, ...]]:
        """Return the relevant features: ``informative`` span the cube, ``redundant`` the rest."""
        informative, redundant = np.split(self.positions, [self.n_informative])
        return {
            "informative": tuple(sorted(informative.tolist())),
            "redundant": tuple(sorted(redundant.tolist())),
        }

    @cached_property
    def _vertices(self) -> NDArray[np.float64]:
        """Cluster centres in units of CLASS_SEP, (n_clusters, d); odd ones are of class 1."""
        key, d = self._key(_VERTICES), self.n_informative
        drawn = (_draw_vertices(derive(key, attempt), d) for attempt in count())
        return next(v for v in drawn if 2**d > MAX_CLUSTERS or _depends_on_all(v))

    @cached_property
    def _mixing(self) -> NDArray[np.float64]:
        """Square roots of the clusters' covariances: (n_clusters, d, d), uniform in [-1, 1)."""
        n_clusters, d = self._vertices.shape
        grid = hash_grid(self._key(_MIXING), np.arange(n_clusters * d), np.arange(d))
        return uniforms(grid).reshape(n_clusters, d, d)

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """Informative to relevant features, all standardised: (d, n_relevant)."""
        d = self.n_informative
        grid = hash_grid(
            self._key(_WEIGHTS), np.arange(d), np.arange(self.n_relevant - d, dtype=np.uint64)
        )
        weights = np.hstack([np.eye(d), uniforms(grid)])
        spread = CLASS_SEP**2 * np.cov(self._vertices.T, bias=True).reshape(d, d)
        roots = self._mixing.reshape(-1, d)
        spread = spread + products(roots, roots) / len(self._vertices)
        scales: NDArray[np.float64] = np.sqrt(np.sum(weights * products(spread, weights), axis=0))
        return weights / scales

    @cached_property
    def _cluster(self) -> NDArray[np.uint8]:
        """Cluster of each row, in equal shares and random order: uint8 (n_rows,)."""
        rows = np.arange(self.n_rows, dtype=np.uint64)
        order = np.argsort(derive_array(self._key(_CLUSTER), rows), kind="stable")
        cluster = np.empty(self.n_rows, dtype=np.uint8)
        cluster[order] = np.arange(self.n_rows) % len(self._vertices)
        return cluster

    def _relevant(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the relevant features of some rows: (stop - start, n_relevant).

        Products are summed term by term, so a value does not depend on which rows were asked for.
        """
        d = self.n_informative
        cluster = self._cluster[start:stop]
        rows = np.arange(start, stop, dtype=np.uint64)
        points = normals(hash_grid(self._key(_POINT), rows, np.arange(d)))
        centred = self._vertices - self._vertices.mean(axis=0)
        informative = CLASS_SEP * centred[cluster]
        for j in range(d):
            informative += points[:, j, None] * self._mixing[cluster, j]
        relevant = np.zeros((stop - start, self.n_relevant))
        for j in range(d):
            relevant += informative[:, j, None] * self._weights[j]
        return relevant


def _draw_vertices(key: int, d: int) -> NDArray[np.float64]:
    """Return min(2**d, 32) distinct vertices of the d-cube in random order: -1 or 1, (n, d)."""
    n_low = min(d, 16)
    numbers = np.argsort(derive_array(key, np.arange(2**n_low)), kind="stable")[:MAX_CLUSTERS]
    low = (numbers[:, None] >> np.arange(n_low)) & 1
    grid = hash_grid(derive(key, 1), np.arange(len(numbers)), np.arange(d - n_low))
    high = (grid & np.uint64(1)).astype(np.int64)
    return 2.0 * np.hstack([low, high]) - 1.0


def _depends_on_all(vertices: NDArray[np.float64]) -> bool:
    """Return whether the class changes along some edge in every dimension of the full cube."""
    d = vertices.shape[1]
    numbers = ((vertices > 0) @ (1 << np.arange(d))).astype(np.int64)
    label = np.empty(2**d, dtype=np.int64)
    label[numbers] = np.arange(2**d) & 1
    return all(bool(np.any(label != label[np.arange(2**d) ^ (1 << j)])) for j in range(d))


# Chain: the first scenario of Section 4.2 as a table of fair bits.
#
# The relevant features are r fair bits and the target is a function of them and of a hidden cell
# number. Exact tables hold every cell equally often, so what is true of the distribution is true of
# the table: trees grown on it are trees of infinite samples.
#
# Irrelevant features of an exact table are functions of the repetition alone. The table is the
# product of cells and repetitions, so all of them *together* are independent of the relevant
# features and the target: at any node of any tree, whatever it was split on before, they decrease
# no impurity at all. (They need not be independent of one another, which for many features would
# take more rows than there are.) With one repetition they are constant.

_CELL, _NOISE = 2, 3

Bits = NDArray[np.int64]


@dataclass(frozen=True)
class Chain(Planted):
    """Target = parity of the first i of r bits, i uniform in 1..r: bit i has degree i - 1.

    Each bit is seen exactly beside all the bits before it. Another target of the cells is a
    subclass.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    n_relevant : int
        r, 1 to 16; they lie at random positions.
    seed : int
        Seed of the positions and of the irrelevant features.
    exact : bool
        Every cell of the joint distribution ``n_rows / n_cells`` times; otherwise rows are drawn
        from it independently, and irrelevant features are normal and independent of everything.

    Raises
    ------
    UsageError
        If a parameter is outside its range, or an exact table has a number of rows that is no
        multiple of its cells.
    """

    name = "chain"
    most_relevant = 16

    exact: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        n_cells = self.n_cells(self.n_relevant)
        if self.exact and self.n_rows % n_cells:
            raise UsageError(
                f"--rows: expected a multiple of {n_cells}, the cells of an exact {self.name} of "
                f"{self.n_relevant}, found {self.n_rows}. Leave --rows or --exact out."
            )

    @staticmethod
    def n_cells(n_relevant: int) -> int:
        """Return r 2**r, the equally likely cells of the joint distribution: i, and the bits."""
        return n_relevant << n_relevant

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        out = self._irrelevant(start, stop, columns)
        numbers = self._cells(start, stop)
        at, which = find_planted(self.positions, columns)
        out[:, at] = STEPS * ((numbers[:, None] >> which) & 1)
        return out

    def target(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return self.class_of(self._cells(start, stop)).astype(np.uint8)

    def class_of(self, cells: Bits) -> Bits:
        """Return the class of each cell, 0 or 1; the lowest r bits of a cell are the features."""
        length = (cells >> self.n_relevant) + 1
        return parity(cells & ((1 << length) - 1))

    def roles(self) -> dict[str, tuple[int, ...]]:
        """Return the relevant features, by degree."""
        return {f"degree {i}": (place,) for i, place in enumerate(self.positions.tolist())}

    def _cells(self, start: int, stop: int) -> Bits:
        n_cells, rows = self.n_cells(self.n_relevant), np.arange(start, stop)
        if self.exact:
            return rows % n_cells
        return scale_below(derive_array(self._key(_CELL), rows), n_cells).astype(np.int64)

    def _irrelevant(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return every column as if it were irrelevant: a function of (repetition, column)."""
        if not self.exact:
            return noise_cells(self._key(_NOISE), start, stop, columns)
        n_cells = self.n_cells(self.n_relevant)
        first = start // n_cells
        noise = noise_cells(self._key(_NOISE), first, (stop + n_cells - 1) // n_cells, columns)
        return noise[np.arange(start, stop) // n_cells - first]


def parity(numbers: Bits) -> Bits:
    """Return whether an odd number of the lowest 32 bits are set, of each number."""
    for shift in (16, 8, 4, 2, 1):
        numbers = numbers ^ (numbers >> shift)
    return numbers & 1


# Correlated blocks: features in autoregressive blocks, one cause in each of some of them.

MAX_BLOCK_SIZE = 1000
_BLOCKS, _MEMBERS, _CELLS, _SIGNS, _CORRELATED_NOISE = 1, 2, 3, 4, 5
_NOISE_COLUMN = np.zeros(1, dtype=np.uint32)


def check_blocks(block_size: int, correlation: float) -> None:
    """Raise UsageError unless blocks of this kind can be generated."""
    if not 1 <= block_size <= MAX_BLOCK_SIZE:
        raise UsageError(f"--block-size: expected 1 to {MAX_BLOCK_SIZE}, found {block_size}.")
    if not -1 < correlation < 1:
        raise UsageError(f"--correlation: expected a number inside -1..1, found {correlation:g}.")


def block_cells(
    key: int,
    start: int,
    stop: int,
    columns: NDArray[np.uint32],
    block_size: int,
    correlation: float,
) -> Cells:
    """Return cells of blocks of neighbours, each an AR(1) series: int32 (stop - start, n columns).

    Feature j of a block is ``correlation`` times the one before it plus independent normal noise,
    with mean 0 and variance 1. Only blocks with a column asked for are computed, so the work for
    scattered columns is up to ``block_size`` times that of noise.
    """
    blocks, place = np.unique(columns // np.uint32(block_size), return_inverse=True)
    member = columns % np.uint32(block_size)
    rows = np.arange(start, stop, dtype=np.uint64)
    out = np.empty((stop - start, len(columns)), dtype=np.int32)
    scale = np.sqrt(1.0 - correlation * correlation)
    state = np.empty((stop - start, len(blocks)))
    for j in range(int(member.max()) + 1 if len(columns) else 0):
        fresh = normals(hash_grid(key, rows, blocks.astype(np.uint64) * np.uint64(block_size) + j))
        state = correlation * state + scale * fresh if j else fresh
        at = np.flatnonzero(member == j)
        out[:, at] = to_cells(state[:, place[at]])
    return out


@dataclass(frozen=True)
class Blocks(Planted):
    """A table of correlated blocks with one cause in each of some blocks.

    Neighbours in the source form blocks of ``block_size`` (the last may be shorter), autoregressive
    inside and independent of one another. The class is the sign of a sum of the causes with random
    signs and equal weights, and normal noise of half their weight together. The other members of
    a block with a cause stand in for it: they are relevant by Definition 1 of the paper.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    n_relevant : int
        Blocks with a cause, 1 to all blocks; blocks and places of causes are random.
    seed : int
        Seed of the table.
    block_size : int
        Features of a block, 1 to 1000.
    correlation : float
        Of neighbours in a block, between -1 and 1.

    Raises
    ------
    UsageError
        If a parameter is outside its range.
    """

    name = "blocks"
    word = (103,)

    block_size: int = 20
    correlation: float = 0.9

    def __post_init__(self) -> None:
        check_shape(self.n_rows, self.n_features, self.seed)
        check_blocks(self.block_size, self.correlation)
        n_blocks = ceil_div(self.n_features, self.block_size)
        if not 1 <= self.n_relevant <= n_blocks:
            raise UsageError(
                f"--relevant: expected 1 to {n_blocks}, the number of blocks, "
                f"found {self.n_relevant}."
            )

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        key = self._key(_CELLS)
        return block_cells(key, start, stop, columns, self.block_size, self.correlation)

    def target(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return additive_classes(
            self.cells(start, stop, self.positions),
            signs(self._key(_SIGNS), self.n_relevant),
            noise_cells(self._key(_CORRELATED_NOISE), start, stop, _NOISE_COLUMN),
        )

    def roles(self) -> dict[str, tuple[int, ...]]:
        """Return each cause, and the features that stand in for it."""
        causes = set(self.positions.tolist())
        proxies = {member for block in self.blocks_with_cause for member in block} - causes
        return {"cause": tuple(sorted(causes)), "proxy": tuple(sorted(proxies))}

    @property
    def blocks_with_cause(self) -> tuple[tuple[int, ...], ...]:
        """The blocks with a cause, ascending."""
        blocks = (self._members(place // self.block_size) for place in self.positions.tolist())
        return tuple(sorted(blocks))

    @cached_property
    def positions(self) -> NDArray[np.uint32]:
        """Source positions of the causes: uint32 (n_relevant,)."""
        n_blocks = ceil_div(self.n_features, self.block_size)
        blocks = distinct_places(self._key(_BLOCKS), self.n_relevant, n_blocks).tolist()
        key = self._key(_MEMBERS)
        members = (self._members(block) for block in blocks)
        return np.array([m[below(key, i, len(m))] for i, m in enumerate(members)], dtype=np.uint32)

    def _members(self, block: int) -> tuple[int, ...]:
        first = block * self.block_size
        return tuple(range(first, min(first + self.block_size, self.n_features)))


# Noise: two equal classes that no feature is informative about.

BLOCK_SIZE = 20
CORRELATION = 0.9
_NULL_CELLS, _NULL_CLASSES = 1, 2


@dataclass(frozen=True)
class Noise(Problem):
    """A table of standard normal features, independent of the target.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    seed : int
        Seed of the table.
    blocks : bool
        Features in correlated blocks of 20, as in :class:`~srs_ooc.synthetic.problems.Blocks`;
        otherwise independent of one another too.

    Raises
    ------
    UsageError
        If a parameter is outside its range.
    """

    name = "noise"
    word = (104,)

    n_rows: int
    n_features: int
    seed: int
    blocks: bool = False

    def __post_init__(self) -> None:
        check_shape(self.n_rows, self.n_features, self.seed)

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        key = self._key(_NULL_CELLS)
        if self.blocks:
            return block_cells(key, start, stop, columns, BLOCK_SIZE, CORRELATION)
        return noise_cells(key, start, stop, columns)

    def target(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return self._classes[start:stop]

    def roles(self) -> dict[str, tuple[int, ...]]:
        """Return that no feature is relevant."""
        return {}

    @cached_property
    def _classes(self) -> NDArray[np.uint8]:
        return shuffled_classes(self._key(_NULL_CLASSES), self.n_rows, self.n_rows // 2)


# The problems there are, by name.

PROBLEMS: dict[str, type[Problem]] = {kind.name: kind for kind in (Madelon, Chain, Blocks, Noise)}
