"""A network from a store: made or gone on with, worked on, and its edges written.

Targets are done one by one, by threads here or by workers elsewhere, or all together under one
penalty (Huynh-Thu and Geurts 2023, Eq. 21).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from threading import Event
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Saved, State, Stateful, Step
from srs_ooc.base.text import MB
from srs_ooc.networks.edges import (
    JOINT,
    Edge,
    EdgeBook,
    check_edge_file,
    equal_columns,
    name_cache,
    names_of,
    open_book,
    ranked,
    write_edges,
)
from srs_ooc.networks.network_options import Network, NetworkRequest
from srs_ooc.networks.network_plan import pace_of
from srs_ooc.networks.network_task import NetworkJob, NetworkTask, TargetDesk, task_of
from srs_ooc.networks.prs_edges import Fit, ProbabilityParams
from srs_ooc.networks.weighing import Bench, row_weights, target_values, training_rows
from srs_ooc.runs.batches import LOOK_SECONDS, ThreadLine, parallel_map
from srs_ooc.runs.engine import ItemSource
from srs_ooc.runs.jobs import Line, Part, WorkerStore, new_token
from srs_ooc.runs.resources import categorical_features, noting
from srs_ooc.samplers.prs import GROWING, ParametricRandomSubspace
from srs_ooc.store.manifest import CONSTANT
from srs_ooc.store.store import Store

# All targets of a network under one penalty (Huynh-Thu and Geurts 2023, Eq. 21).


class JointTarget(ParametricRandomSubspace):
    """One target: it learns as by itself, but the epochs are counted and judged for all.

    Attributes
    ----------
    worth, loss : float
        After an epoch: models that the weights are worth, and the loss on the validation rows.
    """

    worth = loss = 0.0

    @property
    def begins_epoch(self) -> bool:
        """Whether the next step is an epoch's first."""
        return self._fold == 0

    @property
    def n_begun(self) -> int:
        """Models grown so far."""
        return self._first + self._n_grown

    def penalise(self, slopes: NDArray[np.float64]) -> None:
        """Take the derivative of the joint penalty for the next step, float64 (p,)."""
        self._penalty = slopes + self._sparsity

    def renew(self) -> None:
        """Have models grown again if the weights are worth too few."""
        if self.worth < self._wanted_worth:
            self._draw_anew(GROWING, self.beta)

    def _end_epoch(self) -> None:
        self.worth, self.loss = self._looked()
        self.epoch += 1


class JointDescent:
    """Minimises Eq. 21, times the number of targets, by steps of all targets.

    With b_jg the probability of regulator j for target g of G, and L_g the loss of target g, it is
    ``sum of L_g + G lambda sum over j of sqrt(sum over g of b_jg^2)``. A target's step takes the
    derivative of the second term, ``G lambda b_jg / sqrt(sum over g of b_jg^2)``, from what all
    targets were before the step: the order of targets within it plays no part.

    Parameters
    ----------
    targets : list of JointTarget
        All that can be learnt.
    places : list of int64 arrays
        Of each target, where its regulators are among all.
    n_regulators : int
        All.
    strength : float
        lambda.
    n_epochs, patience : int
        Epochs at most; epochs without a better objective after which it ends.
    """

    def __init__(
        self,
        targets: list[JointTarget],
        places: list[NDArray[np.int64]],
        n_regulators: int,
        strength: float,
        n_epochs: int,
        patience: int,
    ) -> None:
        self.targets, self._places, self._n_regulators = targets, places, n_regulators
        self._strength, self._n_epochs, self._patience = strength, n_epochs, patience
        self.epoch = self.best_epoch = 0
        self.best_objective = np.inf
        self.is_done = not targets

    def step(self) -> None:
        """Take one step by one fold's rows in all targets, none of which is being grown."""
        norms = self._norms()
        factor = len(self.targets) * self._strength
        for target, places in zip(self.targets, self._places, strict=True):
            own = norms[places]
            slopes = np.divide(target.beta, own, out=np.zeros(len(own)), where=own > 0)
            target.penalise(factor * slopes)
            target.step()
        if self.targets[0].begins_epoch:
            self._end_epoch()

    def _norms(self) -> NDArray[np.float64]:
        squares = np.zeros(self._n_regulators)
        for target, places in zip(self.targets, self._places, strict=True):
            squares[places] += target.beta * target.beta
        return np.sqrt(squares)

    def _end_epoch(self) -> None:
        self.epoch += 1
        loss = sum(target.loss for target in self.targets) / len(self.targets)
        objective = loss + self._strength * float(self._norms().sum())
        if objective < self.best_objective:
            self.best_objective, self.best_epoch = objective, self.epoch
            for target in self.targets:
                target.keep_best()
        waited = self.epoch - self.best_epoch
        self.is_done = self.epoch == self._n_epochs or waited >= self._patience
        for target in self.targets:
            target.renew()

    def weights(self, number: int) -> NDArray[np.float64]:
        """Return the weight of each regulator for a target, float64 (n_regulators,)."""
        out = np.zeros(self._n_regulators)
        out[self._places[number]] = self.targets[number].best
        return out

    def state(self) -> State:
        """Return where the work stands; the targets have states of their own."""
        facts: dict[str, Any] = {
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "best_objective": self.best_objective if self.best_epoch else None,
            "done": self.is_done,
        }
        return State(facts=facts)

    def restore(self, saved: Saved) -> None:
        """Take up the work where it was committed."""
        if saved.facts is None:
            return
        self.epoch, self.best_epoch = int(saved.facts["epoch"]), int(saved.facts["best_epoch"])
        if self.best_epoch:
            self.best_objective = float(saved.facts["best_objective"])
        self.is_done = bool(saved.facts["done"])


