"""Sensitivity of a run's trees to each feature they use (RFEST), in one pass over rows and trees.

Of a feature j, R(j) = accuracy on some rows less the accuracy with j altered in each of them
(supplement of RFEST, proof of Theorem I.1). The rows are such that training did not see: out of
bag, each asked of the trees that were not grown on it, or held out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import frexp
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import srs_ooc.extend as core
from srs_ooc.extend import saved

# What sensitivity takes.

MOST_REPEATS = 100
"""Permutations at most."""
PIECE = 512
"""Columns that are read together."""
VOTES_NBYTES = 4 * core.MB
"""Memory for which trees vote on which rows."""
ROW_NBYTES = 160
"""Memory of a row of the store: its target and what is drawn for it."""
WORK_NBYTES = 8 * core.MB
"""Allowance for what is read of the store beside rows."""


def walking_leases(
    store: core.Store, n_features: int, n_repeats: int, trees_nbytes: int
) -> list[core.Lease]:
    """Return what walking the trees needs besides the process; last of all, a row."""
    manifest = store.manifest
    code_nbytes, n_rows = manifest.code_nbytes, manifest.n_rows
    read_together = PIECE * code_nbytes * (4 + n_repeats) + 32 * (1 + n_repeats)
    row = core.effects_nbytes(n_features, max(1, len(manifest.classes)), code_nbytes)
    row += n_features * code_nbytes * (n_repeats - 1) + read_together
    return [
        core.Lease("trees", trees_nbytes),
        core.Lease(f"{n_features} features that trees use", 160 * n_features),
        # and while it is found which rows a tree was grown on
        core.Lease(f"{n_rows} rows", (ROW_NBYTES + 64) * n_rows + 2 * VOTES_NBYTES + WORK_NBYTES),
        core.Lease("a column", 2 * core.block_nbytes(1, n_rows, code_nbytes)),
        core.Lease("names and places", 12 * store.n_features),
        core.Lease("a row of all features that trees use", row),
    ]


# Rows that trees are asked about and did not see: out of bag, or never trained on.


def unseen_rows(
    run: Path, plan: core.Plan, asked: core.Ints32 | None
) -> tuple[core.Ints32, core.Ints]:
    """Return the rows to ask about: those ``asked`` for, or the training rows out of bag.

    Returns
    -------
    rows : int32 (n,)
        Rows of the store, ascending.
    places : int64 (n,)
        Their places among the training rows; -1 for a row no tree was grown on.

    Raises
    ------
    UsageError
        If all trees were grown on one of them.
    """
    store, task, bootstrap = plan.store, plan.task, plan.spec.learner.bootstrap
    trained = np.arange(store.n_rows, dtype=np.int32) if task.rows is None else task.rows
    if asked is None and not bootstrap:
        some = "all rows of the store" if task.rows is None else f"{task.n_rows} rows"
        raise core.UsageError(
            f"{run}: expected rows that training did not see, found trees all grown on {some}. "
            + (
                "Name other rows with --rows."
                if task.rows is not None and task.n_rows < store.n_rows
                else "Begin a run with --bootstrap, or with --rows to hold rows out, and ask that."
            )
        )
    rows = trained if asked is None else asked
    places = np.searchsorted(trained, rows)
    is_there = trained[np.minimum(places, len(trained) - 1)] == rows
    places = np.where(is_there, places, -1).astype(np.int64)
    if not bootstrap and is_there.any():
        first = store.row_ids[int(rows[is_there.argmax()])]
        n_seen = int(np.count_nonzero(is_there))
        raise core.UsageError(
            f"--rows: expected rows that training did not see, found {n_seen} of {len(rows)} that "
            f"all trees were grown on (first: {first!r}). Name other rows; or begin a run with "
            "--bootstrap, whose trees each leave rows out."
        )
    return rows, places


# What altering a feature means: its two values swapped, its codes mirrored, or its rows permuted.
#
# A feature of two values is flipped, as in Theorem I.1 of the supplement of RFEST. Of more values
# the supplement says nothing: mirrored, code c becomes ``n_codes - 1 - c``, which misses effects
# that are symmetric about the middle; permuted, a row takes the code of another row. What is
# missing stays so when a feature is flipped or mirrored.

AUTO, MIRROR, PERMUTE = FLIPS = ("auto", "mirror", "permute")
"""Ways to alter: of ``auto``, features of two values are flipped and all others permuted."""
FLIPPED, MIRRORED, PERMUTED = "flipped", "mirrored", "permuted"
"""What was done to a feature."""


def codes_mirrored(store: core.Store, features: core.Integers, flip: str) -> NDArray[np.uint16]:
    """Return of each feature the codes that are mirrored; 0 where it is permuted.

    Parameters
    ----------
    store : Store
        The run's store.
    features : int (n,)
        Stored positions.
    flip : {'auto', 'mirror', 'permute'}
        The way to alter.

    Raises
    ------
    UsageError
        If a feature of more than two categories is to be mirrored: they have no order.
    """
    n_codes: NDArray[np.uint16] = np.asarray(store.array("n_codes"), np.uint16)[features]
    if flip == PERMUTE:
        return np.zeros_like(n_codes)
    if flip == AUTO:
        return np.where(n_codes == 2, n_codes, 0).astype(np.uint16)
    if store.manifest.kind_counts.get("categorical"):
        unordered = np.flatnonzero((store.kinds()[features] == core.CATEGORICAL) & (n_codes > 2))
        if len(unordered):
            name = store.names[int(np.asarray(store.array("positions"))[features[unordered[0]]])]
            raise core.UsageError(
                "--flip mirror: expected features whose values have an order, found "
                f"{len(unordered)} of categories (first: {name!r}). Take --flip auto, which "
                "permutes them."
            )
    return n_codes


def mirror(
    codes: NDArray[np.unsignedinteger], mirrored: NDArray[np.uint16]
) -> NDArray[np.unsignedinteger]:
    """Return columns of codes (n, n_rows) mirrored; ``mirrored`` (n,) is above 0."""
    missing = np.iinfo(codes.dtype).max
    last = (mirrored - 1).astype(codes.dtype)[:, None]
    return np.where(codes == missing, codes, last - codes)


def permutation(seed: int, repeat: int, n_rows: int) -> core.Ints:
    """Return the row whose code each row takes in a repeat: the same of all features.

    Features are altered one at a time, so one permutation does for all; that they share it makes
    their scores easier to compare.
    """
    key = core.key_of(seed, core.Purpose.ALTERED, repeat)
    hashes = core.derive_array(key, np.arange(n_rows, dtype=np.uint64))
    return np.argsort(hashes, kind="stable")


# From what altering features did to rows to scores, best first.

_UNIT = 2.0**-saved.CHANGE_BITS


@dataclass(frozen=True)
class SensitivityRecord:
    """A feature's sensitivity; see :class:`Sensitivity`."""

    rank: int
    name: str
    score: float
    accuracy_lost: float | None
    n_worse: int | None
    n_better: int | None
    altered: str


