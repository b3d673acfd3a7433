"""Edges: the genes that they join, their weights on disk, their order, and their files."""

import csv
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

import srs_ooc.extend as core

# What is on disk of a network: its identity, and the weights of the targets that are done.

STAGE = "network"
JOINT = "joint"
"""Under which the ledger keeps where the work on all targets together stands."""
SHARD_NBYTES = 2 * core.MB
"""Weights of so many targets are written together as about so many bytes take."""
COPIES = 5
"""Copies of a shard that are there at once while it is written or read."""


def shard_targets(n_targets: int, n_regulators: int) -> int:
    """Return how many targets' weights are written together."""
    return max(1, min(n_targets, SHARD_NBYTES // (8 * n_regulators)))


class EdgeStore:
    """The weights of a network's edges, target by target, in a ledger.

    Parameters
    ----------
    ledger : Ledger
        Open; for writing if weights are to be added.
    n_targets, n_regulators : int
        Its shape.

    Attributes
    ----------
    n_targets, n_regulators : int
        As given.
    n_done : int
        Targets, in their order, whose weights were added.
    """

    def __init__(self, ledger: core.Ledger, n_targets: int, n_regulators: int) -> None:
        self._ledger, self.n_targets, self.n_regulators = ledger, n_targets, n_regulators
        self._shard_targets = shard_targets(n_targets, n_regulators)
        self.committed = ledger.progress()
        self.n_done = self.committed.iteration
        self._shard = np.zeros((self._shard_targets, n_regulators))
        self.begin()
        if n_here := self.n_done % self._shard_targets:
            self._shard[:n_here] = self._read(self.n_done // self._shard_targets, n_here)

    def add(self, weights: core.Floats) -> None:
        """Take the weights of the next target, float64 (n_regulators,); commit where it is due."""
        self._shard[self.n_done % self._shard_targets] = weights
        self.n_done += 1
        if self.n_done % self._shard_targets == 0 or self.is_due:
            self.commit()

    @property
    def n_epochs(self) -> int:
        """Epochs of all targets together, as committed; 0 where targets are worked on alone."""
        return int(self._ledger.meta(JOINT)["epoch"]) if self._ledger.has_meta(JOINT) else 0

    def begin(self, parts: Mapping[str, core.Stateful] = MappingProxyType({})) -> None:
        """Count the seconds of work from now on; restore what is committed beside the weights."""
        self._before, self._begun, self._parts = self.committed, time.monotonic(), parts
        self._next_commit = core.commit_due()
        if parts:
            self._ledger.load(parts)

    @property
    def is_due(self) -> bool:
        """Whether it is time to commit: every second or so, more seldom where that takes long."""
        return time.monotonic() >= self._next_commit

    def commit(self) -> None:
        """Write what was added, and the states of the parts beside it, in one transaction."""
        parts = {name: part.state() for name, part in self._parts.items()}
        if self.n_done > self.committed.iteration:
            number = (self.n_done - 1) // self._shard_targets
            n_here = self.n_done - number * self._shard_targets
            parts[_name(number)] = core.State(arrays={"weights": self._shard[:n_here]})
        self.committed = self._before.later(self.n_done, 0, self._begun)
        self._next_commit = core.commit_due(self._ledger.commit(self.committed, parts))

    def shards(self) -> Iterator[tuple[int, core.Floats]]:
        """Yield (first target, weights of some, float64 (n, n_regulators)) of all that are done."""
        for first in range(0, self.committed.iteration, self._shard_targets):
            n_here = min(self._shard_targets, self.committed.iteration - first)
            yield first, self._read(first // self._shard_targets, n_here)

    def _read(self, number: int, n_here: int) -> core.Floats:
        arrays = self._ledger.read_arrays(_name(number))
        if arrays is None or arrays["weights"].shape != (n_here, self.n_regulators):
            found = "none" if arrays is None else f"some of shape {arrays['weights'].shape}"
            expected = f"the weights of {n_here} targets from {number * self._shard_targets} on"
            raise core.damaged_run(self._ledger.run, f"expected {expected}, found {found}")
        return np.asarray(arrays["weights"], np.float64)


def _name(number: int) -> str:
    return f"edges.{number}"


@contextmanager
def edge_ledger(folder: Path, identity: dict[str, Any], n_targets: int) -> Iterator[core.Ledger]:
    """Yield the ledger of a network, open for writing, creating it if there is none.

    Parameters
    ----------
    folder : Path
        Where it is, or is to be.
    identity : dict
        What the weights depend on, JSON-ready.
    n_targets : int
        Targets to be worked on, for those who look at it meanwhile.

    Raises
    ------
    RunError
        If what is there is a run, or a network of another identity: the differences are named.
    """
    if not folder.exists():
        core.Ledger.create(folder, {core.NETWORK: identity, core.N_TARGETS: n_targets}, {})
    with closing(core.Ledger(folder, writable=True)) as ledger:
        if not ledger.has_meta(core.NETWORK):
            raise core.RunError(
                f"{ledger.run}: expected the folder of a network, found a run of `srs-ooc run`. "
                "Name another folder with --run."
            )
        kept = ledger.meta(core.NETWORK)
        differ = (name for name in sorted(kept | identity) if kept.get(name) != identity.get(name))
        said = [
            f"{n.replace('_', '-')} {kept.get(n)} (asked for: {identity.get(n)})" for n in differ
        ]
        if said:
            raise core.RunError(
                f"{ledger.run}: a network was begun there with {', '.join(said)}. Ask for the same "
                "to go on with it, or name another folder with --run."
            )
        yield ledger


# Which features of a store are regulators and which are targets.

GENE_NBYTES = 64
"""Bytes kept of a feature while regulators and targets are found and compared."""
HASH_COLUMNS = 256
"""Columns that are read together to be compared."""
MOST_DUPLICATES, DUPLICATE_NBYTES = 1000, 300
"""Pairs of equal columns that are kept at most, and the bytes of one."""


def find_variables(
    store: core.Store, files: list[core.SideFile | None], spare_nbytes: int
) -> list[core.Uints32]:
    """Find regulators and targets: the features that two files name, or all of them.

    Returns
    -------
    regulators, targets : uint32
        Stored positions, ascending.

    Raises
    ------
    UsageError
        If a name is none of the store's, a named target is categorical, or a side has nothing.
    """
    named, targets = [_stored(store, file, spare_nbytes) for file in files], files[1]
    categorical = store.kinds()[named[1]] == core.CATEGORICAL
    if targets is not None and categorical.any():
        (place,) = store.positions_of(named[1][[categorical.argmax()]]).tolist()
        raise core.UsageError(
            f"{targets.file}: expected targets of numbers, found {int(categorical.sum())} "
            f"categorical (first: {store.names[place]!r}). Leave them out; they may be regulators."
        )
    named[1] = named[1][~categorical]
    if not len(named[1]):
        raise core.UsageError("--targets: expected features of numbers, found only categories.")
    if len(named[0]) == 1 and np.array_equal(named[0], named[1]):
        raise core.UsageError("--regulators: expected one besides the only target, found none.")
    return named


def _stored(store: core.Store, file: core.SideFile | None, spare_nbytes: int) -> core.Uints32:
    if file is None:
        return np.arange(store.n_features, dtype=np.uint32)
    return np.flatnonzero(file.stored_in(store, spare_nbytes)).astype(np.uint32)


def equal_columns(
    source: core.ColumnSource, regulators: core.Uints32, targets: core.Uints32
) -> tuple[int, list[tuple[int, int]]]:
    """Find regulators whose codes equal a target's: to a tree they are the target itself.

    Parameters
    ----------
    source : ColumnSource
        The columns, with the rows trained on.
    regulators, targets : uint32
        Those that are not constant.

    Returns
    -------
    n, pairs : int, list of (int, int)
        How many there are, and the first of them: (target, regulator), stored.
    """
    by_hash: dict[bytes, list[int]] = {}
    for feature, digest in _hashes(source, regulators):
        by_hash.setdefault(digest, []).append(feature)
    pairs = (
        (target, regulator)
        for target, digest in _hashes(source, targets)
        for regulator in by_hash.get(digest, ())
        if regulator != target
    )
    first = list(islice(pairs, MOST_DUPLICATES))
    return len(first) + sum(1 for _ in pairs), first


def _hashes(source: core.ColumnSource, features: core.Uints32) -> Iterable[tuple[int, bytes]]:
    manifest = source.columns.manifest
    n_rows = manifest.n_rows if source.rows is None else len(source.rows)
    block = core.Block(HASH_COLUMNS, n_rows, manifest.code_nbytes, tiled=False)
    for start in range(0, len(features), HASH_COLUMNS):
        some = features[start : start + HASH_COLUMNS]
        source.columns.gather(some, block, source.rows)
        for feature, column in zip(some.tolist(), block.as_columns(len(some)), strict=True):
            yield feature, blake2b(column.tobytes(), digest_size=16).digest()


# Writing edges to a file: CSV, or Parquet where pyarrow is installed.

COLUMNS = ("regulator", "target", "weight")
PARQUET = ".parquet"
_OTHERS = (".feather", ".arrow", ".npy", ".npz", ".xlsx", ".xls", ".json", ".gz", ".xz", ".zst")
Edge = tuple[str, str, float]
_Writer = Callable[[list[Edge]], None]


def check_edge_file(out: Path) -> None:
    """Refuse a name that promises a format which is not written, or Parquet without pyarrow.

    Raises
    ------
    UsageError
        Saying what to do.
    """
    suffix = out.suffix.lower()
    if str(out) == "-" or suffix in _OTHERS:
        raise core.UsageError(
            f"--out: expected the name of a CSV or Parquet file, such as edges.csv or "
            f"edges.parquet, found {out}. Choose another name."
        )
    if suffix == PARQUET:
        _arrow(out)


def write_edges(
    out: Path, edges: Iterable[list[Edge]], *, replaces: bool, safe: bool = False
) -> int:
    """Write edges, the heaviest first; the file appears complete or not at all.

    Parameters
    ----------
    out : Path
        Its suffix says the format.
    edges : iterable of lists of (regulator, target, weight)
        Some at a time, one at least.
    replaces : bool
        Replace a file that is there.
    safe : bool
        In CSV: no name is a formula to a spreadsheet.

    Returns
    -------
    int
        How many there were.

    Raises
    ------
    FileExistsError
        If there is a file, and it is not to be replaced.
    UsageError
        If the format needs a library that is not installed.
    """
    opened = _parquet if out.suffix.lower() == PARQUET else _csv
    n_edges = 0
    with core.published_file(out, replaces=replaces) as scratch, opened(scratch, safe) as write:
        for some in edges:
            write(some)
            n_edges += len(some)
    return n_edges


@contextmanager
def _csv(file: Path, safe: bool) -> Iterator[_Writer]:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        show = core.no_formula if safe else str
        yield lambda edges: writer.writerows((show(r), show(t), w) for r, t, w in edges)


@contextmanager
def _parquet(file: Path, _: bool) -> Iterator[_Writer]:
    arrow, parquet = _arrow(file)
    kinds = (arrow.string(), arrow.string(), arrow.float64())
    schema = arrow.schema(list(zip(COLUMNS, kinds, strict=True)))
    with parquet.ParquetWriter(str(file), schema) as writer:

        def write(edges: list[Edge]) -> None:
            regulators, targets, weights = zip(*edges, strict=True)
            arrays = [core.arrow_texts(names) for names in (regulators, targets)]
            arrays.append(core.arrow_numbers(np.array(weights)))
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))

        yield write


def _arrow(file: Path) -> tuple[Any, Any]:
    remedy = "Run `pip install 'srs-ooc[arrow]'`, or write a CSV file."
    parquet = core.library("pyarrow.parquet", str(file), remedy)
    return core.library("pyarrow", str(file), remedy), parquet


# Edges by weight, in memory that does not grow with their number.

FEWEST_EDGES, EDGE_NBYTES = 1 << 16, 120
"""Edges that are put in order together at least, and the bytes of one: held, read and ordered."""
Shards = Callable[[], Iterator[tuple[int, core.Floats]]]


def ranked(
    shards: Shards, n_together: int, top: int | None = None
) -> Iterator[tuple[core.Floats, core.Ints]]:
    """Yield all edges of a weight above 0, the heaviest first, some at a time.

    The weights are read once for every ``n_together`` edges: what is yielded is the same.

    Parameters
    ----------
    shards : callable
        Yields (first target, weights (n, n_regulators)) of all targets.
    n_together : int
        Edges that are put in order together, at most.
    top : int, optional
        Stop after so many.

    Yields
    ------
    weights, places : float64 (n,), int64 (n,)
        Weights above 0, and ``target * n_regulators + regulator``, both as places among those of
        the network; equal weights are in the order of places.
    """
    last: tuple[float, int] = (np.inf, -1)
    n_left = top
    while n_left is None or n_left > 0:
        count = n_together if n_left is None else min(n_together, n_left)
        weights, places = _next(shards, count, last)
        if not len(weights):
            return
        yield weights, places
        if len(weights) < count:
            return
        last = float(weights[-1]), int(places[-1])
        n_left = None if n_left is None else n_left - count


def _next(shards: Shards, count: int, last: tuple[float, int]) -> tuple[core.Floats, core.Ints]:
    """Return the ``count`` edges that follow ``last``; what is held is twice as many at most."""
    held, at, least = np.zeros(0), np.zeros(0, np.int64), 0.0
    for first, weights in shards():
        n_regulators = weights.shape[1]
        for start in range(0, weights.size, FEWEST_EDGES):
            flat = weights.reshape(-1)[start : start + FEWEST_EDGES]
            chosen = np.flatnonzero((flat > 0) & (flat >= least) & (flat <= last[0]))
            places = chosen + (first * n_regulators + start)
            after = (flat[chosen] < last[0]) | (places > last[1])
            held, at = np.append(held, flat[chosen[after]]), np.append(at, places[after])
            if len(held) >= 2 * count:
                best = np.lexsort((at, -held))[:count]
                held, at = held[best], at[best]
                least = float(held[-1])
    best = np.lexsort((at, -held))[:count]
    return held[best], at[best]
