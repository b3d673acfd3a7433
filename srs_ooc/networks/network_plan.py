"""The plan of a network: what it needs and takes, before it is begun.

A few of its own targets are worked on and timed, and the rest is multiplied.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, derive_array, key_of
from srs_ooc.base.text import LONG_SECONDS, MB, ceil_div, counted, describe_seconds
from srs_ooc.networks.edges import PARQUET
from srs_ooc.networks.genie3 import ForestParams
from srs_ooc.networks.network_options import NetworkRequest
from srs_ooc.networks.network_task import NetworkTask, TargetDesk, task_of
from srs_ooc.networks.prs_edges import Probabilities, ProbabilityParams
from srs_ooc.networks.srs_edges import SubspaceParams
from srs_ooc.networks.weighing import Bench, target_values, training_rows
from srs_ooc.runs.engine import ItemSource
from srs_ooc.runs.jobs import Part
from srs_ooc.runs.resources import categorical_features
from srs_ooc.samplers.prs import FINAL
from srs_ooc.store.manifest import CONSTANT
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block

# What learning the probabilities of a target takes: some epochs of a few targets, timed.

SETS_AN_EPOCH = 1 / 3
"""How often models are grown anew, before any epoch was seen: measured with the usual options on
100 genes of 100 rows. It counts as much as :data:`PRIOR_EPOCHS` epochs that were seen."""
PRIOR_EPOCHS = 3
FIRST_MODELS = 10
"""Models grown first, to see how many of them there is time for."""
Target = tuple[int, NDArray[np.float64]]


@dataclass(frozen=True)
class LearningPace:
    """What was measured.

    Attributes
    ----------
    model_seconds, step_seconds : float
        Of a model, and of a step of one fold, as each of the workers took.
    sets_an_epoch : float
        How often models are grown anew.
    n_models, n_epochs, n_tried : int
        What was done for it.
    n_workers : int
        Workers.
    """

    model_seconds: float
    step_seconds: float
    sets_an_epoch: float
    n_models: int
    n_epochs: int
    n_tried: int
    n_workers: int

    def seconds(self, n_targets: int, params: ProbabilityParams) -> float:
        """Return the seconds of so many targets, all epochs of them."""
        sets = 1 + self.sets_an_epoch * (params.epochs - 1)
        growing = sets * params.folds * params.models * self.model_seconds
        stepping = params.epochs * params.folds * self.step_seconds
        batches = max(1.0, n_targets / self.n_workers)
        # Joint steps are taken by one thread, one target after the other.
        return growing * batches + stepping * (n_targets if params.is_joint else batches)


@dataclass
class _Timed:
    """What one target took."""

    n_models: int = 0
    growing: float = 0.0
    n_steps: int = 0
    stepping: float = 0.0
    n_epochs: int = 0
    n_renewed: int = 0


def learning_pace(
    task: NetworkTask,
    params: ProbabilityParams,
    source: ItemSource,
    targets: Iterator[Target],
    seconds: float,
) -> LearningPace:
    """Measure a few targets for about so long, one epoch at least.

    Where there is no time for an epoch with all its models, it is one of fewer, and a step takes
    as many times longer.
    """
    n_workers = min(task.grant.n_workers, len(task.genes.targets))
    trial = _Trial(task, source, n_workers)
    first = trial.learn(params, next(targets), 0, 0.0, FIRST_MODELS)
    model_seconds = first.growing / first.n_models
    room = int(seconds / (2 * params.folds * model_seconds))
    tried = replace(params, models=min(params.models, max(2, room)))
    joint = params.is_joint
    alone = trial.learn(tried, next(targets), 0, seconds / 2) if joint else None
    some = list(islice(targets, n_workers))
    deadline = seconds / 2 if joint else seconds
    with ThreadPoolExecutor(n_workers, "trial") as pool:
        timed = list(pool.map(lambda i: trial.learn(tried, some[i], i, deadline), range(n_workers)))
    steps = timed if alone is None else [alone]
    n_models, n_epochs = (sum(getattr(t, name) for t in timed) for name in ("n_models", "n_epochs"))
    step_seconds = sum(t.stepping for t in steps) / max(1, sum(t.n_steps for t in steps))
    renewed = sum(t.n_renewed for t in timed) + PRIOR_EPOCHS * SETS_AN_EPOCH
    return LearningPace(
        sum(t.growing for t in timed) / n_models,
        step_seconds * params.models / tried.models,
        renewed / (n_epochs + PRIOR_EPOCHS),
        n_models,
        n_epochs,
        n_workers,
        n_workers,
    )


class _Trial:
    """Has targets learnt for a while, on blocks of this network."""

    def __init__(self, task: NetworkTask, source: ItemSource, n_workers: int) -> None:
        self._regulators = task.genes.regulators
        self._blocks: list[Block] = task.blocks(n_workers)
        weights = task.store.weights()
        self._weights = weights if weights is None or task.rows is None else weights[task.rows]
        seed, categorical = task.request.params.seed, categorical_features(task.store)
        self._bench = Bench(source, categorical, seed, lambda: True)

    def learn(
        self,
        params: ProbabilityParams,
        target: Target,
        place: int,
        seconds: float,
        most_models: int | None = None,
    ) -> _Timed:
        """Learn one epoch at least and so long, or until there are ``most_models``."""
        stored, values = target
        rows = training_rows(values, self._weights)
        assert rows is not None, "targets that are tried vary"
        others, block = self._regulators[self._regulators != stored], self._blocks[place]
        sampler, models = Probabilities(params, self._bench).begun(block, stored, others, rows)
        found, begun = _Timed(), perf_counter()
        while sampler.phase != FINAL and found.n_models != most_models:
            before = perf_counter()
            if sampler.step():
                found.stepping += perf_counter() - before
                found.n_steps += 1
                if sampler.epoch > 0 and before - begun >= seconds:
                    break
                continue
            number = found.n_models
            sampler.absorb(number, models.fit(block, number, sampler.propose(number, 0)))
            found.growing += perf_counter() - before
            found.n_models += 1
        found.n_epochs = sampler.epoch
        found.n_renewed = sampler.n_drawn - (sampler.phase == FINAL)
        return found


# What a network will take: a few of its own targets are worked on, and the rest is multiplied.

TRIAL_SECONDS = 1.0
"""About how long a plan measures."""
QUICK_SECONDS = 0.3
"""About how long a network measures before it begins."""
MOST_TRIED = 256
"""Targets that are tried at most, over again if there is time left."""
FEW_TREES = 16
_GROWTH = 4
_ENOUGH = 5
"""Networks that take no longer than the trial are measured for one in so many of their seconds."""


@dataclass(frozen=True)
class Pace:
    """Seconds of the work on targets, and where the number comes from.

    Attributes
    ----------
    seconds : float
        Wall-clock seconds of all targets that are left, with all workers at work.
    n_workers : int
        Workers.
    n_targets : int
        Targets that are left and have values that differ.
    measured, extrapolated : str
        What was done, and what the rest of the number is.
    shorter : str
        Options that make it shorter.
    """

    seconds: float
    n_workers: int
    n_targets: int
    measured: str
    extrapolated: str
    shorter: str

    def said(self) -> str:
        """Return a sentence for those who begin it."""
        text = (
            f"about {describe_seconds(self.seconds)} for {_targets(self.n_targets)} on "
            f"{counted(self.n_workers, 'core')}, an ESTIMATE ({self.measured}; {self.extrapolated})"
        )
        return f"{text}. Shorter: {self.shorter}." if self.seconds >= LONG_SECONDS else f"{text}."


def pace_of(task: NetworkTask, source: ItemSource, n_left: int, seconds: float) -> Pace:
    """Measure about what the work on targets will take.

    Parameters
    ----------
    task : NetworkTask
        What is worked on; it must not be for workers elsewhere.
    source : ItemSource
        Where columns come from.
    n_left : int
        Targets that are not done.
    seconds : float
        About how long to measure; longer where a tree takes longer.
    """
    varying, own = _varying(task), task.request.params.own
    share = len(varying) / len(task.genes.targets)
    n_left = min(len(varying), max(round(share * n_left), 1))
    targets = _tried(task, varying)
    first = next(targets, None) if _has_regulators(task) else None
    if first is None:
        return Pace(0.0, task.grant.n_workers, 0, "no values differ", "nothing to do", own.shorter)
    targets = chain([first], targets)
    if isinstance(own, ProbabilityParams):
        return _learnt(learning_pace(task, own, source, targets, seconds), n_left, own)
    assert isinstance(own, ForestParams | SubspaceParams), "the methods there are"
    n_workers = min(task.grant.n_workers, n_left)
    with ThreadPoolExecutor(n_workers, "trial") as pool:
        return _Trees(task, own, source, pool, n_workers, targets).pace(n_left, seconds)


def _has_regulators(task: NetworkTask) -> bool:
    return len(task.genes.regulators) > 1 or len(task.genes.targets) > 1


def _varying(task: NetworkTask) -> NDArray[np.uint32]:
    targets = task.genes.targets
    varies: NDArray[np.bool_] = task.store.kinds()[targets] != CONSTANT
    return targets[varies]


def _tried(task: NetworkTask, varying: NDArray[np.uint32]) -> Iterator[Target]:
    """Yield targets with their values, in an order fixed by the seed, over and over again.

    Those whose values do not differ in the rows trained on are left out.
    """
    key = key_of(task.request.params.seed, Purpose.EDGES)
    order = np.argsort(derive_array(key, varying), kind="stable")[:MOST_TRIED]
    again = []
    for target in varying[order].tolist():
        values = _values(task, target)
        if training_rows(values, None) is not None:
            again.append(target)
            yield target, values
    for target in cycle(again):
        yield target, _values(task, target)


def _values(task: NetworkTask, target: int) -> NDArray[np.float64]:
    return next(target_values(task.store, np.array([target], np.uint32), task.rows))


class _Trees:
    """Targets with fewer trees than are asked for, on all workers at once."""

    def __init__(
        self,
        task: NetworkTask,
        own: ForestParams | SubspaceParams,
        source: ItemSource,
        pool: ThreadPoolExecutor,
        n_workers: int,
        targets: Iterator[Target],
    ) -> None:
        self._task, self._own, self._source, self._pool = task, own, source, pool
        self._n_workers, self._targets, self._n_tried = n_workers, targets, 0
        self._blocks = task.blocks(self._n_workers)

    def pace(self, n_left: int, seconds: float) -> Pace:
        """Grow more and more trees until the time is up, or a target is done whole."""
        most, n_batches = self._own.trees, n_left / self._n_workers
        begun = perf_counter()
        first = self._seconds_of(1)  # reads the columns for the first time
        if first < seconds / _GROWTH:
            first = self._seconds_of(1)
        n_trees, found = 1, [first]
        while True:
            left = seconds - (perf_counter() - begun)
            whole = found[-1] * most / n_trees * n_batches
            is_short = whole < min(seconds, _ENOUGH * (seconds - left))
            if n_trees > min(1, most - 1) and (left <= found[-1] or is_short):
                break
            if n_trees < most and (n_trees == 1 or found[-1] * _GROWTH < left):
                n_trees, found = min(most, n_trees * (_GROWTH if left > 0 else 2)), []
            found.append(self._seconds_of(n_trees))
        each = _of_all(first, float(np.mean(found)), n_trees, most)
        return self._pace(each, n_trees, n_left)

    def _pace(self, each: float, n_trees: int, n_left: int) -> Pace:
        most = self._own.trees
        of = "subspaces" if isinstance(self._own, SubspaceParams) else "trees"
        batches = max(1.0, n_left / self._n_workers)
        return Pace(
            each * batches,
            self._n_workers,
            n_left,
            f"measured: up to {n_trees:,} {of} for each of {_targets(self._n_tried)}",
            f"extrapolated to {most:,} for each of {n_left:,}",
            self._own.shorter,
        )

    def _seconds_of(self, n_trees: int) -> float:
        """Return the mean seconds of a target with so many trees, one target on each worker."""
        params = self._task.request.params
        tried = replace(params, own=replace(self._own, trees=n_trees))
        task = self._task
        desk = TargetDesk(tried, self._source, task.store, task.genes.regulators, self._blocks)
        some = list(islice(self._targets, self._n_workers))
        self._n_tried += len(some)
        parts = [Part(number, what) for number, what in enumerate(some)]
        replies = self._pool.map(lambda part: desk.work([part], lambda *_: True), parts)
        return float(np.mean([reply.seconds for reply in replies]))


def _targets(n: int) -> str:
    return f"{n:,} target{'' if n == 1 else 's'}"


def _of_all(first: float, mean: float, n_trees: int, most: int) -> float:
    """Return the seconds of a target with all its trees, from those with one and with some.

    What a target takes besides its trees is taken off only where there were so many trees that
    chance in the time of the first plays no part.
    """
    if n_trees < FEW_TREES or n_trees == most:
        return mean * most / n_trees
    return first + max(mean - first, 0.0) * (most - 1) / (n_trees - 1)


def _learnt(found: LearningPace, n_left: int, own: ProbabilityParams) -> Pace:
    return Pace(
        found.seconds(n_left, own),
        found.n_workers,
        n_left,
        f"measured: {found.n_models:,} models and {found.n_epochs:,} epochs of "
        f"{_targets(found.n_tried)}, models grown again every "
        f"{1 / found.sets_an_epoch:.2g} epochs",
        f"extrapolated to all {own.epochs:,} epochs of {n_left:,}",
        own.shorter,
    )


PLANNED_OUT = Path("edges.csv")
"""The file of edges of a plan that names none."""
WEIGHT_NBYTES = 24
"""Bytes of a weight in a CSV file, with commas and the end of the line."""
NAMES_READ = 256
"""Names whose lengths stand for those of all."""
EDGE_SECONDS, PAIR_SECONDS = 3e-6, 1e-8
"""Published allowances: writing an edge, and looking at a pair each time edges are put in order."""


@dataclass(frozen=True)
class NetworkPlan:
    """What is expected of a network.

    Attributes
    ----------
    task : NetworkTask
        The network.
    n_constant : int
        Targets without edges, as their values do not differ.
    smallest_mb : int
        The smallest cap that works.
    pace : Pace
        Time of the work on targets.
    n_edges : int
        Edges that are written at most.
    weights_nbytes, edges_nbytes : int
        On disk: the folder of what is done, and at most about the file of edges, as CSV.
    """

    task: NetworkTask
    n_constant: int
    smallest_mb: int
    pace: Pace
    n_edges: int
    weights_nbytes: int
    edges_nbytes: int

    @property
    def n_pairs(self) -> int:
        """Pairs of a regulator and a target."""
        return len(self.task.genes.regulators) * len(self.task.genes.targets)

    @property
    def leases(self) -> tuple[Lease, ...]:
        """What of the cap is for what."""
        return self.task.grant.leases

    @property
    def writing_seconds(self) -> float:
        """Seconds of putting edges in order and writing them, at published rates."""
        n_passes = ceil_div(max(1, self.n_edges), self.task.grant.n_edges)
        return EDGE_SECONDS * self.n_edges + PAIR_SECONDS * self.n_pairs * n_passes

    @property
    def seconds(self) -> float:
        """Seconds of all of it."""
        return self.pace.seconds + self.writing_seconds

    @property
    def notes(self) -> tuple[str, ...]:
        """What the method has to say of such a network."""
        return self.task.request.params.own.remarks(self.task.table)


def make_network_plan(store: Store, request: NetworkRequest) -> NetworkPlan:
    """Return the plan of a network; a second or so, longer where trees are slow. Writes nothing.

    Raises
    ------
    UsageError, StoreError, BudgetError
        If the network could not be begun as asked, or is for workers elsewhere.
    """
    if request.cluster is not None:
        raise UsageError(
            "--dask: expected a plan for this machine, found workers elsewhere, whose speed is not "
            "measured. Leave it out: divide the seconds of one core by the threads of the workers."
        )
    with store.unchanged():
        task = task_of(store, request)
        n_targets = len(task.genes.targets)
        with (
            store.columns(mapped=task.grant.mapped) as columns,
            task.valued(ItemSource(columns, task.rows)) as source,
        ):
            pace = pace_of(task, source, n_targets, TRIAL_SECONDS)
        kinds = store.kinds()[task.genes.targets]
        n_constant = int(np.count_nonzero(kinds == CONSTANT))
        n_pairs = len(task.genes.regulators) * n_targets
        n_itself = len(np.intersect1d(task.genes.regulators, task.genes.targets))
        most = n_pairs - n_itself - n_constant * (len(task.genes.regulators) - 1)
        n_edges = min(max(0, most), request.top or n_pairs)
        weights = 8 * n_pairs + task.request.params.own.shared_nbytes(task.table)
        edge_nbytes = WEIGHT_NBYTES + 2 * _name_nbytes(store)
        smallest = task.smallest_cap_mb
        return NetworkPlan(
            task, n_constant, smallest, pace, n_edges, weights, round(n_edges * edge_nbytes)
        )


def _name_nbytes(store: Store) -> float:
    """Return the mean bytes of some names, evenly spaced."""
    step = ceil_div(len(store.names), NAMES_READ)
    places = range(0, len(store.names), step)
    return sum(len(store.names.encoded(i)) for i in places) / len(places)


def network_plan_values(plan: NetworkPlan) -> dict[str, Any]:
    """Return the plan as JSON-ready values: sizes in MB of 10^6 bytes, times in seconds."""
    task, request, pace = plan.task, plan.task.request, plan.pace
    return {
        "notes": list(plan.notes),
        "store": str(task.store.place),
        **request.params.values(),
        "n_rows": task.n_rows,
        "n_regulators": len(task.genes.regulators),
        "n_targets": len(task.genes.targets),
        "n_constant": plan.n_constant,
        "memory_mb": request.memory_mb,
        "smallest_memory_mb": plan.smallest_mb,
        "leases": [{"purpose": x.purpose, "mb": x.n_bytes / MB} for x in plan.leases],
        "free_mb": task.grant.free_nbytes / MB,
        "n_workers": task.grant.n_workers,
        "mapped": task.grant.mapped,
        "disk_mb": plan.weights_nbytes / MB,
        "n_edges_at_most": plan.n_edges,
        "edges_mb": None if request.out.suffix == PARQUET else plan.edges_nbytes / MB,
        "total_seconds": plan.seconds,
        "targets_seconds": pace.seconds,
        "edges_seconds": plan.writing_seconds,
        "measured": pace.measured,
        "extrapolated": pace.extrapolated,
        "shorter": pace.shorter,
    }
