"""Where targets are worked on: blocks, the weigher, and what is the same for all targets.

A worker elsewhere is told of a network once, by its job, and then of targets with their values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.networks.memory import desk_grant
from srs_ooc.networks.methods import weigher_of
from srs_ooc.networks.params import NetworkParams
from srs_ooc.networks.responses import training_rows
from srs_ooc.networks.weighing import Bench
from srs_ooc.runs.engine import ItemSource
from srs_ooc.runs.jobs import Part, Prepared, Reply, Tell, WorkerStore, digest_of
from srs_ooc.runs.resources import categorical_features
from srs_ooc.store.store import Store
from srs_ooc.store.values import n_values_of
from srs_ooc.trees.block import Block


class TargetDesk:
    """Weighs the regulators of any target.

    Parameters
    ----------
    params : NetworkParams
        How they are weighed.
    source : ItemSource
        Where columns come from.
    store : Store
        Of the columns.
    regulators : uint32 (n_regulators,)
        Stored positions, ascending.
    blocks : list of Block
        One for each thread that works here.
    """

    def __init__(
        self,
        params: NetworkParams,
        source: ItemSource,
        store: Store,
        regulators: NDArray[np.uint32],
        blocks: list[Block],
    ) -> None:
        self._params, self._regulators, self._source = params, regulators, source
        self._categorical = categorical_features(store)
        weights, rows = store.weights(), source.rows
        self._weights = weights if weights is None or rows is None else weights[rows]
        self._blocks: SimpleQueue[Block] = SimpleQueue()
        for block in blocks:
            self._blocks.put(block)

    def work(self, parts: list[Part], tell: Tell) -> Reply:
        """Return float64 (n_regulators,) of each target: its weights, 0 for itself."""
        block = self._blocks.get()
        try:
            begun = perf_counter()
            outcomes = []
            for part in parts:
                target, values = part.what
                outcomes.append(self._weigh(block, target, values, partial(tell, part.number, 0)))
            return Reply(outcomes, perf_counter() - begun)
        finally:
            self._blocks.put(block)

    def _weigh(
        self, block: Block, target: int, values: NDArray[np.float64], wanted: Callable[[], bool]
    ) -> NDArray[np.float64]:
        regulators = self._regulators
        out = np.zeros(len(regulators))
        rows = training_rows(values, self._weights)
        others = regulators != target
        if rows is None or not others.any():
            return out
        bench = Bench(self._source, self._categorical, self._params.seed, wanted)
        weigher = weigher_of(self._params.own, bench)
        out[others] = weigher.weights(block, target, regulators[others], rows)
        return out

    def close(self) -> None:
        """Do nothing: what it works with is its maker's."""


def blocks_of(
    count: int, params: NetworkParams, store: Store, n_regulators: int, n_rows: int
) -> list[Block]:
    """Return blocks of all regulators, with their values where the method has use for them."""
    n_values = n_values_of(store.manifest) if params.own.uses_values else 0
    tiled, code_nbytes = params.own.tiled(n_regulators), store.manifest.code_nbytes
    return [
        Block(n_regulators, n_rows, code_nbytes, tiled=tiled, n_values=n_values)
        for _ in range(count)
    ]


@dataclass(frozen=True)
class NetworkJob:
    """What a worker needs to weigh the regulators of any target, besides the store.

    Attributes
    ----------
    token : str
        Unlike that of any other job.
    store : WorkerStore
        As of :class:`srs_ooc.runs.resources.Job`.
    identity : dict
        Of the network, as JSON.
    params : NetworkParams
        How regulators are weighed.
    regulators : uint32 (n_regulators,)
        Stored positions, ascending.
    rows : int32 (n_rows,) or None
        Rows trained on; None for all.
    """

    token: str
    store: WorkerStore
    identity: dict[str, Any]
    params: NetworkParams
    regulators: NDArray[np.uint32]
    rows: NDArray[np.int32] | None
    label = "network"
    tells = False

    @property
    def run(self) -> str:
        """Jobs of one network take each other's place in a worker."""
        return digest_of(self.identity)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.regulators.nbytes + (0 if self.rows is None else self.rows.nbytes)

    def desk(self, n_threads: int) -> "NetworkDesk":
        """Prepare for it in a worker."""
        return NetworkDesk(self, n_threads)


class NetworkDesk(Prepared[NetworkJob]):
    """Weighs regulators in a worker; parameters and errors as of the base class."""

    def _prepare(self, n_threads: int) -> None:
        job, params = self.job, self.job.params
        self._store = store = job.store.open()
        n_rows = store.n_rows if job.rows is None else len(job.rows)
        n_blocks, mapped = desk_grant(
            store, len(job.regulators), params.own, n_rows, job.store.memory_mb, n_threads
        )
        with store.unchanged():
            values = None
            if params.own.uses_values and n_values_of(store.manifest):
                values = self._stack.enter_context(store.value_tables())
            columns = self._stack.enter_context(store.columns(mapped=mapped))
        source = ItemSource(columns, job.rows, values=values)
        blocks = blocks_of(n_blocks, params, store, len(job.regulators), n_rows)
        self._desk = TargetDesk(params, source, store, job.regulators, blocks)

    def work(self, parts: list[Part], tell: Tell) -> Reply:
        """Weigh the regulators of some targets.

        Raises
        ------
        StoreError
            If the store cannot be read, or was replaced: nothing is returned then.
        """
        reply = self._desk.work(parts, tell)
        self._store.check_unchanged()
        return reply
