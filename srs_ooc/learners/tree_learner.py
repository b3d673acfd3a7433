"""What a learner is, and the tree learner: randomized trees on a subspace (Algorithm 1, step 2b).

A learner grows models on the columns of a subspace.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from math import ceil, isqrt
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from srs_ooc.base.arrays import Bools, Floats, Indices, Ints, Ints32, Uints32
from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import (
    LARGEST,
    Choice,
    Flag,
    Params,
    Share,
    Text,
    Whole,
    exact_share,
    floor_share,
    option,
    part_at,
    places_of,
    share_text,
)
from srs_ooc.base.records import Candidates, Criterion, Iteration, Outcome, RowSplit
from srs_ooc.base.seeds import derive
from srs_ooc.evidence.tally import ModelScores
from srs_ooc.native import _native
from srs_ooc.samplers.base import IMPORTANCE, LOSS, PREDICTIONS
from srs_ooc.trees import kernel
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import (
    IMPORTANCE_BITS,
    IMPURITIES,
    SPLITTERS,
    THRESHOLDS,
    GrownTree,
    Response,
    TrainingRows,
    TreeLimits,
)


@dataclass(frozen=True)
class Columns:
    """What the first columns of a block are.

    Attributes
    ----------
    features : uint32 (n,)
        The number that names each column's random draws: its feature's, or the probe's.
    sources : uint32 (n,)
        The feature of the store whose values each column has.
    """

    features: Uints32
    sources: Uints32


class Learner(Protocol):
    """Grows models on subspaces; several threads may call it at once, each with its own block."""

    provides: ClassVar[frozenset[str]]
    """What its outcomes hold: ``importance``, ``loss``, ``predictions``."""

    @property
    def tiled(self) -> bool:
        """Whether blocks are laid out in tiles for it."""

    def fit(self, block: Block, columns: Columns, iteration: Iteration) -> Outcome:
        """Fit the models of an iteration on the first columns of ``block``.

        The result depends on the codes, the columns and the iteration alone: not on the thread,
        nor on what was fitted before.
        """

    def drawn(self, key: int) -> tuple["Learner", Ints32 | None]:
        """Return what fits the models of the iteration whose trees have a key, and on which rows.

        The block has these rows alone, ascending; all where they are None.
        """


MORE_TREES = 1 << 32
"""Part of the words under which further trees on a subspace have their keys."""
MOST_SPLITS = 8
"""Splits of the rows whose training rows are kept: samplers ask for many models of one in turn."""
PROBE_FEATURE = 0xFFFFFFFF
"""The number that names an added column's random draws; no feature has it."""


