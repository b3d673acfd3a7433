"""What a sampler is, and methods by name: what their options are and how one is made.

A sampler chooses subspaces and owns what it has learnt. A method may also say which of the trees
that a run keeps predict, and how they are combined; have columns scored; or search as RaSE does.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Params, part_at, places_of
from srs_ooc.base.records import Outcome, Saved, State, Step, Subspace
from srs_ooc.base.text import ceil_div
from srs_ooc.evidence.judges import Judge
from srs_ooc.evidence.tally import Tally
from srs_ooc.trees.response import Response

IMPORTANCE, LOSS, PREDICTIONS = "importance", "loss", "predictions"
"""What a sampler may need to learn of a subspace, and a learner provide."""
SENSITIVITY = "sensitivity"
"""The same, in place of importances: what altering an item costs on rows not grown on."""


class Sampler(Protocol):
    """Chooses subspaces and learns from what grew on them.

    It knows nothing of storage, of decoys, or of clocks. Nothing but :meth:`absorb` and
    :meth:`step` changes what it would propose.
    """

    name: ClassVar[str]
    """Under which the ledger keeps its state."""
    needs: ClassVar[frozenset[str]]
    """What it must learn of each subspace: ``importance``, ``loss``, ``predictions``."""

    @property
    def capacity(self) -> int:
        """The most features a subspace has."""

    @property
    def n_kept(self) -> int:
        """Features kept so far; 0 where the method keeps none on the way."""

    def propose(self, iteration: int, key: int) -> Subspace:
        """Return the subspace of ``iteration`` (from 0), from the state as it is.

        Pure: the same again for the same iteration, key and state. ``key`` is 64 bits that no other
        iteration of the run has. It may be called for iterations far ahead, as a guess.
        """

    def version(self, iteration: int) -> int:
        """Return a number that is equal whenever ``propose(iteration)`` would be."""

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Learn from the outcome of ``iteration``; called once for each, in order."""

    def step(self) -> bool:
        """Learn a little between two iterations; return whether there is more before the next.

        Short, so that the run can be committed and stopped after any step.
        """

    def done(self, iteration: int) -> bool:
        """Return whether the method ends before ``iteration``."""

    def progress(self) -> Step | None:
        """Return where the method stands by its own count; None where iterations say it."""

    def state(self) -> State:
        """Return what was learnt, for the ledger."""

    def restore(self, saved: Saved) -> None:
        """Take back what was committed; the sampler is as new."""


class Unbounded:
    """What most samplers share: nothing to learn between iterations, no end of their own."""

    @property
    def n_kept(self) -> int:
        """Features kept so far."""
        return 0

    def step(self) -> bool:
        """Return that there is nothing to learn between iterations."""
        return False

    def done(self, iteration: int) -> bool:
        """Return that the method goes on as long as it is asked to."""
        return False

    def progress(self) -> Step | None:
        """Return that iterations say it."""
        return None

    def state(self) -> State:
        """Return that nothing is to be remembered."""
        return State()

    def restore(self, saved: Saved) -> None:
        """Take back nothing."""


# Which of the trees that a run keeps predict, and how they are combined.


