"""The parts of a run that work on its columns, under its memory cap, here or at workers.

Columns of single features are looked at here too, once a closing stage is over, and what is known
of workers elsewhere is noted.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import give_back, process_nbytes, resident_nbytes
from srs_ooc.base.errors import StoppedError
from srs_ooc.base.records import PAGE_ITEMS, Step
from srs_ooc.base.records import Part as LearningPart
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import ceil_div
from srs_ooc.evidence.judges import closes_by_sensitivity
from srs_ooc.evidence.rank_tests import (
    CERTAIN,
    NO_CONTRAST,
    RankTarget,
    contrasts_log_p,
    shares_beside,
    strongest_of,
)
from srs_ooc.evidence.tally import ModelScores, RankingHistory, Tally
from srs_ooc.learners.models import SUBSPACES, Target, load, one_thread
from srs_ooc.learners.tree_learner import RANK, Learner, SensitiveLearner, TreeLearner
from srs_ooc.native.numerics import log
from srs_ooc.runs.engine import (
    TALLY,
    ColumnSource,
    Engine,
    Executor,
    ThreadExecutor,
    check_needs,
    commit_due,
    fit_iteration,
)
from srs_ooc.runs.ledger import VALID, Ledger
from srs_ooc.runs.run_memory import (
    ORDERS_NBYTES,
    TESTED_CELLS,
    RunBudget,
    TrainingShape,
    shape_of,
)
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task, check_cluster, folds_of, training_response
from srs_ooc.samplers.base import SamplerContext
from srs_ooc.store.manifest import CATEGORICAL
from srs_ooc.store.store import ReadAhead, Store
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import Response, TrainingRows

if TYPE_CHECKING:
    from srs_ooc.learners.model_learner import EstimatorLearner
    from srs_ooc.runs.dask_cluster import DaskCluster
    from srs_ooc.runs.run_trees import TreeWriter

DEFAULT_WORKER_MEMORY_MB = 512
_GROWING, _TESTING = 2 << 20, 1 << 19
"""Bytes of a block that goes back to the system when it is freed, once the cap is near."""


@dataclass(frozen=True)
class RunContext:
    """What a run is worked on with.

    Attributes
    ----------
    spec : RunSpec
        The run's identity.
    store : Store
        Its store.
    task : Task
        What it learns from.
    cap_nbytes : int
        Cap on the memory of the whole process.
    threads : int or None
        Workers; None for the cores of this machine.
    cluster : DaskCluster or None
        Workers elsewhere, on which trees are grown; what else reads columns does so here.
    watch : callable
        Told where the work stands; says whether to go on.
    """

    spec: RunSpec
    store: Store
    task: Task
    cap_nbytes: int
    threads: int | None
    cluster: "DaskCluster | None" = None
    watch: Callable[[Step], bool] = lambda _: True

    @contextmanager
    def resources(
        self, *, saves: bool = False, beside_nbytes: int = 0, grows: bool = True
    ) -> "Iterator[Resources]":
        """Yield the resources of a stage of a run within the cap, and close them after.

        Parameters
        ----------
        saves : bool
            Trees are kept.
        beside_nbytes : int
            Bytes of the cap that are left to the caller.
        grows : bool
            Something is grown; else what more workers would take is left to tests of features.

        Raises
        ------
        StoreError
            If the store is not the run's, or is replaced before the resources are made, once they
            are, or when the block ends: what was read in between counts only if nothing is raised.
        BudgetError
            If the cap cannot hold them.
        UsageError
            If the model cannot be fitted, or not on a cluster.
        """
        self.store.check_is(self.spec.store)
        if self.cluster is not None:
            check_cluster(self.spec)
        with self.store.unchanged(), ExitStack() as stack:
            resources = Resources(
                self, stack, saves=saves, beside_nbytes=beside_nbytes, grows=grows
            )
            self.store.check_unchanged()  # what is open by now stays what it is
            yield resources


class Resources:
    """What works on a run's columns: workers with their blocks, the columns, the learner.

    :meth:`RunContext.resources` makes them.

    Attributes
    ----------
    spec : RunSpec
        The run's identity.
    task : Task
        What it learns from.
    manifest : Manifest
        Of its store.
    n_features, n_rows : int
        Features of the store, and rows trained on.
    candidates : uint32 (n_candidates,) or None
        Features that may be drawn; None where all may.
    n_candidates : int
        How many they are.
    source : ColumnSource
        Where columns come from.
    learner : Learner
        What is grown on them.
    blocks : list of Block
        One a worker.
    executor : Executor
        The workers.
    n_testers : int
        Threads that test single features.
    watch : callable
        Told where the work stands; says whether to go on.
    response : Response
        What the rows say.
    """

    def __init__(
        self,
        context: RunContext,
        stack: ExitStack,
        *,
        saves: bool,
        beside_nbytes: int,
        grows: bool,
    ) -> None:
        spec, store, task = context.spec, context.store, context.task
        self.watch, self._step = context.watch, Step("", 0, 1)
        self.spec, self.task, self.manifest = spec, task, store.manifest
        self.n_features, self.n_rows = store.n_features, task.n_rows
        cluster, threads = context.cluster, context.threads
        beside_nbytes += store.reading_nbytes
        self._elsewhere: Callable[..., Executor] | None = None
        if cluster is not None:
            from srs_ooc.runs.batches import grown_elsewhere

            self._elsewhere = grown_elsewhere(cluster, spec, store, task, records=saves)
            threads, beside_nbytes = 1, beside_nbytes + ORDERS_NBYTES
        shape = shape_of(store.manifest, task.inputs, spec.values())
        is_tight = resident_nbytes() > max(process_nbytes(), context.cap_nbytes // 2)
        give_back((_GROWING if grows else _TESTING) if is_tight else None)
        budget = RunBudget.of_run(
            spec,
            shape,
            context.cap_nbytes,
            threads,
            saves=saves,
            beside_nbytes=beside_nbytes,
            grows=grows,
            resident_nbytes=resident_nbytes(),
        )
        self.n_testers = budget.n_testers
        self.response = training_response(task)
        self.learner: Learner = learner_of(
            spec, store, task, self.response, budget.n_threads, records=saves
        )
        if not spec.model.is_tree:
            load(spec.model, is_regression=self.response.is_regression)
            stack.enter_context(one_thread())
        tiled = isinstance(self.learner, TreeLearner) and self.learner.tiled
        self.blocks = blocks_of(budget.n_workers, spec, shape, tiled=tiled)
        self.candidates = task.inputs.candidates(self.n_features)
        self.n_candidates = shape.n_candidates
        self.source, ahead = open_source(spec, store, task, budget, stack)
        self.executor: Executor
        if self._elsewhere is None:
            fit = partial(fit_iteration, self.source, self.learner)
            self.executor = ThreadExecutor(fit, self.blocks, ahead)
        else:
            self.executor = self._elsewhere(spec.n_columns)
        stack.callback(self.executor.close)

    @property
    def trees(self) -> TreeLearner:
        """What grows trees; of a run whose model is one."""
        assert isinstance(self.learner, TreeLearner)
        return self.learner

    @property
    def categorical(self) -> NDArray[np.bool_] | None:
        """Which features are, (n_features,), None where none is: other models take none."""
        return self.trees.categorical if isinstance(self.learner, TreeLearner) else None

    def tell(self, step: Step | None = None) -> None:
        """Tell where tests stand, by default as last told.

        Raises
        ------
        StoppedError
            If they are to stop.
        """
        self._step = step or self._step
        if not self.watch(self._step):
            raise StoppedError

    def engine(
        self, book: Ledger | None, seed: int | None = None, trees: "TreeWriter | None" = None
    ) -> Engine:
        """Return the run's main loop as it goes on from ``book``.

        ``seed`` replaces the spec's; ``trees`` is where trees are kept, if they are recorded.
        """
        spec = self.spec if seed is None else self.spec.with_seed(seed)
        tie = key_of(spec.seed, Purpose.RANK_TIE)
        tally = Tally(self.n_features, wins=not spec.concludes)
        observers: dict[str, LearningPart] = {TALLY: tally}
        if trees is not None:
            observers[VALID] = trees
        if spec.model.scores_features:
            by_subspace = spec.model.model_importance == SUBSPACES
            observers[ModelScores.name] = ModelScores(self.n_features, by_subspace=by_subspace)
        if spec.concludes:
            observers[RankingHistory.name] = RankingHistory(tally, tie)
        context = SamplerContext(
            n_features=self.n_features,
            subspace_size=spec.subspace_size,
            key=tie,
            tally=tally,
            judge=spec.judging,
            round_size=spec.round_size,
            candidates=self.candidates,
            weights=self.task.inputs.weights,
            response=self.response,
            validation=self.task.inputs.validation_places(),
            positions=self.task.positions,
        )
        sampler = spec.sampler.make(context)
        engine = Engine(
            sampler,
            self.executor,
            book,
            seed=spec.seed,
            round_size=spec.round_size,
            observers=observers,
            judge=spec.judging,
        )
        check_needs(sampler, self.learner.provides, self.spec.model.model)
        return engine

    @contextmanager
    def closing_executor(self, min_samples_leaf: int, most: int) -> Iterator[Executor]:
        """Yield an executor for trees on at most ``most`` features, all of them candidates.

        It takes the blocks of the main loop's, which must be idle and is not used again; on a
        cluster, the workers make others.
        """
        closing = min_samples_leaf, most
        with ExitStack() as stack:
            if self._elsewhere is not None:
                executor = self._elsewhere(most, closing)
            else:
                learner = closing_learner(self.trees, self.spec, closing)
                for block in self.blocks:
                    block.use_tiles()
                ahead = stack.enter_context(ReadAhead(self.source.columns))
                fit = partial(fit_iteration, self.source, learner)
                executor = ThreadExecutor(fit, self.blocks, ahead)
            stack.callback(executor.close)
            yield executor


def open_source(
    spec: RunSpec, store: Store, task: Task, budget: RunBudget, stack: ExitStack
) -> tuple[ColumnSource, ReadAhead]:
    """Return where columns come from, and what reads them ahead; ``stack`` closes both."""
    by_value = spec.learner.thresholds != RANK or not spec.model.is_tree
    values = stack.enter_context(store.value_tables()) if by_value else None
    columns = stack.enter_context(store.columns(mapped=budget.mapped))
    columns.n_threads = budget.n_readers
    ahead = stack.enter_context(ReadAhead(columns))
    return ColumnSource(columns, task.rows, values), ahead


def learner_of(
    spec: RunSpec, store: Store, task: Task, response: Response, n_threads: int, *, records: bool
) -> "TreeLearner | EstimatorLearner":
    """Return the learner of a run's main loop; ``response`` is what the task's rows say."""
    if not spec.model.is_tree:
        from srs_ooc.learners.model_learner import EstimatorLearner  # few runs have one

        target = Target(task.target, max(1, len(task.classes)))
        return EstimatorLearner(spec.model, target, folds_of(spec, task), response.center or 0.0)
    return TreeLearner(
        TrainingRows.of(response, spec.learner.impurity),
        spec.limits,
        spec.subspace_size,
        spec.learner.trees_per_subspace,
        records=records,
        bootstrap=spec.learner.bootstrap,
        n_threads=n_threads,
        categorical=categorical_features(store),
        candidates=spec.method.judges_candidates,
    )


def closing_learner(
    learner: TreeLearner, spec: RunSpec, closing: tuple[int, int]
) -> TreeLearner | SensitiveLearner:
    """Return the learner of a closing stage, from that of the main loop."""
    leaf, most = max(spec.learner.min_samples_leaf, closing[0]), closing[1]
    trees = learner.with_limits(
        replace(spec.limits, max_features=most, min_samples_leaf=leaf), most
    )
    return SensitiveLearner(trees) if closes_by_sensitivity(spec.judging) else trees


def blocks_of(n_workers: int, spec: RunSpec, shape: TrainingShape, *, tiled: bool) -> list[Block]:
    """Return the blocks of so many workers."""
    return [
        Block(spec.n_columns, shape.n_rows, shape.code_nbytes, tiled=tiled, n_values=shape.n_values)
        for _ in range(n_workers)
    ]


def categorical_features(store: Store) -> NDArray[np.bool_] | None:
    """Return which features are categorical; bool (n_features,), or None where none is."""
    if not store.manifest.kind_counts.get("categorical"):
        return None
    flags: NDArray[np.bool_] = store.kinds() == CATEGORICAL
    return flags


# Features looked at one at a time, once a closing stage is over: their columns and their tests.

TESTS = "tests"
"""Name of the stage."""
STRENGTHS = "strengths-"
"""Begins the names of the ledger's arrays with what tests found, by page, before a verdict."""
_COLUMNS = 64
_TESTED = 256
"""Columns that a thread tests together."""
_PIECE = 1 << 15
"""Features whose p-values are held together, while they become strengths; at most."""
_SECONDS = 0.25
"""What testing a piece is to take: after each, progress is told and work may stop."""
_KEPT, _LEAST_KEPT = 8, 1 << 14
"""Of a promising feature the p-values are kept, if these are no more than one in so many, or
few."""
_PROMISING = 1.0
"""Strength from which a feature is tested again once the shares of its contrasts are known."""


