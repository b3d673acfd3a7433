"""Methods by name: what a sampler's options are and how one is made.

A package adds a method through an entry point of the group :data:`GROUP` that names a
:class:`Method`; its options then appear in ``run --help``, in config files, in ``status`` and in a
run's identity.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Params, part_at, places_of
from srs_ooc.column_scores.base import ColumnScore
from srs_ooc.evidence.judges import Judge
from srs_ooc.evidence.tally import Tally
from srs_ooc.samplers.base import Sampler
from srs_ooc.samplers.ensemble import Ensemble
from srs_ooc.trees.response import Response

GROUP = "srs_ooc.samplers"
CODES, VALUES = "codes", "values"
"""What of a store columns are scored on: the option ``matrix`` of a method that has them scored."""
_OWN = {
    "srs": "srs_ooc.samplers.methods:SRS",
    "rs": "srs_ooc.samplers.methods:RS",
    "less": "srs_ooc.samplers.less:LESS",
    "prs": "srs_ooc.samplers.prs_params:PRS",
    "rase": "srs_ooc.samplers.rase_params:RASE",
}


@dataclass(frozen=True)
class Ground:
    """What a sampler is made for.

    Attributes
    ----------
    n_items : int
        Features of the store, and their decoys.
    n_candidates : int
        |V|: those that may be drawn.
    candidates : uint32 (n_candidates,) or None
        Their stored positions, ascending; None where all may be drawn.
    subspace_size : int
        q.
    round_size : int
        Iterations that are proposed from one state.
    key : int
        64-bit key for what the sampler breaks by chance itself.
    tally : Tally
        What was learnt of each item; it absorbs each outcome before the sampler does.
    judge : Judge or None
        The relevance test by which features enter F; None where the verdict comes last.
    n_leaders : int
        Leading items to hold where the verdict comes last.
    n_copies : int
        Copies of each feature that are drawn apart where nothing is held.
    weights : uint32 (n_items,) or None
        How often each item is to be drawn relative to others, 0 for those not in V, where the
        method has columns scored or a file gives scores; None where all weigh alike.
    response : Response or None
        What the rows say, for a method that learns from predictions.
    validation : int32 or None
        Places among the rows of those held out, ascending; None where the method chooses them.
    positions : int (n_items,) or None
        Where each stored feature lies in the table, where :attr:`Method.needs_positions` says so.
    """

    n_items: int
    n_candidates: int
    candidates: NDArray[np.uint32] | None
    subspace_size: int
    round_size: int
    key: int
    tally: Tally
    judge: Judge | None = None
    n_leaders: int = 0
    n_copies: int = 1
    weights: NDArray[np.uint32] | None = None
    response: Response | None = None
    validation: NDArray[np.int32] | None = None
    positions: NDArray[np.integer[Any]] | None = None


@dataclass(frozen=True)
class ScoreGround:
    """What columns are scored for.

    Attributes
    ----------
    n_rows : int
        Rows trained on.
    n_items : int
        Columns to score: features and their decoys, each by its own column.
    n_copies : int
        Columns that there are of each feature: 1, and one for each family of decoys.
    key : int
        64-bit key for what the score draws by chance.
    """

    n_rows: int
    n_items: int
    n_copies: int
    key: int


def _no_state(_: Params, n_rows: int, n_items: int) -> int:
    return 0


def _fits(_: Params, n_rows: int, n_candidates: int, subspace_size: int) -> None:
    pass


def _no_end(_: Params, n_candidates: int, subspace_size: int) -> None:
    return None


def _no_positions(_: Params) -> bool:
    return False


def _no_notes(_: Params, n_rows: int, n_candidates: int, n_copies: int) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Fits:
    """What an iteration fits.

    Attributes
    ----------
    n_models : float
        Models at most, as a mean of all iterations.
    n_columns : int
        Columns of a model, at most.
    n_criteria : float
        Subspaces for which a criterion is computed and no model fitted, likewise.
    """

    n_models: float
    n_columns: int
    n_criteria: float = 0.0


def _one_feature(_: Params) -> int:
    return 1


def _held_out_loss(_: Params) -> str:
    return ""


def _one_fit(_: Params, n_candidates: int, subspace_size: int) -> Fits:
    return Fits(1.0, subspace_size)


@dataclass(frozen=True)
class Method:
    """A method of choosing subspaces.

    Attributes
    ----------
    summary : str
        One line for the help.
    params : type of Params
        Its options.
    make : callable
        ``make(params, ground) -> Sampler``.
    judges : tuple of str
        The relevance tests it can run under; the first where decoys are not among them.
    score : callable or None
        ``score(params, ground) -> ColumnScore``: what all columns are scored by before the first
        iteration, or None where a file gives the scores. The ledger keeps what came out, as whole
        numbers; :attr:`Ground.weights` has them.
    state_nbytes : callable
        ``state_nbytes(params, n_rows, n_items)``: memory that the sampler takes, besides what every
        run may keep of an item.
    default_subspace : callable or None
        ``default_subspace(params, n_candidates)``: q where it is not given, unless the cap holds
        less; None for 5% of the features.
    least_subspace : callable
        ``least_subspace(params)``: the least q with which the method works; a cap that cannot hold
        it is refused with the one that can.
    check : callable
        ``check(params, n_rows, n_candidates, subspace_size)`` raises ``UsageError`` if the method
        cannot work on such a table with such a q.
    splits_rows : bool
        Whether models are fitted on some rows and predict others.
    ensemble : callable or None
        ``ensemble(params, facts)``: which of the subspaces whose trees are kept predict, and how,
        from what the part :attr:`ranks_by` of the ledger says; None before there are any. A method
        that has none keeps the trees of all subspaces, and averages their class shares.
    needs_positions : callable
        ``needs_positions(params)``: whether the sampler has to know where features lie in the
        table; ``state_nbytes`` counts that.
    judges_candidates : bool
        Whether an iteration judges small subspaces, each a part of the columns paged in.
    learner : mapping
        Options of the learner where they are not given, other than the learner's own.
    most_iterations : callable
        ``most_iterations(params, n_candidates, subspace_size)``: at how many iterations the
        method has ended by itself, and why; None if never.
    notes : callable
        ``notes(params, n_rows, n_candidates, n_copies)``: sentences worth saying before such a run
        starts; each feature has so many columns, its decoys included.
    any_model : bool
        Whether ``--model`` may be other than tree.
    fits : callable
        ``fits(params, n_candidates, subspace_size)``: the :class:`Fits` of an iteration.
    mean_columns : callable or None
        ``mean_columns(params, n_candidates)``: the features of a model on average; None for q.
    criterion : callable
        ``criterion(params)``: what candidates are judged by; not every model has each.
    ranks_by : str
        The part of the ledger that has a large array ``score``, float64 (n_features,), by which the
        method ranks; empty for a method that ranks by importance.
    """

    summary: str
    params: type[Params]
    make: Callable[[Any, Ground], Sampler]
    judges: tuple[str, ...] = ("decoy",)
    score: Callable[[Any, ScoreGround], ColumnScore | None] | None = None
    state_nbytes: Callable[[Any, int, int], int] = _no_state
    default_subspace: Callable[[Any, int], int] | None = None
    least_subspace: Callable[[Any], int] = _one_feature
    check: Callable[[Any, int, int, int], None] = _fits
    splits_rows: bool = False
    ensemble: Callable[[Any, Mapping[str, Any]], Ensemble | None] | None = None
    needs_positions: Callable[[Any], bool] = _no_positions
    judges_candidates: bool = False
    learner: Mapping[str, Any] = field(default_factory=dict)
    most_iterations: Callable[[Any, int, int], tuple[int, str] | None] = _no_end
    notes: Callable[[Any, int, int, int], tuple[str, ...]] = _no_notes
    any_model: bool = False
    fits: Callable[[Any, int, int], Fits] = _one_fit
    mean_columns: Callable[[Any, int], int] | None = None
    criterion: Callable[[Any], str] = _held_out_loss
    ranks_by: str = ""


@cache
def _places() -> dict[str, str]:
    outside = places_of(GROUP).items()
    return _OWN | {name: place for name, place in outside if name not in _OWN}


def method_names() -> tuple[str, ...]:
    """Return the names of all methods, this package's first."""
    return tuple(_places())


@cache
def method_of(name: str) -> Method:
    """Return the method called ``name``.

    Raises
    ------
    UsageError
        If there is none, or it cannot be imported.
    """
    places = _places()
    if not isinstance(name, str) or name not in places:
        found = ascii(name)[:60]
        raise UsageError(f"--method: expected one of {', '.join(places)}, found {found}.")
    method = part_at(places[name], f"--method {name}")
    if not isinstance(method, Method):
        raise UsageError(
            f"--method {name}: expected a srs_ooc.samplers.method.Method at {places[name]}, found "
            f"{type(method).__name__}. Tell its author."
        )
    return method


def methods() -> Iterator[tuple[str, Method]]:
    """Yield every method by name."""
    for name in method_names():
        yield name, method_of(name)
