"""Relevance tests: which features of a subspace enter F after its tree is grown; their options."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from srs_ooc.base.arrays import Bools
from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Choice, Params, Share, Text, Whole, exact_share, option, part_at
from srs_ooc.base.records import Outcome, Probe
from srs_ooc.base.seeds import Purpose, below, derive
from srs_ooc.evidence.tally import Tally
from srs_ooc.native import _native

MOST_KEPT = 1000
IMPURITY = "impurity"
SCORERS = {"sensitivity": "srs_ooc.methods.rfest.rfest:SensitiveLearner"}
"""What a closing stage scores by; of what is not what splits decrease the learner."""
NOT_ADJUSTED = "none"
"""In place of names of covariates."""
ALL, AUTO, NONE = "all", "auto", "none"
"""Pairs of features that are looked at."""
LEADERS = 10
"""Leading features that are held in every other subspace where no option says how many."""


class Judge(Params):
    """A relevance test and its options; as it stands here no feature is judged, but ranked.

    One that :attr:`admits` says after each iteration which features enter F, never to be undone.
    Of others nothing is heard before the last iteration.
    """

    admits: ClassVar[bool] = False
    versions: ClassVar[Mapping[str, int]] = {}
    """Of how a final verdict is computed and its closing stage is grown. Part of a run's identity:
    runs of others are refused by name."""

    def probe(self, key: int, subspace_size: int) -> Probe | None:
        """Return the irrelevant column to grow beside the subspace, if one is needed."""
        return None

    def admit(self, tally: Tally, outcome: Outcome) -> Bools:
        """Return which features of the outcome pass, given a tally that holds it; bool (q,)."""
        return np.zeros(len(outcome.features), np.bool_)

    @property
    def n_leaders(self) -> int:
        """Leading features that a sampler holds, where nothing is admitted on the way."""
        return LEADERS


class PositiveJudge(Judge):
    """Any importance above zero is relevant (Algorithm 1, step 2c, as printed).

    Sound with infinite samples (Section 4.1); on finite data nearly every feature passes in time.
    """

    admits = True

    def admit(self, tally: Tally, outcome: Outcome) -> Bools:
        """Return which importances are positive."""
        return outcome.importance > 0


class ProbeJudge(Judge):
    """The paper's random probe (Section 5, Appendix G.1).

    The probe is one column of Q drawn at random, its rows freshly permuted. A feature passes once
    drawn more than L times and strictly better than the probe in at least a share beta of them.

    Attributes
    ----------
    probe_min_draws : int
        A feature must have been drawn more often than this.
    probe_min_wins : str
        ... and have beaten the probe in at least this share of them.
    """

    admits = True
    probe_min_draws: int = option(Whole(0), default=10, metavar="L")
    probe_min_wins: str = option(Share(), default="0.95", metavar="BETA")

    def probe(self, key: int, subspace_size: int) -> Probe:
        """Return the probe of the iteration with ``key``."""
        source = below(derive(key, Purpose.PROBE_COLUMN), 0, subspace_size)
        return Probe(source, derive(key, Purpose.PROBE_ROWS))

    @cached_property
    def _least_wins(self) -> Fraction:
        return exact_share(self.probe_min_wins)

    def admit(self, tally: Tally, outcome: Outcome) -> Bools:
        """Return which of the outcome's features meet both thresholds."""
        admitted = np.empty(len(outcome.features), np.bool_)
        _native.passes(
            outcome.features,
            tally.n_drawn,
            tally.n_better,
            self.probe_min_draws,
            self._least_wins.numerator,
            self._least_wins.denominator,
            admitted,
        )
        return admitted


class TestsJudge(Judge):
    """A final verdict by tests of features, alone and beside others (docs/evidence.md).

    Attributes
    ----------
    fdr : str
        Level L: of the features selected a share of at most .999 L + .009 is expected to be false.
    keep : int
        Leading features held in every other subspace.
    closing : str
        What the last stage scores by: the impurity that splits decrease, or what altering a feature
        costs on rows that a tree was not grown on (docs/methods/rfest.md).
    adjust : str
        Covariates of the store to adjust for: names separated by commas, or all. Features are
        tested beside them (docs/methods/adjusting.md).
    pairs : str
        Pairs of features that are looked at for what shows only together, beside those that the
        search finds: all; auto: all of up to 77,000 features; none.
    """

    versions: ClassVar[Mapping[str, int]] = {"evidence": 11, "stages": 3}
    fdr: str = option(Share(), default="0.1", metavar="LEVEL")
    keep: int = option(Whole(0, MOST_KEPT), default=LEADERS, metavar="N")
    closing: str = option(Choice((IMPURITY, *SCORERS)), default=IMPURITY)
    adjust: str = option(Text(), default=NOT_ADJUSTED, metavar="NAMES")
    pairs: str = option(Choice((AUTO, ALL, NONE)), default=AUTO)

    @property
    def n_leaders(self) -> int:
        """What is kept."""
        return self.keep

    def values(self) -> dict[str, Any]:
        """Return the settled values by name; of what is seldom asked for only where it was."""
        usual = {"closing": IMPURITY, "adjust": NOT_ADJUSTED, "pairs": AUTO}
        return {k: v for k, v in super().values().items() if usual.get(k) != v}

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options, and check the level."""
        params = super().settle(given, table)
        if not 0 < exact_share(params.fdr) < 1:
            raise UsageError(f"--fdr: expected a number between 0 and 1, found {params.fdr}.")
        return params


def pairs_of(judging: Params) -> str:
    """Return which pairs of features a judge looks at."""
    return judging.pairs if isinstance(judging, TestsJudge) else NONE


def scorer_of(judging: Params) -> Any:
    """Return the learner, made of one of trees, that a judge's closing stage scores by.

    None where that is the one of trees.
    """
    place = SCORERS.get(getattr(judging, "closing", IMPURITY))
    return place and part_at(place, "--closing")
