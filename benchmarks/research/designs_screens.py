"""What ``designs.py`` can screen, close and measure with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Iteration, Outcome
from srs_ooc.base.seeds import Purpose, derive, derive_array, key_of
from srs_ooc.evidence.tally import Tally, best_items, mean_importance
from srs_ooc.learners.tree_learner import Columns, tree_key
from srs_ooc.planning.iterations import MIN_ITERATIONS, MOST_DRAWS
from srs_ooc.runs.engine import TALLY, Engine, ThreadExecutor, fit_iteration
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run_verdict import largest_decoy_cluster
from srs_ooc.runs.session import RunDraft
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.samplers.base import IMPORTANCE
from srs_ooc.samplers.draws import Drawing
from srs_ooc.samplers.elimination import SURVIVORS, TREES, Elimination
from srs_ooc.samplers.srs import Leaders
from srs_ooc.store.store import ReadAhead, Store
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import grow_tree
from srs_ooc.trees.response import IMPORTANCE_BITS, TrainingRows, TreeLimits, root_of
from srs_ooc.trees.saved import Trees, decode_trees

LARGE_SHARE = 0.05
"""Part of the training rows that a large node has at least."""

Counts = NDArray[np.int64]
Real = NDArray[np.float64]
Measure = Callable[[Trees, Counts, Counts], Real]
"""``measure(tree, grown, left_out)``: rows by node and class, of the rows the tree was grown on and
of all others; returns what each node decreases, float64 (n_nodes,), anything at a leaf."""


def rows_by_node(
    tree: Trees, codes: NDArray[Any], place: NDArray[np.intp], rows: NDArray[np.int32],
    labels: NDArray[np.int32], n_classes: int,
) -> Counts:  # fmt: skip
    """Walk rows down one tree, all a level at a time; int64 (n_nodes, n_classes).

    Parameters
    ----------
    tree : Trees
        One tree whose splits are plain: no missing values, no categories.
    codes : integers (n_columns, n_rows)
        The block it was grown on.
    place : intp (n_nodes,)
        Column that each split looks at; anything at a leaf.
    rows : int32 (m,)
        The rows to walk.
    labels : int32 (n_rows,)
        Classes of all rows.
    n_classes : int
        Their number.
    """
    n_nodes = len(tree.feature)
    counts = np.zeros(n_nodes * n_classes, np.int64)
    node, at, is_split = np.zeros(len(rows), np.intp), rows, tree.feature >= 0
    while len(at):
        counts += np.bincount(node * n_classes + labels[at], minlength=len(counts))
        inner = is_split[node]
        node, at = node[inner], at[inner]
        goes_left = codes[place[node], at] <= tree.code[node]
        node = np.where(goes_left, node + 1, tree.right[node])
    return counts.reshape(n_nodes, n_classes)


def _children(tree: Trees) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return each split's children; of a leaf itself."""
    nodes = np.arange(len(tree.feature))
    is_split = tree.feature >= 0
    left = np.where(is_split, nodes + 1, nodes)
    right = np.where(is_split, tree.right, nodes)
    return left, right


def _gini_mass(counts: Counts) -> Real:
    """Return the rows of each node times its Gini impurity."""
    totals = counts.sum(axis=1)
    squares = (counts.astype(np.float64) ** 2).sum(axis=1)
    mass: Real = totals - squares / np.maximum(totals, 1)
    return mass


def _impurity_decrease(tree: Trees, counts: Counts) -> Real:
    left, right = _children(tree)
    mass = _gini_mass(counts)
    lost: Real = (mass - mass[left] - mass[right]) / max(1, counts[0].sum())
    return lost


def of_large_nodes(tree: Trees, grown: Counts, left_out: Counts) -> Real:
    """Return the usual decrease where a node has at least LARGE_SHARE of the rows, else 0."""
    is_large = grown.sum(axis=1) >= LARGE_SHARE * grown[0].sum()
    return np.where(is_large, _impurity_decrease(tree, grown), 0.0)


def of_rows_left_out(tree: Trees, grown: Counts, left_out: Counts) -> Real:
    """Return the decrease of impurity of the rows left out, at the same splits; at least 0."""
    return _impurity_decrease(tree, left_out)


