"""A network from a store: settled, made or gone on with, and its edges written.

What is settled are options, rows, regulators, targets and memory. An estimate of the time works on
a few of the network's own targets, and multiplies the rest.

Targets are done one by one, by threads here or by workers elsewhere, or all together under one
penalty (Huynh-Thu and Geurts 2023, Eq. 21).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import numpy as np

import srs_ooc.extend as core
from srs_ooc.methods.networks.edges import (
    COPIES,
    DUPLICATE_NBYTES,
    EDGE_NBYTES,
    FEWEST_EDGES,
    GENE_NBYTES,
    HASH_COLUMNS,
    MOST_DUPLICATES,
    STAGE,
    Edge,
    EdgeStore,
    check_edge_file,
    edge_ledger,
    equal_columns,
    find_variables,
    ranked,
    shard_targets,
    write_edges,
)
from srs_ooc.methods.networks.prs_edges import ProbabilityParams
from srs_ooc.methods.networks.tree_edges import ForestParams, SubspaceParams
from srs_ooc.methods.networks.weighing import (
    METHOD_NAMES,
    EdgeParams,
    EdgeScorer,
    Targets,
    targets_text,
    training_rows,
)

METHODS: dict[str, type[EdgeParams]] = dict(
    zip(METHOD_NAMES, (ForestParams, SubspaceParams, ProbabilityParams), strict=True)
)


def network_options() -> dict[str, core.Option]:
    """Return the declarations of all methods, by name."""
    found: dict[str, core.Option] = {}
    for params in METHODS.values():
        found |= {name: o for name, o in params.options().items() if name not in found}
    return found | {"seed": found.pop("seed")}


def owner_of(name: str) -> str:
    """Return the methods that an option goes with, for its help; empty for all."""
    owners = [method for method, params in METHODS.items() if name in params.options()]
    return "" if len(owners) == len(METHODS) else f"--method {' or '.join(owners)}"


def settle_network(given: Mapping[str, Any]) -> EdgeParams:
    """Return the options as settled from those given.

    Raises
    ------
    UsageError
        If a value is outside its range, or an option is of another method.
    """
    method = EdgeParams.settle(given, None).method
    known = METHODS[method].options()
    for name in network_options():
        if name not in known and given.get(name) is not None:
            raise core.UsageError(
                f"{core.flag_of(name)}: an option of {owner_of(name)}, found "
                f"--method {method}. Leave it out, or choose that method."
            )
    return METHODS[method].settle(given, None)


# What memory a network takes.

FEWEST_AHEAD, MOST_AHEAD = 4, 1 << 16
"""Targets under way on a cluster at once."""
TOGETHER = 32
"""Targets whose values are read together: neighbours often lie in one chunk."""


def target_nbytes(shape: core.TrainingShape) -> int:
    """Return the bytes here of a target that is worked on elsewhere: its values, its weights."""
    return 8 * (2 * shape.n_rows + 2 * shape.n_candidates)


def worker_lease(params: EdgeParams, shape: core.TrainingShape, more_nbytes: int = 0) -> core.Lease:
    """Return what a worker takes: its block, its trees, and the results that wait for it."""
    n_rows, n_regulators, code_nbytes = shape.n_rows, shape.n_candidates, shape.code_nbytes
    needs = [
        core.block_nbytes(n_regulators, n_rows, code_nbytes),
        core.values_nbytes(n_regulators + 2 * params.n_copied(n_regulators), shape.n_values),
        2 * core.block_nbytes(1, n_rows, code_nbytes),
        params.work_nbytes(shape),
        2 * core.rows_nbytes(n_rows, "variance", 1 + shape.n_channels),
        64 * n_rows,  # draws with replacement, and what of a target is missing
        3 * 48 * n_regulators,  # number, flag, importance, weight
        more_nbytes,
    ]
    return core.Lease(f"a block of {n_regulators} regulators and its trees", sum(needs))


# What is asked of a network, and what became of it.

FOLDER_SUFFIX = ".network"


@dataclass(frozen=True)
class NetworkRequest:
    """What is asked of a network.

    Attributes
    ----------
    out : Path
        File of the edges, CSV or Parquet.
    params : EdgeParams
        Its identity, besides store, features and rows.
    regulators, targets, rows : Path or None
        Files of names; None for all.
    run : Path or None
        Folder of what is done; None for ``out`` with :data:`FOLDER_SUFFIX`.
    top : int or None
        Only so many edges.
    memory_mb : int
        Cap on the whole process.
    threads : int or None
        Workers; None for the cores there are.
    safe : bool
        No name in the CSV file is a formula to a spreadsheet.
    cluster : Cluster or None
        Workers elsewhere that targets are spread over; None for threads of this process.
    """

    out: Path
    params: EdgeParams
    regulators: Path | None = None
    targets: Path | None = None
    rows: Path | None = None
    run: Path | None = None
    top: int | None = None
    memory_mb: int = 512
    threads: int | None = None
    safe: bool = False
    cluster: core.Cluster | None = None

    @property
    def folder(self) -> Path:
        """Where what is done is kept."""
        return self.out.with_name(self.out.name + FOLDER_SUFFIX) if self.run is None else self.run


@dataclass(frozen=True)
class Network:
    """What became of a network.

    Attributes
    ----------
    out, run : str
        The file of its edges, and the folder of what is done.
    n_regulators, n_targets, n_done, n_edges : int
        Its size; targets done; edges written, 0 before all targets are.
    n_constant : int
        Targets without edges, as their values do not differ.
    n_duplicates : int
        Pairs of a target and a regulator with equal codes.
    duplicates : list of (str, str)
        The first of them: target, regulator.
    n_epochs : int
        Epochs of all targets together, where they are learnt jointly; else 0.
    seconds, peak_mb : float
        Time worked on targets, and the largest resident size so far.
    """

    out: str
    run: str
    n_regulators: int
    n_targets: int
    n_done: int
    n_edges: int
    n_constant: int
    n_duplicates: int
    seconds: float
    peak_mb: float
    duplicates: list[tuple[str, str]] = field(default_factory=list)
    n_epochs: int = 0

    @property
    def is_done(self) -> bool:
        """Whether all targets are done, and the edges written."""
        return self.n_done == self.n_targets


class NetworkTask:
    """A network that is asked for, settled; the store must be held unchanged meanwhile.

    Parameters
    ----------
    store : Store
        The store.
    request : NetworkRequest
        What is asked.

    Attributes
    ----------
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    regulators, targets : uint32
        Stored positions, ascending.
    shape : TrainingShape
        Of the work on a target.
    n_workers : int
        Threads at work here; 0 where workers elsewhere do it.
    n_ahead : int
        Targets begun at most after the first one that is not done.
    mapped : bool
        Whether the store is mapped into memory.
    n_edges : int
        Edges that may be put in order together.

    Raises
    ------
    UsageError, StoreError, BudgetError
        If it cannot be done as asked; the smallest cap that holds one worker is named.
    """

    def __init__(self, store: core.Store, request: NetworkRequest) -> None:
        self.store, self.request = store, request
        store.check_files()
        sides = [
            None if file is None else core.SideFile(file, "feature", store.n_features)
            for file in (request.regulators, request.targets)
        ]
        files, params = core.InputFiles(store, None, request.rows), request.params
        cap_nbytes = request.memory_mb * core.MB
        reading = [side.lease for side in sides if side is not None] + files.leases()
        reading.append(core.Lease("the run's record", core.LEDGER_NBYTES))
        working = self._leases(
            store.n_rows if files.rows is None else files.rows.n_found,
            *(store.n_features if side is None else side.n_found for side in sides),
        )
        core.check_stages(cap_nbytes, [reading, working])
        spare = core.Budget(cap_nbytes, reading).free_nbytes
        self.rows = files.resolve(spare).rows
        self.regulators, self.targets = find_variables(store, sides, spare)
        n_rows = store.n_rows if self.rows is None else len(self.rows)
        granted = self._leases(n_rows, len(self.regulators), len(self.targets))
        # Options must suit a target's regulators, of which it is none itself.
        n_others = max(1, len(self.regulators) - (len(self.targets) == 1))
        params.check_shape(replace(self.shape, n_candidates=n_others))
        # The cap is shared out: one worker first, then more, then the store mapped; then edges.
        budget = core.Budget(cap_nbytes, granted)
        budget.check()
        self.n_workers, self.mapped, room = 0, False, budget.free_nbytes
        if request.cluster is not None:
            self.n_ahead = min(FEWEST_AHEAD + room // target_nbytes(self.shape), MOST_AHEAD)
        else:
            threads = min(request.threads or core.n_cores(), len(self.targets))
            work = budget.leases[-1].n_bytes
            self.n_workers, self.mapped = more_workers(budget, store, threads)
            self.n_ahead = self.n_workers + 1
            # Edges are put in order once the workers have gone.
            room = max(0, budget.free_nbytes + (self.n_workers - 1) * work)
        self.n_edges = FEWEST_EDGES + room // EDGE_NBYTES

    def _leases(self, n_rows: int, n_regulators: int, n_targets: int) -> list[core.Lease]:
        """Return what so large a network needs with one worker, whose lease is the last.

        Where workers elsewhere do the work, the last lease is of what is under way to them.
        """
        store, params = self.store, self.request.params
        by_value = params.values().get("thresholds") == "value"
        self.shape = shape = core.TrainingShape(
            n_rows,
            n_regulators,
            store.n_features,
            1,
            store.manifest.code_nbytes,
            n_channels=int("weights" in store.manifest.row_columns),
            n_values=by_value * core.n_values_of(store.manifest),
            n_stored_rows=store.n_rows,
        )
        genes = GENE_NBYTES * (shape.n_features + 4 * (n_regulators + n_targets))
        shard = COPIES * 8 * n_regulators * shard_targets(n_targets, n_regulators)
        compared = 2 * core.block_nbytes(HASH_COLUMNS, n_rows, shape.code_nbytes)
        reading = 12 * core.MB  # chunks of values as packed, as decoded, and the tables of codes
        leases = [
            core.Lease("requests under way", store.reading_nbytes),
            core.Lease("names and regulators", genes + DUPLICATE_NBYTES * MOST_DUPLICATES),
            core.Lease("columns that are compared", compared),
            core.Lease("targets", reading + 3 * TOGETHER * 8 * shape.n_stored_rows),
            core.Lease("weights on their way to disk", shard),
            core.Lease("the run's record", core.LEDGER_NBYTES),
            core.Lease("edges in order", FEWEST_EDGES * EDGE_NBYTES),
        ]
        if self.request.cluster is not None:
            under_way = core.ORDERS_NBYTES + FEWEST_AHEAD * target_nbytes(shape)
            return [*leases, core.Lease("targets under way on the workers", under_way)]
        what = f"probabilities of {n_regulators} regulators for {n_targets} targets together"
        shared = core.Lease(what, params.shared_nbytes(shape, n_targets))
        return [*leases, shape.values_lease, shared, worker_lease(params, shape)]

    def identity(self) -> dict[str, Any]:
        """Return what identifies the network."""
        return self.request.params.values() | {
            "store": self.store.fingerprint,
            "regulators": core.digest(self.regulators, "features"),
            "targets": core.digest(self.targets, "features"),
            "rows": core.digest(self.rows, "rows"),
        }

    def values_of(self, targets: core.Uints32) -> Targets:
        """Yield targets, ascending, with their values on the rows trained on; NaN where missing.

        Of a store that keeps no values, a code stands for the middle of its range.
        """
        for start in range(0, len(targets), TOGETHER):
            some = targets[start : start + TOGETHER]
            for target, values in zip(some.tolist(), self.store.numbers_of(some), strict=True):
                yield target, values if self.rows is None else values[self.rows]


def more_workers(budget: core.Budget, store: core.Store, most: int) -> tuple[int, bool]:
    """Grant workers like the last lease's, and then a store mapped into memory, if it is no URL.

    Returns
    -------
    n_workers, mapped : int, bool
        Workers, of ``most`` at most; whether the cap holds all of the store.
    """
    n_workers = 1 + budget.grant_more("another worker", budget.leases[-1].n_bytes, most - 1)
    mapped = not store.reading_nbytes and store.manifest.codes_nbytes <= budget.free_nbytes
    budget.grant("the store, mapped", mapped * store.manifest.codes_nbytes)
    return n_workers, mapped


# Targets at workers elsewhere: they are told of a network once, then of targets with their values.


@dataclass(frozen=True)
class NetworkJob(core.Job):
    """What a worker needs to weigh the regulators of any target; its identity is the network's.

    Attributes
    ----------
    params : EdgeParams
        How regulators are weighed.
    shape : TrainingShape
        What bounds the memory of a target.
    regulators : uint32 (n_regulators,)
        Stored positions, ascending.
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    """

    params: EdgeParams
    shape: core.TrainingShape
    regulators: core.Uints32
    rows: core.Ints32 | None
    label = "network"

    def prepare(self, n_threads: int, stack: ExitStack) -> core.Work:
        """Prepare for it in a worker; as the base class says."""
        store, shape = self.store.open(), self.shape
        lease = worker_lease(self.params, shape, target_nbytes(shape))
        leases = [core.Lease("requests under way", store.reading_nbytes), shape.values_lease, lease]
        budget = core.Budget(self.store.memory_mb * core.MB, leases, core.PROCESS_NBYTES)
        budget.check("--worker-memory-mb")
        n_blocks, mapped = more_workers(budget, store, n_threads)
        with store.unchanged():
            how = {"mapped": mapped, "valued": shape.n_values > 0}
            source = stack.enter_context(core.ColumnSource.of(store, self.rows, **how))
        scorer = EdgeScorer(self.params, shape, store, source, self.regulators, n_blocks)

        def work(batch: core.Batch, tell: core.PartWatch) -> core.Batch:
            done = scorer.work(batch, tell)
            store.check_unchanged()  # else nothing is returned
            return done

        return work


QUICK_SECONDS = 0.3
"""About how long a network measures before it begins."""
MOST_TRIED = 256
"""Targets that are tried at most, over again if there is time left."""


def estimate(
    task: NetworkTask, scorer: EdgeScorer, n_left: int, seconds: float
) -> tuple[float, int, str, str]:
    """Measure about what the work on targets will take.

    Parameters
    ----------
    task : NetworkTask
        What is worked on; it must not be for workers elsewhere.
    scorer : EdgeScorer
        What weighs its regulators.
    n_left : int
        Targets that are not done.
    seconds : float
        About how long to measure; longer where a tree takes longer.

    Returns
    -------
    seconds, n_left, measured, extrapolated : float, int, str, str
        Wall-clock seconds of all that are left, with all workers at work; how many of them have
        values that differ; what was done, and what the rest of the number is.
    """
    varying = task.targets[task.store.kinds()[task.targets] != core.CONSTANT]
    n_left = min(len(varying), max(round(len(varying) / len(task.targets) * n_left), 1))
    targets = _tried(task, varying)
    if (first := next(targets, None)) is None:
        return 0.0, 0, "no values differ", "nothing to do"
    found = task.request.params.estimate(scorer, chain([first], targets), n_left, seconds)
    return found[0], n_left, *found[1:]


def _tried(task: NetworkTask, varying: core.Uints32) -> Targets:
    """Yield targets with their values, in an order fixed by the seed, over and over again.

    Those without regulators, or whose values do not differ in the rows trained on, are left out.
    """
    key = core.key_of(task.request.params.seed, core.Purpose.EDGES)
    order = np.argsort(core.derive_array(key, varying), kind="stable")[:MOST_TRIED]
    again = []
    for place in order.tolist():
        ((target, values),) = task.values_of(varying[[place]])
        if training_rows(values, None) is not None and (task.regulators != target).any():
            again.append(place)
            yield target, values
    for place in cycle(again):
        yield from task.values_of(varying[[place]])


TOGETHER_ELSEWHERE = 32
"""Targets at most that a worker elsewhere does before it replies."""
WRITTEN_TOGETHER = 1 << 13
"""Edges whose names are looked up together."""


def work_on_network(
    store: core.Store,
    request: NetworkRequest,
    watch: core.Watch = lambda _: True,
    note: Callable[[str], None] = lambda _: None,
    trial_seconds: float = 0.0,
) -> Network:
    """Weigh the regulators of all targets and write the edges; go on where it was stopped.

    Parameters
    ----------
    store : Store
        The store; its own target plays no part, its weights of rows do.
    request : NetworkRequest
        What is asked.
    watch : callable
        Shown each step; the work stops where it says no, with all that is done kept.
    note : callable
        Given sentences worth saying before the work begins.
    trial_seconds : float
        About how long to measure first what the work will take, for a note; 0 for not at all.

    Raises
    ------
    UsageError, StoreError, RunError, BudgetError
        If it cannot be done as asked, or the store is replaced meanwhile.
    """
    check_edge_file(request.out)
    _check_request(request)
    with store.unchanged():
        task = NetworkTask(store, request)
        n_targets, n_regulators = len(task.targets), len(task.regulators)
        with edge_ledger(request.folder, task.identity(), n_targets) as ledger:
            ledger.check = store.check_unchanged
            edges = EdgeStore(ledger, n_targets, n_regulators)
            n_duplicates, duplicates = _work(task, edges, watch, note, trial_seconds)
            n_edges = 0
            if edges.n_done == n_targets:
                store.check_unchanged()
                replaces = request.out.exists()
                found = _ranked(task, edges)
                n_edges = write_edges(request.out, found, replaces=replaces, safe=request.safe)
            return Network(
                os.fspath(request.out),
                os.fspath(request.folder),
                n_regulators,
                n_targets,
                edges.n_done,
                n_edges,
                int(np.count_nonzero(store.kinds()[task.targets] == core.CONSTANT)),
                n_duplicates,
                round(edges.committed.seconds, 3),
                round(edges.committed.peak_nbytes / core.MB, 1),
                duplicates,
                edges.n_epochs,
            )


def _check_request(request: NetworkRequest) -> None:
    """Refuse to overwrite a file that is not this network's own, and joint work elsewhere."""
    if request.out.exists() and not request.folder.exists():
        raise core.UsageError(
            f"{request.out}: expected no file there, found one, and no {request.folder} of a "
            "network that it may be of. Move it away, or choose another name."
        )
    if not request.out.absolute().parent.is_dir():
        raise core.UsageError(
            f"--out: expected a file in a folder that is there, found {request.out}. Make the "
            "folder first."
        )
    if request.cluster is not None and request.params.is_joint:
        raise core.UsageError(
            "--dask: expected targets that are worked on one by one, found joint, which takes a "
            "step of all targets together in one process. Leave one of them out; --threads grows "
            "models of several targets at once."
        )