# The targets of a network: done by threads here or by workers elsewhere, kept in their order.

Watch = Callable[[Step], bool]
STAGE = "network"
TOGETHER_ELSEWHERE = 32
"""Targets at most that a worker elsewhere does before it replies."""


def work_one_by_one(task: NetworkTask, source: ItemSource, book: EdgeBook, watch: Watch) -> None:
    """Have all targets weighed that the book does not hold yet, until ``watch`` says no.

    What is done is committed at least every second or so, and at the end.
    """
    n_targets = len(task.genes.targets)

    def goes_on() -> bool:
        return watch(Step(STAGE, book.n_done, n_targets, unit="targets"))

    line, n_together = _line(task, source)
    spread = line, task.grant.n_ahead, n_together
    book.begin()
    try:
        for weights in _in_order(task, spread, book.n_done, goes_on):
            book.add(weights)
            if book.is_due:
                book.commit()
    finally:
        line.close()
    if book.n_done > book.committed.iteration:
        book.commit()
    goes_on()


def _line(task: NetworkTask, source: ItemSource) -> tuple[Line, int]:
    """Return the way to who weighs, and how many targets go there together."""
    request, store, regulators = task.request, task.store, task.genes.regulators
    if request.cluster is None:
        n_workers = task.grant.n_workers
        desk = TargetDesk(request.params, source, store, regulators, n_workers)
        return ThreadLine(desk.work, n_workers), 1
    worker_store = WorkerStore.of(store, request.cluster.worker_memory_mb)
    identity = task.identity()
    job = NetworkJob(new_token(), worker_store, identity, request.params, regulators, task.rows)
    return request.cluster.line(job), TOGETHER_ELSEWHERE


def _in_order(
    task: NetworkTask, spread: tuple[Line, int, int], first: int, goes_on: Callable[[], bool]
) -> Iterator[NDArray[np.float64]]:
    """Yield the weights of each target from the ``first`` on; end early where told to."""
    targets = task.genes.targets[first:]
    pairs = zip(targets.tolist(), target_values(task.store, targets, task.rows), strict=True)
    parts = (Part(number, pair) for number, pair in enumerate(pairs, first))
    early: dict[int, NDArray[np.float64]] = {}
    line, n_ahead, n_together = spread
    for number, weights in parallel_map(line, parts, goes_on, n_ahead, n_together):
        early[number] = weights
        while first in early:
            yield early.pop(first)
            first += 1


def is_done(future: "Future[Any]") -> bool:
    """Wait a little; return whether the work is done."""
    try:
        future.exception(LOOK_SECONDS)
    except TimeoutError:
        return future.done()
    return True


# All targets of a network worked on together, kept as they are now and then.


