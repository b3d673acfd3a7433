"""Options of Parametric Random Subspace, and what follows from them before a run starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil, sqrt
from typing import Any, ClassVar, Self

import numpy as np

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Number, option
from srs_ooc.samplers.base import IMPORTANCE, Sampler
from srs_ooc.samplers.bernoulli import BernoulliSubsets
from srs_ooc.samplers.ensemble import Ensemble
from srs_ooc.samplers.grid import NBYTES as GRID_NBYTES
from srs_ooc.samplers.grid import Grid, GridSize, Smoothness, size_of
from srs_ooc.samplers.held_out_options import folds_for
from srs_ooc.samplers.method import Ground, Method
from srs_ooc.samplers.prs import FINAL, ParametricRandomSubspace
from srs_ooc.samplers.prs_descent_params import FEATURE_NBYTES, SPREADS, DescentParams
from srs_ooc.samplers.prs_loss import Truth
from srs_ooc.samplers.screened import Screened, ScreenParams

LEAST_ROOM = 512
"""Features that q has room for at least, where there are so many."""


@dataclass(frozen=True, kw_only=True)
class PrsParams(ScreenParams, DescentParams):
    """Options of Parametric Random Subspace; defaults are the paper's."""

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

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle the options; a grid is of all features."""
        params = super().settle(given, table)
        if params.grid is None and float(params.smoothness) > 0:
            raise UsageError(
                "--smoothness: expected with --grid HEIGHTxWIDTH, found no grid. Features have "
                "neighbours on a grid only."
            )
        if params.grid is not None and params.screen is not None:
            raise UsageError(
                "--screen: expected without --grid, found both. A pixel that is left out has no "
                "place on the grid."
            )
        return params

    def default_subspace(self, n_candidates: int) -> int:
        """Return twice the mean size of a subset at first, and room for its spread."""
        n_learnt = self.n_learnt(n_candidates)
        mean = float(self.inclusion) * n_learnt
        room = max(LEAST_ROOM, ceil(2 * mean + SPREADS * sqrt(2 * mean)))
        return max(min(n_learnt, room), self.screen_size(n_candidates))

    def check(self, n_rows: int, n_candidates: int, subspace_size: int) -> None:
        """Check what is learnt, and that the grid has as many pixels as there are features."""
        super().check(n_rows, self.n_learnt(n_candidates), subspace_size)
        if self.grid is not None:
            height, width = size_of(self.grid)
            if height * width != n_candidates:
                raise UsageError(
                    f"--grid: expected as many pixels as features that may be drawn, found "
                    f"{height} x {width} = {height * width:,} and {n_candidates:,} features. "
                    "Features left out by --exclude are no pixels, and no pixel can be left out."
                )

    def state_nbytes(self, n_rows: int, n_features: int) -> int:
        """Return the bytes of probabilities, moments, subsets and votes."""
        share = float(self.validation_share)
        n_predicted = ceil(n_rows * (share + (1 - share) / self.folds)) if share else n_rows
        votes = (self.folds + 3) * self.models * (n_predicted + 2) * 4
        n_learnt = self.n_learnt(n_features)
        members = BernoulliSubsets.nbytes(self.models, n_learnt, self.folds)
        each = FEATURE_NBYTES + (0 if self.grid is None else GRID_NBYTES)
        own = each * n_learnt + votes + members + 64 * n_rows * self.folds
        return own + self.screen_nbytes(n_features)

    def mean_columns(self, n_candidates: int) -> int:
        """Return the mean size of a subset at first; later ones are smaller."""
        return max(1, ceil(float(self.inclusion) * self.n_learnt(n_candidates)))

    def most_iterations(self, n_candidates: int, subspace_size: int) -> tuple[int, str]:
        """Return the models there are at most: those of all epochs."""
        each = self.models * self.folds
        n_first = self.n_screen_trees(n_candidates, subspace_size)
        first = f"{n_first:,} trees of the screen, and " if n_first else ""
        return n_first + each * self.epochs + self.models, (
            f"{first}the most there can be, if models were grown again at each of {self.epochs:,} "
            f"epochs; it ends by itself, after {each:,} models for each time they are"
        )

    def notes(self, n_rows: int, n_candidates: int, n_copies: int = 1) -> tuple[str, ...]:
        """Say so where a screen leaves nothing out, and where importance weights would collapse."""
        return self.no_screen(n_candidates) + self.slow_steps(
            self.n_learnt(n_candidates),
            "Learn on fewer, such as --screen 500: those that random subspaces rank first.",
        )


def _smoothness(params: PrsParams, ground: Ground) -> Smoothness | None:
    if params.grid is None or float(params.smoothness) == 0:
        return None
    offered = np.arange(ground.n_items) if ground.candidates is None else ground.candidates
    grid = Grid.of(size_of(params.grid), offered, ground.positions)
    return Smoothness(float(params.smoothness), grid)


class ScreenedPrs(Screened):
    """The features that a screen ranks first, and then their probabilities."""

    name: ClassVar[str] = ParametricRandomSubspace.name
    needs: ClassVar[frozenset[str]] = ParametricRandomSubspace.needs | {IMPORTANCE}


def _make(params: PrsParams, ground: Ground) -> Sampler:
    response = ground.response
    assert response is not None, "a run has a response"
    folds = folds_for(ground, params.folds, params.validation_share)
    if params.screens(ground.n_candidates):
        return ScreenedPrs(params, ground, folds.training, partial(_make, params))
    return ParametricRandomSubspace(
        params.descent(ground.n_candidates, ground.subspace_size),
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
    return Ensemble(votes=True) if facts.get("phase") == FINAL else None


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
    mean_columns=PrsParams.mean_columns,
    most_iterations=PrsParams.most_iterations,
    notes=PrsParams.notes,
)