def _work(
    task: NetworkTask,
    edges: EdgeStore,
    watch: core.Watch,
    note: Callable[[str], None],
    trial_seconds: float,
) -> tuple[int, list[tuple[str, str]]]:
    """Compare columns, and weigh the regulators of the targets that are left."""
    store, params, is_here = task.store, task.request.params, task.request.cluster is None
    n_left = edges.n_targets - edges.n_done
    valued = is_here and n_left > 0 and task.shape.n_values > 0  # those of codes, where used
    with core.ColumnSource.of(store, task.rows, mapped=task.mapped, valued=valued) as source:
        varying = store.kinds() != core.CONSTANT
        compared = (some[varying[some]] for some in (task.regulators, task.targets))
        n_equal, equal = equal_columns(source, *compared)
        flat = store.positions_of(np.array(equal, np.int64).reshape(-1))
        names = [store.names[i] for i in flat.tolist()]
        named = list(zip(names[::2], names[1::2], strict=True))
        if n_equal:
            target, regulator = named[0]
            more = f", and {n_equal - 1} more such pairs" if n_equal > 1 else ""
            note(
                f"target {target}: the regulator {regulator} orders the rows exactly as it does"
                f"{more}. Such a regulator takes nearly all of the weight. Leave it out of the "
                "regulators if it is the same gene measured twice."
            )
        if not n_left:
            return n_equal, named
        for sentence in params.remarks(task.shape, edges.n_targets):
            note(sentence)
        scorer = EdgeScorer(params, task.shape, store, source, task.regulators, task.n_workers)
        if is_here and trial_seconds:
            seconds, n_wanted, *how = estimate(task, scorer, n_left, trial_seconds)
            n_workers = min(task.n_workers, n_wanted) or task.n_workers
            text = (
                f"about {core.describe_seconds(seconds)} for {targets_text(n_wanted)} on "
                f"{core.counted(n_workers, 'core')}, an ESTIMATE ({how[0]}; {how[1]})"
            )
            is_long = seconds >= core.LONG_SECONDS
            note(f"{text}. Shorter: {params.shorter}." if is_long else f"{text}.")
        if isinstance(params, ProbabilityParams) and params.is_joint:
            params.work_together(scorer, task.values_of(task.targets), edges, watch)
        else:
            one_by_one(task, scorer, edges, watch)
    return n_equal, named


