"""Compacting a run: nested small sets, and what they are worth on rows held out.

The whole procedure is repeated without the rows of each fold: a run of its own, nested sets, their
scores. Nothing of the rows held out reaches the first two but codes of values, made without the
target.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar

import numpy as np

from srs_ooc.base.arrays import Floats, Integers, Ints32, Reals, Uints32
from srs_ooc.base.budget import check_stages
from srs_ooc.base.errors import RunError, StoppedError, UsageError
from srs_ooc.base.frames import frame_of
from srs_ooc.base.records import Iteration, Step, Subspace
from srs_ooc.base.seeds import Purpose, derive, key_of
from srs_ooc.evidence import correlation
from srs_ooc.evidence.correlation import HEAD
from srs_ooc.evidence.effects import Z, concordance, wilson
from srs_ooc.evidence.exchangeability import deal_folds
from srs_ooc.evidence.judges import PositiveJudge
from srs_ooc.evidence.null_model import BASIS_UNIT, Censored, expected
from srs_ooc.learners.tree_learner import TREE, TreeLearner
from srs_ooc.runs import whole_runs
from srs_ooc.runs.engine import Engine, Speculation, executor_of
from srs_ooc.runs.inputs import Inputs, SideFile
from srs_ooc.runs.jobs import WorkerStore
from srs_ooc.runs.ledger import FOLDS_FOLDER
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.resources import Resources
from srs_ooc.runs.run import Run
from srs_ooc.runs.screening import is_done
from srs_ooc.runs.task import Task, stated_target
from srs_ooc.runs.verdict import candidates_of, sampled_codes
from srs_ooc.samplers.elimination import TREES, Elimination
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.store import Store
from srs_ooc.trees.response import IMPURITIES, Response, TrainingRows
from srs_ooc.trees.saved import add_shares, decode_trees

# What that takes: candidates that are clustered, those held together, rows that are predicted.

CODES_NBYTES = 1 << 25
"""Bytes of codes that correlations are computed from at most, and that are held together, whatever
the run's subspace size."""
MOST_HELD_OUT = 1 << 14
"""Rows predicted, at most; evenly spaced ones of more. Accuracy is then known to within 0.004."""


