"""A network from a store: made or gone on with, worked on, and its edges written.

Targets are done one by one, by threads here or by workers elsewhere, or all together under one
penalty (Huynh-Thu and Geurts 2023, Eq. 21).
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from threading import Event
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import peak_resident_nbytes, resident_nbytes
from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Saved, State, Stateful, Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import MB
from srs_ooc.networks.edges import (
    JOINT,
    Edge,
    EdgeBook,
    Genes,
    KnownNames,
    check_edge_file,
    equal_columns,
    names_of,
    open_book,
    ranked,
    write_edges,
)
from srs_ooc.networks.network_options import Network, NetworkRequest
from srs_ooc.networks.network_plan import pace_of
from srs_ooc.networks.network_task import NetworkJob, NetworkTask, TargetDesk, task_of
from srs_ooc.networks.prs_edges import (
    Models,
    ProbabilityParams,
    models_of,
    sampler_of,
    standardised,
)
from srs_ooc.networks.weighing import Bench, target_values, training_rows
from srs_ooc.runs.batches import LOOK_SECONDS, ThreadLine, parallel_map
from srs_ooc.runs.engine import COMMIT_SECONDS, COMMIT_SHARE, ItemSource
from srs_ooc.runs.jobs import Line, Part, WorkerStore, new_token
from srs_ooc.runs.resources import categorical_features, noting
from srs_ooc.samplers.prs import GROWING, ParametricRandomSubspace
from srs_ooc.store.manifest import CONSTANT
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block

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
        self._penalty = slopes + self._descent.sparsity

    def keep_best(self) -> None:
        """Keep the probabilities as those of the best epoch."""
        self._keep_best()

    def renew(self) -> None:
        """Have models grown again if the weights are worth too few."""
        if self.worth < self._descent.effective_share * self._descent.n_models:
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


class TargetWork:
    """Has the regulators weighed of all targets that a book does not hold yet.

    Parameters
    ----------
    store : Store
        The store.
    genes : Genes
        Regulators and targets.
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    line : Line
        The way to who weighs them; closed when the work ends.
    n_ahead : int
        Targets begun at most after the first one that is not done.
    n_together : int
        Targets at most that are worked on one after another without a word in between.
    """

    def __init__(
        self,
        store: Store,
        genes: Genes,
        rows: NDArray[np.int32] | None,
        line: Line,
        n_ahead: int,
        n_together: int = 1,
    ) -> None:
        self._store, self._genes, self._rows = store, genes, rows
        self._line, self._n_ahead, self._n_together = line, n_ahead, n_together

    def run(self, book: EdgeBook, watch: Watch) -> bool:
        """Work until all targets are done, or ``watch`` says no; return whether all are.

        What is done is committed at least every second or so, and at the end.
        """
        start, n_targets = time.monotonic(), len(self._genes.targets)
        before, next_commit = book.committed, start + COMMIT_SECONDS

        def commit() -> float:
            seconds = before.seconds + time.monotonic() - start
            peak = max(before.peak_nbytes, peak_resident_nbytes())
            return book.commit(seconds, resident_nbytes(), peak)

        try:
            for weights in self._in_order(book.n_done, lambda: watch(_step(book, n_targets))):
                book.add(weights)
                if book.is_full or time.monotonic() >= next_commit:
                    pause = max(COMMIT_SECONDS, COMMIT_SHARE * commit())
                    next_commit = time.monotonic() + pause
        finally:
            self._line.close()
        if book.n_done > book.committed.iteration:
            commit()
        watch(_step(book, n_targets))
        return book.n_done == n_targets

    def _in_order(self, first: int, goes_on: Callable[[], bool]) -> Iterator[NDArray[np.float64]]:
        """Yield the weights of each target from the ``first`` on; end early where told to."""
        targets = self._genes.targets[first:]
        values = target_values(self._store, targets, self._rows)
        pairs = zip(targets.tolist(), values, strict=True)
        parts = (Part(number, pair) for number, pair in enumerate(pairs, first))
        early: dict[int, NDArray[np.float64]] = {}
        spread = self._n_ahead, self._n_together
        for number, weights in parallel_map(self._line, parts, goes_on, *spread):
            early[number] = weights
            while first in early:
                yield early.pop(first)
                first += 1


def _step(book: EdgeBook, n_targets: int) -> Step:
    return Step(STAGE, book.n_done, n_targets, unit="targets")


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
    store : Store
        The store.
    genes : Genes
        Regulators and targets.
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    params : ProbabilityParams
        How probabilities are learnt.
    bench : Bench
        What targets are worked on with.
    block : Block
        Memory for all regulators, which all workers read.
    n_workers : int
        Targets whose models are grown at once; nothing depends on it.
    """

    def __init__(
        self,
        store: Store,
        genes: Genes,
        rows: NDArray[np.int32] | None,
        params: ProbabilityParams,
        bench: Bench,
        block: Block,
        n_workers: int,
    ) -> None:
        self._params, self._bench, self._block = params, bench, block
        self._n_workers, self._n_targets = n_workers, len(genes.targets)
        self._stopping = Event()
        block.tiled = False
        bench.source.gather(genes.regulators, block)
        self._models: list[Models] = []
        self._numbers: dict[int, int] = {}
        self.descent = self._descent_of(store, genes, rows)

    def _descent_of(
        self, store: Store, genes: Genes, rows: NDArray[np.int32] | None
    ) -> JointDescent:
        weights = store.weights()
        weights = weights if weights is None or rows is None else weights[rows]
        targets: list[JointTarget] = []
        all_places: list[NDArray[np.int64]] = []
        values = target_values(store, genes.targets, rows)
        for number, (target, own) in enumerate(zip(genes.targets.tolist(), values, strict=True)):
            training = training_rows(own, weights)
            places = np.flatnonzero(genes.regulators != target)
            if training is None or not len(places):
                continue
            training = standardised(training)
            key = key_of(self._bench.seed, Purpose.EDGES, target)
            sampler = sampler_of(JointTarget, self._params, training, len(places), key)
            regulators, columns = genes.regulators[places], places.astype(np.int32)
            models = models_of(training, regulators, columns, self._bench.categorical, key)
            self._numbers[number] = len(targets)
            self._models.append(models)
            targets.append(cast("JointTarget", sampler))
            all_places.append(places)
        params, most = self._params, self._params.epochs
        patience = most if params.patience is None else params.patience
        return JointDescent(
            targets, all_places, len(genes.regulators), float(params.joint), most, patience
        )

    def run(self, book: EdgeBook, watch: Watch) -> bool:
        """Work until all is learnt, or ``watch`` says no; return whether all is.

        What was learnt is committed at least every second or so, and at the end.
        """
        descent, start, before = self.descent, time.monotonic(), book.committed
        book.load(self._parts())
        next_commit = start + COMMIT_SECONDS

        def commit() -> float:
            seconds = before.seconds + time.monotonic() - start
            states = {name: part.state() for name, part in self._parts().items()}
            peak = max(before.peak_nbytes, peak_resident_nbytes())
            return book.commit(seconds, resident_nbytes(), peak, states)

        goes_on = watch(self._step())
        with ThreadPoolExecutor(self._n_workers, "grow") as pool:
            while goes_on and not descent.is_done:
                goes_on = self._grow(pool, watch)
                if goes_on:
                    descent.step()
                    goes_on = watch(self._step())
                if goes_on and time.monotonic() >= next_commit:
                    pause = max(COMMIT_SECONDS, COMMIT_SHARE * commit())
                    next_commit = time.monotonic() + pause
        commit()
        if not descent.is_done:
            return False
        self._enter(book, commit)
        watch(self._step())
        return True

    def _parts(self) -> Mapping[str, Stateful]:
        parts: dict[str, Stateful] = {
            f"{JOINT}.{i}": target for i, target in enumerate(self.descent.targets)
        }
        return parts | {JOINT: self.descent}

    def _step(self) -> Step:
        return Step(STAGE, self.descent.epoch, self._params.epochs, unit="epochs")

    def _grow(self, pool: ThreadPoolExecutor, watch: Watch) -> bool:
        """Grow the models that targets want; return False if it was stopped on the way."""
        wanting = [i for i, t in enumerate(self.descent.targets) if t.phase == GROWING]
        futures = [pool.submit(self._grow_one, i) for i in wanting]
        for future in futures:
            while not is_done(future):
                if not watch(self._step()):
                    self._stopping.set()
            future.result()
        return not self._stopping.is_set()

    def _grow_one(self, i: int) -> None:
        target, models = self.descent.targets[i], self._models[i]
        while target.phase == GROWING and not self._stopping.is_set():
            number = target.n_begun
            outcome = models.fit(self._block, number, target.propose(number, 0))
            target.absorb(number, outcome)

    def _enter(self, book: EdgeBook, commit: Callable[[], float]) -> None:
        """Put the weights of all targets that the book does not hold yet into it."""
        nothing = np.zeros(book.n_regulators)
        for number in range(book.n_done, self._n_targets):
            place = self._numbers.get(number)
            book.add(nothing if place is None else self.descent.weights(place))
            if book.is_full:
                commit()
        if book.n_done > book.committed.iteration:
            commit()


