"""Options of a network, each declared once: they are its identity."""

from dataclasses import dataclass
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.base.params import Choice, Params, Text, Whole, option
from srs_ooc.learners.params import settle_max_features
from srs_ooc.trees.tree import THRESHOLDS, TreeLimits

METHODS = ("genie3",)
FOREST, EXTRA = "forest", "extra-trees"
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class NetworkParams(Params):
    """How the regulators of a target are weighed."""

    method: str = option(
        Choice(METHODS), "How a target's regulators are weighed.", default="genie3"
    )
    ensemble: str = option(
        Choice((FOREST, EXTRA)),
        "Best splits on rows drawn with replacement, or random splits on all rows.",
        default=FOREST,
    )
    max_features: str = option(
        Text(),
        "Candidate regulators drawn at each node: sqrt, log2, all, a whole number, or a share "
        "such as 0.1.",
        default="sqrt",
        metavar="K",
        flags=("--k",),
    )
    trees: int = option(
        Whole(1, 1_000_000), "Trees grown for each target.", default=1000, metavar="N"
    )
    thresholds: str = option(
        Choice(THRESHOLDS),
        "With --ensemble extra-trees: thresholds uniform between ranks, or between values.",
        default=THRESHOLDS[0],
    )
    seed: int = option(
        Whole(0, 2**64 - 1), "Everything random follows from it.", default=0, metavar="SEED"
    )

    def check(self, n_regulators: int) -> None:
        """Refuse options that do not go together, or K that is none.

        Raises
        ------
        UsageError
            Saying which.
        """
        if self.thresholds != THRESHOLDS[0] and self.ensemble == FOREST:
            raise UsageError(
                f"--thresholds: expected {THRESHOLDS[0]} with --ensemble {FOREST}, found "
                f"{self.thresholds}: best splits are exact, and draw no thresholds. Leave it out, "
                f"or take --ensemble {EXTRA}."
            )
        self.candidates(n_regulators)

    def candidates(self, n_regulators: int) -> int:
        """Return K for a target with so many regulators."""
        asked: Any = None if self.max_features == ALL else self.max_features
        return settle_max_features(asked, n_regulators)

    @property
    def bootstrap(self) -> bool:
        """Whether each tree has rows of its own, drawn with replacement."""
        return self.ensemble == FOREST

    @property
    def splitter(self) -> str:
        """How a candidate is split."""
        return "best" if self.ensemble == FOREST else "random"

    def limits(self, n_regulators: int) -> TreeLimits:
        """Return how trees are grown on so many regulators: whole, as GENIE3's are."""
        return TreeLimits(
            self.candidates(n_regulators), impurity="variance", splitter=self.splitter
        )