@dataclass(eq=False)
class TreeLearner:
    """Grows randomized trees on each subspace and sums what they teach.

    Where a subspace splits the rows, its trees are grown on some and predict others. Where it holds
    candidates, each is judged by its held-out loss; their trees' importances are not summed.

    Parameters
    ----------
    rows : TrainingRows
        Rows to grow on, with their classes.
    limits : TreeLimits
        K and the stopping rules.
    subspace_size : int
        q. With K = q every column of the block is a candidate, an added probe included.
    n_trees : int
        Trees on each subspace.
    records : bool
        Return the trees themselves too.
    bootstrap : bool
        Grow each tree on as many rows drawn with replacement.
    row_sample : int, optional
        Grow the trees of a subspace on so many rows, drawn anew without replacement: as many of
        each class, or one of each quantile of the target (minipatches: Yao and Allen 2020).
    n_threads : int
        Threads that share the columns of a large node; they change nothing but speed.
    categorical : bool (n_features,), optional
        Features of the store whose codes are categories; default none.
    candidates : bool
        Subspaces hold small candidates, whose columns are best read one by one.
    """

    provides: ClassVar[frozenset[str]] = frozenset({IMPORTANCE, LOSS, PREDICTIONS})
    rows: TrainingRows
    limits: TreeLimits
    subspace_size: int
    n_trees: int = 1
    _: KW_ONLY
    records: bool = False
    bootstrap: bool = False
    row_sample: int | None = None
    n_threads: int = 1
    categorical: Bools | None = None
    candidates: bool = False

    def __post_init__(self) -> None:
        self._strata: Ints | None = None
        if self.row_sample is not None and self.row_sample < len(self.rows.order):
            self._drawn_from = self.rows.by_target()
            self._strata = self._drawn_from.strata(self.row_sample)
        # A sampler has few splits at a time.
        self._rows_of = lru_cache(MOST_SPLITS)(lambda split: self.rows.only(split.fitted))
        size = self.subspace_size
        self.tiled = not self.candidates and wants_tiles(self.limits.max_features, size)
        if self.limits.max_features == size:
            self.limits = replace(self.limits, max_features=int(np.iinfo(np.int64).max))

    def drawn(self, key: int) -> tuple["TreeLearner", Ints32 | None]:
        """Return the same learner for the rows drawn by a key, and these."""
        if self._strata is None:
            return self, None
        rows = self._drawn_from.drawn(self._strata, key)
        return replace(self, rows=self.rows.block_of(rows), row_sample=None), rows

    def fit(self, block: Block, columns: Columns, iteration: Iteration) -> Outcome:
        """Grow the trees of an iteration on ``columns`` of ``block``; sum their importances.

        That of the probe, the column after those of the subspace, is summed apart. Where the
        subspace splits the rows, trees are grown on some, and what is returned besides is their
        mean prediction of others, in the units of the target less its center.
        """
        features, split = iteration.features, iteration.subspace.split
        if iteration.subspace.candidates is not None:
            return self._judge(block, columns, iteration.subspace.candidates, iteration.tree_key)
        importance, records = np.zeros(len(columns.features), dtype=np.int64), []
        keys = [tree_key(iteration.tree_key, number) for number in range(self.n_trees)]
        predictions = None
        if split is None:
            for key in keys:
                grown = self.grow(block, columns, key)
                importance += grown.importance
                records.append(grown.record)
        else:
            rows = self._rows_of(split)
            keeps = self.records and iteration.subspace.in_ensemble
            response = rows.response
            shares = np.zeros((len(split.predicted), response.n_classes))
            for key in keys:
                worth, said, record = self._ask(block, columns, rows, split, key, records=keeps)
                importance += worth
                shares += said
                records.append(record)
            shares /= self.n_trees * (1.0 if response.scale is None else response.scale)
            predictions = shares[None].astype(np.float32)
        probe = None if iteration.probe is None else int(importance[-1])
        kept = tuple(record for record in records if record is not None)
        return Outcome(features, importance[: len(features)], probe, kept, predictions=predictions)

    def _ask(
        self,
        block: Block,
        columns: Columns,
        rows: TrainingRows,
        split: RowSplit,
        key: int,
        *,
        records: bool = False,
    ) -> tuple[Ints, Floats, bytes | None]:
        """Grow a tree, by whichever way is faster; return what it says, and itself where wanted.

        Returns
        -------
        importance : int64 (n_columns,)
            What its splits on each column are worth.
        shares : float64 (n_predicted, n_classes)
            Class shares of each row that the split predicts, or the mean whole-number target.
        record : bytes or None
            The tree itself, where ``records`` says so.
        """
        rows, features, predicted = self._sampled(rows, key), columns.features, split.predicted
        asked = block, features, rows, predicted, key, self.limits
        if (
            not records
            and self._categories(columns) is None
            and kernel.takes_sorted(block, len(features), rows, len(predicted), self.limits)
            and (said := kernel.grow_sorted(*asked)) is not None
        ):
            return *said, None
        grown, response = self.grow(block, columns, key, rows, record=True), rows.response
        assert grown.record is not None
        record, shares = grown.record, np.zeros((len(predicted), response.n_classes))
        asked_of = np.frombuffer(record, np.uint8), response.is_regression, block.native
        _native.predict_block(*asked_of, features, predicted, shares)
        return grown.importance, shares, record if records else None

    def _judge(self, block: Block, columns: Columns, candidates: Candidates, key: int) -> Outcome:
        """Return the held-out loss of each candidate; all are grown under the same keys."""
        found, response = None, self.rows.response
        if self.n_trees == 1 and not self.bootstrap and self._categories(columns) is None:
            keys = np.array([tree_key(key, n) for n in range(len(candidates.splits))], np.uint64)
            found = kernel.judge_all_at_once(
                block, columns.features, candidates, response, keys, self.limits
            )
        losses = self._in_turn(block, columns, candidates, key) if found is None else found[0]
        return Outcome(columns.features, np.zeros(len(columns.features), np.int64), losses=losses)

    def _in_turn(self, block: Block, columns: Columns, candidates: Candidates, key: int) -> Floats:
        """Return the mean loss of each candidate by whole trees, grown one after the other.

        Squared errors, or wrong classes, each times its row's weight; the first of equally likely
        classes is said. Losses are infinite unless they are the least.
        """
        response = self.rows.response

        def summed(places: Ints32, split: RowSplit, number: int) -> float:
            own, rows = block.only(places), self.rows.only(split.fitted)
            some = Columns(columns.features[places], columns.sources[places])
            said = np.zeros((len(split.predicted), response.n_classes))
            for t in range(number * self.n_trees, (number + 1) * self.n_trees):
                said += self._ask(own, some, rows, split, tree_key(key, t))[1]
            said /= self.n_trees
            weights = response.weights[split.predicted]
            if response.is_regression:
                errors = said[:, 0] - response.numbers[split.predicted]
                each = weights * (errors * errors)
            else:
                each = weights * (said.argmax(1) != response.labels[split.predicted])
            total = 0.0
            for loss in each.tolist():  # one after the other, as the native twin
                total += loss
            return total

        losses, _ = kernel.judge_in_turn(candidates, summed)
        return kernel.mean_losses(losses, response, candidates.splits)

    def grow(
        self,
        block: Block,
        columns: Columns,
        key: int,
        rows: TrainingRows | None = None,
        *,
        record: bool = False,
    ) -> GrownTree:
        """Grow a tree on the first columns of ``block``.

        Parameters
        ----------
        block : Block
            The codes.
        columns : Columns
            What its columns are.
        key : int
            64-bit key of the tree.
        rows : TrainingRows, optional
            Rows to grow on; default the learner's, or as many drawn from them.
        record : bool
            Whether the tree itself is returned, where the learner does not return it anyway.
        """
        return kernel.grow_tree(
            block,
            columns.features,
            self._sampled(self.rows, key) if rows is None else rows,
            key,
            self.limits,
            record=record or self.records,
            categorical=self._categories(columns),
            n_threads=self.n_threads,
        )

    def _sampled(self, rows: TrainingRows, key: int) -> TrainingRows:
        return rows.resampled(key) if self.bootstrap else rows

    def _categories(self, columns: Columns) -> Bools | None:
        """Return which columns hold categories; None if none does."""
        if self.categorical is None:
            return None
        flags = self.categorical[columns.sources]
        return flags if flags.any() else None


