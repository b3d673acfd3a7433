"""Fitting a run under its memory cap: its budget, its workers, and the parts of its engine."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Budget
from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.involutions import Exchangeability
from srs_ooc.learners.params import RANK, UNWEIGHTED
from srs_ooc.learners.trees import TreeLearner, thread_nbytes
from srs_ooc.runs.engine import Book, check_needs
from srs_ooc.runs.executors import Executor, Source, ThreadExecutor, fit_iteration
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.ledger import TreeWriter
from srs_ooc.runs.responses import n_channels_of, training_response
from srs_ooc.runs.search import Search
from srs_ooc.runs.spec import (
    RunSpec,
    Shape,
    extra_nbytes,
    fixed_nbytes,
    work_nbytes,
)
from srs_ooc.store.columns import ColumnStore
from srs_ooc.store.identity import read_same, same_store
from srs_ooc.store.kinds import CATEGORICAL
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.names import read_array
from srs_ooc.store.read_ahead import ReadAhead
from srs_ooc.store.reading import read_groups, read_strata, read_target
from srs_ooc.store.value_tables import ValueTables, n_values_of
from srs_ooc.trees.block import Block
from srs_ooc.trees.training import TrainingRows

_LOOKS = 8
"""Permutations that must all leave the targets as they are before they count as pinned."""
_HAS_AFFINITY = hasattr(os, "sched_getaffinity")


def shape_of(
    manifest: Manifest, inputs: Inputs, class_weight: str = UNWEIGHTED, thresholds: str = RANK
) -> Shape:
    """Return what of the store, as trained on, bounds a run."""
    n_excluded = 0 if inputs.excluded is None else len(inputs.excluded)
    return Shape(
        n_rows=manifest.n_rows if inputs.rows is None else len(inputs.rows),
        n_candidates=manifest.n_features - n_excluded,
        n_features=manifest.n_features,
        n_classes=max(1, len(manifest.classes)),
        code_nbytes=manifest.code_nbytes,
        n_channels=n_channels_of(manifest, class_weight),
        n_values=0 if thresholds == RANK else n_values_of(manifest),
        n_stored_rows=manifest.n_rows,
    )


def plan_memory(
    spec: RunSpec,
    shape: Shape,
    cap_nbytes: int,
    process_nbytes: int | None = None,
    *,
    saves: bool = False,
) -> Budget:
    """Return the budget of a run with one worker granted; ``saves``: trees are kept.

    Raises
    ------
    BudgetError
        If the cap cannot hold it.
    """
    budget = Budget(cap_nbytes, process_nbytes)
    for purpose, n_bytes in fixed_nbytes(
        shape,
        spec.learner.impurity,
        spec.decoys,
        concludes=spec.concludes,
        state=spec.sampler.state_nbytes(shape.n_rows, shape.n_features),
    ):
        budget.grant(purpose, n_bytes)
    n_columns = spec.n_columns
    n_bytes = _worker_nbytes(spec, shape, saves=saves)
    budget.grant(f"a block of {n_columns} columns and its tree", n_bytes)
    budget.check()
    return budget


def _worker_nbytes(spec: RunSpec, shape: Shape, *, saves: bool) -> int:
    n_columns = spec.n_columns
    extra = extra_nbytes(
        shape,
        spec.limits,
        spec.learner.trees_per_subspace,
        bootstrap=spec.learner.bootstrap,
        saves_trees=saves,
        splits_rows=spec.sampler.splits_rows,
    )
    return work_nbytes(shape, n_columns, extra)


@dataclass(frozen=True)
class EngineParts:
    """What engines that differ by ledger and seed alone may share, one after the other.

    ``candidates``, uint32 (n_candidates,), are the items that may be drawn, None where all may;
    ``manifest`` is of the run's store; ``target_order``, int32 (n_rows,), is how a replay permutes
    the target; ``validation``, int32, are the places of rows held out.
    """

    spec: RunSpec
    n_candidates: int
    candidates: NDArray[np.uint32] | None
    executor: Executor
    manifest: Manifest
    source: Source
    learner: TreeLearner
    blocks: list[Block]
    target_order: NDArray[np.int32] | None = None
    validation: NDArray[np.int32] | None = None

    @property
    def n_features(self) -> int:
        """Features of the store."""
        return self.manifest.n_features

    @property
    def n_rows(self) -> int:
        """Rows trained on."""
        return self.blocks[0].n_rows

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
            response=self.learner.rows.response,
            validation=self.validation,
        )
        check_needs(search.engine.sampler, self.learner.provides, "trees")
        return search

    @contextmanager
    def closing_executor(self, min_samples_leaf: int, most: int) -> Iterator[Executor]:
        """Yield an executor for trees on at most ``most`` items, all of them candidates.

        It takes the blocks of the main loop's, which must be idle and is not used again.
        """
        leaf = max(self.spec.learner.min_samples_leaf, min_samples_leaf)
        limits = replace(self.spec.limits, max_features=most, min_samples_leaf=leaf)
        learner = self.learner.with_limits(limits, most)
        for block in self.blocks:
            block.use_tiles()
        with ReadAhead(self.source.store) as ahead:
            executor = ThreadExecutor(
                partial(fit_iteration, self.source, learner), self.blocks, ahead
            )
            try:
                yield executor
            finally:
                executor.close()


@contextmanager
def engine_parts(
    spec: RunSpec,
    store: Path,
    inputs: Inputs,
    cap_nbytes: int,
    threads: int | None,
    *,
    saves: bool = False,
    replay: int | None = None,
) -> Iterator[EngineParts]:
    """Yield the parts of an engine within the cap, and close them after; ``saves``: record trees.

    ``replay`` (from 1) permutes the target, within strata and by whole groups.

    What the cap leaves goes first to more workers, then to threads that share a worker's tree where
    there are more cores, then to keeping the store mapped.

    Raises
    ------
    StoreError
        If the store is not the run's, when the parts are made, once they are, or when the block
        ends: what was read in between counts only if nothing is raised.
    BudgetError
        If the cap cannot hold them.
    """
    with same_store(store, spec.store) as manifest, ExitStack() as stack:
        parts = _parts_of(stack, spec, store, manifest, inputs, cap_nbytes, threads, saves, replay)
        read_same(store, spec.store)  # what is open by now stays what it is
        yield parts


def _parts_of(
    stack: ExitStack,
    spec: RunSpec,
    store: Path,
    manifest: Manifest,
    inputs: Inputs,
    cap_nbytes: int,
    threads: int | None,
    saves: bool,
    replay: int | None,
) -> EngineParts:
    """Make the parts of an engine; ``stack`` closes them."""
    shape = shape_of(manifest, inputs, spec.learner.class_weight, spec.learner.thresholds)
    budget = plan_memory(spec, shape, cap_nbytes, saves=saves)
    n_columns = spec.n_columns
    n_workers = grant_workers(budget, _worker_nbytes(spec, shape, saves=saves), threads)
    n_threads = grant_threads(budget, spec, shape, n_workers, threads)
    mapped = budget.fits(manifest.codes_nbytes)
    exchangeable = exchangeability(store, manifest, inputs) if spec.concludes else None
    order = None
    if replay is not None and exchangeable is not None:
        order = exchangeable.permutation(key_of(spec.seed, Purpose.REPLAY, replay))
    response = training_response(store, manifest, inputs, spec.learner.class_weight, order)
    learner = TreeLearner(
        TrainingRows.of(response, spec.learner.impurity),
        spec.limits,
        spec.subspace_size,
        spec.learner.trees_per_subspace,
        records=saves,
        bootstrap=spec.learner.bootstrap,
        n_threads=n_threads,
        categorical=categorical_features(store, manifest),
    )
    values = stack.enter_context(ValueTables(store, manifest)) if shape.n_values else None
    blocks = [
        Block(
            n_columns, shape.n_rows, shape.code_nbytes, tiled=learner.tiled, n_values=shape.n_values
        )
        for _ in range(n_workers)
    ]
    families = decoy_families(spec, exchangeable)
    del exchangeable
    candidates = item_candidates(inputs, manifest.n_features, spec.decoys)
    columns = stack.enter_context(ColumnStore(store, manifest, mapped=mapped))
    ahead = stack.enter_context(ReadAhead(columns))
    source = Source(columns, inputs.rows, families, values)
    executor = ThreadExecutor(partial(fit_iteration, source, learner), blocks, ahead)
    stack.callback(executor.close)
    return EngineParts(
        spec,
        spec.n_items(shape.n_candidates),
        candidates,
        executor,
        manifest,
        source,
        learner,
        blocks,
        order,
        inputs.validation_places(),
    )


def exchangeability(store: Path, manifest: Manifest, inputs: Inputs) -> Exchangeability:
    """Return which of the training rows may trade places, from the store's strata and groups."""
    strata, groups = read_strata(store, manifest), read_groups(store, manifest)
    if inputs.rows is not None:
        strata = None if strata is None else strata[inputs.rows]
        groups = None if groups is None else groups[inputs.rows]
    n_rows = manifest.n_rows if inputs.rows is None else len(inputs.rows)
    return Exchangeability(n_rows, strata, groups)


