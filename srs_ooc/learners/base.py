"""What a learner is: what grows models on the columns of a subspace."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Iteration, Outcome
from srs_ooc.trees.block import Block


@dataclass(frozen=True)
class Columns:
    """What the first columns of a block are.

    Attributes
    ----------
    features : uint32 (n,)
        The number that names each column's random draws: its item, or the probe's.
    sources : uint32 (n,)
        The feature of the store whose values each column has.
    """

    features: NDArray[np.uint32]
    sources: NDArray[np.uint32]


class Learner(Protocol):
    """Grows models on subspaces; several threads may call it at once, each with its own block."""

    provides: ClassVar[frozenset[str]]
    """What its outcomes hold: ``importance``, ``loss``, ``predictions``."""

    def fit(self, block: Block, columns: Columns, iteration: Iteration) -> Outcome:
        """Fit the models of an iteration on the first columns of ``block``.

        The result depends on the codes, the columns and the iteration alone: not on the thread,
        nor on what was fitted before.
        """
