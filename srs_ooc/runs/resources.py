"""The parts of a run that work on its columns, under its memory cap, here or at workers."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from srs_ooc.base.arrays import Bools
from srs_ooc.base.budget import give_back, process_nbytes, resident_nbytes
from srs_ooc.base.errors import StoppedError
from srs_ooc.base.records import Part as LearningPart
from srs_ooc.base.records import Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.judges import scorer_of
from srs_ooc.evidence.tally import RankingHistory, Tally
from srs_ooc.learners.tree_learner import Learner, TreeLearner
from srs_ooc.runs.engine import (
    TALLY,
    ColumnSource,
    Engine,
    Executor,
    ThreadExecutor,
    check_needs,
    executor_of,
    fit_iteration,
)
from srs_ooc.runs.ledger import VALID, Ledger
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.run_memory import ORDERS_NBYTES, RunBudget, TrainingShape
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task
from srs_ooc.runs.training import training_response
from srs_ooc.samplers.base import SamplerContext
from srs_ooc.store.manifest import CATEGORICAL
from srs_ooc.store.store import ReadAhead, Store
from srs_ooc.trees.block import Block

if TYPE_CHECKING:
    from srs_ooc.runs.run_trees import TreeWriter

DEFAULT_WORKER_MEMORY_MB = 512
_FREED = 1 << 19
"""Bytes of a block that goes back to the system when it is freed, where the cap is near."""


class Resources:
    """What works on a run's columns: workers with their blocks, the columns, the learner.

    :meth:`of` makes them.

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

    @classmethod
    @contextmanager
    def of(cls, plan: Plan, *, beside_nbytes: int = 0, grows: bool = True) -> Iterator["Resources"]:
        """Yield the resources of a stage of a run within its cap, and close them after.

        Parameters
        ----------
        plan : Plan
            Of the run.
        beside_nbytes : int
            Bytes of the cap that are left to the caller.
        grows : bool
            Something is grown; else items are tested, here, and what more workers would take is
            left to tests of features.

        Raises
        ------
        StoreError
            If the store is not the run's, or is replaced before the resources are made, once they
            are, or when the block ends: what was read in between counts only if nothing is raised.
        BudgetError
            If the cap cannot hold them.
        UsageError
            If the model cannot be fitted.
        """
        plan.store.check_is(plan.spec.store)
        with plan.store.unchanged(), ExitStack() as stack:
            resources = cls(plan, stack, beside_nbytes=beside_nbytes, grows=grows)
            plan.store.check_unchanged()  # what is open by now stays what it is
            yield resources

    def __init__(self, plan: Plan, stack: ExitStack, *, beside_nbytes: int, grows: bool) -> None:
        spec, store, task, shape = plan.spec, plan.store, plan.task, plan.shape
        cap_nbytes, threads = plan.request.cap_nbytes, plan.request.threads
        cluster, saves = plan.request.cluster if grows else None, plan.saves and grows
        self.watch, self._step = plan.watch, Step("", 0, 1)
        self.spec, self.task, self.manifest = spec, task, store.manifest
        self.n_features, self.n_rows = store.n_features, task.n_rows
        beside_nbytes += store.reading_nbytes
        self._elsewhere: Callable[..., Executor] | None = None
        if cluster is not None:
            self._elsewhere = cluster.growing(spec, store, task, records=saves)
            threads, beside_nbytes = 1, beside_nbytes + ORDERS_NBYTES
        # From the start: what threads have freed in heaps of their own cannot be given back later.
        is_tight = max(resident_nbytes(), process_nbytes()) > cap_nbytes // 2
        give_back(_FREED if is_tight else None)
        budget = RunBudget.of_run(
            spec,
            shape,
            cap_nbytes,
            threads,
            saves=saves,
            beside_nbytes=beside_nbytes,
            grows=grows,
            resident_nbytes=resident_nbytes(),
        )
        self.n_testers = budget.n_testers
        self.response = training_response(task)
        kinds, made_of = categorical_features(store), (task, self.response, spec, stack)
        self.learner = spec.learner.make(
            *made_of, categorical=kinds, records=saves, n_threads=budget.n_threads
        )
        self.blocks = blocks_of(budget.n_workers, spec, shape, tiled=self.learner.tiled)
        self.inputs, self.candidates = plan.inputs, plan.inputs.candidates(self.n_features)
        self.n_candidates = shape.n_candidates
        self.source, ahead = open_source(shape, store, task, budget, stack)
        if self._elsewhere is None:
            fit = partial(fit_iteration, self.source, self.learner)
            self.executor: Executor = ThreadExecutor(fit, self.blocks, ahead)
        else:
            self.executor = self._elsewhere(spec.n_columns)
        stack.callback(self.executor.close)

    @property
    def trees(self) -> TreeLearner:
        """What grows trees; of a run whose model is one."""
        assert isinstance(self.learner, TreeLearner)
        return self.learner

    @property
    def categorical(self) -> Bools | None:
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
        tie = key_of(spec.run.seed, Purpose.RANK_TIE)
        tally = Tally(self.n_features, wins=not spec.concludes)
        observers: dict[str, LearningPart] = {TALLY: tally}
        if trees is not None:
            observers[VALID] = trees
        if (scores := spec.learner.model_scores(self.n_features)) is not None:
            observers[scores.name] = scores
        if spec.concludes:
            observers[RankingHistory.name] = RankingHistory(tally, tie)
        context = SamplerContext(
            n_features=self.n_features,
            subspace_size=spec.subspace_size,
            key=tie,
            tally=tally,
            judge=spec.judging,
            round_size=spec.run.round_size,
            candidates=self.candidates,
            weights=self.inputs.weights,
            response=self.response,
            validation=self.inputs.validation_places(),
            positions=self.task.positions,
        )
        sampler = spec.sampler.make(context)
        check_needs(sampler, self.learner.provides, spec.learner.model)
        return Engine(
            sampler,
            self.executor,
            book,
            seed=spec.run.seed,
            round_size=spec.run.round_size,
            observers=observers,
            judge=spec.judging,
        )

    def closing_executor(
        self, min_samples_leaf: int, most: int
    ) -> AbstractContextManager[Executor]:
        """Return an executor for trees on at most ``most`` features, all of them candidates.

        It takes the blocks of the main loop's, which must be idle and is not used again; on a
        cluster, the workers make others.
        """
        limits = min_samples_leaf, most
        if self._elsewhere is not None:
            return closing(self._elsewhere(most, limits))
        return executor_of(self.source, closing_learner(self.trees, self.spec, limits), self.blocks)


