"""What a sampler is: the chooser of subspaces, which owns what it has learnt."""

from typing import ClassVar, Protocol

from srs_ooc.base.records import Outcome, Saved, State, Step, Subspace

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
