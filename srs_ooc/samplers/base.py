"""What a sampler is, what a method says of itself, and methods by name.

A sampler chooses subspaces and owns what it has learnt. A method may also say which of the trees
that a run keeps predict, and how they are combined; have columns scored; or search as RaSE does.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from srs_ooc.base.arrays import Floats, Indices, Integers, Ints32, Uints32
from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Params, part_at, places_of
from srs_ooc.base.records import Criterion, Outcome, Saved, State, Step, Subspace
from srs_ooc.evidence.judges import Judge
from srs_ooc.evidence.tally import Tally
from srs_ooc.samplers.column_scores import ColumnScore
from srs_ooc.trees.response import Response

IMPORTANCE, LOSS, PREDICTIONS = "importance", "loss", "predictions"
"""What a sampler may need to learn of a subspace, and a learner provide."""
SENSITIVITY = "sensitivity"
"""The same, in place of importances: what altering a feature costs on rows not grown on."""


class Sampler(ABC):
    """Chooses subspaces and learns from what grew on them.

    It knows nothing of storage or of clocks. Nothing but :meth:`absorb` and
    :meth:`step` changes what it would propose. As it stands here it remembers nothing, has nothing
    to learn between iterations and no end of its own.
    """

    name: str
    """Under which the ledger keeps its state."""
    needs: frozenset[str]
    """What it must learn of each subspace: ``importance``, ``loss``, ``predictions``."""
    capacity: int
    """The most features a subspace has."""

    @abstractmethod
    def propose(self, iteration: int, key: int) -> Subspace:
        """Return the subspace of ``iteration`` (from 0), from the state as it is.

        Pure: the same again for the same iteration, key and state. ``key`` is 64 bits that no other
        iteration of the run has. It may be called for iterations far ahead, as a guess.
        """

    @abstractmethod
    def version(self, iteration: int) -> int:
        """Return a number that is equal whenever ``propose(iteration)`` would be."""

    @abstractmethod
    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Learn from the outcome of ``iteration``; called once for each, in order."""

    @property
    def n_kept(self) -> int:
        """Features kept so far; 0 where the method keeps none on the way."""
        return 0

    def step(self) -> bool:
        """Learn a little between two iterations; return whether there is more before the next.

        Short, so that the run can be committed and stopped after any step.
        """
        return False

    def done(self, iteration: int) -> bool:
        """Return whether the method ends before ``iteration``."""
        return False

    def progress(self) -> Step | None:
        """Return where the method stands by its own count; None where iterations say it."""
        return None

    def state(self) -> State:
        """Return what was learnt, for the ledger."""
        return State()

    def restore(self, saved: Saved) -> None:  # noqa: B027 (nothing is taken back where nothing is)
        """Take back what was committed; the sampler is as new."""


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

    def holds(self, number: int) -> bool:
        """Return whether a tree, by its place among those kept, is of the ensemble."""
        return self.first <= number and (self.count is None or number < self.first + self.count)

    def chosen(self, shares: Floats) -> Indices:
        """Return the class of each row, from its mean shares or votes (n_rows, n_classes)."""
        if self.cutoff is not None and shares.shape[1] == 2:
            return (shares[:, 1] > self.cutoff).astype(np.intp)
        most: Indices = shares.argmax(axis=1)
        return most


# Methods by name: their options, what follows from them, and how the sampler is made.
#
# A package adds a method through an entry point of the group `GROUP` that names a subclass of
# `Method`; its options then appear in ``run --help``, in config files, in ``status`` and in a run's
# identity.

GROUP = "srs_ooc.samplers"
_OWN = {
    "srs": "srs_ooc.samplers.srs:Srs",
    "rs": "srs_ooc.samplers.srs:RandomSubspace",
    "less": "srs_ooc.methods.less.less:Less",
    "prs": "srs_ooc.methods.prs.prs:Prs",
    "rase": "srs_ooc.methods.rase.rase:Rase",
}


@dataclass(frozen=True, kw_only=True)
class SamplerContext:
    """What a sampler is made for.

    Attributes
    ----------
    n_features : int
        Features of the store.
    subspace_size : int
        q.
    key : int
        64-bit key for what the sampler breaks by chance itself.
    tally : Tally
        What was learnt of each feature; it absorbs each outcome before the sampler does.
    judge : Judge
        The relevance test by which features enter F, where it admits any on the way.
    round_size : int
        Iterations that are proposed from one state.
    candidates : uint32 (n_candidates,) or None
        Stored positions of the features that may be drawn, ascending; None where all may be.
    weights : uint32 (n_features,) or None
        How often each feature is to be drawn relative to others, 0 for those not in V, where the
        method has columns scored or a file gives scores; None where all weigh alike.
    response : Response or None
        What the rows say, for a method that learns from predictions.
    validation : int32 or None
        Places among the rows of those held out, ascending; None where the method chooses them.
    positions : int (n_features,) or None
        Where each stored feature lies in the table, where :attr:`Method.needs_positions` says so.
    """

    n_features: int
    subspace_size: int
    key: int
    tally: Tally
    judge: Judge = Judge()  # noqa: RUF009 (frozen)
    round_size: int = 1
    candidates: Uints32 | None = None
    weights: Uints32 | None = None
    response: Response | None = None
    validation: Ints32 | None = None
    positions: Integers | None = None

    @property
    def n_candidates(self) -> int:
        """|V|: the features that may be drawn."""
        return self.n_features if self.candidates is None else len(self.candidates)

    @property
    def known(self) -> Response:
        """What the rows say."""
        assert self.response is not None, "a run has a response"
        return self.response