def open_source(
    shape: TrainingShape, store: Store, task: Task, budget: RunBudget, stack: ExitStack
) -> tuple[ColumnSource, ReadAhead]:
    """Return where columns come from, and what reads them ahead; ``stack`` closes both."""
    how = {"mapped": budget.mapped, "valued": shape.n_values > 0}
    opened = ColumnSource.of(store, task.rows, **how)
    source = stack.enter_context(opened)
    source.columns.n_threads = budget.n_readers
    return source, stack.enter_context(ReadAhead(source.columns))


def closing_learner(learner: TreeLearner, spec: RunSpec, closing: tuple[int, int]) -> Learner:
    """Return the learner of a closing stage, from that of the main loop."""
    leaf, most = max(spec.learner.min_samples_leaf, closing[0]), closing[1]
    trees: Learner = learner.with_limits(
        replace(spec.learner.limits, max_features=most, min_samples_leaf=leaf), most
    )
    return trees if (scorer := scorer_of(spec.judging)) is None else scorer(trees)


def blocks_of(n_workers: int, spec: RunSpec, shape: TrainingShape, *, tiled: bool) -> list[Block]:
    """Return the blocks of so many workers."""
    n_rows = spec.learner.n_grown(shape.n_rows)
    return [
        Block(spec.n_columns, n_rows, shape.code_nbytes, tiled=tiled, n_values=shape.n_values)
        for _ in range(n_workers)
    ]


def categorical_features(store: Store) -> Bools | None:
    """Return which features are categorical; bool (n_features,), or None where none is."""
    if not store.manifest.kind_counts.get("categorical"):
        return None
    return np.asarray(store.kinds() == CATEGORICAL, np.bool_)
