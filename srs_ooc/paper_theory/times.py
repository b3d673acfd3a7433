"""Iterations to find relevant features, and features found after so many iterations (Section 4.2).

Assumptions are the paper's (Appendix D.1): infinite samples, K = q, the simplified tree in which
one feature is tested at each level. Past the paper: any alpha in [0, 1], and r > q.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from srs_ooc.base.errors import UsageError
from srs_ooc.paper_theory.chains import Climb, Powers, mean_time
from srs_ooc.paper_theory.closed_forms import chain_time, clique_time
from srs_ooc.paper_theory.moves import gains
from srs_ooc.paper_theory.ratios import Magnitude
from srs_ooc.paper_theory.settings import Alpha, Setting

MOST_RELEVANT = {"chain": 10**6, "clique": 10**6, "marginal": 10**5}


def one_iteration(setting: Setting) -> Climb:
    """Return the Markov chain of the number found, one iteration a step (Appendix D.3)."""
    return lambda found: gains(setting, found, setting.n_held(found))


def n_wanted_for(setting: Setting, share: Alpha) -> int:
    """Return the number of features that make up ``share`` of the r relevant ones, rounded up.

    Raises
    ------
    UsageError
        If the share is not in (0, 1].
    """
    try:
        exact = Fraction(str(share))
    except ValueError:
        exact = Fraction(0)
    if not 0 < exact <= 1:
        raise UsageError(f"share: expected a number above 0 and at most 1, found {share!r}")
    return math.ceil(exact * setting.n_relevant)


def expected_time(setting: Setting, n_wanted: int | None = None) -> Magnitude | None:
    """Return the mean number of iterations until ``n_wanted`` relevant features are found.

    Closed forms for the chain and the clique (Theorems 4 to 7 and their extension to any alpha),
    back substitution in the Markov chain for marginal-only.

    Parameters
    ----------
    setting : Setting
        Scenario, p, q, r and alpha.
    n_wanted : int, optional
        1 to r; all r by default.

    Returns
    -------
    Magnitude or None
        None where they are never found; ``setting.why_not`` says why.

    Raises
    ------
    UsageError
        If ``n_wanted`` is not in 1 to r, or r is above 10**6 (marginal-only: 10**5).
    """
    wanted = checked_wanted(setting, n_wanted)
    if wanted > setting.n_findable:
        return None
    if setting.scenario == "chain":
        return chain_time(setting, wanted)
    if setting.scenario == "clique":
        return clique_time(setting, wanted)
    return Magnitude.of(mean_time(one_iteration(setting), wanted))


def markov_time(setting: Setting, n_wanted: int | None = None) -> float | None:
    """Return :func:`expected_time` from the Markov chain, whatever the scenario.

    None where never found; ``inf`` beyond 1.7e308. Costs of the order of r * min(q, r).
    """
    wanted = checked_wanted(setting, n_wanted)
    if wanted > setting.n_findable:
        return None
    return mean_time(one_iteration(setting), wanted)


def time_quantile(setting: Setting, level: float, n_wanted: int | None = None) -> int | None:
    """Return the fewest iterations that find ``n_wanted`` with probability at least ``level``.

    Exact up to rounding: about 1e-11 of itself. None where never found, or beyond 2**1000.

    Raises
    ------
    UsageError
        If the level is not strictly between 0 and 1, or r is above 1,000.
    """
    if not 0.0 < level < 1.0:
        raise UsageError(f"quantile: expected strictly between 0 and 1, found {level}")
    wanted = checked_wanted(setting, n_wanted)
    if wanted > setting.n_findable:
        return None
    return _powers(setting).quantile(level, wanted)


def expected_found(setting: Setting, iterations: Sequence[int]) -> list[float]:
    """Return the mean number of relevant features found after each number of iterations.

    Raises
    ------
    UsageError
        If a number is negative, or r is above 1,000.
    """
    if any(n < 0 for n in iterations):
        raise UsageError(f"iterations: expected 0 or more, found {min(iterations)}")
    powers = _powers(setting)
    return [
        math.fsum(found * chance for found, chance in enumerate(powers.after(n).tolist()))
        for n in iterations
    ]


def found_distribution(setting: Setting, n_iterations: int) -> list[float]:
    """Return the probabilities that 0, 1, ..., r features are found after ``n_iterations``."""
    distribution: list[float] = _powers(setting).after(n_iterations).tolist()
    return distribution


def _powers(setting: Setting) -> Powers:
    return Powers(one_iteration(setting), setting.n_relevant + 1)


def checked_wanted(setting: Setting, n_wanted: int | None) -> int:
    """Return the number wanted, all r when None; refuse what is out of range or out of reach."""
    limit = MOST_RELEVANT[setting.scenario]
    if setting.n_relevant > limit:
        raise UsageError(
            f"n-relevant: times are computed for at most {limit:,} relevant features in the "
            f"{setting.scenario} scenario, found {setting.n_relevant:,}"
        )
    wanted = setting.n_relevant if n_wanted is None else n_wanted
    if not 1 <= wanted <= setting.n_relevant:
        raise UsageError(f"wanted: expected 1 to {setting.n_relevant} features, found {wanted}")
    return wanted