def target_of(task: Task, rows: NDArray[np.intp] | None = None) -> RankTarget:
    """Return the target that single features are tested against, of some rows where given."""
    kept = slice(None) if rows is None else rows
    strata = None if task.strata is None else task.strata[kept]
    target = task.target[kept]
    if task.is_regression:
        return RankTarget.of_values(target.astype(np.float64), strata)
    return RankTarget.of_classes(target.astype(np.int64), len(task.classes), strata, task.classes)


class UnitTable:
    """The table that features are tested on: a row a training row, or a whole group of them.

    Attributes
    ----------
    task : Task
        Its rows.
    missing_code : int
        Number of codes that are no missing values.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources, task = resources, resources.task
        self.task, self.missing_code = task, resources.manifest.missing_code
        self._units = None
        if task.groups is not None:
            self.task, self._units = task.by_group(), task.exchangeability(in_order=False)
            self.missing_code = self._units.missing_code

    def target(self, rows: NDArray[np.intp] | None = None) -> RankTarget:
        """Return what features are tested against, of some rows where given."""
        return target_of(self.task, rows)

    def categorical(self, features: NDArray[np.uint32]) -> NDArray[np.bool_] | None:
        """Return which features are; None where none is, or where means of groups are ranked."""
        flags = self._resources.categorical if self._units is None else None
        return None if flags is None else flags[features]

    def ranks_names(self, features: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return whose values are means of ranks of categories: higher or lower says nothing."""
        flags = None if self._units is None else self._resources.categorical
        return np.zeros(len(features), np.bool_) if flags is None else flags[features]

    def columns(
        self, features: NDArray[np.uint32], at_once: int = _COLUMNS
    ) -> Iterator[NDArray[Any]]:
        """Yield the codes of features, as :func:`feature_columns` does."""
        units, missing_code = self._units, self._resources.manifest.missing_code
        for columns in feature_columns(self._resources, features, at_once):
            yield columns if units is None else units.mean_ranks(columns, missing_code)