@dataclass(frozen=True)
class Sensitivity:
    """What altering each feature that trees use does, the largest loss first.

    Attributes
    ----------
    positions : int64 (n,)
        Features by rank, by their columns in the source; equal scores in the order of the source.
    scores : float64 (n,)
        Mean loss: of the probability of the true class, or of R2.
    changes : int64 (n, 2)
        Of classes: rows, counted once a repeat, that were voted right and are wrong when the
        feature is altered, and the other way round.
    altered : tuple of str
        What was done to each: ``flipped``, ``mirrored`` or ``permuted``.
    facts : dict
        Keys of ``srs-ooc sensitivity --json``.
    store : Store
        The run's, for names.
    """

    positions: core.Ints
    scores: core.Floats
    changes: core.Ints
    altered: tuple[str, ...]
    facts: dict[str, Any]
    store: core.Store

    @property
    def names(self) -> list[str]:
        """Names of the features, the largest loss first."""
        return [self.store.names[position] for position in self.positions.tolist()]

    def features(self, kind: str = "pandas", *, top: int | None = None) -> Any:
        """Return the features by score, with the columns of ``srs-ooc sensitivity --csv``.

        Parameters
        ----------
        kind : {'pandas', 'polars', 'records'}
            A DataFrame, or a list of dicts.
        top : int, optional
            Only the first so many.

        Raises
        ------
        UsageError
            If ``kind`` is not known, or its library is not installed.
        """
        return core.frame_of(kind, SensitivityRecord, islice(self.records(), top))

    def __repr__(self) -> str:
        facts = self.facts
        return (
            f"<Sensitivity of {facts['n_trees']} trees to {facts['n_features']} features, on "
            f"{facts['n_rows']} rows>"
        )

    def records(self) -> Iterator[SensitivityRecord]:
        """Yield the features, the largest loss first."""
        names, n = self.store.names, self.facts["n_rows"] * self.facts["repeats"]
        is_of_classes = self.facts["r2"] is None
        for i, position in enumerate(self.positions.tolist()):
            worse, better = self.changes[i].tolist()
            yield SensitivityRecord(
                i + 1,
                names[position],
                float(self.scores[i]),
                (worse - better) / n if is_of_classes else None,
                worse if is_of_classes else None,
                better if is_of_classes else None,
                self.altered[i],
            )