class Method(Params):
    """A method of choosing subspaces: its options, what follows from them, and its sampler.

    A subclass declares options by :func:`srs_ooc.base.options.option`, names itself in a
    :attr:`summary` and makes its sampler; of the rest it says what differs from here.
    """

    summary: ClassVar[str]
    """One line for the help."""
    judges: ClassVar[tuple[str, ...]] = ("tests",)
    """The relevance tests it can run under, its default first."""
    any_model: ClassVar[bool] = False
    """Whether ``--model`` may be other than tree."""
    learner: ClassVar[Mapping[str, Any]] = {}
    """Options of the learner where they are not given, other than the learner's own."""
    draws_by_scores: ClassVar[bool] = False
    """Whether features are drawn by scores of their columns; see :meth:`score`."""
    needs: ClassVar[frozenset[str]] = frozenset({IMPORTANCE})
    """What its sampler must learn of each subspace, or of some. With ``predictions`` models are
    fitted on some rows and predict others; with ``loss`` an iteration judges small subspaces, each
    a part of the columns paged in."""
    theory: ClassVar[str] = "srs_ooc.methods.theory.paper_theory:mean_iterations"
    """Where that is by which a plan says how many iterations it takes until features are found, and
    drawn often enough; empty for a method that is not told q."""
    ranks_by: ClassVar[str] = ""
    """The part of the ledger that has a large array ``score``, float64 (n_features,), by which the
    method ranks; empty for a method that ranks by importance."""

    def make(self, context: SamplerContext) -> Sampler:
        """Return the sampler, as new."""
        raise NotImplementedError

    def score(self, n_rows: int, n_features: int, key: int) -> ColumnScore | None:
        """Return what scores all columns before the first iteration; None where a file has scores.

        The ledger keeps what came out, as whole numbers: :attr:`SamplerContext.weights`.

        Parameters
        ----------
        n_rows : int
            Rows trained on.
        n_features : int
            Columns to score.
        key : int
            64-bit key for what the score draws by chance.
        """
        return None

    def state_nbytes(self, n_rows: int, n_features: int) -> int:
        """Return the memory that the sampler takes, besides what every run may keep a feature."""
        return 0

    def default_subspace(self, n_candidates: int) -> int | None:
        """Return q where it is not given, unless the cap holds less; None for 5% of all."""
        return None

    def least_subspace(self) -> int:
        """Return the least q that works; a cap below it is refused with the one that holds it."""
        return 1

    def check(self, n_rows: int, n_candidates: int, subspace_size: int) -> None:
        """Check that the method can work on such a table with such a q.

        Raises
        ------
        UsageError
            If not.
        """

    def notes(self, n_rows: int, n_candidates: int) -> tuple[str, ...]:
        """Return sentences worth saying before such a run starts."""
        return ()

    def most_iterations(self, n_candidates: int, subspace_size: int) -> tuple[int, str] | None:
        """Return after how many iterations it has ended by itself, and why; None if never."""
        return None

    def ensemble(self, facts: Mapping[str, Any]) -> Ensemble | None:
        """Return which of the subspaces whose trees are kept predict; None before there are any.

        ``facts`` are what the part :attr:`ranks_by` of the ledger says, empty where there is none.
        As it stands here all do, which a method that splits the rows must not leave at that.
        """
        return Ensemble()

    @property
    def needs_positions(self) -> bool:
        """Whether the sampler has to know where features lie in the table.

        :meth:`state_nbytes` counts that.
        """
        return False

    def judged_by(self, n_candidates: int) -> Criterion | None:
        """Return what candidates are judged by; None for held-out loss."""
        return None

    def check_model(self, model: str, n_classes: int) -> None:
        """Check that candidates can be judged with a model, as given to ``--model``.

        Parameters
        ----------
        model : str
            As given.
        n_classes : int
            1 for a regression.

        Raises
        ------
        UsageError
            If not.
        """

    def mean_columns(self, n_candidates: int) -> int | None:
        """Return the features of a model on average; None for q."""
        return None

    def most_columns(self, subspace_size: int) -> int:
        """Return the features of a model at most."""
        return subspace_size

    def behind_screen(
        self, n_candidates: int, subspace_size: int
    ) -> tuple[int, int, int, Self] | None:
        """Return of a method that learns on what trees on random subspaces rank first how it does.

        The iterations of these trees, the features of each, how many features are learnt on, and
        the method as it works on them; None where all are learnt on.
        """
        return None

    def work_each(self, n_candidates: int, subspace_size: int) -> tuple[float, float]:
        """Return the models that an iteration fits at most, as a mean of all iterations.

        And, likewise, the subspaces that are judged by a criterion, without a model.
        """
        return 1.0, 0.0


@cache
def _places() -> dict[str, str]:
    return _OWN | {name: place for name, place in places_of(GROUP).items() if name not in _OWN}


def method_names() -> tuple[str, ...]:
    """Return the names of all methods, this package's first."""
    return tuple(_places())


@cache
def method_of(name: str) -> type[Method]:
    """Return the method called ``name``.

    Raises
    ------
    UsageError
        If there is none, or it cannot be imported.
    """
    places = _places()
    if not isinstance(name, str) or name not in places:
        raise UsageError(
            f"--method: expected one of {', '.join(places)}, found {ascii(name)[:60]}. If it "
            "is of a plug-in, install that package."
        )
    method = part_at(places[name], f"--method {name}")
    if not (isinstance(method, type) and issubclass(method, Method)):
        raise UsageError(
            f"--method {name}: expected a srs_ooc.samplers.base.Method at {places[name]}, found "
            f"{type(method).__name__}. Tell its author."
        )
    return method


def methods() -> Iterator[tuple[str, type[Method]]]:
    """Return every method by name, each imported as it is asked for."""
    return ((name, method_of(name)) for name in method_names())