def tree_key(first: int, number: int) -> int:
    """Return the key of tree ``number`` (from 0) on a subspace whose first tree has key ``first``.

    The word is one that neither a feature nor a purpose has.
    """
    return first if number == 0 else derive(first, MORE_TREES | number)


def wants_tiles(max_features: int, subspace_size: int) -> bool:
    """Return whether a block is best laid out in tiles: where most columns are candidates.

    Up to about q / 20 candidates a node, reading single columns is faster (measured at n = 1,000,
    q = 2,500: ``benchmarks/bench_tree.py`` shows both ends).
    """
    return 20 * max_features > subspace_size


UNWEIGHTED, RANK = "none", "rank"
ROW_SAMPLE, MANY_ROWS = 4_000, 20_000
"""Rows of a tree where there are many, or more, and tests of all rows come after."""
MOST_TREES = 10_000
"""Bound of trees on one subspace."""


# What ``--model`` names, and what one says of itself: its options.

TREE = "tree"
GROUP = "srs_ooc.learners"
"""Of entry points that name, by the name of a model, a subclass of :class:`TreeParams`."""
ESTIMATORS = "srs_ooc.methods.models.model_learner:ModelParams"
ALIASES = {
    "knn": ("sklearn.neighbors.KNeighborsClassifier", "sklearn.neighbors.KNeighborsRegressor"),
    "svm": ("sklearn.svm.SVC", "sklearn.svm.SVR"),
    "linear": ("sklearn.linear_model.LogisticRegression", "sklearn.linear_model.Ridge"),
    "lda": ("sklearn.discriminant_analysis.LinearDiscriminantAnalysis",) * 2,
    "qda": ("sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",) * 2,
}
"""The classifier and the regressor of each short name; discriminant analysis has no regressor."""


def path_of(model: str, *, is_regression: bool) -> str:
    """Return the import path that a short name stands for; any other as it is."""
    return ALIASES[model][is_regression] if model in ALIASES else model


def learner_named(model: Any) -> "type[TreeParams]":
    """Return what a model is settled by: estimators are meant by a name that no other has."""
    if model == TREE:
        return TreeParams
    kind: type[TreeParams] = part_at(places_of(GROUP).get(str(model), ESTIMATORS), "--model")
    return kind