@dataclass(frozen=True)
class Ensemble:
    """The trees of a run that predict.

    Attributes
    ----------
    first : int
        The first of them, by its place among the trees kept.
    count : int or None
        How many; None for all that follow.
    votes : bool
        Of classes, whether each tree votes for the likeliest class of its leaf, the first of equal
        ones; else their class shares are averaged. Predictions of a regression are averaged.
    cutoff : float or None
        Of two classes, the mean vote above which the second one is said; None for the likeliest.
    """

    first: int = 0
    count: int | None = None
    votes: bool = False
    cutoff: float | None = None

    def places(self, first: int, n_trees: int) -> slice:
        """Return which of ``n_trees`` trees, of which one is at ``first``, are of the ensemble."""
        stop = n_trees if self.count is None else self.first + self.count - first
        return slice(max(0, self.first - first), max(0, min(n_trees, stop)))

    def chosen(self, shares: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the class of each row, from its mean shares or votes (n_rows, n_classes)."""
        if self.cutoff is not None and shares.shape[1] == 2:
            above: NDArray[np.bool_] = shares[:, 1] > self.cutoff
            return above.astype(np.intp)
        most: NDArray[np.intp] = shares.argmax(axis=1)
        return most


# What a column score is: a number for each column, from a few passes over all of them.

BLOCK_COLUMNS = 256
"""Columns of a block at most: so many products of two 8-bit codes sum exactly in float32."""
BLOCK_CELLS = 1 << 21
"""Cells of a block at most, where a single column has no more."""

Columns = NDArray[np.floating[Any]]
"""(n_columns, n_rows), C-contiguous, nothing missing."""
Blocks = Callable[[], Iterator[tuple[int, Columns]]]
"""Yields one pass: the number of a block's first column, and the block."""


class ColumnScore(Protocol):
    """Learns from all columns, block by block, and gives each a score from 0 on.

    Every pass shows the same blocks in the same order. A block is float64, or float32 where all of
    it are whole numbers of at most 254. Its memory is used again: it is neither kept nor changed.
    """

    @property
    def n_passes(self) -> int:
        """How often all columns are shown."""

    @property
    def nbytes(self) -> int:
        """Memory that it takes at most, its scores included, before it takes any."""

    def update(self, first: int, columns: Columns) -> None:
        """Learn from the columns with numbers from ``first`` on."""

    def end_pass(self) -> None:
        """Take note that all columns were shown once more."""

    def scores(self) -> NDArray[np.float64]:
        """Return the score of each column once all passes are over; float64 (n_columns,)."""


def block_columns(n_rows: int) -> int:
    """Return how many columns a block has: from the rows alone, so that sums are the same."""
    return max(1, min(BLOCK_COLUMNS, BLOCK_CELLS // n_rows))


def n_blocks(n_columns: int, n_rows: int) -> int:
    """Return how many blocks a pass over a table has."""
    return ceil_div(n_columns, block_columns(n_rows))


def score_columns(
    score: ColumnScore, blocks: Blocks, keep_going: Callable[[], bool] = lambda: True
) -> NDArray[np.float64] | None:
    """Return the score of each column; None if told to stop before.

    Linear algebra is done by one thread: several round in their own ways, and on a machine that has
    other work they wait for each other at every block (measured: six times as long).

    Parameters
    ----------
    score : ColumnScore
        As new.
    blocks : callable
        Begins a pass.
    keep_going : callable
        Asked after every block.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        for _ in range(score.n_passes):
            for first, columns in blocks():
                score.update(first, columns)
                if not keep_going():
                    return None
            score.end_pass()
        return score.scores()


def shifted(columns: Columns, *, center: bool) -> Columns:
    """Return the columns less a number near their means, of the same dtype; as they are if not.

    Whole numbers stay whole and no larger than they were, so that their products sum exactly; a
    constant column is exactly 0. What is left of the means is taken off where products are summed.
    """
    if not center:
        return columns
    out = columns - columns[:, :1]
    out -= np.rint(out.mean(axis=1, dtype=np.float64))[:, None].astype(columns.dtype)
    return out


# Methods by name: what a sampler's options are and how one is made.
#
# A package adds a method through an entry point of the group `GROUP` that names a `Method`; its
# options then appear in ``run --help``, in config files, in ``status`` and in a run's identity.

GROUP = "srs_ooc.samplers"
CROSS_VALIDATION, OUT_OF_BAG, VALIDATION = "cv", "oob", "validation"
RIC, EBIC = "ric", "ebic"
"""Ratio information criterion, and extended BIC: of the training rows, without folds."""
CODES, VALUES = "codes", "values"
"""What of a store columns are scored on: the option ``matrix`` of a method that has them scored."""
_OWN = {
    "srs": "srs_ooc.samplers.srs:SRS",
    "rs": "srs_ooc.samplers.srs:RS",
    "less": "srs_ooc.samplers.less:LESS",
    "prs": "srs_ooc.samplers.prs:PRS",
    "rase": "srs_ooc.samplers.rase:RASE",
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


def _nothing(_: Params, *sizes: int) -> None:
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

    A callable that is not given is the method of its name of ``params``, where that has one.

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
    check: Callable[[Any, int, int, int], None] = _nothing
    splits_rows: bool = False
    ensemble: Callable[[Any, Mapping[str, Any]], Ensemble | None] | None = None
    needs_positions: Callable[[Any], bool] = _no_positions
    judges_candidates: bool = False
    learner: Mapping[str, Any] = field(default_factory=dict)
    most_iterations: Callable[[Any, int, int], tuple[int, str] | None] = _nothing
    notes: Callable[[Any, int, int, int], tuple[str, ...]] = _no_notes
    any_model: bool = False
    fits: Callable[[Any, int, int], Fits] = _one_fit
    mean_columns: Callable[[Any, int], int] | None = None
    criterion: Callable[[Any], str] = _held_out_loss
    ranks_by: str = ""

    def __post_init__(self) -> None:
        for one in fields(self):
            own = getattr(self.params, one.name, None)
            if callable(own) and getattr(self, one.name) is one.default:
                object.__setattr__(self, one.name, own)


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
            f"--method {name}: expected a srs_ooc.samplers.base.Method at {places[name]}, found "
            f"{type(method).__name__}. Tell its author."
        )
    return method


def methods() -> Iterator[tuple[str, Method]]:
    """Yield every method by name."""
    for name in method_names():
        yield name, method_of(name)