WRITTEN_TOGETHER = 1 << 13
"""Edges whose names are looked up together."""
TOGETHER_ELSEWHERE = 32
"""Targets at most that a worker elsewhere does before it replies."""


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
    _check_free(request)
    _check_cluster(request)
    with store.unchanged():
        task = task_of(store, request)
        n_targets, n_regulators = len(task.genes.targets), len(task.genes.regulators)
        work = _Work(task, trial_seconds)
        with closing(open_book(request.folder, task.identity(), n_targets)) as ledger:
            book = EdgeBook(ledger, n_targets, n_regulators)
            n_duplicates, duplicates = work.work(book, noting(ledger, request.cluster, watch), note)
            n_edges = 0
            if book.n_done == n_targets:
                store.check_unchanged()
                n_edges = work.write(book)
            return work.network(book, n_edges, n_duplicates, duplicates)


def _check_cluster(request: NetworkRequest) -> None:
    own = request.params.own
    if request.cluster is not None and isinstance(own, ProbabilityParams) and own.is_joint:
        raise UsageError(
            "--dask: expected targets that are worked on one by one, found --joint, which takes a "
            "step of all targets together in one process. Leave one of them out; --threads grows "
            "models of several targets at once."
        )


def _check_free(request: NetworkRequest) -> None:
    """Refuse to overwrite a file that is not this network's own."""
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


