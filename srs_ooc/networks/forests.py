"""GENIE3 (Huynh-Thu, Irrthum, Wehenkel and Geurts 2010): edges are importances in forests."""

from dataclasses import dataclass
from threading import Event

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.networks.params import NetworkParams
from srs_ooc.runs.executors import ItemSource
from srs_ooc.trees.block import Block
from srs_ooc.trees.grow import grow_forest
from srs_ooc.trees.training import TrainingRows
from srs_ooc.trees.tree import IMPORTANCE_BITS

TREES_AT_ONCE = 50
"""Trees between two looks at whether the work is to stop."""


def wants_tiles(max_features: int, n_regulators: int) -> bool:
    """Return whether a block of regulators is best laid out in tiles.

    Where a quarter or more are candidates at each node. Runs draw the line at a twentieth
    (:func:`srs_ooc.learners.trees.wants_tiles`), on more rows: here nodes are small, and of small
    nodes single columns are read as fast.
    """
    return 4 * max_features > n_regulators


class StoppedError(Exception):
    """The work was asked to stop before a target was done."""


@dataclass(frozen=True)
class Forests:
    """Weighs the regulators of a target by their importances in a forest that predicts it.

    Attributes
    ----------
    params : NetworkParams
        How trees are grown.
    source : ItemSource
        Where columns come from.
    categorical : bool (n_features,) or None
        Features of the store that are categories.
    stopping : Event
        Set where the work is to stop.
    """

    params: NetworkParams
    source: ItemSource
    categorical: NDArray[np.bool_] | None
    stopping: Event

    def weights(
        self, block: Block, target: int, regulators: NDArray[np.uint32], rows: TrainingRows
    ) -> NDArray[np.float64]:
        """Return the weight of the edge from each of ``regulators`` to ``target``.

        The mean over the trees of the decreases in variance at the splits on a regulator, each
        times the share of the rows at its node, over the target's variance in all rows: so the
        weights of a target add up to about 1, and those of different targets compare.

        Parameters
        ----------
        block : Block
            Memory for the regulators' codes.
        target : int
            Its stored position; names its random numbers.
        regulators : uint32 (n_regulators,)
            Stored positions, ascending; the target is not among them.
        rows : TrainingRows
            The rows, and what the target says of them.

        Raises
        ------
        StoppedError
            If the work was asked to stop.
        """
        params, n_trees = self.params, self.params.trees
        limits = params.limits(len(regulators))
        block.tiled = wants_tiles(limits.max_features, len(regulators))
        self.source.gather(regulators, block)
        flags = None if self.categorical is None else self.categorical[regulators]
        key = key_of(params.seed, Purpose.EDGES, target)
        total = np.zeros(len(regulators), np.int64)
        for start in range(0, n_trees, TREES_AT_ONCE):
            if self.stopping.is_set():
                raise StoppedError
            total += grow_forest(
                block,
                regulators,
                rows,
                key,
                limits,
                trees=range(start, min(start + TREES_AT_ONCE, n_trees)),
                bootstrap=params.bootstrap,
                categorical=flags,
            ).importance
        return np.ldexp(total / n_trees, -IMPORTANCE_BITS)
