"""What passes between the floors in one iteration."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Probe:
    """An irrelevant column to add to a subspace: one of its columns with the rows permuted.

    Attributes
    ----------
    source : int
        Column of the subspace that is copied.
    key : int
        64-bit key of the permutation.
    """

    source: int
    key: int


@dataclass(frozen=True)
class Subspace:
    """The features of one iteration, ready to be paged in and grown.

    Attributes
    ----------
    iteration : int
        Its number, from 0.
    features : uint32 (q,)
        Stored positions, ascending.
    tree_key : int
        64-bit key of its first tree.
    probe : Probe or None
        One more column, where the judge wants one.
    """

    iteration: int
    features: NDArray[np.uint32]
    tree_key: int
    probe: Probe | None


@dataclass(frozen=True)
class Step:
    """Where work on a run stands: ``done`` of ``total`` trees or iterations of a stage, and |F|."""

    stage: str
    done: int
    total: int
    n_kept: int = 0


@dataclass(frozen=True)
class Outcome:
    """What one iteration taught.

    Attributes
    ----------
    features : uint32 (q,)
        As in the subspace.
    importance : int64 (q,)
        MDI importances in units of ``2**-36``, summed over the subspace's trees.
    probe_importance : int or None
        The probe's, likewise.
    trees : tuple of bytes
        The trees themselves, where the run keeps its trees.
    """

    features: NDArray[np.uint32]
    importance: NDArray[np.int64]
    probe_importance: int | None
    trees: tuple[bytes, ...] = ()
