"""Options of Parametric Random Subspace for every target, or for all of them together."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Self

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Choice, Number, Share, Whole, exact_share, option
from srs_ooc.base.text import MB
from srs_ooc.networks.edge_params import EdgeParams, EdgeTable
from srs_ooc.samplers.prs import FEATURE_NBYTES, SPREADS, DescentParams
from srs_ooc.samplers.prs_math import BernoulliSubsets
from srs_ooc.trees.block import block_nbytes
from srs_ooc.trees.kernel import record_nbytes, scratch_nbytes
from srs_ooc.trees.response import THRESHOLDS, TreeLimits

LEAST_ROOM = 64
"""Regulators that a subset has room for at least, where there are so many."""
ROW_NBYTES = 64
"""Bytes of a row in each fold: where it is trained on, and where predicted."""


@dataclass(frozen=True, kw_only=True)
class ProbabilityParams(DescentParams, EdgeParams):
    """Parametric Random Subspace as in Section 3.4 of its paper; trees are whole, splits best."""

    models: int = option(
        Whole(2, 100_000), "Models of each fold, the paper's T.", default=100, metavar="N"
    )
    folds: int = option(
        Whole(2, 100),
        "Folds: each one's rows are predicted by models grown on the others.",
        default=10,
        metavar="K",
    )
    validation_share: str = option(
        Share(), "Share of the rows held out to choose the epoch.", default="0.1", metavar="SHARE"
    )
    thresholds: str = option(
        Choice(THRESHOLDS), "Thresholds midway between ranks, or between values.", default="value"
    )
    joint: str = option(
        Number(),
        "All targets together, with the paper's joint penalty times this (Eq. 21): few regulators "
        "for all.",
        default="0.0",
        default_text="0: each target by itself",
        metavar="LAMBDA",
    )

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options, in the words of a network."""
        share = given.get("validation_share")
        if share is not None:
            text = cls.options()["validation_share"].settle("validation_share", share)
            if not 0 < exact_share(text) <= exact_share("0.5"):
                raise UsageError(
                    f"--validation-share: expected a number above 0 and at most 0.5, found {text}."
                )
        return super().settle(given, table)

    @property
    def uses_values(self) -> bool:
        """Whether thresholds are midway between values: rows not grown on are predicted better."""
        return self.thresholds == "value"

    def n_copied(self, n_regulators: int) -> int:
        """Return how many columns a subset's tree has a copy of, and once more as it is made."""
        return 2 * self.room(n_regulators)

    @property
    def is_joint(self) -> bool:
        """Whether targets share a penalty."""
        return float(self.joint) > 0

    def room(self, n_regulators: int) -> int:
        """Return how many regulators a subset may have: four times the first mean, and more."""
        mean = 4 * float(self.inclusion) * n_regulators
        return min(n_regulators, max(LEAST_ROOM, ceil(mean + SPREADS * sqrt(mean))))

    def check_table(self, table: EdgeTable) -> None:
        """Check that the first subsets fit, and that each fold has rows."""
        self.check(table.n_rows, table.n_regulators, self.room(table.n_regulators))

    def target_nbytes(self, table: EdgeTable) -> int:
        """Return the bytes that one target keeps while it learns."""
        share = float(self.validation_share)
        n_predicted = ceil(table.n_rows * (share + (1 - share) / self.folds)) + 2
        votes = 4 * self.folds * self.models * n_predicted
        members = BernoulliSubsets.nbytes(self.models, self.room(table.n_regulators), self.folds)
        rows = ROW_NBYTES * table.n_rows * self.folds
        return FEATURE_NBYTES * table.n_regulators + votes + members + rows

    def work_nbytes(self, table: EdgeTable) -> int:
        """Return the bytes of a subset's columns and its tree, and of what the target keeps."""
        size = self.room(table.n_regulators)
        shape = table.n_rows, size, 1, table.code_nbytes, 1 + table.weighted
        columns = 2 * block_nbytes(size, table.n_rows, table.code_nbytes)
        tree = scratch_nbytes(*shape, best=True) + record_nbytes(table.n_rows, 1, TreeLimits(1))
        steps = 3 * 8 * self.models * table.n_rows + 16 * 8 * table.n_regulators
        own = 0 if self.is_joint else self.target_nbytes(table)
        return columns + tree + steps + own

    def shared_nbytes(self, table: EdgeTable) -> int:
        """Return the bytes of the probabilities, votes and subsets of all targets together."""
        if not self.is_joint:
            return 0
        response = 40 * table.n_rows * (1 + table.weighted)
        return table.n_targets * (self.target_nbytes(table) + response)

    @property
    def shorter(self) -> str:
        """Say which options make it shorter."""
        return "fewer --epochs or a --patience, fewer --models or --folds, fewer --targets"

    def remarks(self, table: EdgeTable) -> tuple[str, ...]:
        """Say where importance weights would collapse, and what all targets keep."""
        notes = self.slow_steps(table.n_regulators, "Name fewer regulators with --regulators.")
        if not self.is_joint:
            return notes
        state = self.shared_nbytes(table) / MB
        return (f"--joint: {state:.0f} MB for what all targets keep.", *notes)
