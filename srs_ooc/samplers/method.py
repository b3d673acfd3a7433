"""Methods by name: what a sampler's options are and how one is made.

A package adds a method through an entry point of the group :data:`GROUP` that names a
:class:`Method`; its options then appear in ``run --help``, in config files, in ``status`` and in a
run's identity.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.params import Params
from srs_ooc.evidence.judges import Judge
from srs_ooc.evidence.tally import Tally
from srs_ooc.samplers.base import Sampler
from srs_ooc.trees.response import Response

GROUP = "srs_ooc.samplers"
_OWN = {
    "srs": "srs_ooc.samplers.methods:SRS",
    "rs": "srs_ooc.samplers.methods:RS",
    "prs": "srs_ooc.samplers.prs_params:PRS",
}


@dataclass(frozen=True, kw_only=True)
class MethodParams(Params):
    """Options of a method, and what follows from them for a run before it starts."""

    @property
    def splits_rows(self) -> bool:
        """Whether models are fitted on some rows and predict others."""
        return False

    def default_subspace(self, n_candidates: int) -> int | None:
        """Return q where it is not given; None for the default of all methods."""
        return None

    def check(self, n_rows: int, n_candidates: int, subspace_size: int) -> None:
        """Raise ``UsageError`` if the method cannot work on such a table with such a q."""

    def state_nbytes(self, n_rows: int, n_features: int) -> int:
        """Return what the sampler needs besides the bytes of a feature that every run may keep."""
        return 0

    def most_iterations(self) -> tuple[int, str] | None:
        """Return at how many iterations the method has ended by itself, and why; None if never."""
        return None

    def notes(self, n_candidates: int) -> tuple[str, ...]:
        """Return sentences that are worth saying before such a run starts."""
        return ()


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
    response : Response or None
        What the rows say, for a method that learns from predictions.
    validation : int32 or None
        Places among the rows of those held out, ascending; None where the method chooses them.
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
    response: Response | None = None
    validation: NDArray[np.int32] | None = None


@dataclass(frozen=True)
class Method:
    """A method of choosing subspaces.

    Attributes
    ----------
    summary : str
        One line for the help.
    params : type of MethodParams
        Its options.
    make : callable
        ``make(params, ground) -> Sampler``.
    judges : tuple of str
        The relevance tests it can run under; the first where decoys are not among them.
    learner : mapping
        Options of the learner where they are not given, other than the learner's own.
    scores : str
        The part of the ledger that has a large array ``score``, float64 (n_features,), by which the
        method ranks; empty for a method that ranks by importance.
    """

    summary: str
    params: type[MethodParams]
    make: Callable[[Any, Ground], Sampler]
    judges: tuple[str, ...] = ("decoy",)
    learner: Mapping[str, Any] = field(default_factory=dict)
    scores: str = ""


@cache
def _places() -> dict[str, str]:
    outside = {point.name: point.value for point in entry_points(group=GROUP)}
    return _OWN | {name: place for name, place in outside.items() if name not in _OWN}


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
    if name not in places:
        raise UsageError(f"--method: expected one of {', '.join(places)}, found {name!r}.")
    module, _, attribute = places[name].partition(":")
    try:
        method = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"--method {name}: expected a method at {places[name]}, could not import it: {error}. "
            "Install the package that provides it again."
        ) from error
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
