"""Options of GENIE3."""

from dataclasses import dataclass
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Choice, Text, option
from srs_ooc.learners.tree_learner import settle_max_features
from srs_ooc.networks.edge_params import EdgeParams, EdgeTable, trees_option
from srs_ooc.trees.kernel import scratch_nbytes
from srs_ooc.trees.response import THRESHOLDS, TreeLimits

FOREST, EXTRA = "forest", "extra-trees"
ALL = "all"


@dataclass(frozen=True, kw_only=True)
class ForestParams(EdgeParams):
    """How forests are grown; GENIE3's by default."""

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
    trees: int = trees_option()
    thresholds: str = option(
        Choice(THRESHOLDS),
        "Thresholds between ranks or between values: drawn (extra-trees), or midway (prs).",
        default=THRESHOLDS[0],
        default_text="rank; with --method prs value",
    )

    @property
    def uses_values(self) -> bool:
        """Whether thresholds are drawn between values."""
        return self.thresholds == "value"

    def check_table(self, table: EdgeTable) -> None:
        """Refuse thresholds that are not drawn, or K that is none."""
        if self.thresholds != THRESHOLDS[0] and self.ensemble == FOREST:
            raise UsageError(
                f"--thresholds: expected {THRESHOLDS[0]} with --ensemble {FOREST}, found "
                f"{self.thresholds}: best splits are exact, and draw no thresholds. Leave it out, "
                f"or take --ensemble {EXTRA}."
            )
        self.candidates(table.n_regulators)

    def candidates(self, n_regulators: int) -> int:
        """Return K for a target with so many regulators."""
        asked: Any = None if self.max_features == ALL else self.max_features
        try:
            return settle_max_features(asked, n_regulators)
        except UsageError as error:
            raise UsageError(
                "--k: expected all, sqrt, log2, a share such as 0.1, or a whole number from 1 to "
                f"{n_regulators} (regulators a target may have), found {str(asked)[:40]}."
            ) from error

    def tiled(self, n_regulators: int) -> bool:
        """Return whether a quarter or more of the regulators are candidates at each node.

        Runs draw the line at a twentieth (:func:`srs_ooc.learners.tree_learner.wants_tiles`), on more
        rows: here nodes are small, and of small nodes single columns are read as fast.
        """
        return 4 * self.limits(n_regulators).max_features > n_regulators

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

    @property
    def shorter(self) -> str:
        """Say which options make it shorter."""
        fewer = "" if self.max_features == "sqrt" else "--k sqrt, "
        return f"{fewer}{super().shorter}"

    def work_nbytes(self, table: EdgeTable) -> int:
        """Return the scratch bytes of growing a tree."""
        return scratch_nbytes(
            table.n_rows,
            table.n_regulators,
            1,
            table.code_nbytes,
            1 + (table.weighted or self.bootstrap),
            best=self.splitter == "best",
        )
