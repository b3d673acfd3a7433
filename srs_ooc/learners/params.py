"""Options of the tree learner."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, isqrt
from typing import Any, Self

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import (
    Choice,
    Flag,
    Params,
    Share,
    Text,
    Whole,
    exact_share,
    floor_share,
    option,
    share_text,
)
from srs_ooc.trees.response import IMPORTANCE_BITS, IMPURITIES, SPLITTERS, THRESHOLDS, TreeLimits

UNWEIGHTED, RANK = "none", "rank"
MOST_TREES = 10_000
"""Bound of trees on one subspace."""


@dataclass(frozen=True, kw_only=True)
class TreeParams(Params):
    """How trees are grown; ``max_features`` is K of the paper."""

    max_features: int = option(
        Text(),
        "Candidate features drawn at each node: a whole number, a share of q such as 0.1, sqrt or "
        "log2.",
        default=0,
        default_text="q",
        metavar="K",
        flags=("--k",),
    )
    impurity: str = option(
        Choice(IMPURITIES),
        "Impurity that splits decrease.",
        default_text="gini; variance for a regression",
    )
    splitter: str = option(
        Choice(SPLITTERS),
        "One random split a candidate (extra-trees), or the best one (CART).",
        default="random",
    )
    thresholds: str = option(
        Choice(THRESHOLDS),
        "Random thresholds uniform between the ranks of values at the node, or between the values "
        "themselves; best ones midway between either. By values as in scikit-learn.",
        default=RANK,
    )
    min_impurity_decrease: str = option(
        Share(),
        "Least importance of a split; in a regression a share of the variance.",
        default="0",
        metavar="SHARE",
    )
    bootstrap: bool = option(
        Flag(), "Grow each tree on as many rows drawn with replacement.", default=False
    )
    class_weight: str = option(
        Text(),
        "none, balanced, or NAME=WEIGHT,NAME=WEIGHT.",
        default=UNWEIGHTED,
        metavar="WEIGHTS",
    )
    max_depth: int | None = option(
        Whole(1), "Deepest split level.", default_text="no limit", metavar="DEPTH"
    )
    min_samples_leaf: int = option(Whole(1), "Fewest rows in a leaf.", default=1, metavar="ROWS")
    trees_per_subspace: int = option(
        Whole(1, MOST_TREES),
        "Trees grown on each subspace once it is paged in; 1 is the paper's.",
        default=1,
        metavar="M",
    )

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle all but K, which depends on q: :meth:`for_subspace` does that."""
        impurity = _impurity(given.get("impurity"), table)
        fixed = {name: value for name, value in given.items() if name != "max_features"}
        return super().settle(fixed | {"impurity": impurity}, table)

    def for_subspace(self, asked: str | int | None, subspace_size: int) -> Self:
        """Return the same with K settled for subspaces of ``subspace_size`` features."""
        return replace(self, max_features=settle_max_features(asked, subspace_size))

    @property
    def limits(self) -> TreeLimits:
        """How trees are randomized and where they stop."""
        least = ceil(exact_share(self.min_impurity_decrease) * (1 << IMPORTANCE_BITS))
        return TreeLimits(
            max(1, self.max_features),
            self.max_depth,
            self.min_samples_leaf,
            self.impurity,
            least,
            self.splitter,
        )


def settle_max_features(given: str | int | None, subspace_size: int) -> int:
    """Return K: a whole number, a share of q with a decimal point, ``sqrt`` or ``log2`` of q."""
    if given is None:
        return subspace_size
    asked = str(given)
    if asked in ("sqrt", "log2"):
        return isqrt(subspace_size) if asked == "sqrt" else max(1, subspace_size.bit_length() - 1)
    if asked.isascii() and asked.isdigit() and len(asked) <= 10:
        return Whole(1, subspace_size, " (q)").canonical("max_features", int(asked))
    try:
        return max(1, floor_share(share_text(asked), subspace_size))
    except ValueError as error:
        raise UsageError(
            "--max-features: expected a whole number, a share of q such as 0.1, sqrt or log2, "
            f"found {asked[:40]!r}."
        ) from error


def _impurity(asked: str | None, table: Any) -> str:
    fitting = IMPURITIES[2:] if table.is_regression else IMPURITIES[:2]
    impurity = Choice(IMPURITIES).canonical("impurity", asked or fitting[0])
    if impurity not in fitting:
        what = "regression" if table.is_regression else "classification"
        raise UsageError(
            f"--impurity: expected {' or '.join(fitting)} for a {what}, found {impurity}."
        )
    if impurity == "entropy" and table.n_channels:
        raise UsageError(
            "--impurity: expected gini where rows or classes are weighted, found entropy. "
            "Leave the weights out, or take gini."
        )
    return impurity
