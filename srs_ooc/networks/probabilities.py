"""Parametric Random Subspace for every target: edges are learnt probabilities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.networks.descents import Models, models_of, sampler_of, standardised
from srs_ooc.networks.probability_params import ProbabilityParams
from srs_ooc.networks.weighing import Bench
from srs_ooc.samplers.prs import FINAL, ParametricRandomSubspace
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import TrainingRows


@dataclass(frozen=True)
class Probabilities:
    """Weighs the regulators of a target by the probabilities with which models had best draw them.

    Attributes
    ----------
    params : ProbabilityParams
        How they are learnt.
    bench : Bench
        What targets are worked on with.
    """

    params: ProbabilityParams
    bench: Bench

    def weights(
        self, block: Block, target: int, regulators: NDArray[np.uint32], rows: TrainingRows
    ) -> NDArray[np.float64]:
        """Return the weight of the edge from each of ``regulators`` to ``target``.

        The probabilities of the epoch with the lowest loss on the validation rows. Parameters and
        errors are those of :meth:`srs_ooc.networks.forests.Forests.weights`.
        """
        sampler, models = self.begun(block, target, regulators, rows)
        number = 0
        while sampler.phase != FINAL:
            self.bench.check_going()
            if not sampler.step():
                outcome = models.fit(block, number, sampler.propose(number, 0))
                sampler.absorb(number, outcome)
                number += 1
        return sampler.best

    def begun(
        self, block: Block, target: int, regulators: NDArray[np.uint32], rows: TrainingRows
    ) -> tuple[ParametricRandomSubspace, Models]:
        """Return what learns, before it has learnt anything, and what grows its models.

        Parameters are those of :meth:`weights`; the block is filled.
        """
        block.tiled = False
        self.bench.source.gather(regulators, block)
        rows, n = standardised(rows), len(regulators)
        key = key_of(self.bench.seed, Purpose.EDGES, target)
        sampler = sampler_of(ParametricRandomSubspace, self.params, rows, n, key)
        columns = np.arange(n, dtype=np.int32)
        return sampler, models_of(rows, regulators, columns, self.bench.categorical, key)