class TestedFeatures:
    """Strengths of the first of all features, kept by page in a ledger while they are computed.

    They do not depend on iterations, so that they hold for each verdict; they are read as of the
    same evidence alone, and go with the verdict.

    Attributes
    ----------
    strengths : float32 (n_features,)
        NaN where not tested yet, or left out.
    n, done : int
        Features to test, and how many of these are.
    """

    def __init__(self, resources: Resources, ledger: Ledger | None, most: int) -> None:
        n_features = resources.n_features
        self.strengths = np.full(n_features, np.nan, np.float32)
        self._candidates, self._ledger = resources.candidates, ledger
        self._evidence = resources.spec.judging.versions["evidence"]
        self.n = n_features if self._candidates is None else len(self._candidates)
        self._kept, self._log_p = np.empty(most, np.uint32), np.empty((most, NO_CONTRAST))
        self.done = self._n_kept = self._committed = 0
        while ledger is not None and self._load(ledger):
            self._committed = self.done

    def features(self, at: slice) -> NDArray[np.uint32]:
        """Return those of some places."""
        if self._candidates is None:
            return np.arange(at.start, at.stop, dtype=np.uint32)
        return self._candidates[at]

    def add(self, strengths: NDArray[np.float32], log_p: NDArray[np.float64]) -> None:
        """Take those of the next features, and p-values of those that are promising."""
        features = self.features(slice(self.done, self.done + len(strengths)))
        some = np.flatnonzero(strengths >= _PROMISING)
        self._add(features, strengths, features[some], log_p[some])

    def _add(
        self,
        features: NDArray[np.uint32],
        strengths: NDArray[np.float32],
        promising: NDArray[np.uint32],
        log_p: NDArray[np.float64],
    ) -> None:
        n = min(len(promising), len(self._kept) - self._n_kept)
        to = slice(self._n_kept, self._n_kept + n)
        self._kept[to], self._log_p[to] = promising[:n], log_p[:n]
        self.strengths[features] = strengths
        self._n_kept, self.done = to.stop, self.done + len(features)

    def promising(self) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        """Return the first promising features, ascending, and p-values of their contrasts."""
        return self._kept[: self._n_kept], self._log_p[: self._n_kept]

    def _load(self, ledger: Ledger) -> bool:
        page = ledger.read_arrays(f"{STRENGTHS}{self.done // PAGE_ITEMS}")
        if page is None or page["evidence"] != self._evidence or page["first"] != self.done:
            return False
        features = self.features(slice(self.done, self.done + len(page["strengths"])))
        self._add(features, page["strengths"], page["promising"], page["log_p"])
        return True

    def commit(self) -> float:
        """Keep what was added since; return the seconds it took."""
        start = time.monotonic()
        pages = range(self._committed // PAGE_ITEMS, ceil_div(self.done, PAGE_ITEMS))
        if self._ledger is not None and self.done > self._committed:
            self._ledger.write_all((f"{STRENGTHS}{page}", self._page(page)) for page in pages)
        self._committed = self.done
        return time.monotonic() - start

    def _page(self, number: int) -> dict[str, NDArray[Any]]:
        first = number * PAGE_ITEMS
        features = self.features(slice(first, min(first + PAGE_ITEMS, self.done)))
        kept, log_p = self.promising()
        held = slice(*np.searchsorted(kept, [features[0], features[-1] + np.uint32(1)]))
        return {
            "first": np.array(first),
            "strengths": self.strengths[features],
            "promising": kept[held],
            "log_p": log_p[held],
            "evidence": np.array(self._evidence),
        }


class MarginalTests:
    """Rank tests of features against the target, one at a time, within strata where there are any.

    Contrasts have equal shares of the level until :meth:`share_out`. What is found of all features
    is kept in the ledger, where there is one.

    Attributes
    ----------
    table : UnitTable
        What is tested.
    tell : callable
        That of the resources.
    """

    def __init__(self, resources: Resources, ledger: Ledger | None = None) -> None:
        self._resources, self._ledger = resources, ledger
        self.tell = resources.tell
        self.table = UnitTable(resources)
        self._target = self.table.target()
        self._counts = np.zeros(NO_CONTRAST, np.int64)
        self._own: NDArray[np.uint8] | None = None
        self._at_once = _COLUMNS
        # Tested features, ascending, with the p-values of their contrasts: they are not read again.
        self._kept, self._kept_log_p = np.zeros(0, np.uint32), np.zeros((0, NO_CONTRAST))

    def share_out(self, strengths: NDArray[np.float32]) -> None:
        """Give each contrast of a feature its share by what the other features show.

        Parameters
        ----------
        strengths : float32 (n_features,)
            Of all; become those by the shares, where these can matter. P-values above 0.1 stay:
            one is then at most t with probability at most t, above 0.1 by the old shares, and
            below by the new ones.
        """
        n_tested = int(np.count_nonzero(~np.isnan(strengths)))
        own = np.full(len(strengths), NO_CONTRAST, np.uint8)
        for features in _from(strengths, log(max(n_tested, 1) / CERTAIN) / log(10.0)):
            own[features] = self.contrasts_of(features)
        self._counts = np.array([np.count_nonzero(own == c) for c in range(NO_CONTRAST)])
        self._own = own
        for features in _from(strengths, _PROMISING):
            strengths[features] = self.of(features)
        self._kept, self._kept_log_p = self._kept[:0], self._kept_log_p[:0]

    def shares_of(self, features: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return the shares of the contrasts of some features; float64 (n, 3)."""
        nothing = np.full(len(features), NO_CONTRAST, np.uint8)
        return shares_beside(self._counts, nothing if self._own is None else self._own[features])

    def of_all(self) -> NDArray[np.float32]:
        """Return the strength of every feature, minus the decimal logarithm of its p-value.

        Of single precision, as there are many; NaN where left out.
        """
        most = max(self._resources.n_features // _KEPT, _LEAST_KEPT)
        tested, due = TestedFeatures(self._resources, self._ledger, most), commit_due()
        try:
            for at in self._paced(tested.n, tested.done):
                features = tested.features(at)
                log_p = self._log_p(features)
                tested.add(self._strongest(log_p, features)[0].astype(np.float32), log_p)
                if time.monotonic() >= due:
                    due = commit_due(tested.commit())
        except StoppedError:
            tested.commit()
            raise
        self._kept, self._kept_log_p = tested.promising()
        return tested.strengths

    def of(self, features: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the strengths of some features, the same as among all."""
        found = np.zeros(len(features), np.float32)
        for at in self._paced(len(features)):
            found[at] = self._strongest(self._log_p(features[at]), features[at])[0]
        return found

    def contrasts_of(self, features: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """Return the :class:`Contrast` that shows most of each of some features."""
        found = np.zeros(len(features), np.uint8)
        for at in self._paced(len(features)):
            found[at] = self._strongest(self._log_p(features[at]), features[at])[1]
        return found

    def _paced(self, n: int, done: int | None = None) -> Iterator[slice]:
        """Yield pieces of so many features, as large as the last ones were fast to test.

        After each is asked whether to go on. ``done``: they are all features, of which so many were
        tested before.
        """
        start = done or 0
        while start < n:
            began, stop = time.monotonic(), min(start + self._at_once, n)
            yield slice(start, stop)
            growth = min(4.0, _SECONDS / max(time.monotonic() - began, 1e-3))
            self._at_once = int(min(max(growth * self._at_once, _COLUMNS), _PIECE))
            start = stop
            self.tell(None if done is None else Step(TESTS, stop, n, unit="features"))

    def _strongest(
        self, log_p: NDArray[np.float64], features: NDArray[np.uint32]
    ) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        return strongest_of(log_p, self.shares_of(features))

    def _log_p(self, features: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return the p-values of the contrasts of some features, as kept or as tested now."""
        found = np.empty((len(features), NO_CONTRAST))
        places = np.searchsorted(self._kept, features)
        is_kept = np.append(self._kept, np.uint32(0))[places] == features
        is_kept &= places < len(self._kept)
        found[is_kept] = self._kept_log_p[places[is_kept]]
        found[~is_kept] = self._tested(features[~is_kept])
        return found

    def _tested(self, features: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Test features, by several threads, whose columns are read each by its own."""
        found = np.empty((len(features), NO_CONTRAST))
        n_threads = self._resources.n_testers

        def test(at: slice) -> None:
            done = at.start
            for columns in self.table.columns(features[at], _TESTED):
                codes, n_codes = columns, self.table.missing_code
                if codes.itemsize > 1:
                    codes, n_codes = _dense(codes, n_codes)
                some = slice(done, done + len(codes))
                kinds = self.table.categorical(features[some])
                found[some] = contrasts_log_p(codes, n_codes, self._target, categorical=kinds)
                done = some.stop

        if n_threads == 1 or len(features) <= _COLUMNS:
            test(slice(0, len(features)))
            return found
        size = max(_COLUMNS, ceil_div(len(features), 4 * n_threads))  # not all take as long
        with ThreadPoolExecutor(n_threads, "test") as pool:
            list(pool.map(test, _pieces(len(features), size)))
        return found


def _pieces(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _from(strengths: NDArray[np.float32], bar: float) -> Iterator[NDArray[np.uint32]]:
    """Yield the features of a strength from ``bar`` on, some at a time."""
    for at in _pieces(len(strengths), 8 * _PIECE):
        some = np.flatnonzero(strengths[at] >= bar)
        if len(some):
            yield (at.start + some).astype(np.uint32)


def _dense(columns: NDArray[np.uint16], missing_code: int) -> tuple[NDArray[np.uint16], int]:
    """Return the codes numbered from 0 as they are in use, missing ones last, and how many.

    In place, and a column at a time: sorting all of them takes more memory than the tests.
    """
    is_used = np.zeros(missing_code + 1, np.bool_)
    for column in columns:
        is_used[column] = True
    numbers = (np.cumsum(is_used) - 1).astype(np.uint16)
    for column in columns:
        column[:] = numbers[column]
    return columns, int(np.count_nonzero(is_used[:missing_code]))


def feature_columns(
    resources: Resources, features: NDArray[np.uint32], at_once: int = _COLUMNS
) -> Iterator[NDArray[Any]]:
    """Yield the codes of features, at most ``at_once`` (n_columns, n_rows) at a time."""
    n_rows = resources.n_rows
    size = max(1, min(at_once, TESTED_CELLS // n_rows, len(features)))
    block = Block(size, n_rows, resources.manifest.code_nbytes, tiled=False)
    for start in range(0, len(features), size):
        some = np.ascontiguousarray(features[start : start + size])
        resources.source.gather(some, block)
        yield block.as_columns(len(some))


# How a cluster stands, noted in a run now and then, for those who look at the run.

NOTE_SECONDS = 5.0
"""Between two notes."""
CLUSTER = "cluster"
"""Record of the ledger with the last note; no part of a run's identity."""


@dataclass(frozen=True)
class ClusterNote:
    """How a cluster stood when a run was last at work on it.

    Attributes
    ----------
    workers, threads : int
        Workers there were, and the threads of all.
    orders, waiting : int
        Orders that were out, and the iterations, targets or runs in them.
    stage, unit : str
        What was worked on, and what ``done`` and ``total`` count.
    done, total : int
        How far that was.
    a_second : float or None
        Units done a second since the note before; None in the first of a stage.
    noted : float
        When, in seconds since 1970.
    """

    workers: int
    threads: int
    orders: int
    waiting: int
    stage: str
    unit: str
    done: int
    total: int
    a_second: float | None
    noted: float


def cluster_note(ledger: Ledger) -> ClusterNote | None:
    """Return the last note in a ledger; None if its run was never on a cluster.

    Raises
    ------
    RunError
        If it is damaged.
    """
    return ClusterNote(**ledger.meta(CLUSTER)) if ledger.has_meta(CLUSTER) else None


def noting(
    ledger: Ledger, cluster: "DaskCluster | None", watch: Callable[[Step], bool]
) -> Callable[[Step], bool]:
    """Return ``watch``, with how the cluster stands noted in the ledger every few seconds."""
    if cluster is None:
        return watch
    before: tuple[float, Step] | None = None

    def watch_and_note(step: Step) -> bool:
        nonlocal before
        now, rate = time.monotonic(), None
        if before is None or now >= before[0] + NOTE_SECONDS:
            if before is not None and before[1].stage == step.stage:
                rate = round((step.done - before[1].done) / max(now - before[0], 1e-3), 3)
            where = step.stage, step.unit, step.done, step.total
            note = ClusterNote(*cluster.standing(), *where, rate, round(time.time(), 3))
            ledger.set_meta(CLUSTER, asdict(note))
            before = now, step
        return watch(step)

    return watch_and_note