Codes = NDArray[np.unsignedinteger]

REPEATS = 5
"""Permutations by default."""


def sensitivity(
    run: Path,
    *,
    rows: Path | None = None,
    flip: str = AUTO,
    repeats: int = REPEATS,
    memory_nbytes: int = 512 * core.MB,
    threads: int | None = None,
    store: core.Place | None = None,
    watch: core.Watch = lambda _: True,
) -> Sensitivity:
    """Return what altering each feature does to what a run's trees say, as of its last commit.

    Parameters
    ----------
    run : Path
        A run with saved trees; it may be going on.
    rows : Path, optional
        File of row ids; those out of bag if not given.
    flip : {'auto', 'mirror', 'permute'}
        How features are altered.
    repeats : int
        Permutations.
    memory_nbytes : int
        Cap on the resident memory of the whole process.
    threads : int, optional
        Threads that share the rows; the cores of this machine if not given.
    store : path or URL, optional
        The store of the run, if it was moved.
    watch : callable, optional
        Told where the work stands after each part of the trees.

    Raises
    ------
    SrsOocError
        If the run keeps no trees, the store is another, rows are unknown or were trained on, a
        feature cannot be altered so, or the cap is too small.
    """
    if not 1 <= repeats <= MOST_REPEATS:
        raise core.UsageError(f"--repeats: expected 1 to {MOST_REPEATS}, found {repeats}.")
    if flip not in FLIPS:
        raise core.UsageError(f"--flip: expected {', '.join(FLIPS)}, found {flip!r}.")
    with core.Run(run, writable=False) as ledger:
        spec, trees, opened = ledger.spec, core.TreeReader(ledger), ledger.find_store(store)
        if core.PREDICTIONS in spec.method.needs:
            raise core.UsageError(
                f"{run}: expected a run whose trees were all grown on the same rows and are "
                f"averaged, found --method {spec.run.method}, which holds rows out and has trees "
                "vote. Its own scores say what features are worth: `srs-ooc features RUN`."
            )
        with opened.unchanged():
            # Before it is known how many features trees use. A cap that is named holds the rest
            # too, with the most features that they may use.
            n_used = min(trees.nbytes // core.SPLIT_NBYTES, opened.n_features)
            n_rows = opened.n_rows
            nodes = core.most_ensemble_nbytes(trees, 0, 0, n_rows)
            rest = walking_leases(opened, n_used, MOST_REPEATS, nodes)
            files = core.InputFiles(opened, None, rows)
            leases = [
                core.Lease("trees", nodes + 32 * n_used),
                core.Lease(f"labels of {n_rows} rows", ROW_NBYTES * n_rows + WORK_NBYTES),
                *files.leases(),
            ]
            core.Budget(memory_nbytes, leases, later_nbytes=core.total_nbytes(rest)).check()
            asked, plan = files.resolve().rows, core.Plan.of_run(ledger, opened)
            measuring = _Measuring(run, plan, trees, asked, flip, repeats)
            return measuring.run(memory_nbytes, threads or core.n_cores(), watch)


class _Measuring:
    """Measures what altering features does: trees, rows, what is altered, and sums over all of it.

    Parameters
    ----------
    run : Path
        The run.
    plan : Plan
        Its plan.
    trees : TreeReader
        Its trees.
    asked : int32 or None
        Rows of the store to ask about; None for those out of bag.
    flip, repeats : str, int
        How features are altered.
    """

    def __init__(
        self,
        run: Path,
        plan: core.Plan,
        trees: core.TreeReader,
        asked: core.Ints32 | None,
        flip: str,
        repeats: int,
    ) -> None:
        self._trees, self._store, self._spec = trees, plan.store, plan.spec
        features, self._n_trees, self._largest = np.zeros(0, np.int64), 0, 0
        for batch in trees.batches():
            features = np.union1d(features, batch.feature[batch.feature >= 0])
            self._n_trees += len(batch.root)
            self._largest = max(self._largest, len(batch.feature))
        self._task = plan.task
        self._rows, self._places = unseen_rows(run, plan, asked)
        self._features, self._flip = features, flip
        self._mirrored = codes_mirrored(plan.store, features, flip)
        self._n_repeats = repeats if (self._mirrored == 0).any() else 1
        self._response = core.training_response(plan.task)
        # Sums are of whole numbers, over rows and repeats; a loss is in units of 2**-36.
        self._sums = np.zeros((len(features), 3), np.int64)
        self._n_voted = self._n_right = self._loss = 0
        self._voted: list[core.Floats] = []

    def _rows_at_a_time(self, cap_nbytes: int) -> int:
        """Return how many rows the cap holds together."""
        sizes = len(self._features), self._n_repeats, core.NODE_NBYTES * self._largest
        budget = core.Budget(cap_nbytes, walking_leases(self._store, *sizes))
        budget.check()
        return int(min(len(self._rows), budget.free_nbytes // budget.leases[-1].n_bytes + 1))

    def _truth(self) -> tuple[NDArray[Any], int]:
        """Return the targets of the rows, and the power of two that those of a regression lack."""
        target, response = self._store.target()[self._rows], self._response
        if not response.is_regression:
            return target.astype(np.int64), 0
        assert response.center is not None
        assert response.scale is not None
        largest = float(np.abs(self._task.target - response.center).max() * response.scale)
        whole = (target - response.center) * response.scale
        exponent = frexp(max(largest, float(np.abs(whole).max())))[1]
        if not np.isfinite(whole).all():
            raise core.UsageError(
                "expected targets of the size of those trained on, found some too large to be "
                "compared with them. Name other rows with --rows."
            )
        return np.ldexp(whole, -exponent), exponent

    def run(self, cap_nbytes: int, threads: int, watch: core.Watch) -> Sensitivity:
        """Walk all trees by all rows, some rows at a time."""
        n_rows, n_features = self._rows_at_a_time(cap_nbytes), len(self._features)
        regression, n_classes = self._response.is_regression, self._response.n_classes
        order = core.TrainingRows.of(self._response, self._spec.learner.impurity).order
        truth, exponent = self._truth()
        ask = partial(saved.add_effects, regression=regression, n_threads=threads)
        with self._store.columns(mapped=False) as columns:
            starts = range(0, len(self._rows), n_rows)
            done, total = 0, len(starts) * self._n_repeats * self._n_trees
            for first in starts:
                rows = slice(first, min(first + n_rows, len(self._rows)))
                plain, *altered = self._codes(columns, rows)
                for repeat, other in enumerate(altered):
                    found = saved.Effects(plain.shape[1], n_features, n_classes)
                    for part, slot, numbers in self._parts(plain.shape[1]):
                        ask(part, slot, plain, other, found, self._votes(order, numbers, rows))
                        done += len(numbers)
                        watch(core.Step("sensitivity", done, total, unit="trees"))
                    saved.tally_changes(found, truth[rows], self._sums, exponent, threads)
                    if repeat == 0:
                        self._count(found, truth[rows], exponent)
                    del found
        return self._scores()

    def _count(self, found: saved.Effects, truth: NDArray[Any], exponent: int) -> None:
        """Count the rows that some tree votes on, and what is said of them, nothing altered."""
        voted = found.n_votes > 0
        self._n_voted += int(np.count_nonzero(voted))
        if not self._response.is_regression:
            self._n_right += int(np.count_nonzero(found.base.argmax(axis=1)[voted] == truth[voted]))
            return
        unit = 2.0 ** -(saved.TARGET_BITS + exponent)
        said = found.base[voted, 0] / found.n_votes[voted] * unit
        self._loss += int(np.rint((said - truth[voted]) ** 2 / _UNIT).astype(np.int64).sum())
        self._voted.append(truth[voted])

    def _codes(self, columns: core.ColumnStore, rows: slice) -> list[Codes]:
        """Return the codes (n_features, n_rows) of some rows, then altered once a repeat."""
        n = len(self._rows)
        wanted = [np.arange(n)[rows]]
        if (self._mirrored == 0).any():
            wanted += [permutation(self._spec.run.seed, k, n)[rows] for k in range(self._n_repeats)]
        shape, asked = (len(self._features), len(wanted[0])), self._rows[np.concatenate(wanted)]
        found: list[Codes] = [np.empty(shape, columns.manifest.code_dtype) for _ in wanted]
        for low in range(0, len(self._features), PIECE):
            piece = slice(low, min(low + PIECE, len(self._features)))
            read = np.split(columns.codes(self._features[piece], asked), len(wanted), axis=1)
            for out in reversed(found):  # so that nothing of it is held when more is read
                out[piece] = read.pop()
        if len(found) == 1:
            found.append(np.empty_like(found[0]))
        at = np.flatnonzero(self._mirrored)
        for altered in found[1:]:
            for low in range(0, len(at), PIECE):
                some = at[low : low + PIECE]
                altered[some] = mirror(found[0][some], self._mirrored[some])
        return found

    def _parts(self, n_rows: int) -> Iterator[tuple[saved.Trees, core.Ints, range]]:
        """Yield some trees at a time, the slot of each split, and the numbers of the trees."""
        first, together = 0, max(1, VOTES_NBYTES // max(1, n_rows))
        for batch in self._trees.batches():
            slot = batch.slots(self._features)
            for part in batch.parts(together):
                yield part, slot, range(first, first + len(part.root))
                first += len(part.root)

    def _votes(self, order: NDArray[Any], trees: range, rows: slice) -> core.Bytes:
        """Return 1 where a tree votes on a row, not having been grown on it; (0, 0) where all do.

        uint8 (n_trees, n_rows), of trees by their numbers in the order of iterations.
        """
        learner = self._spec.learner
        if not learner.bootstrap:
            return saved.NO_VOTES
        places, n = self._places[rows], len(order)
        votes = np.ones((len(trees), len(places)), np.uint8)
        drawn = np.empty(n + 1, np.uint8)
        for i, number in enumerate(trees):
            iteration, among = divmod(number, learner.trees_per_subspace)  # as the loop makes keys
            first = core.key_of(self._spec.run.seed, *divmod(iteration, self._spec.run.round_size))
            key = core.tree_key(core.derive(first, core.Purpose.TREE), among)
            drawn[order] = core.times_drawn(key, n) == 0
            drawn[n] = 1  # where a place is -1
            votes[i] = drawn[places]
        return votes

    def _scores(self) -> Sensitivity:
        """Return the scores of features.

        Raises
        ------
        UsageError
            If no tree votes on any row, or targets are all equal.
        """
        n, regression = self._n_voted, self._response.is_regression
        if n == 0:
            raise core.UsageError(
                "expected rows that some tree did not see, found that each was drawn for every "
                "tree. Take the run further, or name rows with --rows."
            )
        # The sum of squares of the targets about their mean, in the units of the loss.
        truth = np.concatenate([np.zeros(0), *self._voted])
        spread = float(((truth - truth.mean()) ** 2).sum()) / _UNIT if regression else n / _UNIT
        if spread == 0:
            raise core.UsageError(
                f"expected rows whose targets differ, found {n} of one target: R2 is not defined. "
                "Name more rows with --rows."
            )
        scores = self._sums[:, 2] / (self._n_repeats * spread)
        positions = np.asarray(self._store.array("positions"), np.int64)[self._features]
        order = np.lexsort((positions, -scores))
        how = self._mirrored[order]
        said = np.where(how == 0, PERMUTED, np.where(how == 2, FLIPPED, MIRRORED)).tolist()
        n_flipped = said.count(FLIPPED)
        theorem = "Theorem I.1 is about flipping features of two values: none was flipped here"
        if n_flipped:
            n_others = len(said) - n_flipped
            others = f", not about the {n_others} others" if n_others else ""
            flipped = core.counted(n_flipped, "feature")
            theorem = f"Theorem I.1 is about flipping, here {flipped}{others}"
        facts = {
            "n_rows": n,
            "n_rows_asked": len(self._rows),
            "out_of_bag": bool((self._places >= 0).all()),
            "n_trees": self._n_trees,
            "flip": self._flip,
            "n_features": len(order),
            "repeats": self._n_repeats,
            "accuracy": None if regression else self._n_right / n,
            "r2": 1 - self._loss / spread if regression else None,
            "n_flipped": n_flipped,
            "theorem": theorem,
        }
        return Sensitivity(
            positions[order], scores[order], self._sums[order, :2], tuple(said), facts, self._store
        )