def one_by_one(task: NetworkTask, scorer: EdgeScorer, edges: EdgeStore, watch: core.Watch) -> None:
    """Have all targets weighed whose edges are not there yet, until ``watch`` says no.

    What is done is committed at least every second or so, and at the end.
    """

    def goes_on() -> bool:
        return watch(core.Step(STAGE, edges.n_done, edges.n_targets, unit="targets"))

    cluster, n_threads, n_together = task.request.cluster, lambda: task.n_workers, 1
    first, early = edges.n_done, {}
    targets = enumerate(task.values_of(task.targets[first:]), first)
    edges.begin()
    with ExitStack() as stack:
        if cluster is None:
            send = stack.enter_context(core.threads(scorer.work, task.n_workers))
        else:
            there = core.WorkerStore.of(task.store, cluster.worker_memory_mb)
            work = task.request.params, task.shape, task.regulators, task.rows
            job = NetworkJob(there, task.identity(), *work)
            line = stack.enter_context(closing(cluster.line(job)))
            send, n_threads, n_together = line.send, line.n_threads, TOGETHER_ELSEWHERE
        done = core.parallel_map(send, n_threads, targets, goes_on, task.n_ahead, n_together)
        for number, weights in done:
            early[number] = weights
            while edges.n_done in early:  # they are kept in their order
                edges.add(early.pop(edges.n_done))
    edges.commit()
    goes_on()


def _ranked(task: NetworkTask, edges: EdgeStore) -> Iterator[list[Edge]]:
    regulators = task.store.positions_of(task.regulators)
    targets = task.store.positions_of(task.targets)
    for weights, places in ranked(edges.shards, task.n_edges, task.request.top):
        for start in range(0, len(weights), WRITTEN_TOGETHER):
            some = slice(start, start + WRITTEN_TOGETHER)
            pairs = np.divmod(places[some], len(regulators))
            to, by = targets[pairs[0]].tolist(), regulators[pairs[1]].tolist()
            text = task.store.names.several({*to, *by})
            yield [
                (text[r], text[t], weight)
                for r, t, weight in zip(by, to, weights[some].tolist(), strict=True)
            ]
