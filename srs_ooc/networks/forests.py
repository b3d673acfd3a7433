"""GENIE3 (Huynh-Thu, Irrthum, Wehenkel and Geurts 2010): edges are importances in forests."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.networks.forest_params import ForestParams
from srs_ooc.networks.weighing import Bench
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import grow_forest
from srs_ooc.trees.response import IMPORTANCE_BITS, TrainingRows

TREES_AT_ONCE = 50
"""Trees between two looks at whether the work is to stop."""


@dataclass(frozen=True)
class Forests:
    """Weighs the regulators of a target by their importances in a forest that predicts it.

    Attributes
    ----------
    params : ForestParams
        How trees are grown.
    bench : Bench
        What targets are worked on with.
    """

    params: ForestParams
    bench: Bench

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
        block.tiled = params.tiled(len(regulators))
        self.bench.source.gather(regulators, block)
        categorical = self.bench.categorical
        flags = None if categorical is None else categorical[regulators]
        key = key_of(self.bench.seed, Purpose.EDGES, target)
        total = np.zeros(len(regulators), np.int64)
        for start in range(0, n_trees, TREES_AT_ONCE):
            self.bench.check_going()
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
