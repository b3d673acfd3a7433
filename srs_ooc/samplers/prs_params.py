"""Options of Parametric Random Subspace, and what follows from them before a run starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, Self

import numpy as np

from srs_ooc.base.errors import UsageError
from srs_ooc.base.params import Number, Params, Share, Whole, option
from srs_ooc.base.shares import exact_share
from srs_ooc.samplers.base import Sampler
from srs_ooc.samplers.bernoulli import BernoulliSubsets
from srs_ooc.samplers.ensemble import Ensemble
from srs_ooc.samplers.grid import NBYTES as GRID_NBYTES
from srs_ooc.samplers.grid import Grid, GridSize, Smoothness, size_of
from srs_ooc.samplers.held_out_options import (
    folds_for,
    folds_option,
    models_option,
    validation_share_option,
)
from srs_ooc.samplers.method import Ground, Method
from srs_ooc.samplers.prs import FINAL, ParametricRandomSubspace
from srs_ooc.samplers.prs_loss import Truth
from srs_ooc.samplers.prs_steps import Descent

FEATURE_NBYTES = 104
"""Bytes for each feature, beyond those that every run may keep (law 11): beta, alpha, the best
epoch's probabilities and two moments stay, sums and terms of a step come and go."""
SPREADS = 6
"""Standard deviations of a subset's size that q leaves room for."""
LEAST_ROOM = 512
"""Features that q has room for at least, where there are so many."""
COLLAPSE = 1000
"""Features beyond which one whole step spends what the models are worth."""