class JointWork:
    """Learns the probabilities of all targets, committed and resumed between steps.

    Parameters
    ----------
    task : NetworkTask
        What is worked on.
    params : ProbabilityParams
        How probabilities are learnt.
    source : ItemSource
        Where columns come from.
    """

    def __init__(self, task: NetworkTask, params: ProbabilityParams, source: ItemSource) -> None:
        self._params, self._n_workers = params, task.grant.n_workers
        self._stopping = Event()
        genes, (self._block,) = task.genes, task.blocks(1)
        self._block.tiled = False
        source.gather(genes.regulators, self._block)
        self._fits: list[Fit] = []
        self._numbers: dict[int, int] = {}
        weights, categorical = row_weights(task.store, task.rows), categorical_features(task.store)
        targets: list[JointTarget] = []
        all_places: list[NDArray[np.int64]] = []
        values = target_values(task.store, genes.targets, task.rows)
        for number, (target, own) in enumerate(zip(genes.targets.tolist(), values, strict=True)):
            rows = training_rows(own, weights)
            places = np.flatnonzero(genes.regulators != target)
            if rows is None or not len(places):
                continue
            what = self._block, target, genes.regulators[places], rows
            bench = Bench(source, categorical, *what)
            sampler, fit = params.learning(JointTarget, bench, places.astype(np.int32))
            self._numbers[number] = len(targets)
            self._fits.append(fit)
            targets.append(cast("JointTarget", sampler))
            all_places.append(places)
        most, n_regulators = params.epochs, len(genes.regulators)
        patience = most if params.patience is None else params.patience
        self.descent = JointDescent(
            targets, all_places, n_regulators, float(params.joint), most, patience
        )

    def run(self, book: EdgeBook, watch: Watch, n_targets: int) -> None:
        """Work until all is learnt, or ``watch`` says no.

        What was learnt is committed at least every second or so, and at the end.
        """
        descent = self.descent
        parts: dict[str, Stateful] = {f"{JOINT}.{i}": t for i, t in enumerate(descent.targets)}
        parts[JOINT] = descent
        book.begin()
        book.load(parts)

        def goes_on() -> bool:
            return watch(Step(STAGE, descent.epoch, self._params.epochs, unit="epochs"))

        going = goes_on()
        with ThreadPoolExecutor(self._n_workers, "grow") as pool:
            while going and not descent.is_done:
                going = self._grow(pool, goes_on)
                if going:
                    descent.step()
                    going = goes_on()
                if going and book.is_due:
                    book.commit(_states(parts))
        book.commit(_states(parts))
        if descent.is_done:
            self._enter(book, parts, n_targets)
            goes_on()

    def _grow(self, pool: ThreadPoolExecutor, goes_on: Callable[[], bool]) -> bool:
        """Grow the models that targets want; return False if it was stopped on the way."""
        wanting = [i for i, t in enumerate(self.descent.targets) if t.phase == GROWING]
        for future in [pool.submit(self._grow_one, i) for i in wanting]:
            while not is_done(future):
                if not goes_on():
                    self._stopping.set()
            future.result()
        return not self._stopping.is_set()

    def _grow_one(self, i: int) -> None:
        target, fit = self.descent.targets[i], self._fits[i]
        while target.phase == GROWING and not self._stopping.is_set():
            number = target.n_begun
            target.absorb(number, fit(self._block, number, target.propose(number, 0)))

    def _enter(self, book: EdgeBook, parts: Mapping[str, Stateful], n_targets: int) -> None:
        """Put the weights of all targets that the book does not hold yet into it."""
        nothing = np.zeros(book.n_regulators)
        for number in range(book.n_done, n_targets):
            place = self._numbers.get(number)
            book.add(nothing if place is None else self.descent.weights(place))
            if book.is_full:
                book.commit(_states(parts))
        if book.n_done > book.committed.iteration:
            book.commit(_states(parts))


def _states(parts: Mapping[str, Stateful]) -> dict[str, State]:
    return {name: part.state() for name, part in parts.items()}


WRITTEN_TOGETHER = 1 << 13
"""Edges whose names are looked up together."""


