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
class RowSplit:
    """Which training rows a model is fitted on, and which it predicts.

    Attributes
    ----------
    fitted, predicted : int32 (n,)
        Places among the training rows, ascending; a row may be fitted on several times.
    """

    fitted: NDArray[np.int32]
    predicted: NDArray[np.int32]


@dataclass(frozen=True)
class Criterion:
    """An information criterion, by which candidates are judged on the rows fitted on alone.

    Attributes
    ----------
    name : {'ric', 'ebic'}
        Which.
    gamma : float
        Weight of the number of subspaces of a size, in ``ebic``.
    n_features : int
        p: features that may be drawn.
    """

    name: str
    gamma: float = 0.0
    n_features: int = 1


@dataclass(frozen=True)
class Candidates:
    """Several subspaces that are paged in together: each a part of the columns of one block.

    Attributes
    ----------
    places : int32 (n_members,)
        Columns of the block, one candidate after another, ascending within each.
    bounds : int64 (n_candidates + 1,)
        Where each begins in ``places``, and the end.
    splits : tuple of RowSplit
        Rows to fit each of them on and to predict: its held-out loss is that of all together.
    criterion : Criterion or None
        What counts in place of the held-out loss; then there is one split, which predicts no rows.
    """

    places: NDArray[np.int32]
    bounds: NDArray[np.int64]
    splits: tuple[RowSplit, ...]
    criterion: Criterion | None = None


@dataclass(frozen=True)
class Subspace:
    """The features of one iteration, as a sampler proposes them.

    Attributes
    ----------
    features : uint32 (m,)
        Stored positions, ascending; at most as many as the sampler's capacity.
    candidates : Candidates or None
        Parts of them to be judged one by one by held-out loss; None for one model on all of them.
    split : RowSplit or None
        Rows to fit on and to predict; None to fit on all and predict none.
    in_ensemble : bool
        Whether its trees are among those that predict, and are kept where a run keeps trees.
    """

    features: NDArray[np.uint32]
    candidates: Candidates | None = None
    split: RowSplit | None = None
    in_ensemble: bool = True


@dataclass(frozen=True)
class Iteration:
    """A subspace with all it takes to page it in and grow it anywhere.

    Attributes
    ----------
    number : int
        From 0.
    subspace : Subspace
        What to grow on.
    tree_key : int
        64-bit key of its first tree.
    probe : Probe or None
        One more column, where the judge wants one.
    """

    number: int
    subspace: Subspace
    tree_key: int
    probe: Probe | None = None

    @property
    def features(self) -> NDArray[np.uint32]:
        """Those of the subspace."""
        return self.subspace.features


@dataclass(frozen=True)
class Outcome:
    """What one iteration taught; a field is there if the sampler needs it and the learner has it.

    Attributes
    ----------
    features : uint32 (m,)
        As in the subspace.
    importance : int64 (m,)
        MDI importances in units of ``2**-36``, summed over the subspace's trees.
    probe_importance : int or None
        The probe's, likewise.
    trees : tuple of bytes
        The trees themselves, where the run keeps its trees and those of the subspace are in its
        ensemble.
    losses : float64 (n_candidates,) or None
        Mean held-out loss of each candidate, or its criterion; infinite where another is better, or
        where it cannot be computed.
    predictions : float32 (n_candidates, n_predicted, n_outputs) or None
        Class shares, or one number, of each predicted row of the split.
    """

    features: NDArray[np.uint32]
    importance: NDArray[np.int64]
    probe_importance: int | None = None
    trees: tuple[bytes, ...] = ()
    losses: NDArray[np.float64] | None = None
    predictions: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Step:
    """Where work on a run stands: ``done`` of ``total`` units of a stage, and |F|."""

    stage: str
    done: int
    total: int
    n_kept: int = 0
    unit: str = "iterations"
