"""How many iterations a run takes: until features are drawn often enough, and T as advised."""

import math
from math import ceil
from statistics import NormalDist

from srs_ooc.base.options import floor_share
from srs_ooc.native.numerics import exp, expm1, log, log1p
from srs_ooc.runs.session import RunDraft

# How many iterations until features have been drawn often enough.
#
# A feature not yet kept is drawn in each iteration with probability c = (q - m)/(p - m), where m is
# the number held in R, independently of other iterations: after T of them it has been drawn
# Binomial(T, c) times. The features of one iteration are drawn without replacement, so their counts
# are negatively associated (Joag-Dev and Proschan 1983), and with e = P(Binomial(T, c) < n)
#
#     1 - p e  <=  P(every feature drawn at least n times)  <=  (1 - e)**p.
#
# At a level near 1 the two ends are met by the same T, or by neighbours: no simulation is needed.

LARGEST_EXACT = 5000


def draw_chance(n_features: int, subspace_size: int, n_held: int) -> float:
    """Return the probability that an iteration draws a given feature that is not held."""
    return (subspace_size - n_held) / (n_features - n_held) if n_held < n_features else 1.0


def log_chance_below(n_trials: int, chance: float, count: int) -> float:
    """Return log P(Binomial(n_trials, chance) < count); ``-inf`` where it cannot be.

    Terms are formed by ratios from (1 - chance)**n_trials, in logarithms, relative to the largest.
    """
    if n_trials < count:
        return 0.0
    if chance >= 1.0 or count <= 0:
        return -math.inf
    if chance <= 0.0:
        return 0.0
    odds, term = chance / (1.0 - chance), n_trials * log1p(-chance)
    terms = [term]
    for k in range(1, count):
        term += log((n_trials - k + 1) / k * odds)
        terms.append(term)
    largest = max(terms)
    return min(0.0, largest + log(math.fsum(exp(t - largest) for t in terms)))


def trials_for(chance: float, count: int, log_risk: float) -> int | None:
    """Return the fewest trials with P(Binomial < count) at most exp(log_risk); None if none.

    Exact up to 5,000 wanted; above, by the normal law, which is then off by about 0.1%.
    """
    if chance <= 0.0:
        return None
    if count > LARGEST_EXACT:
        z = -NormalDist().inv_cdf(exp(log_risk))
        spread = z * math.sqrt(chance * (1.0 - chance))
        root = (spread + math.sqrt(spread * spread + 4.0 * chance * count)) / (2.0 * chance)
        return math.ceil(root * root)
    high = max(count, 1)
    while log_chance_below(high, chance, count) > log_risk:
        high *= 2
    low = count
    while low < high:
        middle = (low + high) // 2
        if log_chance_below(middle, chance, count) <= log_risk:
            high = middle
        else:
            low = middle + 1
    return low


def draw_times(
    n_features: int, subspace_size: int, n_held: int, n_draws: int, level: float = 0.99
) -> dict[str, float | None]:
    """Return the iterations until features not held have been drawn ``n_draws`` times.

    Parameters
    ----------
    n_features, subspace_size : int
        p and q.
    n_held : int
        Places of the subspace taken by R; floor(alpha q) is the worst.
    n_draws : int
        Draws wanted of each feature.
    level : float
        Probability wanted.

    Returns
    -------
    dict
        ``n_draws`` and ``level``; then iterations, None where they are never enough: ``one``, for
        one feature; ``every``, for all at once, enough by the lower bound; ``every_least``: fewer
        are not enough, by the upper bound, and it is ``every`` or close below.
    """
    chance = draw_chance(n_features, subspace_size, n_held)
    each = -expm1(log(level) / n_features)  # (1 - e)**p = level
    return {
        "n_draws": n_draws,
        "level": level,
        "one": trials_for(chance, n_draws, log(1.0 - level)),
        "every": trials_for(chance, n_draws, log((1.0 - level) / n_features)),
        "every_least": trials_for(chance, n_draws, log(each)),
    }


# How many iterations to run: T, from the run's identity and its table alone.

MIN_ITERATIONS = 1000
"""Fewer trees leave importances, means over draws, to chance: which others were drawn."""
MAX_ITERATIONS = 10_000
"""The default that a run has had from the start is the ceiling: a longer one is the user's wish."""
DRAWS = 30
"""Draws in each lane after which a screen keeps nearly all relevant features in its best 1,000."""


def times_to_draw(draft: RunDraft) -> dict[str, float | None]:
    """Return the iterations until every feature can have passed the probe, with R always full.

    The probe judge asks for more than L draws. Neighbours drawn together are not negatively
    associated, so that there is no upper bound.
    """
    spec = draft.spec
    held = floor_share(spec.alpha, spec.subspace_size)
    times = draw_times(draft.shape.n_candidates, spec.subspace_size, held, spec.min_draws + 1)
    return times if spec.draw_block == 1 else times | {"every_least": None}


def recommended_iterations(draft: RunDraft) -> tuple[int, str]:
    """Return T and the reason: from the spec and the table alone, never from measured speed."""
    spec = draft.spec
    own_end = spec.sampler.most_iterations(draft.shape.n_candidates, spec.subspace_size)
    if own_end is not None:
        return own_end
    if spec.concludes:
        return _iterations_to_verdict(draft)
    times = times_to_draw(draft)
    n_draws, every = times["n_draws"], times["every"]
    wanted = f"every feature is drawn {n_draws} times with probability {times['level']:g}"
    held = floor_share(spec.alpha, spec.subspace_size)
    if every is not None and every <= MAX_ITERATIONS:
        if every >= MIN_ITERATIONS:
            while_held = ", even while as many features are held as alpha allows" if held else ""
            return int(every), f"{wanted} by then{while_held}"
        return MIN_ITERATIONS, (
            f"{wanted} after {every:,}; below {MIN_ITERATIONS:,} the means that "
            "rank features are over too few draws"
        )
    chance = draw_chance(draft.shape.n_candidates, spec.subspace_size, held)
    short = exp(log_chance_below(MAX_ITERATIONS, chance, spec.min_draws + 1))
    return MAX_ITERATIONS, (
        f"the most that is advised; {short:.2g} of the features not kept are then still drawn "
        f"fewer than {n_draws} times"
        + (f" ({wanted} takes {every:,})" if every else " (held features leave them no place)")
    )


def _iterations_to_verdict(draft: RunDraft) -> tuple[int, str]:
    spec = draft.spec
    n_lanes = 2 if spec.judging.n_leaders and floor_share(spec.alpha, spec.subspace_size) else 1
    count = n_lanes * ceil(DRAWS * draft.shape.n_candidates / spec.subspace_size)
    beside = ", with and without the leading ones" if n_lanes == 2 else ""
    drawn = f"every feature is drawn about {DRAWS} times{beside}"
    if spec.draws_by_weight:
        drawn = f"a feature of mean weight is drawn about {DRAWS} times"
    return max(count, MIN_ITERATIONS), f"{drawn}; the closing stage follows"