def work_on_network(
    store: Store,
    request: NetworkRequest,
    watch: Watch = lambda _: True,
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
        task = task_of(store, request)
        n_targets, n_regulators = len(task.genes.targets), len(task.genes.regulators)
        with closing(open_book(request.folder, task.identity(), n_targets)) as ledger:
            book = EdgeBook(ledger, n_targets, n_regulators)
            watch = noting(ledger, request.cluster, watch)
            n_duplicates, duplicates = _work(task, book, watch, note, trial_seconds)
            n_edges = 0
            if book.n_done == n_targets:
                store.check_unchanged()
                replaces = request.out.exists()
                edges = _edges(task, book)
                n_edges = write_edges(request.out, edges, replaces=replaces, safe=request.safe)
            is_constant = store.kinds()[task.genes.targets] == CONSTANT
            return Network(
                os.fspath(request.out),
                os.fspath(request.folder),
                n_regulators,
                n_targets,
                book.n_done,
                n_edges,
                int(np.count_nonzero(is_constant)),
                n_duplicates,
                round(book.committed.seconds, 3),
                round(book.committed.peak_nbytes / MB, 1),
                duplicates,
                book.n_epochs,
            )


def _check_request(request: NetworkRequest) -> None:
    """Refuse to overwrite a file that is not this network's own, and joint work elsewhere."""
    if request.out.exists() and not request.folder.exists():
        raise UsageError(
            f"{request.out}: expected no file there, found one, and no {request.folder} of a "
            "network that it may be of. Move it away, or choose another name."
        )
    if not request.out.absolute().parent.is_dir():
        raise UsageError(
            f"--out: expected a file in a folder that is there, found {request.out}. Make the "
            "folder first."
        )
    if request.cluster is not None and request.params.is_joint:
        raise UsageError(
            "--dask: expected targets that are worked on one by one, found --joint, which takes a "
            "step of all targets together in one process. Leave one of them out; --threads grows "
            "models of several targets at once."
        )


def _work(
    task: NetworkTask,
    book: EdgeBook,
    watch: Watch,
    note: Callable[[str], None],
    trial_seconds: float,
) -> tuple[int, list[tuple[str, str]]]:
    """Compare columns, and weigh the regulators of the targets that are left."""
    store, params, n_targets = task.store, task.request.params, len(task.genes.targets)
    with ExitStack() as stack:
        columns = stack.enter_context(store.columns(mapped=task.grant.mapped))
        source = ItemSource(columns, task.rows)
        n_equal, equal = equal_columns(source, task.genes, store.kinds(), task.n_rows)
        flat = names_of(store, np.array(equal, np.int64).reshape(-1))
        names = [store.names[i] for i in flat.tolist()]
        named = list(zip(names[::2], names[1::2], strict=True))
        if n_equal:
            note(_said(n_equal, *named[0]))
        if book.n_done < n_targets:
            for sentence in params.remarks(task.table):
                note(sentence)
            if task.request.cluster is None:
                source = stack.enter_context(task.valued(source))
                if trial_seconds:
                    n_left = n_targets - book.n_done
                    note(pace_of(task, source, n_left, trial_seconds).said())
            if params.is_joint:
                joint = JointWork(task, cast("ProbabilityParams", params), source)
                joint.run(book, watch, n_targets)
            else:
                work_one_by_one(task, source, book, watch)
    return n_equal, named


def _said(n_equal: int, target: str, regulator: str) -> str:
    more = f", and {n_equal - 1} more such pairs" if n_equal > 1 else ""
    return (
        f"target {target}: the regulator {regulator} orders the rows exactly as it does{more}. "
        "Such a regulator takes nearly all of the weight. Leave it out of the regulators if it "
        "is the same gene measured twice."
    )


def _edges(task: NetworkTask, book: EdgeBook) -> Iterator[list[Edge]]:
    look_up = name_cache(task.store.names)
    regulators = names_of(task.store, task.genes.regulators)
    targets = names_of(task.store, task.genes.targets)
    for edges in ranked(book.shards, task.grant.n_edges, task.request.top):
        for start in range(0, len(edges.weights), WRITTEN_TOGETHER):
            some = slice(start, start + WRITTEN_TOGETHER)
            pairs = np.divmod(edges.places[some], len(regulators))
            to, by = targets[pairs[0]].tolist(), regulators[pairs[1]].tolist()
            text = look_up({*to, *by})
            yield [
                (text[r], text[t], weight)
                for r, t, weight in zip(by, to, edges.weights[some].tolist(), strict=True)
            ]
