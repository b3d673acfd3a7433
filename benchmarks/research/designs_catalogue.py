"""The designs that ``designs.py`` compares, and how each cuts its ranking."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from designs_screens import (
    LED,
    PLAIN,
    Closing,
    Screen,
    of_large_nodes,
    of_loss_left_out,
    of_rows_left_out,
)
from numpy.typing import NDArray

from srs_ooc.evidence.tally import best_of_each
from srs_ooc.evidence.verdict import SHARE_ALONE, Verdict, count_decoys

LEVEL = 0.1


@dataclass(frozen=True)
class Ranking:
    """A closed ranking.

    Attributes
    ----------
    items : uint32 (n,)
        By rank; numbers from ``n_features`` on are decoys.
    largest : int64 ()
        c.
    expected : float64 (m,)
        False features that the tests of those that stand out by themselves expect.
    n_families, n_features : int
        M and p.
    """

    items: NDArray[np.uint32]
    largest: NDArray[np.int64]
    expected: NDArray[np.float64]
    n_families: int
    n_features: int

    @property
    def is_decoy(self) -> NDArray[np.bool_]:
        """Which places are of decoys."""
        return self.items >= self.n_features

    def verdict(self, level: float) -> Verdict:
        """Count decoys."""
        is_best = best_of_each(self.items % self.n_features)
        return count_decoys(
            self.is_decoy,
            self.n_families,
            int(self.largest),
            level,
            is_best,
            expected=self.expected,
        )


Cut = Callable[[Sequence[Ranking]], NDArray[np.uint32]]
"""``cut(rankings)``: the features selected at LEVEL, by stored position."""


def by_counting(rankings: Sequence[Ranking]) -> NDArray[np.uint32]:
    """Select by counting the decoys of one ranking."""
    (ranking,) = rankings
    return ranking.items[ranking.verdict(LEVEL).is_selected]


def e_values(ranking: Ranking, level: float) -> NDArray[np.float64]:
    """Return the e-value of each feature; float64 (n_features,).

    Above the cut at ``level`` it is p by the false features estimated there, elsewhere 0: the sum
    over false features is p at most in expectation where they are estimated by counting (Ren and
    Barber 2023, derandomised knockoffs, Section 3).
    """
    values = np.zeros(ranking.n_features)
    verdict = ranking.verdict(level)
    if verdict.n_above:
        chosen = ranking.items[verdict.is_selected]
        n_false = verdict.levels[verdict.n_above - 1] * len(chosen)
        values[chosen] = ranking.n_features / n_false
    return values


def e_bh(values: NDArray[np.float64], level: float) -> NDArray[np.intp]:
    """Return the places that pass the e-BH procedure of Wang and Ramdas (2022)."""
    order = np.argsort(-values, kind="stable")
    wanted = len(values) / (level * np.arange(1, len(values) + 1))
    passing = np.flatnonzero(values[order] >= wanted)
    return order[: passing[-1] + 1] if len(passing) else order[:0]


def by_e_values(run_level: float) -> Cut:
    """Return the cut by the mean e-value of runs that are each cut at ``run_level``."""

    def cut(rankings: Sequence[Ranking]) -> NDArray[np.uint32]:
        mean = np.mean([e_values(ranking, run_level) for ranking in rankings], axis=0)
        return e_bh(mean, LEVEL).astype(np.uint32)

    return cut


COUNTED = ("madelon", "linear", "shift", "blocks", "imbalance")
"""Problems with enough relevant features for counting to select them."""
FEW = ("madelon", "linear", "shift")
SCREENED = ("madelon", "chain")
UNCOUNTED = "chain"
"""Three relevant features: counting selects them with four families of decoys only."""


@dataclass(frozen=True)
class Promotion:
    """How items that stand out by themselves go first.

    Attributes
    ----------
    name : str
        In files.
    share : Fraction
        x, as a part of the level at which features have to pass the marginal test.
    counted : bool
        Whether decoys among them are counted as they are below them; else their p-values say how
        many false ones are expected.
    """

    name: str
    share: Fraction = SHARE_ALONE
    counted: bool = False


@dataclass(frozen=True)
class Ranked:
    """One ranking: a screen, a closing stage after it, and whether what stands out goes first.

    Attributes
    ----------
    screen : Screen
        The screen.
    closing : Closing
        The closing stage.
    promotion : Promotion or None
        How items that pass the marginal test among all items go first, if they do.
    """

    screen: Screen
    closing: Closing
    promotion: Promotion | None

    @property
    def name(self) -> str:
        """Its name in files."""
        after = "" if self.promotion is None else f"-{self.promotion.name}"
        return f"{self.screen.name}-then-{self.closing.name}{after}"


@dataclass(frozen=True)
class Design:
    """A whole procedure: screens, a closing stage after each, one cut.

    Attributes
    ----------
    name, label : str
        On the command line, and in tables.
    screens : tuple of Screen
        One, or several that the cut brings together.
    closing : Closing
        After each of them.
    cut : Cut
        What selects.
    problems : tuple of str
        On which it is tried.
    most_seeds : int
        Tables of a problem that it is tried on at most.
    promotion : Promotion, optional
        How items that pass the marginal test among all items go first, if they do.
    """

    name: str
    label: str
    screens: tuple[Screen, ...]
    closing: Closing
    cut: Cut = by_counting
    problems: tuple[str, ...] = COUNTED
    most_seeds: int = 100
    promotion: Promotion | None = None

    @property
    def rankings(self) -> tuple[Ranked, ...]:
        """The rankings that its cut is given."""
        return tuple(Ranked(screen, self.closing, self.promotion) for screen in self.screens)


@dataclass(frozen=True)
class Group:
    """Designs that are compared on the same tables.

    Attributes
    ----------
    title : str
        In tables.
    designs : tuple of Design
        The designs.
    ranks : bool
        Whether the ranks of relevant items in the screens are told too.
    selected : tuple of str
        Problems whose selections are told.
    """

    title: str
    designs: tuple[Design, ...]
    ranks: bool = False
    selected: tuple[str, ...] = COUNTED


BOTH_LANES = Screen("both", "both lanes in turn (chosen)")
HALVED = Closing("halved", "halved from 1,000 to 31, each tree on 30%")
ALONE = Promotion("alone")
CHOSEN = Design("chosen", "the chosen design", (BOTH_LANES,), HALVED, promotion=ALONE)
TREES_ALONE = replace(
    CHOSEN, name="trees-alone", label="the same without the marginally significant", promotion=None
)
OTHER_PROMOTIONS = (
    (Promotion("alone-half", Fraction(1, 2)), "marginally significant at half of the level"),
    (Promotion("alone-whole", Fraction(1)), "marginally significant at the level"),
    (
        Promotion("alone-counted", Fraction(1, 2), counted=True),
        "marginally significant at half of the level, decoys counted there too",
    ),
)

CLOSINGS = (
    Closing("one-round", "one round of the 1,000", sizes=(1000,)),
    Closing("one-round-300", "one round, 300 survivors", n_survivors=300, sizes=(300,)),
    Closing("rounds-3", "rounds of 1,000, 300, 100", sizes=(1000, 300, 100)),
    Closing("survivors-300", "300 survivors", n_survivors=300),
    Closing("survivors-2000", "2,000 survivors", n_survivors=2000),
    Closing("sees-10", "each tree on 10%", ((0.1, 0.1),)),
    Closing("sees-100", "each tree on all", ((1.0, 1.0),)),
    Closing("leaves-1", "leaves of 1% of the rows", leaf_share=0.01),
    Closing("depth-3", "depth at most 3", max_depth=3),
    Closing("k-20", "K = 20%", k_share=0.2),
    Closing("late-k-30", "K = 30% in the last two rounds", k_share=0.3, k_rounds=2),
    Closing("trees-4", "4 trees on each subspace", trees=4),
    Closing("half", "each tree on half of the rows", half=True),
    Closing("large-nodes", "importance from nodes of 5% of the rows", measure=of_large_nodes),
    Closing(
        "left-out", "impurity of the half of the rows left out", half=True, measure=of_rows_left_out
    ),
    Closing(
        "left-out-loss", "squared loss on the half left out", half=True, measure=of_loss_left_out
    ),
)  # fmt: skip
BELOW = ("sees-100", "leaves-1")
"""Closing stages that are tried below the marginally significant too."""
OTHER_SCREENS = (
    Screen("plain", "plain lane alone", lanes=PLAIN),
    Screen("led", "SRS lane alone", lanes=LED),
    Screen("trees-4", "4 trees on each subspace, a quarter of the subspaces", trees=4),
    Screen("fading", "a tally that fades: half of the weight every third of the run", fades=True),
    Screen("k-20", "K = q / 5", max_features="0.2"),
    Screen("leaves-10", "leaves of 10 rows, closing stage as well", min_samples_leaf=10),
    Screen("depth-4", "depth at most 4, closing stage as well", max_depth=4),
)
TWO, FOUR = (Screen(f"families-{m}", f"M = {m}", families=m) for m in (2, 4))
REPEATED = (BOTH_LANES, *(Screen(f"again-{i}", f"run {i + 1}", repeat=i) for i in range(1, 4)))

CLOSING_GROUP = Group(
    "The closing stage, all on the same screens",
    (
        CHOSEN,
        replace(TREES_ALONE, label="the trees alone: halved from 1,000 to 31, each on 30%"),
        *(
            replace(
                TREES_ALONE, name=f"closing-{closing.name}", label=closing.label, closing=closing
            )
            for closing in CLOSINGS
        ),
        *(
            replace(
                CHOSEN,
                name=f"below-{closing.name}",
                label=f"the chosen design, but {closing.label}",
                closing=closing,
            )
            for closing in CLOSINGS
            if closing.name in BELOW
        ),
        *(
            replace(CHOSEN, name=promotion.name, label=label, promotion=promotion)
            for promotion, label in OTHER_PROMOTIONS
        ),
    ),
)
SCREEN_GROUP = Group(
    "The screen",
    (
        replace(TREES_ALONE, label=BOTH_LANES.label, problems=SCREENED),
        *(
            replace(
                TREES_ALONE,
                name=f"screen-{screen.name}",
                label=screen.label,
                screens=(screen,),
                problems=SCREENED,
                most_seeds=2,
            )
            for screen in OTHER_SCREENS
        ),
    ),
    ranks=True,
)
_TWICE = replace(CHOSEN, problems=FEW, most_seeds=2)
VERDICT_GROUP = Group(
    "Families of decoys, and runs brought together",
    (
        replace(CHOSEN, problems=(*FEW, UNCOUNTED)),
        replace(TREES_ALONE, problems=(*FEW, UNCOUNTED)),
        replace(_TWICE, name="families-2", label="M = 2", screens=(TWO,)),
        replace(
            _TWICE, name="families-4", label="M = 4", screens=(FOUR,), problems=(*FEW, UNCOUNTED)
        ),
        *(
            replace(
                _TWICE,
                name=f"e-values-{percent}",
                label=f"e-values of 4 runs cut at {percent}%",
                screens=REPEATED,
                cut=by_e_values(percent / 100),
            )
            for percent in (5, 10)
        ),
    ),
    selected=(*FEW, UNCOUNTED),
)
GROUPS = (CLOSING_GROUP, SCREEN_GROUP, VERDICT_GROUP)
