"""What weighs the regulators of a target, and what all that do share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import SrsOocError
from srs_ooc.runs.engine import ItemSource
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import TrainingRows


class StoppedError(SrsOocError):
    """The work was asked to stop before a target was done."""


@dataclass(frozen=True)
class Bench:
    """What targets are worked on with.

    Attributes
    ----------
    source : ItemSource
        Where columns come from.
    categorical : bool (n_features,) or None
        Features of the store that are categories.
    seed : int
        Of the network.
    is_wanted : callable
        Says whether the work is to go on.
    """

    source: ItemSource
    categorical: NDArray[np.bool_] | None
    seed: int
    is_wanted: Callable[[], bool]

    def check_going(self) -> None:
        """Raise :class:`StoppedError` if the work was asked to stop."""
        if not self.is_wanted():
            raise StoppedError


class Weigher(Protocol):
    """Weighs the regulators of one target; several threads call it, each with its own block."""

    def weights(
        self, block: Block, target: int, regulators: NDArray[np.uint32], rows: TrainingRows
    ) -> NDArray[np.float64]:
        """Return the weight of each regulator, float64 (n_regulators,), from 0 on."""
