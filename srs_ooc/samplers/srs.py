"""Sequential Random Subspace (Algorithm 1 of Sutera et al. 2018): F grows by a relevance test."""

from typing import ClassVar

from srs_ooc.base.records import Outcome, Saved, State, Subspace
from srs_ooc.evidence.judges import Judge
from srs_ooc.evidence.tally import Tally
from srs_ooc.samplers.base import IMPORTANCE, Unbounded
from srs_ooc.samplers.drawing import SubspaceDraw
from srs_ooc.samplers.kept import KeptSet


class SequentialRandomSubspace(Unbounded):
    """Draws from F and all others; what passes the judge enters F for good.

    Parameters
    ----------
    drawing : SubspaceDraw
        How a subspace is drawn.
    judge : Judge
        The relevance test of step 2c.
    tally : Tally
        What the judge reads; it has absorbed an outcome before this sampler does.
    n_features : int
        Features of the store.
    round_size : int
        Iterations proposed from one F (1 in the paper).
    """

    name: ClassVar[str] = "kept"
    needs: ClassVar[frozenset[str]] = frozenset({IMPORTANCE})

    def __init__(
        self, drawing: SubspaceDraw, judge: Judge, tally: Tally, n_features: int, round_size: int
    ) -> None:
        self._drawing, self._judge, self._tally = drawing, judge, tally
        self._round_size = round_size
        self.kept = KeptSet(n_features)

    @property
    def capacity(self) -> int:
        """Q."""
        return self._drawing.subspace_size

    @property
    def n_kept(self) -> int:
        """|F|."""
        return self.kept.n

    def propose(self, iteration: int, key: int) -> Subspace:
        """Return the subspace of ``iteration`` from F as its round found it."""
        kept = self.kept.features[: self._n_known(iteration)]
        return Subspace(self._drawing.draw(kept, key))

    def version(self, iteration: int) -> int:
        """Return the size of F that the iteration's round began with: F only grows."""
        return self._n_known(iteration) if self._drawing.n_held else 0

    def _n_known(self, iteration: int) -> int:
        return self.kept.n_before(iteration - iteration % self._round_size)

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Step 2c: let what passes the judge enter F."""
        admitted = outcome.features[self._judge.admit(self._tally, outcome)]
        self.kept.add(admitted[~self.kept.holds(admitted)], iteration + 1)

    def state(self) -> State:
        """Return F and when each member entered."""
        return self.kept.state()

    def restore(self, saved: Saved) -> None:
        """Take F back."""
        self.kept.restore(saved)
