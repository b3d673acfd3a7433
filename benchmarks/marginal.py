"""The tests of single features as a run has them, without a store and a run.

The same contrasts, shares of the level and null model; features beside others are left out.
"""

from collections.abc import Sequence

import numpy as np
from adjusting_designs import Floats, Target
from numpy.typing import NDArray

from srs_ooc.base.records import Covariate
from srs_ooc.evidence.conditional_tests import cost
from srs_ooc.evidence.null_model import Censored, NullModel, censored_scores
from srs_ooc.evidence.rank_tests import (
    CERTAIN,
    NO_CONTRAST,
    RankTarget,
    contrasts_log_p,
    least_passing,
    shares_beside,
    strongest_of,
)

LEVEL, N_CODES = 0.1, 254
Codes = NDArray[np.uint8]


def codes_of(values: Floats) -> Codes:
    """Return codes as a store has them, (p, n); 255 where missing."""
    codes = np.full(values.T.shape, 255, np.uint8)
    for own, column in zip(codes, values.T, strict=True):
        known = np.flatnonzero(~np.isnan(column))
        starts, ranks = np.unique(column[known]), np.arange(N_CODES) * len(known) // N_CODES
        if len(starts) > N_CODES:
            starts = np.unique(np.sort(column[known])[ranks])
        own[known] = np.searchsorted(starts, column[known], side="right") - 1
    return codes


def unadjusted(
    target: Target, strata: NDArray[np.int64] | None = None, names: Sequence[str] = ()
) -> RankTarget:
    """Return what features are tested against, within strata or not; ``names`` of classes."""
    if isinstance(target, Censored):
        return RankTarget.of_scores(censored_scores(target, strata), strata)
    if target.dtype.kind == "f":
        return RankTarget.of_numbers(target.astype(np.float64), strata)
    return RankTarget.of_classes(target.astype(np.int64), int(target.max()) + 1, strata, names)


def adjusted(
    target: Target, covariates: Sequence[Covariate], names: Sequence[str] = ()
) -> RankTarget:
    """Return what features are tested against beside covariates."""
    null = NullModel.of(target, covariates)
    if isinstance(target, Censored) or target.dtype.kind == "f":
        beside = RankTarget.of_scores(null.scores, null.strata)
    else:
        beside = unadjusted(target, null.strata.astype(np.int64), names)
    return beside._replace(covariates=null.covariates())


def strengths(
    codes: Codes, target: RankTarget, *, categorical: bool = False
) -> tuple[Floats, Floats]:
    """Return -log10 p of features as a run has them, and logarithms of p-values of location."""
    p, parts = len(codes), np.array_split(codes, max(1, codes.size >> 20))  # a thread's at a time
    log_p = np.concatenate(
        [
            contrasts_log_p(part, N_CODES, target, categorical=np.full(len(part), categorical))
            for part in parts
        ]
    )
    nobody = np.full(p, NO_CONTRAST, np.uint8)
    first, contrasts = strongest_of(log_p, shares_beside(np.zeros(NO_CONTRAST, np.int64), nobody))
    own = np.where(first >= np.log10(p / CERTAIN), contrasts, NO_CONTRAST).astype(np.uint8)
    shares = shares_beside(np.bincount(own, minlength=NO_CONTRAST)[:NO_CONTRAST], own)
    found = np.where(first >= 1, strongest_of(log_p, shares)[0], first)
    return found - cost(0, p), log_p[:, 0]


def passing(strength: Floats) -> list[int]:
    """Return the features that pass Benjamini and Hochberg."""
    return np.flatnonzero(strength >= least_passing(strength, LEVEL)).tolist()
