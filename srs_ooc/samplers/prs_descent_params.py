"""Options of learning probabilities by descent, for one target of a run or for many."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, Self

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Number, Params, Share, Whole, exact_share, option
from srs_ooc.samplers.held_out_options import folds_option, models_option, validation_share_option
from srs_ooc.samplers.prs_steps import Descent

FEATURE_NBYTES = 104
"""Bytes for each feature, beyond those that every run may keep (law 11): beta, alpha, the best
epoch's probabilities and two moments stay, sums and terms of a step come and go."""
SPREADS = 6
"""Standard deviations of a subset's size that q leaves room for."""

COLLAPSE = 1000
"""Features beyond which one whole step spends what the models are worth."""


@dataclass(frozen=True, kw_only=True)
class DescentParams(Params):
    """How probabilities are learnt; defaults are the paper's."""

    models: int = models_option()
    inclusion: str = option(
        Share(), "Probability of each feature at first.", default="0.05", metavar="SHARE"
    )
    epochs: int = option(
        Whole(1, 1_000_000), "Epochs at most; each takes a step for every fold.", default=3000,
        metavar="N",
    )  # fmt: skip
    patience: int | None = option(
        Whole(1),
        "End after so many epochs without a better objective on the validation rows.",
        default_text="all epochs, as in the paper",
        metavar="N",
    )
    learning_rate: str = option(
        Number(), "Of Adam: about how far a probability moves in a step.", default="0.001",
        metavar="RATE",
    )  # fmt: skip
    folds: int = folds_option()
    effective_share: str = option(
        Share(),
        "Grow models again where their importance weights are worth fewer than this share of them.",
        default="0.9",
        metavar="SHARE",
    )
    sparsity: str = option(
        Number(),
        "Penalty on the mean size of a subset: times the sum of probabilities, added to the loss.",
        default="0.0",
        metavar="LAMBDA",
    )
    validation_share: str = validation_share_option()

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options; where rows are named to be held out, no share of them is."""
        named = {"validation_share": "0"} if "validation" in given else {}
        params = super().settle(dict(given) | named, table)
        if not 0 < exact_share(params.inclusion) < 1:
            raise UsageError(
                f"--inclusion: expected a number between 0 and 1, found {params.inclusion}. "
                "At 0 nothing would ever be drawn."
            )
        if not named and not 0 < exact_share(params.validation_share) <= exact_share("0.5"):
            raise UsageError(
                "--validation-share: expected a number above 0 and at most 0.5, found "
                f"{params.validation_share}. Or name rows with --validation-rows."
            )
        return params

    def check(self, n_rows: int, n_candidates: int, subspace_size: int) -> None:
        """Check that the first subsets fit q, and that each fold has rows."""
        largest = largest_mean(subspace_size, n_candidates)
        if float(self.inclusion) * n_candidates > largest:
            raise UsageError(
                f"--inclusion: expected at most {largest / n_candidates:.3g} with subspaces of "
                f"{subspace_size} of {n_candidates} features, found {self.inclusion}: subsets of "
                "about so many would not fit. Raise --subspace-size or --memory-mb, or lower it."
            )
        n_training = n_rows - round(float(self.validation_share) * n_rows)
        if n_training < 2 * self.folds:
            raise UsageError(
                f"--folds: expected at least two rows for each fold, found {self.folds} folds of "
                f"{n_training} rows. Choose fewer folds."
            )

    def slow_steps(self, n_features: int, remedy: str) -> tuple[str, ...]:
        """Say so, and what to do, where importance weights would collapse."""
        if n_features <= COLLAPSE:
            return ()
        return (
            f"--method prs: with {n_features:,} features (more than {COLLAPSE:,}) steps of the "
            f"whole learning rate would leave few models with all the weight. They are shortened "
            f"so that T_eff stays above {float(self.effective_share) / 2:g} T, and about "
            f"{self.models * self.folds:,} models are grown at each epoch: slow. {remedy}",
        )

    def descent(self, n_features: int, subspace_size: int) -> Descent:
        """Return how the probabilities of so many features are learnt, in subsets of q at most."""
        return Descent(
            self.models,
            float(self.inclusion),
            self.epochs,
            self.epochs if self.patience is None else self.patience,
            float(self.learning_rate),
            float(self.effective_share),
            float(self.sparsity),
            largest_mean(subspace_size, n_features),
        )


def largest_mean(subspace_size: int, n_candidates: int) -> float:
    """Return the largest sum of probabilities whose subsets fit q, but for a chance below 1e-8.

    A subset's size has a variance of at most its mean m, so ``m + 6 sqrt(m) = q``.
    """
    if subspace_size >= n_candidates:
        return float(n_candidates)
    root = (sqrt(SPREADS * SPREADS + 4.0 * subspace_size) - SPREADS) / 2
    return root * root
