"""What parts hand to one another in one iteration, and to the ledger: subspaces, outcomes, states.

A part returns its :class:`State` and takes it back by ``restore``. The ledger writes the states of
all parts in one transaction and knows no method: only names, arrays and JSON.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Floats, Floats32, Integers, Ints, Ints32, Uints32


class Covariate(NamedTuple):
    """A covariate: a column that is kept beside the features and never searched.

    Attributes
    ----------
    name : str
        Its name.
    values : float64 (n_rows,)
        Numbers, or of categories the place of the level; NaN where missing.
    levels : tuple of str
        Texts of the categories; empty of numbers.
    """

    name: str
    values: Floats
    levels: tuple[str, ...] = ()


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


@dataclass(frozen=True, eq=False)
class RowSplit:
    """Which training rows a model is fitted on, and which it predicts; it equals itself alone.

    Attributes
    ----------
    fitted, predicted : int32 (n,)
        Places among the training rows, ascending; a row may be fitted on several times.
    """

    fitted: Ints32
    predicted: Ints32


class Criterion(Protocol):
    """What candidates are judged by on the rows fitted on alone, in place of held-out loss.

    A frozen dataclass of a module, whose fields are JSON-ready: it goes to other processes.
    """

    def __hash__(self) -> int:
        """Hash the fields."""

    @property
    def name(self) -> str:
        """For messages."""

    def losses(
        self, sets: "Candidates", columns: Floats, known: NDArray[np.int32 | np.float64], model: str
    ) -> Floats:
        """Return what counts in place of the loss of each candidate; float64 (n_sets,).

        Infinite where it cannot be computed.

        Parameters
        ----------
        sets : Candidates
            Sets of the columns.
        columns : float64 (n_fitted, n_columns)
            The rows to judge by, standardised; 0 where missing.
        known : int32 or float64 (n_fitted,)
            Their class codes, or numbers.
        model : str
            Import path of the model.
        """


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

    places: Ints32
    bounds: Ints
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

    features: Uints32
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
    def features(self) -> Uints32:
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

    features: Uints32
    importance: Ints
    probe_importance: int | None = None
    trees: tuple[bytes, ...] = ()
    losses: Floats | None = None
    predictions: Floats32 | None = None


@dataclass(frozen=True)
class Step:
    """Where work on a run stands: ``done`` of ``total`` units of a stage, and |F|."""

    stage: str
    done: int
    total: int
    n_kept: int = 0
    unit: str = "iterations"


Watch = Callable[[Step], bool]
"""Told where work stands after each piece of it; says whether to go on."""

# What a part of a run has learnt, as the ledger commits it and hands it back.

PAGE_ITEMS = 16384
"""Items of a page: what is written of a large array at a time."""


def n_pages(n_items: int) -> int:
    """Return the pages that an array of ``n_items`` has."""
    return -(-n_items // PAGE_ITEMS)


def touch(changed: Bools, items: Integers) -> None:
    """Mark the pages of ``items`` as changed since the last commit."""
    changed[items // PAGE_ITEMS] = True


@dataclass(frozen=True)
class Pages:
    """A large array, of which a commit writes the pages that changed.

    Attributes
    ----------
    array : (n,)
        As it is now; the ledger writes it straight from memory.
    changed : bool (n_pages,)
        Pages to write. The ledger clears it; arrays that change together may share one.
    """

    array: NDArray[Any]
    changed: Bools


@dataclass(frozen=True)
class State:
    """What a part has learnt.

    Attributes
    ----------
    pages : mapping of Pages
        Large arrays, one-dimensional.
    arrays : mapping of arrays
        Small ones, written whole.
    facts : JSON-ready or None
        Such as a dict; None where there are none.
    """

    pages: Mapping[str, Pages] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    facts: Any = None


class Saved(Protocol):
    """A state as it was committed; empty where nothing was."""

    @property
    def facts(self) -> Any:
        """The JSON values, or None."""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The small arrays."""

    def length(self, name: str) -> int:
        """Return how many items the large array ``name`` has; 0 where there is none."""

    def fill(self, name: str, out: NDArray[Any], first_page: int = 0) -> None:
        """Fill ``out`` from the large array ``name``, from page ``first_page`` on."""


class Stateful(Protocol):
    """What is committed with a run."""

    def state(self) -> State:
        """Return what was learnt so far."""

    def restore(self, saved: Saved) -> None:
        """Take back what was committed; it is as new."""


class Part(Stateful, Protocol):
    """What learns from outcomes, in order."""

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Take the outcome of ``iteration`` (from 0)."""