def learners() -> "list[type[TreeParams]]":
    """Return what all models are settled by, trees first."""
    return [learner_named(model) for model in (TREE, "", *places_of(GROUP))]


@dataclass(frozen=True)
class Trial:
    """What one subspace took; of trees nothing is tried, as all is published.

    Attributes
    ----------
    library_nbytes : int
        Of the libraries that were loaded for it.
    work_nbytes : int
        At most, beyond those and the block.
    seconds : float
        Of all folds, once everything is loaded.
    criterion_seconds : float
        Of the criterion of one part of the columns, of any size, as one of many.
    """

    library_nbytes: int = 0
    work_nbytes: int = 0
    seconds: float = 0.0
    criterion_seconds: float = 0.0


class TreeParams(Params):
    """How trees are grown; ``max_features`` is K of the paper.

    What is fitted in place of trees extends this by the option ``model``, and by what it says
    otherwise of itself.

    Attributes
    ----------
    max_features : int
        Candidate features drawn at each node: a whole number, a share of q such as 0.1, sqrt or
        log2.
    impurity : str
        Impurity that splits decrease.
    splitter : str
        One random split a candidate (extra-trees), or the best one (CART).
    thresholds : str
        Random thresholds uniform between the ranks of values at the node, or between the values
        themselves; best ones midway between either. By values as in scikit-learn.
    min_impurity_decrease : str
        Least importance of a split; in a regression a share of the variance.
    bootstrap : bool
        Grow each tree on as many rows drawn with replacement.
    row_sample : int | None
        Grow the trees of a subspace on so many rows, drawn anew for each: as many of each class, or
        one of each quantile of the target.
    class_weight : str
        none, balanced, or NAME=WEIGHT,NAME=WEIGHT.
    max_depth : int | None
        Deepest split level.
    min_samples_leaf : int
        Fewest rows in a leaf.
    trees_per_subspace : int
        Trees grown on each subspace once it is paged in; 1 is the paper's.
    """

    model = TREE
    part, title, grown = "trees", "Trees", "tree"
    """What it is called in a status, in the help, and in a plan."""
    called = TREE
    """What ``--model`` is to be for its options, in messages."""
    judges: ClassVar[tuple[str, ...]] = ()
    """The relevance tests it can run under, where the method does not say it."""
    library_nbytes, most_threads = 0, LARGEST
    """Published allowance for libraries, and threads that can share a subspace."""
    max_features: int = option(Text(), default=0, default_text="q", metavar="K", flags=("--k",))
    impurity: str = option(Choice(IMPURITIES), default_text="gini; variance for a regression")
    splitter: str = option(Choice(SPLITTERS), default="random")
    thresholds: str = option(Choice(THRESHOLDS), default=RANK)
    min_impurity_decrease: str = option(Share(), default="0", metavar="SHARE")
    bootstrap: bool = option(Flag(), default=False)
    row_sample: int | None = option(
        Whole(2),
        default_text="all; with --judge tests 4000 of 20000 or more, unless trees are saved or "
        "bootstrapped",
        metavar="ROWS",
    )
    class_weight: str = option(Text(), default=UNWEIGHTED, metavar="WEIGHTS")
    max_depth: int | None = option(Whole(1), default_text="no limit", metavar="DEPTH")
    min_samples_leaf: int = option(Whole(1), default=1, metavar="ROWS")
    trees_per_subspace: int = option(Whole(1, MOST_TREES), default=1, metavar="M")

    @classmethod
    def check_given(cls, given: Mapping[str, Any], *, saves_trees: bool) -> None:
        """Check that the options of a run go with the model.

        Raises
        ------
        UsageError
            If one does not.
        """

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle all but K, which depends on q (:func:`settle_max_features`)."""
        fitting = IMPURITIES[2:] if table.is_regression else IMPURITIES[:2]
        impurity = Choice(IMPURITIES).canonical("impurity", given.get("impurity") or fitting[0])
        if impurity not in fitting:
            what = "regression" if table.is_regression else "classification"
            raise UsageError(
                f"impurity: expected {' or '.join(fitting)} for a {what}, found {impurity}."
            )
        if impurity == "entropy" and table.n_channels:
            raise UsageError(
                "impurity: expected gini where rows or classes are weighted, found entropy. "
                "Leave the weights out, or take gini."
            )
        fixed = {name: value for name, value in given.items() if name != "max_features"}
        params = super().settle(fixed | {"impurity": impurity}, table)
        if params.row_sample is not None and params.bootstrap:
            raise UsageError(
                "expected --row-sample or --bootstrap, found both. Leave one out: rows are drawn "
                "with or without replacement."
            )
        return params

    @classmethod
    def reads_values(cls, options: Mapping[str, Any]) -> bool:
        """Return whether a block has the values of codes beside them."""
        return bool(options.get("thresholds", RANK) != RANK)

    @property
    def is_tree(self) -> bool:
        """Whether trees are grown, which can be asked for more than scores."""
        return self.model == TREE

    def values(self) -> dict[str, Any]:
        """Return the settled values by name, and that of trees no other model is meant."""
        named = {} if self.is_tree else {"model": self.model}
        return named | super().values()

    def shown(self) -> dict[str, Any]:
        """Return the options that a status shows."""
        return self.values()

    def fitting_size(self, size: int, n_candidates: int, *, is_given: bool) -> int:
        """Return a q that works for one that does not; ``UsageError`` if that was given."""
        return size

    def check_elsewhere(self) -> None:
        """Refuse workers elsewhere, with ``UsageError``."""

    def check_table(self, store: Any, count: Callable[[Bools], int]) -> None:
        """Refuse a store, with ``UsageError``; ``count`` how many marked features may be drawn."""

    def folds(self, task: Any, seed: int) -> Indices | None:
        """Return the fold of each row of a :class:`srs_ooc.runs.task.Task`; None without folds."""
        return None

    def make(
        self, task: Any, response: Response, spec: Any, stack: ExitStack, **how: Any
    ) -> Learner:
        """Return the learner of a run's main loop, which works until ``stack`` ends.

        Parameters
        ----------
        task : srs_ooc.runs.task.Task
            What is learnt from.
        response : Response
            What its rows say.
        spec : srs_ooc.runs.spec.RunSpec
            Of the run.
        stack : ExitStack
            What has to end with the work is put there.
        **how
            Records, threads and categories of :class:`TreeLearner`.
        """
        how |= {"bootstrap": self.bootstrap, "row_sample": self.row_sample}
        return TreeLearner(
            TrainingRows.of(response, self.impurity),
            self.limits,
            spec.subspace_size,
            self.trees_per_subspace,
            candidates=LOSS in spec.method.needs,
            **how,
        )

    def model_scores(self, n_features: int) -> ModelScores | None:
        """Return the sums by which features are scored; None where importances do it."""
        return None

    def decoded_nbytes(self, n_rows: int, n_columns: int, code_nbytes: int) -> int:
        """Return what is published of a subspace besides its block and a tree on it."""
        return 0

    def tried(self, shape: Any, n_columns: int, criterion: Criterion | None) -> Trial:
        """Return what a subspace of so many columns takes, where that has to be tried."""
        return Trial()

    def seconds(self, sampler: Any, shape: Any, size: int) -> tuple[float, str] | None:
        """Return the seconds of an iteration, and of what; None where rates are published."""
        return None

    def notes(self, sampler: Any, n_candidates: int, size: int) -> tuple[str, ...]:
        """Return sentences worth saying before such a run starts."""
        return ()

    def n_grown(self, n_rows: int) -> int:
        """Return on how many of so many rows trees are grown."""
        return n_rows if self.row_sample is None else min(n_rows, self.row_sample)

    @property
    def limits(self) -> TreeLimits:
        """How trees are randomized and where they stop."""
        return TreeLimits(
            max(1, self.max_features),
            self.max_depth,
            self.min_samples_leaf,
            self.impurity,
            ceil(exact_share(self.min_impurity_decrease) * (1 << IMPORTANCE_BITS)),
            self.splitter,
        )


def settle_max_features(given: str | int | None, subspace_size: int) -> int:
    """Return K: a whole number, a share of q with a decimal point, ``sqrt`` or ``log2`` of q."""
    if given is None:
        return subspace_size
    asked = str(given)
    if asked in ("sqrt", "log2"):
        return isqrt(subspace_size) if asked == "sqrt" else max(1, subspace_size.bit_length() - 1)
    if asked.isascii() and asked.isdigit() and len(asked) <= 10:
        return int(Whole(1, subspace_size, " (q)").canonical("max_features", int(asked)))
    try:
        return max(1, floor_share(share_text(asked), subspace_size))
    except ValueError as error:
        raise UsageError(
            "--max-features: expected a whole number, a share of q such as 0.1, sqrt or log2, "
            f"found {asked[:40]!r}."
        ) from error