def of_loss_left_out(tree: Trees, grown: Counts, left_out: Counts) -> Real:
    """Return by how much a split lowers the squared loss of the rows left out; it may raise it.

    A node predicts the class shares of the rows grown on; the loss is the squared distance to a
    row's class.
    """
    shares = grown / np.maximum(grown.sum(axis=1, keepdims=True), 1)
    left, right = _children(tree)
    own = _loss(left_out, shares)
    lost: Real = own - own[left] - own[right]
    return lost / max(1, int(left_out[0].sum()))


def _loss(counts: Counts, shares: Real) -> Real:
    """Return the summed loss of rows by class if these shares are predicted."""
    totals = counts.sum(axis=1)
    loss: Real = totals * (1 + (shares**2).sum(axis=1)) - 2 * (counts * shares).sum(axis=1)
    return loss


MEMORY_MB = 4000
MOST_KEPT = 2000
"""Best items that are kept: as many as the widest closing stage takes."""
REPEAT_SEEDS = 1000
"""Distance of the seeds of repeated screens on one table."""
FIRST_WEIGHT, DOUBLINGS = 16, 3
"""Weight of the first iteration where they fade, and how often it doubles until the last."""
BOTH, PLAIN, LED = "both", "plain", "led"


class AlwaysHeld(Leaders):
    """The leading items held in every round: the SRS lane alone."""

    def _holds(self, iteration: int) -> bool:
        return True


class FadingTally(Tally):
    """A tally in which each iteration weighs more than those before: the past fades as R changes.

    Parameters
    ----------
    n_items : int
        Items there are.
    n_iterations : int
        Iterations that will come.
    """

    def __init__(self, n_items: int, n_iterations: int) -> None:
        super().__init__(n_items, wins=False)
        self._n_iterations = n_iterations

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Add one iteration by its weight."""
        weight = round(FIRST_WEIGHT * 2 ** (DOUBLINGS * iteration / self._n_iterations))
        self.importance[outcome.features] += weight * outcome.importance
        self.n_drawn[outcome.features] += np.uint32(weight)


@dataclass(frozen=True)
class Screen:
    """One way to screen. All grow as many trees per item, families of decoys included.

    Attributes
    ----------
    name, label : str
        In files, and in tables.
    families : int
        M.
    lanes : {'both', 'plain', 'led'}
        Plain Random Subspace, subspaces that hold the leaders, or both in turn.
    trees : int
        Grown on each subspace; there are as many fewer subspaces.
    max_features : str or None
        K, as ``srs-ooc run`` takes it.
    min_samples_leaf, max_depth : int or None
        As there.
    fades : bool
        Whether iterations lose half of their weight in every third of the run.
    repeat : int
        From 1 a repetition with decoys and subspaces of its own.
    """

    name: str
    label: str
    families: int = 1
    lanes: str = BOTH
    trees: int = 1
    max_features: str | None = None
    min_samples_leaf: int | None = None
    max_depth: int | None = None
    fades: bool = False
    repeat: int = 0

    def seed(self, table_seed: int) -> int:
        """Return the seed of the run."""
        return table_seed + REPEAT_SEEDS * self.repeat

    def options(self, table_seed: int) -> Options:
        """Return the options of the run."""
        return Options(
            judge="decoy",
            decoys=self.families,
            keep=0 if self.lanes == PLAIN else None,
            trees_per_subspace=self.trees,
            max_features=self.max_features,
            min_samples_leaf=self.min_samples_leaf,
            max_depth=self.max_depth,
            seed=self.seed(table_seed),
        )

    def n_iterations(self, resources: Resources) -> int:
        """Return T as the program settles it for two lanes, fewer by the trees of a subspace."""
        draws = ceil(MOST_DRAWS * resources.n_candidates / resources.spec.subspace_size)
        return ceil(max(2 * draws, MIN_ITERATIONS) / self.trees)

    @contextmanager
    def resources(self, store: Path, table_seed: int) -> Iterator[Resources]:
        """Yield the resources of a run with one worker."""
        request = Request(self.options(table_seed), memory_mb=MEMORY_MB, threads=1)
        with RunDraft.of(Store.open(store), request).resources() as resources:
            yield resources

    def closing_key(self, resources: Resources) -> int:
        """Return the key of a closing stage after this screen."""
        return key_of(resources.spec.seed, Purpose.CLOSING, self.n_iterations(resources))

    def tie_key(self, resources: Resources) -> int:
        """Return the key that breaks ties of marginal tests after this screen."""
        return key_of(resources.spec.seed, Purpose.RANK_TIE, self.n_iterations(resources))

    def run(self, resources: Resources, relevant: NDArray[np.uint32]) -> dict[str, NDArray[Any]]:
        """Screen, and return what is kept of it.

        Parameters
        ----------
        resources : Resources
            Of :meth:`resources`.
        relevant : uint32 (r,)
            Stored positions of the relevant features.

        Returns
        -------
        dict
            ``survivors``, uint32 (at most MOST_KEPT,), best first; ``ranks``, int64 (r,): items
            with a larger mean importance than each relevant feature.
        """
        tally = self._advanced(resources)
        count = min(MOST_KEPT, resources.n_candidates)
        means = mean_importance(tally, slice(None))
        ranks = [np.count_nonzero(means > mean) for mean in means[relevant]]
        survivors = best_items(tally, count, self.closing_key(resources))
        return {"survivors": survivors, "ranks": np.array(ranks, np.int64)}

    def _advanced(self, resources: Resources) -> Tally:
        """Return what all iterations of the screen taught."""
        spec, n_iterations = resources.spec, self.n_iterations(resources)
        n_items, key = spec.n_items(resources.n_features), key_of(spec.seed, Purpose.RANK_TIE)
        tally = FadingTally(n_items, n_iterations) if self.fades else Tally(n_items, wins=False)
        drawing = Drawing(
            resources.n_candidates,
            spec.subspace_size,
            spec.alpha,
            resources.candidates,
            spec.draw_block,
        )
        lanes = AlwaysHeld if self.lanes == LED else Leaders
        engine = Engine(
            lanes(drawing, tally, spec.judging.n_leaders, spec.round_size, key),
            resources.executor,
            None,
            seed=spec.seed,
            round_size=spec.round_size,
            observers={TALLY: tally},
        )
        engine.advance(n_iterations)
        return tally


ALL = int(np.iinfo(np.int64).max)
"""K where every column is a candidate."""
HALF = 1 << 33
"""Word under which a tree's half of the rows is drawn; no feature, purpose or tree has it."""


