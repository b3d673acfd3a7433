"""Relevance tests: which features of a subspace enter F after its tree is grown."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.options import exact_share
from srs_ooc.base.records import Outcome, Probe
from srs_ooc.base.seeds import Purpose, below, derive
from srs_ooc.evidence.tally import Tally
from srs_ooc.native import _native


class Judge(Protocol):
    """A relevance test that admits features one iteration at a time, never to be undone."""

    def probe(self, key: int, subspace_size: int) -> Probe | None:
        """Return the irrelevant column to grow beside the subspace, if one is needed."""

    def admit(self, tally: Tally, outcome: Outcome) -> NDArray[np.bool_]:
        """Return which features of the outcome pass, given a tally that holds it; bool (q,)."""


class PositiveJudge:
    """Any importance above zero (Algorithm 1, step 2c, as printed).

    Sound with infinite samples (Section 4.1); on finite data nearly every feature passes in time.
    """

    def probe(self, key: int, subspace_size: int) -> Probe | None:
        """Return None: nothing is compared with."""
        return None

    def admit(self, tally: Tally, outcome: Outcome) -> NDArray[np.bool_]:
        """Return which importances are positive."""
        return outcome.importance > 0


class ProbeJudge:
    """The paper's random probe (Section 5, Appendix G.1).

    The probe is one column of Q drawn at random, its rows freshly permuted. A feature passes once
    drawn more than L times and strictly better than the probe in at least a share beta of them.

    Parameters
    ----------
    min_draws : int
        L.
    min_wins : str
        beta, as decimal text, so that the comparison is exact.
    """

    def __init__(self, min_draws: int, min_wins: str) -> None:
        self.min_draws = min_draws
        share = exact_share(min_wins)
        self._numerator, self._denominator = share.numerator, share.denominator

    def probe(self, key: int, subspace_size: int) -> Probe | None:
        """Return the probe of the iteration with ``key``."""
        source = below(derive(key, Purpose.PROBE_COLUMN), 0, subspace_size)
        return Probe(source, derive(key, Purpose.PROBE_ROWS))

    def admit(self, tally: Tally, outcome: Outcome) -> NDArray[np.bool_]:
        """Return which of the outcome's features meet both thresholds."""
        admitted = np.empty(len(outcome.features), np.bool_)
        _native.passes(
            outcome.features,
            tally.n_drawn,
            tally.n_better,
            self.min_draws,
            self._numerator,
            self._denominator,
            admitted,
        )
        return admitted