def n_sampled(n: int, n_rows: int, code_nbytes: int) -> int:
    """Return of how many rows the codes of ``n`` candidates are clustered by."""
    return min(n_rows, correlation.MOST_ROWS, max(1, CODES_NBYTES // (n * code_nbytes)))


def sampled_nbytes(n: int, n_rows: int, code_nbytes: int) -> int:
    """Return the bytes that clustering ``n`` candidates takes."""
    n_rows = n_sampled(n, n_rows, code_nbytes)
    return n * (3 * n_rows * code_nbytes + 64) + 32 * 8 * correlation.CELLS


PAIRS_NBYTES = 240
"""A row where pairs of times are counted."""


def held_out_nbytes(n_rows: int, n_columns: int, manifest: Manifest) -> int:
    """Return the bytes that predicting takes, besides the forest's block and a tree."""
    n_classes, width = max(1, len(manifest.classes)), manifest.code_nbytes
    each = n_columns * (2 * width + 8) + 16 * n_classes
    each += PAIRS_NBYTES * ("events" in manifest.row_columns)
    return min(n_rows, MOST_HELD_OUT) * each


def room_for(plan: Plan) -> int:
    """Return how many features are held together, at most ``HEAD``: q, or a block's worth."""
    block = CODES_NBYTES // (plan.shape.n_rows * plan.shape.code_nbytes)
    return min(HEAD, max(plan.spec.subspace_size, block), plan.shape.n_candidates)


# How well a few features predict rows held out: a forest of the run's own kind of trees.

N_TREES = 300


def held_out_score(
    parts: Resources,
    rows: Ints32,
    target: Integers | Reals | Censored,
    features: Uints32,
    key: int,
    beside: tuple[Floats, Floats] | None = None,
) -> float:
    """Return the share of rows held out predicted right, or of the variance of numbers.

    Beside covariates, trees are grown on what these leave of each class, or of the numbers, and
    what they predict is added to what covariates say.
    Of times to an event, the concordance of predicted risks with them (Harrell's C).

    Parameters
    ----------
    parts : Resources
        Of the training rows; made with ``saves``, so that there is room for a tree's record.
    rows : int32 (n,)
        Rows of the store that are held out.
    target : (n,)
        Their class codes, numbers, or times.
    features : uint32 (k,)
        Stored positions, in any order, that a forest of the run's kind is grown on.
    key : int
        64-bit key of the forest.
    beside : float64 (m, n_rows) and (m, n), optional
        What covariates leave of the training rows, and say of those held out
        (:func:`srs_ooc.evidence.null_model.expected`).
    """
    chosen = correlation.sampled_rows(len(rows), MOST_HELD_OUT)
    rows, features = rows[chosen], np.sort(features)
    target = target.of_rows(chosen) if isinstance(target, Censored) else target[chosen]
    codes = parts.source.columns.codes(features, rows)
    panel = codes.astype(np.float64)
    panel[codes == parts.manifest.missing_code] = np.nan
    if beside is None:
        predicted = forest_says(parts, parts.trees.rows, features, panel, key)
    else:
        predicted = beside[1][:, chosen].T
        for m, left in enumerate(beside[0] if len(features) else ()):
            of_left = TrainingRows.of(Response.targets(left), IMPURITIES[2])
            predicted[:, m] += forest_says(parts, of_left, features, panel, key)[:, 0]
    if isinstance(target, Censored):
        risks = np.unique(predicted[:, 0], return_inverse=True)[1]
        return float(np.nan_to_num(concordance(risks, target).effect, nan=0.5))
    if parts.task.is_regression:
        return share_explained(target.astype(np.float64), predicted[:, 0])
    if predicted.shape[1] == 1:
        return float(np.mean((predicted[:, 0] > 1 / 2) == (target == 1)))
    return float(np.mean(np.argmax(predicted, axis=1) == target))


def forest_says(
    parts: Resources, trained: TrainingRows, features: Uints32, panel: Floats, key: int
) -> Floats:
    """Return what a forest grown on ``features``, ascending, says of rows given by codes.

    ``panel``: float64 (n_features, n), codes of the run's store, NaN where missing. The result is
    sums of class shares, (n, n_classes), or numbers, (n, 1), added in the order of trees.
    """
    limits, response = parts.spec.learner.limits, trained.response
    limits = replace(limits, max_features=math.isqrt(len(features) - 1) + 1)
    if trained is not parts.trees.rows:  # what covariates leave is mostly noise
        leaf = max(limits.min_samples_leaf, LEFT_LEAF)
        limits = replace(limits, impurity=IMPURITIES[2], min_samples_leaf=leaf)
    learner = TreeLearner(
        trained,
        limits,
        limits.max_features + 1,  # so that max_features is taken as it is
        records=True,
        categorical=parts.trees.categorical,
    )
    shares = np.zeros((panel.shape[1], response.n_classes))

    def tree(number: int) -> Iteration:
        return Iteration(number, Subspace(features), derive(derive(key, number), Purpose.TREE))

    with executor_of(parts.source, learner, parts.blocks) as executor:
        ahead = Speculation(executor, tree, lambda _: 0)
        for number in range(N_TREES):
            data = ahead.outcome(number, N_TREES).trees[0]
            ends = np.array([0]), np.array([len(data)])
            trees = decode_trees(data, *ends, regression=response.is_regression)
            slot, codes = trees.slots(features), trees.code.astype(np.float64)
            add_shares(trees, slot, codes, panel, shares, parts.manifest.code_nbytes)
    if response.center is None or response.scale is None:
        return shares
    return response.center + shares / N_TREES / response.scale


def share_explained(target: Floats, predicted: Floats) -> float:
    """Return the coefficient of determination; 0 where the target is constant."""
    spread = float(((target - target.mean()) ** 2).sum())
    return 1.0 - float(((target - predicted) ** 2).sum()) / spread if spread > 0 else 0.0


# The stage that nests small sets: clusters of candidates, and the order of their representatives.
#
# Of features that can stand in for one another the most important one is kept. What is left is
# ordered twice: by importance in the screen, where a feature has mostly irrelevant features beside
# it, and by elimination, halving after halving down to single features, where it has its rivals
# beside it. The order is by the product of the two ranks; the first k of it are the set of k
# features. What is not selected comes last: after the representatives of the selected, and those
# they stand for.

NESTING = ((0.3, 0.7),)
"""How the rounds of the elimination are grown."""


def pooled_order(first: Uints32, second: Uints32) -> Uints32:
    """Order the same features by the product of their ranks in two orders, ties by the first."""
    rank = {feature: i for i, feature in enumerate(second.tolist(), 1)}
    products = [i * rank[feature] for i, feature in enumerate(first.tolist(), 1)]
    return first[np.argsort(products, kind="stable")]


def columns_of(parts: Resources, features: Uints32) -> correlation.RankColumns:
    """Return the codes of features, of rows few enough to be held."""
    most = n_sampled(len(features), parts.n_rows, parts.manifest.code_nbytes)
    return correlation.RankColumns(*sampled_codes(parts, features, most))


# What a run keeps of the folds that are done, and of all rows.


@dataclass
class FoldRecord:
    """What the whole procedure on all rows but those of one fold came to.

    Attributes
    ----------
    repeat, fold : int
        From 0.
    n_selected : int
        Features that the selection found without the fold's rows.
    order : list of int
        Stored positions: the set of k features is the first k.
    scores : dict of str to float
        How well the first k predict the fold's rows, by k.
    """

    repeat: int
    fold: int
    n_selected: int
    order: list[int]
    scores: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class WholeRecord:
    """What the procedure on all rows came to.

    Attributes
    ----------
    n_selected : int
        Features the run selected.
    order : list of int
        Stored positions: the set of k features is the first k.
    stand_ins : dict of str to list of int
        Stored positions of those that can stand in for a feature of the order.
    """

    n_selected: int
    order: list[int]
    stand_ins: dict[str, list[int]]


_Record = TypeVar("_Record", FoldRecord, WholeRecord)
VERSION = 1
"""Of the method: records of another one are not used."""


class Records:
    """The records of one compaction of a run: facts of its ledger.

    Those of another length of the run, or of other folds, have other names, so nothing is ever
    taken for what it is not. More repeats, and other sizes, are added to those that are there.

    Parameters
    ----------
    ledger : Run
        Of the run.
    split : int or str
        Parts of the rows; or which rows are held out.

    Attributes
    ----------
    ledger : Run
        As given.
    whole : str
        Name of the record of all rows.
    """

    def __init__(self, ledger: Run, split: int | str) -> None:
        parts = f"{split}-folds" if isinstance(split, int) else f"held-out-{split}"
        self.ledger = ledger
        self.whole = f"v{VERSION}-{ledger.progress().iteration}-iterations-{parts}"

    def of_fold(self, repeat: int, fold: int) -> str:
        """Return the name of a fold's record, and of the folder that its run is done in."""
        return f"{self.whole}-repeat-{repeat + 1}-fold-{fold + 1}"

    def kept(self, name: str, kind: type[_Record]) -> _Record | None:
        """Return the record of all rows or of a fold, None if it is not done."""
        return kind(**self.ledger.meta(name)) if self.ledger.has_meta(name) else None

    def keep(self, name: str, record: FoldRecord | WholeRecord) -> None:
        """Keep a record, in place of the one there was."""
        self.ledger.set_meta(name, asdict(record))


@dataclass(frozen=True)
class Fold:
    """Some rows held out: which of how many times, the rows trained on, those held out.

    ``rows`` of the store, int32 (n,), are held out, and their ``target``; of a run that is adjusted
    for covariates their part of its ``basis``, int32 (n, k).
    """

    repeat: int
    fold: int
    train: Inputs
    rows: Ints32
    target: Ints32 | Floats | Censored
    basis: Ints32 | None = None

    def plan(self, plan: Plan) -> Plan:
        """Return a run as it is repeated without the rows held out, here."""
        asked = {"cluster": None, "halves": 0, "save_trees": False}
        return plan.variant(plan.spec.on_rows(self.train), self.train, **asked)

    def beside(self, store: Store) -> tuple[Floats, Floats] | None:
        """Return what covariates leave of the rows trained on, and say of those held out.

        None where the run is not adjusted. Fitted without the rows held out.
        """
        null, held = self.train.null_model, self.basis
        if null is None or held is None:
            return None
        with store.unchanged():
            target = stated_target(store, self.train.rows)
        n_classes = max(1, len(store.manifest.classes))
        return expected(null.basis * BASIS_UNIT, target, held * BASIS_UNIT, n_classes)


@dataclass(frozen=True)
class FoldJob(whole_runs.WholeRunJob):
    """What of a run is repeated without the rows of each fold, here or by workers.

    Attributes
    ----------
    sizes : list of int
        Sizes of sets that are scored.
    """

    sizes: list[int]
    label = "fold"
    stage = "folds"

    def missing(self, record: FoldRecord) -> list[int]:
        """Return those of the sizes that a record has sets for, and no scores."""
        return [k for k in self.sizes if k <= len(record.order) and str(k) not in record.scores]

    def steps(
        self, plan: Plan, number: int, what: tuple[Fold, FoldRecord | None], folder: Path
    ) -> Iterator[FoldRecord]:
        """Yield the record of a fold before it has scores, and with each; see the base class."""
        fold, record = what
        here = fold.plan(plan)
        record = record or nest_fold(here, fold, folder)
        yield record
        if not (missing := self.missing(record)):
            return
        sizes = [size for size in self.sizes if size <= len(record.order)]
        beside, seed = fold.beside(plan.store), plan.spec.run.seed
        extra = held_out_nbytes(len(fold.rows), max(missing), plan.store.manifest)
        with Resources.of(small(here, saves=True), beside_nbytes=extra) as parts:
            for size in missing:
                features = np.array(record.order[:size], np.uint32)
                key = key_of(seed, Purpose.COMPACT, record.repeat, record.fold, size)
                held = parts, fold.rows, fold.target, features
                record.scores[str(size)] = held_out_score(*held, key, beside)
                yield record
                n_scored = sizes.index(size) + 1
                if not here.watch(Step("scoring", n_scored, len(sizes), unit="sizes")):
                    raise StoppedError


def nest_fold(plan: Plan, fold: Fold, folder: Path) -> FoldRecord:
    """Repeat a run without the rows of a fold; return the sets it comes to, without scores.

    ``plan`` is the fold's; ``folder`` is where it is done, and is removed once it is. Errors are
    those of :meth:`FoldJob.steps`.
    """
    whole_runs.select_within(folder, plan)
    with Run(folder, writable=False) as within:
        whole = nest_run(within, plan)
    if whole is None:
        raise StoppedError
    whole_runs.remove_part(folder)
    return FoldRecord(fold.repeat, fold.fold, whole.n_selected, whole.order)


def nest_run(ledger: Run, plan: Plan) -> WholeRecord | None:
    """Return the nested sets of a run that is done; None if stopped.

    Representatives of the selected features come first, then the others of these by importance.
    """
    spec, shape = plan.spec, plan.shape
    features, selected, n_selected = candidates_of(ledger, shape.n_features)
    if not len(features):
        raise RunError(
            f"{ledger.run}: expected a run with features to choose from, found none of any "
            f"importance. Go on to more iterations with `srs-ooc resume {ledger.run} --iterations "
            "N`, or begin a run of other options."
        )
    extra = sampled_nbytes(len(features), shape.n_rows, shape.code_nbytes)
    with Resources.of(small(plan), beside_nbytes=extra) as parts:
        every, key = np.arange(len(features)), key_of(spec.run.seed, Purpose.COMPACT)
        leader = correlation.leader_clustering(columns_of(parts, features), every)
        first = features[leader == every][:HEAD]
        most = min(parts.spec.subspace_size, len(first))
        stage = Elimination(first, key, NESTING, most, fewest=2)
        with parts.workers((0, most)) as executor:
            engine = Engine(stage, executor, None, seed=key, round_size=TREES)
            engine.advance(
                stage.n_trees,
                lambda: plan.watch(Step("nesting", engine.iteration, stage.n_trees, unit="trees")),
            )
    if not stage.is_over:
        return None
    order = pooled_order(first, stage.features)
    is_selected, others = np.isin(order, selected), selected[~np.isin(selected, order)]
    nested = np.concatenate([order[is_selected], others, order[~is_selected]])[:HEAD].tolist()
    stand_ins = dict[str, list[int]]()
    for feature in nested:  # of its cluster the others, the most important first
        cluster = features[features[leader] == feature].tolist()
        stand_ins[str(feature)] = [member for member in cluster if member != feature]
    return WholeRecord(n_selected, nested, stand_ins)


def small(plan: Plan, *, saves: bool = False) -> Plan:
    """Return a run, here, that has room for :func:`room_for` features, of all rows."""
    spec, q = plan.spec, room_for(plan)
    spec = replace(
        spec,
        run=replace(spec.run, subspace_size=q, judge="positive"),
        learner=replace(spec.learner, max_features=q, trees_per_subspace=1, row_sample=None),
        judging=PositiveJudge(),
    )
    return plan.variant(spec, plan.inputs, save_trees=saves, cluster=None, halves=0)


def check_room(ledger: Run, plan: Plan, fold: Fold, most: int) -> None:
    """Refuse a cap that cannot hold all stages, whether or not they are done and kept.

    ``fold`` is one of the folds, and ``most`` the features of the largest set. Folds of a cluster
    are none of this process's business.
    """
    shape, held = plan.shape, fold.plan(plan)
    n = max(1, len(candidates_of(ledger, shape.n_features)[0]))
    nesting = sampled_nbytes(n, shape.n_rows, shape.code_nbytes)
    stages = [small(plan).leases(nesting)]
    if plan.request.cluster is None:
        scoring = held_out_nbytes(len(fold.rows), most, plan.store.manifest)
        stages += [held.leases(), small(held, saves=True).leases(scoring)]
    check_stages(plan.request.cap_nbytes, stages)


# Accuracy on rows held out against the number of features, and the size that is enough.

N_FOLDS, N_REPEATS = 5, 2
LEFT_LEAF = 5
"""Rows of a leaf, at least, of trees on what covariates leave of a target."""
LAST = 0.2
"""Share of the rows that are held out as the last ones, at most."""
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100, 140, 200)
"""Numbers of features that are tried."""


COMPACTED = "compacted"
"""Fact of a ledger that says how many folds and repeats were asked for last."""


def sizes_up_to(most: int, *others: int) -> list[int]:
    """Return the sizes to try among ``most`` features; ``others`` are tried as well."""
    return sorted({min(size, most) for size in (*SIZES, *others)} - {0})


@dataclass(frozen=True)
class Curve:
    """What sets of growing size are worth.

    Attributes
    ----------
    sizes : list of int
        Ascending.
    scores : float64 (n_folds, n_sizes)
        On the rows held out of each fold, of each repeat: the share of rows predicted right, or
        the share of the variance of numbers, or the concordance of risks with times.
    n_parts : int
        Folds that rows were dealt into in each repeat.
    """

    sizes: list[int]
    scores: Floats
    n_parts: int = N_FOLDS

    @property
    def means(self) -> Floats:
        """Mean over folds; float64 (n_sizes,)."""
        means: Floats = self.scores.mean(axis=0)
        return means

    @property
    def errors(self) -> Floats:
        """Standard error of each mean, folds taken as independent; 0 of a single fold."""
        n = len(self.scores)
        if n < 2:
            return np.zeros(len(self.sizes))
        spread: Floats = self.scores.std(axis=0, ddof=1) / np.sqrt(n)
        return spread

    def interval(self, size: int, n_rows: int = 0) -> tuple[float, float] | None:
        """Return the 95% interval of the score of a size; None of a single fold.

        Folds share the rows they train on. So the variance of the mean of J scores, whose rows
        held out are 1 to k - 1 trained on, is s^2 (1 / J + 1 / (k - 1)): Nadeau and Bengio (2003),
        section 3. Where rows are predicted right or wrong, it holds Wilson's interval (1927) of
        so many rows, too: scores of folds that are all right do not vary.

        Parameters
        ----------
        size : int
            One of ``sizes``.
        n_rows : int
            Rows predicted in each repeat, where scores are shares of rows; else 0.
        """
        from scipy.special import stdtrit

        at, n = self.sizes.index(size), len(self.scores)
        if n < 2:
            return None
        mean, variance = float(self.means[at]), float(self.scores[:, at].var(ddof=1))
        half = stdtrit(n - 1, 0.975) * np.sqrt(variance * (1 / n + 1 / (self.n_parts - 1)))
        low, high = mean - half, mean + half
        if n_rows:
            least, most = wilson(mean, n_rows, Z)
            low, high = max(0.0, min(low, least)), max(high, most)
        return float(low), min(1.0, float(high))

    @property
    def best(self) -> int:
        """Place of the best size, the smallest of equal ones."""
        return int(np.argmax(self.means))

    def smallest(self) -> int:
        """Return the smallest size whose mean is within one standard error of the best."""
        means = self.means
        return self.sizes[int(np.argmax(means >= means[self.best] - self.errors[self.best]))]


@dataclass(frozen=True)
class Size:
    """One size: mean score on rows held out, its standard error, and whether it is chosen."""

    features: int
    score: float
    error: float
    chosen: bool


@dataclass(frozen=True)
class Member:
    """One feature of the chosen set, and those that can stand in for it."""

    rank: int
    name: str
    stand_ins: tuple[str, ...]

    def record(self, stand_ins: str) -> "MemberRecord":
        """Return it as a line of a table, its stand-ins as they are said."""
        return MemberRecord(self.rank, self.name, len(self.stand_ins), stand_ins)


@dataclass(frozen=True)
class MemberRecord:
    """A member as a line of a table; names of stand-ins are separated by blanks."""

    rank: int
    name: str
    n_stand_ins: int
    stand_ins: str


@dataclass(frozen=True)
class SmallSet:
    """A small set of features that predicts about as well as any of a run.

    Attributes
    ----------
    n_selected : int
        Features that the run selected from all rows.
    n_selected_within : list of int
        Features selected without the rows of each fold.
    sizes : list of Size
        Score of the nested set of each size, on rows held out.
    best : int
        The size with the best mean score.
    members : list of Member
        The chosen set, best first.
    order : list of int
        Stored positions, best first: the set of k features is the first k.
    held_out : Curve
        Scores of the sizes, fold by fold.
    """

    n_selected: int
    n_selected_within: list[int]
    sizes: list[Size]
    best: int
    members: list[Member]
    order: list[int]
    held_out: Curve

    @property
    def names(self) -> list[str]:
        """Names of the chosen features, best first."""
        return [member.name for member in self.members]

    @property
    def records(self) -> list[MemberRecord]:
        """The chosen features as lines of a table."""
        return [one.record(" ".join(one.stand_ins)) for one in self.members]

    def features(self, kind: str = "pandas") -> Any:
        """Return the chosen features as a frame (``pandas``, ``polars``) or ``records``."""
        return frame_of(kind, MemberRecord, self.records)

    def curve(self, kind: str = "pandas") -> Any:
        """Return the score of each size as a frame (``pandas``, ``polars``) or ``records``."""
        return frame_of(kind, Size, self.sizes)


def compact(
    ledger: Run,
    plan: Plan,
    folds: int = N_FOLDS,
    repeats: int = N_REPEATS,
    max_features: int | None = None,
    held_out: Ints32 | None = None,
) -> SmallSet | None:
    """Compact a run that is done; None if told to stop, to be gone on with later.

    The whole procedure is repeated without the rows of each fold: selection, closing stage,
    clusters and elimination. So scores are of rows that nothing has seen.

    Parameters
    ----------
    ledger : Run
        Of the run, open for writing: its lock is held meanwhile.
    plan : Plan
        Of the run, with the memory and workers to take.
    folds, repeats : int
        Rows are held out in so many parts, so many times.
    max_features : int, optional
        Size of the set, tried besides those of :data:`SIZES`, or all there are if they are fewer;
        the smallest within one standard error of the best, if not given.
    held_out : int32 (n,), optional
        Rows of the store that are held out, once, in place of folds (:func:`rows_held_out`).

    Raises
    ------
    RunError
        If the run is not done, or is one on another store.
    UsageError, BudgetError
        If the run was given what cannot be made anew without some rows, rows cannot be dealt into
        folds, or the cap cannot hold the work.
    """
    _check_repeatable(ledger)
    n_iterations = ledger.progress().iteration
    if not n_iterations or not is_done(ledger, int(ledger.meta("iterations"))):
        raise RunError(
            f"{ledger.run}: expected a run that is done, found one after {n_iterations} "
            f"iterations. Bring it to its end with `srs-ooc resume {quote(str(ledger.run))}`."
        )
    split: int | str = folds
    if held_out is not None:
        split, repeats = hashlib.sha256(held_out.tobytes()).hexdigest()[:16], 1
    splits = list(_splits(plan, folds, repeats, held_out))
    room = room_for(plan)
    asked = [max_features] if max_features else []
    check_room(ledger, plan, splits[0], sizes_up_to(room, *asked)[-1])
    records = Records(ledger, split)
    if (whole := records.kept(records.whole, WholeRecord)) is None:
        if (whole := nest_run(ledger, plan)) is None:
            return None
        records.keep(records.whole, whole)
    sizes = [0] if ledger.spec.adjusts_for else []  # covariates alone
    sizes += sizes_up_to(min(len(whole.order), room), *asked)
    cluster, excluded = plan.request.cluster, Inputs(plan.inputs.excluded)
    memory_mb = plan.request.cap_mb if cluster is None else cluster.worker_memory_mb
    worker_store, identity = WorkerStore.of(plan.store, memory_mb), plan.spec.to_json()
    job = FoldJob(worker_store, identity | {"folds": True}, excluded, n_iterations, sizes)
    ledger.set_meta(COMPACTED, [split, repeats])
    done = _folds_done(job, plan.asked(iterations=n_iterations), records, splits)
    return None if done is None else _small_set(whole, done, plan.store, max_features)


def _folds_done(
    job: FoldJob, plan: Plan, records: Records, folds: list[Fold]
) -> list[FoldRecord] | None:
    """Return the records of all folds, done here or by workers, each kept; None if stopped."""
    names = [records.of_fold(fold.repeat, fold.fold) for fold in folds]
    known = {n: records.kept(name, FoldRecord) for n, name in enumerate(names)}
    parts = {n: (folds[n], one) for n, one in known.items() if one is None or job.missing(one)}

    folders = [records.ledger.run / FOLDS_FOLDER / name for name in names]
    found = job.one_by_one(plan, parts, folders)
    if parts and plan.request.cluster is not None:
        found = job.by_workers(plan, parts)
    for number, record in found:
        records.keep(names[number], record)
        known[number] = record
    done = [one for one in known.values() if one is not None and not job.missing(one)]
    return done if len(done) == len(folds) else None


def curve_of(ledger: Run) -> Curve | None:
    """Return what sets are worth, of the folds that are done of what was asked for last.

    None if none is done since the run has as many iterations as it has.
    """
    if not ledger.has_meta(COMPACTED):
        return None
    split, n_repeats = ledger.meta(COMPACTED)
    n_folds = split if isinstance(split, int) else 1
    records, places = Records(ledger, split), product(range(n_repeats), range(n_folds))
    every = (records.kept(records.of_fold(*place), FoldRecord) for place in places)
    done = [record for record in every if record and record.scores]
    return _curve(done, n_folds)


def _curve(done: list[FoldRecord], n_folds: int, most: int = HEAD) -> Curve | None:
    """Return the scores of sizes up to ``most`` that every fold reached; None if there is none."""
    common = set.intersection(*(set(record.scores) for record in done)) if done else set()
    sizes = sorted(size for size in map(int, common) if size <= most)
    scores = np.array([[record.scores[str(size)] for size in sizes] for record in done])
    return Curve(sizes, scores, max(2, n_folds)) if sizes else None


def _check_repeatable(ledger: Run) -> None:
    """Refuse a run that grows no trees, or was given what was made with rows to be held out."""
    inputs, model = ledger.inputs, ledger.spec.learner
    if not model.is_tree:
        raise UsageError(
            f"{ledger.run}: expected a run of --model {TREE}, found one of --model {model.model}: "
            "small sets are found by trees. Compact a run of trees, or export the best of this one "
            "with --top N."
        )
    given = {"scores=FILE": inputs.weights, "validation_rows": inputs.validation}
    for option, array in given.items():
        if array is not None:
            raise UsageError(
                f"{ledger.run}: expected a run whose selection can be repeated without the rows "
                f"that are held out, found one with {option}: what the file says may come from "
                "all rows. Compact a run without it."
            )


def rows_held_out(
    ledger: Run, store: Store, file: Path | None, column: str | None
) -> Ints32 | None:
    """Return the rows of a run that are to be held out once; None if folds are.

    They are those whose ids a ``file`` names, or the fifth of them with the largest numbers in a
    covariate ``column``, a date, say; those without a number are trained on.

    Raises
    ------
    UsageError
        If both are given, the file names what is no row, there is no such column of numbers, no
        rows would be held out, or some of a group.
    """
    if file is None and column is None:
        return None
    if file is not None and column is not None:
        raise UsageError("--held-out-rows: expected it or --time-split, found both. Leave one out.")
    rows = ledger.inputs.rows
    rows = np.arange(store.n_rows, dtype=np.int32) if rows is None else rows
    if file is not None:
        is_out = SideFile(file, "row id", store.n_rows).find_all(store.row_ids, 0)[rows]
    else:
        numbers = {one.name: one.values for one in store.each_covariate() if not one.levels}
        if column not in numbers:
            raise UsageError(
                f"--time-split: expected a covariate of numbers ({', '.join(numbers) or 'none'}), "
                f"found {column!r}. Ingest the table with --covariates {column}."
            )
        values = numbers[column][rows]
        is_out = values > np.nanquantile(values, 1 - LAST, method="lower")
    if not is_out.any() or is_out.all():
        raise UsageError(
            f"expected rows to hold out and rows to train on, found {np.count_nonzero(is_out)} of "
            f"{len(rows)} to hold out. Name others."
        )
    groups = store.groups()
    if groups is not None and np.isin(groups[rows[is_out]], groups[rows[~is_out]]).any():
        raise UsageError(
            "expected whole groups to hold out, found one of which rows are held out and rows are "
            "trained on: what is known of it would be predicted. Name all of its rows, or none."
        )
    return rows[is_out]


def _splits(plan: Plan, n_folds: int, n_repeats: int, held_out: Ints32 | None) -> Iterator[Fold]:
    """Yield the folds: what is trained on and what is held out."""
    inputs, seed = plan.inputs, plan.spec.run.seed
    rows = np.arange(plan.store.n_rows, dtype=np.int32) if inputs.rows is None else inputs.rows
    task = Task.of(plan.store, inputs.rows, exchanges=True)
    for repeat in range(n_repeats):
        key = key_of(seed, Purpose.COMPACT, repeat)
        if held_out is not None:
            fold_of = 1 - np.isin(rows, held_out).astype(np.intp)
        else:
            fold_of = deal_folds(key, n_folds, task.target, task.strata, task.groups)
        for fold in range(n_folds if held_out is None else 1):
            out = fold_of == fold
            basis = None if inputs.null_model is None else inputs.null_model.basis[out]
            of = task.censored.of_rows(np.flatnonzero(out)) if task.censored else task.target[out]
            yield Fold(repeat, fold, inputs.part(rows, ~out), rows[out], of, basis)


def _small_set(
    whole: WholeRecord, done: list[FoldRecord], store: Store, max_features: int | None
) -> SmallSet:
    """Put the records together, by name."""
    curve = _curve(done, 1 + max(record.fold for record in done), len(whole.order))
    assert curve is not None, "each fold has the set of one feature"
    positions, sizes = store.array("positions"), curve.sizes
    chosen = min(max_features or curve.smallest(), len(whole.order))
    names = [
        [store.names[int(positions[i])] for i in (one, *whole.stand_ins[str(one)])]
        for one in whole.order[:chosen]
    ]
    points = zip(sizes, curve.means.tolist(), curve.errors.tolist(), strict=True)
    return SmallSet(
        whole.n_selected,
        [record.n_selected for record in done],
        [Size(size, mean, error, size == chosen) for size, mean, error in points],
        sizes[curve.best],
        [Member(rank, first, tuple(others)) for rank, (first, *others) in enumerate(names, 1)],
        whole.order,
        curve,
    )
