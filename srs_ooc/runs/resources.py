"""The parts of a run that work on its columns, made to fit under its memory cap."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.judges import FIRST_STAGES, closes_by_sensitivity
from srs_ooc.learners.model_learner import EstimatorLearner
from srs_ooc.learners.models import load, one_thread
from srs_ooc.learners.tree_learner import Learner, SensitiveLearner, TreeLearner
from srs_ooc.runs.base_models import check_cluster, model_learner
from srs_ooc.runs.cluster.orders import Closing, Cluster, Remote
from srs_ooc.runs.engine import Book, check_needs
from srs_ooc.runs.executors import Executor, ItemSource, ThreadExecutor, fit_iteration
from srs_ooc.runs.ledger import TreeWriter
from srs_ooc.runs.memory import grant_threads, grant_workers, plan_memory, shape_of, worker_nbytes
from srs_ooc.runs.responses import training_response
from srs_ooc.runs.search import Search
from srs_ooc.runs.spec import RunSpec, TrainingShape
from srs_ooc.runs.task import Task
from srs_ooc.store.manifest import CATEGORICAL, Manifest
from srs_ooc.store.store import ReadAhead, Store
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import Response, TrainingRows


@dataclass(frozen=True)
class Resources:
    """What works on a run's columns: workers with their blocks, the columns, the learner.

    Searches and closing stages that differ by book and seed alone may share them, one after the
    other.

    Attributes
    ----------
    spec : RunSpec
        The run's identity.
    task : Task
        What it learns from; a permutation run's target is permuted.
    manifest : Manifest
        Of its store.
    candidates : uint32 (n_candidates,) or None
        Items that may be drawn; None where all may.
    n_candidates : int
        How many they are.
    source : ItemSource
        Where columns come from.
    learner : Learner
        What is grown on them.
    blocks : list of Block
        One a worker.
    executor : Executor
        The workers.
    response : Response
        What the rows say.
    remote : Remote or None
        Where they are, if not here.
    """

    spec: RunSpec
    task: Task
    manifest: Manifest
    candidates: NDArray[np.uint32] | None
    n_candidates: int
    source: ItemSource
    learner: Learner
    blocks: list[Block]
    executor: Executor
    response: Response
    remote: Remote | None = None

    @property
    def n_features(self) -> int:
        """Features of the store."""
        return self.manifest.n_features

    @property
    def trees(self) -> TreeLearner:
        """What grows trees; of a run whose model is one."""
        assert isinstance(self.learner, TreeLearner)
        return self.learner

    @property
    def n_rows(self) -> int:
        """Rows trained on."""
        return self.task.n_rows

    def search(
        self, book: Book, seed: int | None = None, trees: TreeWriter | None = None
    ) -> Search:
        """Return the run's main loop as it goes on from ``book``.

        ``seed`` replaces the spec's; ``trees`` is where trees are kept, if they are recorded.
        """
        spec = self.spec if seed is None else self.spec.with_seed(seed)
        search = Search(
            spec,
            self.n_features,
            self.n_candidates,
            self.candidates,
            self.executor,
            book,
            trees,
            weights=self.task.inputs.weights,
            response=self.response,
            validation=self.task.inputs.validation_places(),
            positions=self.task.positions,
        )
        check_needs(search.engine.sampler, self.learner.provides, self.spec.model.model)
        return search

    @contextmanager
    def closing_executor(self, min_samples_leaf: int, most: int) -> Iterator[Executor]:
        """Yield an executor for trees on at most ``most`` items, all of them candidates.

        It takes the blocks of the main loop's, which must be idle and is not used again; on a
        cluster, the workers make others.
        """
        closing = Closing(min_samples_leaf, most)
        with ExitStack() as stack:
            if self.remote is not None:
                executor = self.remote.executor(most, closing)
            else:
                learner = closing_learner(self.trees, self.spec, closing)
                for block in self.blocks:
                    block.use_tiles()
                ahead = stack.enter_context(ReadAhead(self.source.columns))
                fit = partial(fit_iteration, self.source, learner)
                executor = ThreadExecutor(fit, self.blocks, ahead)
            stack.callback(executor.close)
            yield executor


@contextmanager
def resources_of(
    spec: RunSpec,
    store: Store,
    task: Task,
    cap_nbytes: int,
    threads: int | None,
    *,
    saves: bool = False,
    beside_nbytes: int = 0,
    cluster: Cluster | None = None,
) -> Iterator[Resources]:
    """Yield the resources of a run within the cap, and close them after.

    What the cap leaves goes first to more workers, then to threads that share a worker's tree where
    there are more cores, then to keeping the store mapped.

    Parameters
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
    saves : bool
        Trees are kept.
    beside_nbytes : int
        Bytes of the cap that are left to the caller.
    cluster : Cluster, optional
        Workers elsewhere, on which trees are grown; what else reads columns does so here.

    Raises
    ------
    StoreError
        If the store is not the run's, or is replaced before the resources are made, once they are,
        or when the block ends: what was read in between counts only if nothing is raised.
    BudgetError
        If the cap cannot hold them.
    UsageError
        If the model cannot be fitted, or not on a cluster.
    """
    store.check_is(spec.store)
    remote, beside_nbytes = None, beside_nbytes + store.reading_nbytes
    if cluster is not None:
        check_cluster(spec)
        remote = Remote.of(cluster, spec, store, task, records=saves)
        threads, beside_nbytes = 1, beside_nbytes + cluster.orders_nbytes
    with store.unchanged(), ExitStack() as stack:
        resources = _resources(
            stack, spec, store, task, cap_nbytes, threads, saves, beside_nbytes, remote
        )
        store.check_unchanged()  # what is open by now stays what it is
        yield resources


def _resources(
    stack: ExitStack,
    spec: RunSpec,
    store: Store,
    task: Task,
    cap_nbytes: int,
    threads: int | None,
    saves: bool,
    beside_nbytes: int,
    remote: Remote | None,
) -> Resources:
    """Make the resources of a run; ``stack`` closes them."""
    manifest = store.manifest
    kinds = spec.learner.thresholds, spec.model.model
    shape = shape_of(manifest, task.inputs, task.class_weight, *kinds)
    budget = plan_memory(spec, shape, cap_nbytes, saves=saves, beside_nbytes=beside_nbytes)
    n_workers = grant_workers(budget, worker_nbytes(spec, shape, saves=saves), threads)
    n_threads = grant_threads(budget, spec, shape, n_workers, threads)
    mapped = budget.fits(manifest.codes_nbytes)
    response = training_response(task)
    learner = learner_of(spec, store, task, response, n_threads, records=saves)
    if not spec.model.is_tree:
        load(spec.model, is_regression=response.is_regression)
        stack.enter_context(one_thread())
    values = stack.enter_context(store.value_tables()) if shape.n_values else None
    blocks = blocks_of(n_workers, spec, shape, tiled=learner.tiled)
    families, candidates = decoy_families(spec, task), task.candidates(spec.decoys)
    columns = stack.enter_context(store.columns(mapped=mapped))
    ahead = stack.enter_context(ReadAhead(columns))
    source = ItemSource(columns, task.rows, families, values)
    executor: Executor
    if remote is None:
        executor = ThreadExecutor(partial(fit_iteration, source, learner), blocks, ahead)
    else:
        executor = remote.executor(spec.n_columns)
    stack.callback(executor.close)
    n_candidates = spec.n_items(shape.n_candidates)
    made = source, learner, blocks, executor, response, remote
    return Resources(spec, task, manifest, candidates, n_candidates, *made)


def learner_of(
    spec: RunSpec, store: Store, task: Task, response: Response, n_threads: int, *, records: bool
) -> TreeLearner | EstimatorLearner:
    """Return the learner of a run's main loop; ``response`` is what the task's rows say."""
    if not spec.model.is_tree:
        return model_learner(spec, task, response)
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
    learner: TreeLearner, spec: RunSpec, closing: Closing
) -> TreeLearner | SensitiveLearner:
    """Return the learner of a closing stage, from that of the main loop."""
    leaf = max(spec.learner.min_samples_leaf, closing.min_samples_leaf)
    limits = replace(spec.limits, max_features=closing.most, min_samples_leaf=leaf)
    trees = learner.with_limits(limits, closing.most)
    return SensitiveLearner(trees) if closes_by_sensitivity(spec.judging) else trees


def blocks_of(n_workers: int, spec: RunSpec, shape: TrainingShape, *, tiled: bool) -> list[Block]:
    """Return the blocks of so many workers."""
    return [
        Block(spec.n_columns, shape.n_rows, shape.code_nbytes, tiled=tiled, n_values=shape.n_values)
        for _ in range(n_workers)
    ]


def decoy_families(spec: RunSpec, task: Task) -> NDArray[np.int32] | None:
    """Return the pairings of the run's families of decoys; int32 (n_families, n_rows)."""
    if not spec.decoys:
        return None
    exchangeable = task.exchangeability()
    if spec.stages > FIRST_STAGES:
        return exchangeable.families(key_of(spec.seed, Purpose.DECOYS, 0), spec.decoys)
    keys = [key_of(spec.seed, Purpose.DECOYS, family) for family in range(spec.decoys)]
    return np.stack([exchangeable.involution(key) for key in keys])


def categorical_features(store: Store) -> NDArray[np.bool_] | None:
    """Return which features are categorical; bool (n_features,), or None where none is."""
    if not store.manifest.kind_counts.get("categorical"):
        return None
    flags: NDArray[np.bool_] = store.kinds() == CATEGORICAL
    return flags