def check_exchangeable(store: Path, manifest: Manifest, inputs: Inputs) -> None:
    """Check that decoys and replays differ from what they are compared with.

    Raises
    ------
    UsageError
        If too few rows may trade places, or only such as have the same target.
    """
    exchangeable = exchangeability(store, manifest, inputs)
    exchangeable.check()
    target = read_target(store, manifest)
    if inputs.rows is not None:
        target = target[inputs.rows]
    if all(np.array_equal(target[exchangeable.permutation(key)], target) for key in range(_LOOKS)):
        raise UsageError(
            "expected strata and groups within which targets differ, found that rows which may "
            "trade places all have the same one: nothing could be told from chance. Leave the "
            "target out of the strata, or use --judge probe."
        )


def decoy_families(spec: RunSpec, exchangeable: Exchangeability | None) -> NDArray[np.int32] | None:
    """Return the involutions of the run's families of decoys; int32 (n_families, n_rows)."""
    if exchangeable is None or not spec.decoys:
        return None
    keys = [key_of(spec.seed, Purpose.DECOYS, family) for family in range(spec.decoys)]
    return np.stack([exchangeable.involution(key) for key in keys])


def item_candidates(inputs: Inputs, n_features: int, n_families: int) -> NDArray[np.uint32] | None:
    """Return V as items: the features not left out and their decoys; None if nothing is."""
    candidates = inputs.candidates(n_features)
    if candidates is None:
        return None
    families = [candidates + np.uint32(m * n_features) for m in range(1 + n_families)]
    return np.concatenate(families)


