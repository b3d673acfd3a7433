"""All targets of a network worked on together, kept as they are now and then."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import cast

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import peak_resident_nbytes, resident_nbytes
from srs_ooc.base.records import Stateful, Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.networks.book import JOINT, EdgeBook
from srs_ooc.networks.descents import Models, models_of, sampler_of, standardised
from srs_ooc.networks.genes import Genes
from srs_ooc.networks.joint import JointDescent, JointTarget
from srs_ooc.networks.probability_params import ProbabilityParams
from srs_ooc.networks.responses import target_values, training_rows
from srs_ooc.networks.weighing import Bench
from srs_ooc.networks.work import STAGE, Watch, is_done
from srs_ooc.runs.engine import COMMIT_SECONDS, COMMIT_SHARE
from srs_ooc.samplers.prs import GROWING
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block


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