class _Work:
    """One network at work."""

    def __init__(self, task: NetworkTask, trial_seconds: float) -> None:
        self._trial_seconds = trial_seconds
        self.task, self.store, self.request = task, task.store, task.request
        self.rows, self.genes, self.grant = task.rows, task.genes, task.grant
        self.cluster = task.request.cluster

    def work(
        self, book: EdgeBook, watch: Watch, note: Callable[[str], None]
    ) -> tuple[int, list[tuple[str, str]]]:
        """Compare columns, and weigh the regulators of the targets that are left."""
        genes = self.genes
        with ExitStack() as stack:
            columns = stack.enter_context(self.store.columns(mapped=self.grant.mapped))
            source = ItemSource(columns, self.rows)
            n_equal, equal = equal_columns(source, genes, self.store.kinds(), self.task.n_rows)
            named = self._named(equal)
            for sentence in _said(n_equal, named):
                note(sentence)
            if book.n_done < len(genes.targets):
                for sentence in self.request.params.own.remarks(self.task.table):
                    note(sentence)
                if self.cluster is None:
                    source = stack.enter_context(self.task.valued(source))
                    if self._trial_seconds:
                        n_left = len(genes.targets) - book.n_done
                        note(pace_of(self.task, source, n_left, self._trial_seconds).said())
                self._weigh(source, book, watch)
        return n_equal, named

    def _weigh(self, source: ItemSource, book: EdgeBook, watch: Watch) -> None:
        params, genes = self.request.params, self.genes
        if isinstance(params.own, ProbabilityParams) and params.own.is_joint:
            bench = Bench(source, categorical_features(self.store), params.seed, lambda: True)
            (block,) = self.task.blocks(1)
            workers = self.grant.n_workers
            JointWork(self.store, genes, self.rows, params.own, bench, block, workers).run(
                book, watch
            )
            return
        line, n_together = self._line(source)
        n_ahead = self.grant.n_ahead
        TargetWork(self.store, genes, self.rows, line, n_ahead, n_together).run(book, watch)

    def _line(self, source: ItemSource) -> tuple[Line, int]:
        """Return the way to who weighs, and how many targets go there together."""
        params, regulators, cluster = self.request.params, self.genes.regulators, self.cluster
        if cluster is None:
            blocks = self.task.blocks(self.grant.n_workers)
            desk = TargetDesk(params, source, self.store, regulators, blocks)
            return ThreadLine(desk.work, len(blocks)), 1
        store = WorkerStore.of(self.store, cluster.worker_memory_mb)
        job = NetworkJob(new_token(), store, self.task.identity(), params, regulators, self.rows)
        return cluster.line(job), TOGETHER_ELSEWHERE

    def _named(self, pairs: list[tuple[int, int]]) -> list[tuple[str, str]]:
        flat = np.array(pairs, np.int64).reshape(-1)
        names = [self.store.names[i] for i in names_of(self.store, flat).tolist()]
        return list(zip(names[::2], names[1::2], strict=True))

    def write(self, book: EdgeBook) -> int:
        """Write the edges; return how many."""
        request = self.request
        return write_edges(
            request.out, self._edges(book), replaces=request.out.exists(), safe=request.safe
        )

    def _edges(self, book: EdgeBook) -> Iterator[list[Edge]]:
        n_regulators, known = len(self.genes.regulators), KnownNames(self.store.names)
        regulators = names_of(self.store, self.genes.regulators)
        targets = names_of(self.store, self.genes.targets)
        for edges in ranked(book.shards, self.grant.n_edges, self.request.top):
            for start in range(0, len(edges.weights), WRITTEN_TOGETHER):
                some = slice(start, start + WRITTEN_TOGETHER)
                pairs = np.divmod(edges.places[some], n_regulators)
                to, by = targets[pairs[0]].tolist(), regulators[pairs[1]].tolist()
                text = known.of({*to, *by})
                yield [
                    (text[r], text[t], weight)
                    for r, t, weight in zip(by, to, edges.weights[some].tolist(), strict=True)
                ]

    def network(
        self, book: EdgeBook, n_edges: int, n_duplicates: int, duplicates: list[tuple[str, str]]
    ) -> Network:
        """Return what became of it."""
        genes, kinds = self.genes, self.store.kinds()
        return Network(
            os.fspath(self.request.out),
            os.fspath(self.request.folder),
            len(genes.regulators),
            len(genes.targets),
            book.n_done,
            n_edges,
            int(np.count_nonzero(kinds[genes.targets] == CONSTANT)),
            n_duplicates,
            round(book.committed.seconds, 3),
            round(book.committed.peak_nbytes / MB, 1),
            duplicates,
            book.n_epochs,
        )


def _said(n_equal: int, named: list[tuple[str, str]]) -> Iterator[str]:
    if n_equal:
        target, regulator = named[0]
        more = f", and {n_equal - 1} more such pairs" if n_equal > 1 else ""
        yield (
            f"target {target}: the regulator {regulator} orders the rows exactly as it does{more}. "
            "Such a regulator takes nearly all of the weight. Leave it out of the regulators if it "
            "is the same gene measured twice."
        )
