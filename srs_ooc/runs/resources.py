"""The parts of a run that work on its columns, under its memory cap, here or at workers."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from srs_ooc.base.arrays import Bools, Floats, Ints32, Uints32
from srs_ooc.base.budget import PROCESS_NBYTES, give_back, process_nbytes, resident_nbytes
from srs_ooc.base.errors import StoppedError, UsageError
from srs_ooc.base.records import Iteration, Outcome, RowSplit, Step
from srs_ooc.base.records import Part as LearningPart
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.judges import scorer_of
from srs_ooc.evidence.tally import RankingHistory, Tally
from srs_ooc.learners.tree_learner import MOST_SPLITS, Learner, TreeLearner
from srs_ooc.runs.batches import BatchExecutor, pack
from srs_ooc.runs.engine import (
    TALLY,
    ColumnSource,
    Engine,
    Executor,
    executor_of,
    fit_iteration,
    pool_of,
    taken,
)
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.jobs import Batch, Job, PartWatch, Work, WorkerStore
from srs_ooc.runs.ledger import VALID, Ledger
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.run_memory import RunBudget
from srs_ooc.runs.run_trees import TreeWriter
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task
from srs_ooc.runs.training import training_response
from srs_ooc.samplers.base import SamplerContext
from srs_ooc.samplers.elimination import TREES
from srs_ooc.store.manifest import CATEGORICAL
from srs_ooc.store.store import ReadAhead, Store
from srs_ooc.trees.block import Block

DEFAULT_WORKER_MEMORY_MB = 512
_FREED = 1 << 19
"""Bytes of a block that goes back to the system when it is freed, where the cap is near."""


class Resources:
    """What works on a run's columns: workers with their blocks, the columns, the learner.

    :meth:`of` makes them.

    Attributes
    ----------
    plan : Plan
        Of the run, with what is asked of this stage.
    spec : RunSpec
        Its identity.
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
    response : Response
        What the rows say.
    categorical : bool (n_features,) or None
        Which features are; None where none is.
    """

    executor: Executor
    """The workers, here or elsewhere."""

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
        here = plan if grows else plan.asked(cluster=None, save_trees=False)
        if here.request.cluster is not None:
            here = here.asked(threads=1)
        with plan.store.unchanged(), ExitStack() as stack:
            # At once: what threads have freed in heaps of their own cannot be given back later.
            is_tight = max(resident_nbytes(), process_nbytes()) > plan.request.cap_nbytes // 2
            give_back(_FREED if is_tight else None)
            asked, left = here.request, resident_nbytes()
            budget = RunBudget(asked.cap_nbytes, here.leases(beside_nbytes))
            budget.check()
            budget.spend(plan.spec, plan.shape, asked.threads, left, grows=grows)
            resources = cls(here, plan.task, budget, stack)
            resources.executor = stack.enter_context(resources.workers())
            plan.store.check_unchanged()  # what is open by now stays what it is
            yield resources

    def __init__(self, plan: Plan, task: Task, budget: RunBudget, stack: ExitStack) -> None:
        spec, store, shape = plan.spec, plan.store, plan.shape
        self.plan, self._step = plan, Step("", 0, 1)
        self.spec, self.task, self.manifest = spec, task, store.manifest
        self.n_features, self.n_rows = store.n_features, task.n_rows
        self.candidates = plan.inputs.candidates(self.n_features)
        self.n_candidates, self.n_testers = shape.n_candidates, budget.n_testers
        self.response, self.categorical = training_response(task), categorical_features(store)
        self.learner: Learner = spec.learner.make(
            *(task, self.response, spec, stack),
            categorical=self.categorical,
            records=plan.saves,
            n_threads=budget.n_threads,
        )
        sizes = spec.n_columns, spec.learner.n_grown(shape.n_rows), shape.code_nbytes
        self.blocks = [
            Block(*sizes, tiled=False, n_values=shape.n_values) for _ in range(budget.n_workers)
        ]
        how = {"mapped": budget.mapped, "valued": shape.n_values > 0}
        self.source = stack.enter_context(ColumnSource.of(store, task.rows, **how))
        self.source.columns.n_threads = budget.n_readers

    @property
    def trees(self) -> TreeLearner:
        """What grows trees; of a run whose model is one."""
        assert isinstance(self.learner, TreeLearner)
        return self.learner

    def among(self, places: Uints32) -> Uints32:
        """Return the candidates at some places among all of them, which ascend."""
        return places if self.candidates is None else self.candidates[places]

    def tell(self, step: Step | None = None) -> None:
        """Tell where tests stand, by default as last told.

        Raises
        ------
        StoppedError
            If they are to stop.
        """
        self._step = step or self._step
        if not self.plan.watch(self._step):
            raise StoppedError

    def engine(self, book: Ledger | None, trees: TreeWriter | None = None) -> Engine:
        """Return the run's main loop as it goes on from ``book``.

        ``trees`` is where trees are kept, if they are recorded.

        Raises
        ------
        UsageError
            If the learner does not give the sampler what it must learn of each subspace.
        """
        spec = self.spec
        tie = key_of(spec.run.seed, Purpose.RANK_TIE)
        tally = Tally(self.n_features, wins=not spec.concludes)
        observers: dict[str, LearningPart] = {TALLY: tally}
        if trees is not None:
            observers[VALID] = trees
        if (scores := spec.learner.model_scores(self.n_features)) is not None:
            observers[scores.name] = scores
        if spec.concludes:
            observers[RankingHistory.name] = RankingHistory(tally, tie)
        positions = None
        if spec.sampler.needs_positions:
            positions = np.asarray(self.plan.store.array("positions"))
        context = SamplerContext(
            n_features=self.n_features,
            subspace_size=spec.subspace_size,
            key=tie,
            tally=tally,
            judge=spec.judging,
            round_size=spec.run.round_size,
            candidates=self.candidates,
            weights=self.plan.inputs.weights,
            response=self.response,
            validation=self.plan.inputs.validation_places(),
            positions=positions,
        )
        sampler = spec.sampler.make(context)
        if missing := sorted(sampler.needs - self.learner.provides):
            raise UsageError(
                f"--method {sampler.name}: expected a learner that provides {', '.join(missing)}, "
                f"found {spec.learner.model}. Choose another --model."
            )
        return Engine(
            sampler,
            self.executor,
            book,
            seed=spec.run.seed,
            round_size=spec.run.round_size,
            observers=observers,
            judge=spec.judging,
        )

    def workers(self, stage: tuple[int, int] | None = None) -> AbstractContextManager[Executor]:
        """Return the workers of the main loop, or of a closing ``stage`` (:class:`GrowJob`).

        That takes the blocks of the main loop's, which must be idle and is not used again; on a
        cluster, the workers make others.
        """
        if (cluster := self.plan.request.cluster) is None:
            return executor_of(self.source, self.learner_for(stage), self.blocks)
        task, there = self.task, WorkerStore.of(self.plan.store, cluster.worker_memory_mb)
        told = task.rows, task.target, self.plan.saves and stage is None, stage, task.weights
        job = GrowJob(there, self.spec.to_json(), *told)
        n_columns = self.spec.n_columns if stage is None else stage[1]
        round_size = self.spec.run.round_size if stage is None else TREES
        return closing(BatchExecutor(cluster.line(job), n_columns, round_size))

    def learner_for(self, stage: tuple[int, int] | None) -> Learner:
        """Return what works in the main loop, or grows trees of a closing ``stage``."""
        if stage is None:
            return self.learner
        leaf, most = stage
        leaf = max(self.spec.learner.min_samples_leaf, leaf)
        how = replace(self.spec.learner.limits, max_features=most, min_samples_leaf=leaf)
        trees: Learner = replace(
            self.trees, limits=how, subspace_size=most, n_trees=1, records=False, candidates=False
        )
        return trees if (scorer := scorer_of(self.spec.judging)) is None else scorer(trees)


def categorical_features(store: Store) -> Bools | None:
    """Return which features are categorical; bool (n_features,), or None where none is."""
    if not store.manifest.kind_counts.get("categorical"):
        return None
    return np.asarray(store.kinds() == CATEGORICAL, np.bool_)


# What travels: the job that a worker prepares for once, its iterations, and what comes back.

_log = logging.getLogger("distributed.worker.srs_ooc")


@dataclass(frozen=True)
class GrowJob(Job):
    """What a worker needs to grow any iteration of a stage of a run; its identity is the run's.

    Nothing in it grows with the number of features.

    Attributes
    ----------
    rows : int32 (n_rows,) or None
        Rows of the store trained on; None for all.
    target : int32 or float64 (n_rows,)
        Of these rows.
    records : bool
        Trees are returned.
    closing : pair of int or None
        Of a closing stage, the rows of a leaf at least and the features of a tree at most; None for
        the main loop.
    weights : float64 (n_rows,) or None
        Of these rows, where they have some.
    """

    rows: Ints32 | None
    target: Ints32 | Floats
    records: bool = False
    closing: tuple[int, int] | None = None
    weights: Floats | None = None

    @property
    def label(self) -> str:
        """What its tasks are called."""
        return "grow" if self.closing is None else "close"

    def prepare(self, n_threads: int, stack: ExitStack) -> Work:
        """Prepare for it in a worker: the store, opened once, blocks and a learner."""
        spec, store = RunSpec.from_json(self.identity), self.store.open()
        request = Request(memory_mb=self.store.memory_mb, save_trees=self.records)
        with store.unchanged():
            plan = Plan.of_spec(spec, store, Inputs(rows=self.rows), request)
            budget = RunBudget(plan.request.cap_nbytes, plan.worker_leases(), PROCESS_NBYTES)
            budget.check("--worker-memory-mb")
            budget.spend(spec, plan.shape, n_threads)
            task = replace(plan.task, target=self.target, weights=self.weights)
            resources = Resources(plan, task, budget, stack)
            ahead = stack.enter_context(ReadAhead(resources.source.columns))
        learner = resources.learner_for(self.closing)
        for block in resources.blocks:
            block.tiled = learner.tiled
        blocks = pool_of(resources.blocks)
        how = "mapped" if budget.mapped else "read as needed"
        _log.info("%s: store opened, %s; %d blocks", self.store.place, how, budget.n_workers)

        @lru_cache(MOST_SPLITS)
        def same(fitted: bytes, predicted: bytes) -> RowSplit:
            """Return the split of rows that came first: the learner knows it again."""
            return RowSplit(np.frombuffer(fitted, np.int32), np.frombuffer(predicted, np.int32))

        def grow(batch: Batch, _: PartWatch) -> Batch:
            with taken(blocks) as block:

                def one(_: int, iteration: Iteration) -> Outcome:
                    subspace = iteration.subspace
                    if (split := subspace.split) is not None:
                        split = same(split.fitted.tobytes(), split.predicted.tobytes())
                        subspace = replace(subspace, split=split)
                        iteration = replace(iteration, subspace=subspace)
                    return pack(fit_iteration(resources.source, learner, block, iteration))

                for iteration in batch.parts.values():
                    ahead.ask(iteration.features)
                reply = batch.done(one)
            store.check_unchanged()  # else nothing of the batch is returned
            return reply

        return grow