@dataclass(frozen=True)
class Closing:
    """One way to close.

    Attributes
    ----------
    name, label : str
        In files, and in tables.
    shares : tuple of (float, float)
        Part of the items that a tree sees, of each kind, in the first round and in the last.
    leaf_share : float
        Least rows of a leaf, as a part of the training rows.
    n_survivors : int
        Items that enter.
    sizes : tuple of int
        Items that rounds begin with; none for halving.
    k_share : float
        K as a part of the columns a tree sees, ...
    k_rounds : int
        ... in so many last rounds; everything is a candidate in the others.
    max_depth : int or None
        Depth at which nodes are leaves.
    trees : int
        Grown on each subspace.
    half : bool
        Whether each tree is grown on a random half of the rows, without replacement.
    measure : Measure or None
        What is tallied; None for the kernel's own importances.
    """

    name: str
    label: str
    shares: tuple[tuple[float, float], ...] = ((0.3, 0.3),)
    leaf_share: float = 0.0
    n_survivors: int = SURVIVORS
    sizes: tuple[int, ...] = ()
    k_share: float = 1.0
    k_rounds: int = ALL
    max_depth: int | None = None
    trees: int = 1
    half: bool = False
    measure: Measure | None = None

    def run(
        self, resources: Resources, survivors: NDArray[np.uint32], key: int
    ) -> dict[str, NDArray[Any]]:
        """Close, and return what is kept of it.

        Parameters
        ----------
        resources : Resources
            Of the screen.
        survivors : uint32 (n,)
            Its best items, best first.
        key : int
            64-bit key of the stage.

        Returns
        -------
        dict
            ``items``, uint32 (n,), by rank, and ``largest``, the c.
        """
        most = min(resources.spec.subspace_size, SURVIVORS)
        stage = Elimination(survivors[: self.n_survivors], key, self.shares, most)
        if self.sizes:
            stage.sizes = [min(size, len(stage.items)) for size in self.sizes]
        block, grower = resources.blocks[0], Grower(self, resources, len(stage.sizes))
        block.use_tiles()
        with ReadAhead(resources.source.columns) as ahead:
            executor = ThreadExecutor(
                partial(fit_iteration, resources.source, grower), [block], ahead
            )
            engine = Engine(stage, executor, None, seed=key, round_size=TREES)
            engine.advance(stage.n_trees)
            executor.close()
        largest = largest_decoy_cluster(resources, stage.items, 0)
        return {"items": stage.items, "largest": np.array(largest)}


