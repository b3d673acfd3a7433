"""LESS (Algorithm 1 of Kyrillidis and Zouzias 2014): features drawn by their columns' scores."""

from collections.abc import Mapping
from math import ceil, sqrt
from typing import Any, Self

import numpy as np

import srs_ooc.extend as core
from srs_ooc.methods.less.leverage import MOST_ROWS, Leverage, SketchedLeverage, SquaredNorm

LEVERAGE, NORM = "leverage", "norm"
SPARED = 4
"""One in so many directions is a rank that is worth trying where all were asked for."""


class ScoreParams(core.Params):
    """What columns are scored by.

    Attributes
    ----------
    scores : str
        What features are drawn by: leverage scores, squared norms, or a CSV file with columns name
        and score, as `srs-ooc scores --csv` writes it.
    rank : int
        Singular vectors that leverage scores sum over. At full rank they say nothing.
    center : bool
        Take each column's mean off before.
    matrix : str
        Score the codes of the store, or the values that it keeps.
    """

    scores: str = core.option(
        core.WordOrFile((LEVERAGE, NORM)), default=LEVERAGE, metavar="leverage|norm|FILE"
    )
    rank: int = core.option(core.Whole(1, 10_000), default=50, metavar="R")
    center: bool = core.option(core.Flag(), default=True)
    matrix: str = core.option(
        core.Choice((core.CODES, core.VALUES)),
        default_text="codes for leverage, values for norm",
        metavar="codes|values",
    )
    power_passes: int = core.option(
        core.Whole(0, 8),
        f"Passes that make leverage scores of more than {MOST_ROWS} rows, which are approximate, "
        "more exact.",
        default=2,
        metavar="N",
    )

    @classmethod
    def settle(cls, given: Mapping[str, Any], table: Any) -> Self:
        """Settle what is scored."""
        matrix = core.VALUES if given.get("scores") == NORM else core.CODES
        given = {name: value for name, value in given.items() if value is not None}
        return super().settle({"matrix": matrix} | given, table)

    def score(self, n_rows: int, n_features: int, key: int) -> core.ColumnScore | None:
        """Return what scores the columns; None where a file has the scores."""
        if self.scores == NORM:
            return SquaredNorm(n_rows, n_features, center=self.center)
        if self.scores != LEVERAGE:
            return None
        sizes = n_rows, n_features, self.rank
        how = {"center": self.center, "exact": self.matrix == core.CODES}
        if n_rows <= MOST_ROWS:
            return Leverage(*sizes, **how)
        key, power_passes = core.derive(key, core.Purpose.SKETCH), self.power_passes
        return SketchedLeverage(*sizes, **how, power_passes=power_passes, key=key)

    def notes(self, n_rows: int, n_candidates: int) -> tuple[str, ...]:
        """Say so where leverage scores sum over all directions there are: they hardly differ.

        At most ``n_rows``, less one where columns are centred, and at most one a column.
        """
        by_rows = max(1, n_rows - self.center)
        n_directions = min(by_rows, n_candidates)
        if self.scores != LEVERAGE or self.rank < n_directions:
            return ()
        differ = "are all equal" if n_candidates <= by_rows else "hardly differ"
        smaller = max(1, n_directions // SPARED)
        advice = f"Take a smaller rank, such as {smaller}"
        if self.rank == smaller:
            advice = "Take more rows"
        return (
            f"rank={self.rank}: leverage scores sum over all {n_directions:,} directions that "
            f"{n_rows:,} rows of {n_candidates:,} columns have, and {differ}: features are "
            f"drawn about alike, as by --method rs. {advice}.",
        )


class Less(ScoreParams, core.Method):
    """LESS: Random Subspace that draws features by their columns' scores.

    Attributes
    ----------
    replacement : bool
        Draw the features of a subspace with replacement; it then has up to --subspace-size.
    """

    summary = "Random Subspace by leverage scores or norms of the columns"
    judges = ("tests", "probe", "positive")
    any_model = draws_by_scores = True
    replacement: bool = core.option(core.Flag(), default=False)

    def default_subspace(self, n_candidates: int) -> int:
        """Return k = 2 sqrt(d), the upper end of what the paper advises (Section 6)."""
        return max(1, min(n_candidates, ceil(2 * sqrt(n_candidates))))

    def state_nbytes(self, n_rows: int, n_features: int) -> int:
        """Return the bytes of what features are drawn by."""
        return core.WeightedDrawing.nbytes(n_features)

    def make(self, context: core.SamplerContext) -> core.Sampler:
        """Return the sampler; it holds nothing where no relevance test is on the way."""
        if (weights := context.weights) is None:
            weights = np.zeros(context.n_features, np.uint32)
            weights[slice(None) if context.candidates is None else context.candidates] = 1
        drawing = core.WeightedDrawing(weights, context.subspace_size, replacement=self.replacement)
        return core.sampler_by(drawing, context, 0)