def categorical_features(store: Path, manifest: Manifest) -> NDArray[np.bool_] | None:
    """Return which features are categorical; bool (n_features,), or None where none is."""
    if not manifest.kind_counts.get("categorical"):
        return None
    flags: NDArray[np.bool_] = np.asarray(read_array(store, manifest, "kinds")) == CATEGORICAL
    return flags


def grant_workers(budget: Budget, worker_nbytes: int, threads: int | None) -> int:
    """Grant more workers while the cap holds them, up to ``threads``; return how many there are."""
    n_workers = 1
    while n_workers < (threads or _n_cores()) and budget.fits(worker_nbytes):
        budget.grant("another worker", worker_nbytes)
        n_workers += 1
    return n_workers


def grant_threads(
    budget: Budget, spec: RunSpec, shape: Shape, n_workers: int, threads: int | None
) -> int:
    """Grant each worker's tree more threads while cores and cap allow; return how many it has."""
    n_columns = spec.n_columns
    one = thread_nbytes(
        shape.n_rows,
        n_columns,
        shape.n_classes,
        shape.code_nbytes,
        shape.n_channels,
        spec.learner.splitter,
    )
    n_threads = 1
    while (n_threads + 1) * n_workers <= (threads or _n_cores()) and budget.fits(n_workers * one):
        budget.grant("another thread for each tree", n_workers * one)
        n_threads += 1
    return n_threads


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if _HAS_AFFINITY else os.cpu_count() or 1