class Grower:
    """The learner of a closing stage; for one thread.

    Parameters
    ----------
    closing : Closing
        How.
    resources : Resources
        Where columns and rows come from.
    n_rounds : int
        Rounds of the stage.
    """

    provides: ClassVar[frozenset[str]] = frozenset({IMPORTANCE})

    def __init__(self, closing: Closing, resources: Resources, n_rounds: int) -> None:
        self._closing, self._source, self._rows = closing, resources.source, resources.trees.rows
        self._first_late = n_rounds - closing.k_rounds
        self._columns = Block(resources.spec.subspace_size, resources.n_rows, 1, tiled=False)
        spec, leaf = resources.spec, floor(closing.leaf_share * resources.n_rows)
        leaf = max(spec.learner.min_samples_leaf, leaf)
        limits = replace(spec.limits, max_features=ALL, min_samples_leaf=leaf)
        self._limits = limits
        if closing.max_depth is not None:
            self._limits = replace(limits, max_depth=closing.max_depth)

    def fit(self, block: Block, columns: Columns, iteration: Iteration) -> Outcome:
        """Grow the trees of an iteration and return what they taught."""
        features, limits = columns.features, self._limits
        k_share, is_late = self._closing.k_share, iteration.number // TREES >= self._first_late
        if is_late and k_share < 1:
            limits = replace(limits, max_features=max(1, floor(k_share * len(features))))
        importance = np.zeros(len(features), np.int64)
        for number in range(self._closing.trees):
            key = tree_key(iteration.tree_key, number)
            importance += self._one(block, features, key, limits)
        return Outcome(features, importance)

    def _one(
        self, block: Block, features: NDArray[np.uint32], key: int, limits: TreeLimits
    ) -> NDArray[np.int64]:
        closing = self._closing
        rows = half_of(self._rows, key) if closing.half else self._rows
        records = closing.measure is not None
        grown = grow_tree(block, features, rows, key, limits, record=records)
        if closing.measure is None:
            return grown.importance
        record = grown.record or b""
        tree = decode_trees(record, np.array([0], np.int64), np.array([len(record)], np.int64))
        return self._measured(closing.measure, tree, features, rows)

    def _measured(
        self, measure: Measure, tree: Trees, features: NDArray[np.uint32], rows: TrainingRows
    ) -> NDArray[np.int64]:
        response = rows.response
        others = np.setdiff1d(self._rows.order, rows.order)
        self._source.gather(features, self._columns)
        codes = self._columns.as_columns(len(features))
        place = np.searchsorted(features, tree.feature)
        labels, n_classes = response.labels, response.n_classes
        grown, left_out = (
            rows_by_node(tree, codes, place, some, labels, n_classes)
            for some in (rows.order, others)
        )
        decrease, is_split = measure(tree, grown, left_out), tree.feature >= 0
        sums = np.bincount(place[is_split], decrease[is_split], minlength=len(features))
        return np.rint(np.ldexp(sums, IMPORTANCE_BITS)).astype(np.int64)


def half_of(rows: TrainingRows, tree_key: int) -> TrainingRows:
    """Return a random half of the rows, in the order they had."""
    n = len(rows.order)
    hashes = derive_array(derive(tree_key, HALF), np.arange(n, dtype=np.uint64))
    order = rows.order[np.sort(np.argsort(hashes)[: n // 2])]
    stats, scale = root_of(rows.response, order)
    return TrainingRows(rows.response, order, stats, scale, rows.xlogx)