@dataclass(frozen=True, kw_only=True)
class PrsParams(Params):
    """Options of Parametric Random Subspace; defaults are the paper's."""

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
    smoothness: str = option(
        Number(),
        "Penalty on neighbours on --grid: times the sum of their probabilities' absolute "
        "differences, added to the loss.",
        default="0.0",
        metavar="LAMBDA",
    )
    grid: str | None = option(
        GridSize(),
        "Features that may be drawn are pixels of an image, row by row in the order of the table.",
        default_text="features have no neighbours",
        metavar="HEIGHTxWIDTH",
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
        if params.grid is None and float(params.smoothness) > 0:
            raise UsageError(
                "--smoothness: expected with --grid HEIGHTxWIDTH, found no grid. Features have "
                "neighbours on a grid only."
            )
        if not named and not 0 < exact_share(params.validation_share) <= exact_share("0.5"):
            raise UsageError(
                "--validation-share: expected a number above 0 and at most 0.5, found "
                f"{params.validation_share}. Or name rows with --validation-rows."
            )
        return params

    def default_subspace(self, n_candidates: int) -> int:
        """Return twice the mean size of a subset at first, and room for its spread."""
        mean = float(self.inclusion) * n_candidates
        return min(n_candidates, max(LEAST_ROOM, ceil(2 * mean + SPREADS * sqrt(2 * mean))))

    def check(self, n_rows: int, n_candidates: int, subspace_size: int) -> None:
        """Check that the first subsets fit q, and that each fold has rows."""
        mean = float(self.inclusion) * n_candidates
        if mean > largest_mean(subspace_size, n_candidates):
            raise UsageError(
                f"--inclusion: expected at most "
                f"{largest_mean(subspace_size, n_candidates) / n_candidates:.3g} with subspaces of "
                f"{subspace_size} of {n_candidates} features, found {self.inclusion}: subsets of "
                "about so many would not fit. Raise --subspace-size or --memory-mb, or lower it."
            )
        if self.grid is not None:
            height, width = size_of(self.grid)
            if height * width != n_candidates:
                raise UsageError(
                    f"--grid: expected as many pixels as features that may be drawn, found "
                    f"{height} x {width} = {height * width:,} and {n_candidates:,} features. "
                    "Features left out by --exclude are no pixels, and no pixel can be left out."
                )
        n_training = n_rows - round(float(self.validation_share) * n_rows)
        if n_training < 2 * self.folds:
            raise UsageError(
                f"--folds: expected at least two rows for each fold, found {self.folds} folds of "
                f"{n_training} rows. Choose fewer folds."
            )

    def state_nbytes(self, n_rows: int, n_features: int) -> int:
        """Return the bytes of probabilities, moments, subsets and votes."""
        share = float(self.validation_share)
        n_predicted = ceil(n_rows * (share + (1 - share) / self.folds)) if share else n_rows
        votes = (self.folds + 3) * self.models * (n_predicted + 2) * 4
        members = BernoulliSubsets.nbytes(self.models, n_features, self.folds)
        each = FEATURE_NBYTES + (0 if self.grid is None else GRID_NBYTES)
        return each * n_features + votes + members + 64 * n_rows * self.folds

    def most_iterations(self, n_candidates: int, subspace_size: int) -> tuple[int, str]:
        """Return the models there are at most: those of all epochs."""
        each = self.models * self.folds
        return each * self.epochs + self.models, (
            f"the most there can be, if models were grown again at each of {self.epochs:,} epochs; "
            f"it ends by itself, after {each:,} models for each time they are"
        )

    def notes(self, n_rows: int, n_candidates: int, n_copies: int = 1) -> tuple[str, ...]:
        """Say so where importance weights would collapse."""
        if n_candidates <= COLLAPSE:
            return ()
        return (
            f"--method prs: with {n_candidates:,} features (more than {COLLAPSE:,}) steps of the "
            f"whole learning rate would leave few models with all the weight. They are shortened "
            f"so that T_eff stays above {float(self.effective_share) / 2:g} T, and about "
            f"{self.models * self.folds:,} models are grown at each epoch: slow. Screen the "
            "features first, by another method, and name the rest with --exclude.",
        )


def largest_mean(subspace_size: int, n_candidates: int) -> float:
    """Return the largest sum of probabilities whose subsets fit q, but for a chance below 1e-8.

    A subset's size has a variance of at most its mean m, so ``m + 6 sqrt(m) = q``.
    """
    if subspace_size >= n_candidates:
        return float(n_candidates)
    root = (sqrt(SPREADS * SPREADS + 4.0 * subspace_size) - SPREADS) / 2
    return root * root


def _smoothness(params: PrsParams, ground: Ground) -> Smoothness | None:
    if params.grid is None or float(params.smoothness) == 0:
        return None
    offered = np.arange(ground.n_items) if ground.candidates is None else ground.candidates
    grid = Grid.of(size_of(params.grid), offered, ground.positions)
    return Smoothness(float(params.smoothness), grid)


def _make(params: PrsParams, ground: Ground) -> Sampler:
    response = ground.response
    assert response is not None, "a run has a response"
    folds = folds_for(ground, params.folds, params.validation_share)
    return ParametricRandomSubspace(
        Descent(
            params.models,
            float(params.inclusion),
            params.epochs,
            params.epochs if params.patience is None else params.patience,
            float(params.learning_rate),
            float(params.effective_share),
            float(params.sparsity),
            largest_mean(ground.subspace_size, ground.n_candidates),
        ),
        folds,
        Truth.of(response, folds.training),
        ground.n_items,
        ground.subspace_size,
        ground.key,
        ground.candidates,
        _smoothness(params, ground),
    )


def _ensemble(_: PrsParams, facts: Mapping[str, Any]) -> Ensemble | None:
    """Return that the last models predict: their mean, or the majority of their votes."""
    return Ensemble(votes=True) if facts["phase"] == FINAL else None


PRS = Method(
    "Parametric Random Subspace: learns each feature's probability",
    PrsParams,
    _make,
    judges=("none",),
    learner={"splitter": "best"},
    any_model=True,
    ranks_by=ParametricRandomSubspace.name,
    state_nbytes=PrsParams.state_nbytes,
    default_subspace=PrsParams.default_subspace,
    check=PrsParams.check,
    splits_rows=True,
    needs_positions=lambda params: params.grid is not None,
    ensemble=_ensemble,
    most_iterations=PrsParams.most_iterations,
    notes=PrsParams.notes,
)
