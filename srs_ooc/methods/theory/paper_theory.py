"""Section 4 of the paper, computable: how many iterations, and what can be found at all.

Mean times: :class:`Setting` with :func:`expected_time`. See docs/research/theory.md and
docs/research/errata.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

import srs_ooc.extend as core

# Order-1 Markov chains that only climb, and their mean times.
#
# A chain is a function giving, for a state l (features found), the probabilities of climbing d = 0,
# 1, ... states. Only positive numbers are added, so small probabilities keep their digits.

Climb = Callable[[int], core.Floats]


def mean_time(climb: Climb, n_wanted: int) -> float:
    """Return the mean number of steps from state 0 until state ``n_wanted`` or above.

    Back substitution in E_l = (1 + sum over k > l of P(l, k) E_k)/(sum over k > l of P(l, k)).
    ``inf`` when it cannot be reached, or beyond 1.7e308.
    """
    times = np.zeros(n_wanted)
    for state in range(n_wanted - 1, -1, -1):
        moves = climb(state)[1:]
        leaving = float(moves.sum())
        if leaving == 0.0:
            times[state] = math.inf
            continue
        within = moves[: n_wanted - state - 1]
        after = times[state + 1 : state + 1 + within.size]
        if not math.isfinite(after.max(initial=0.0)):
            within, after = within[within > 0.0], after[within > 0.0]
        with np.errstate(over="ignore"):
            times[state] = (1.0 + np.dot(within, after)) / np.float64(leaving)
    return float(times[0])


# What a computation of Section 4 is about: the scenario, p, q, r and alpha, checked.

SCENARIOS = ("chain", "clique", "marginal")
Alpha = str | int | float | Decimal | Fraction


def exact_alpha(alpha: Alpha) -> Fraction:
    """Return alpha as the exact number its decimal text says.

    Raises
    ------
    UsageError
        If alpha is no number or outside [0, 1].
    """
    try:
        return core.exact_share(alpha)
    except ValueError:
        raise core.UsageError(
            f"alpha: expected a number between 0 and 1, found {str(alpha)!r}; "
            "alpha is the share of the subspace held for features already found"
        ) from None


@dataclass(frozen=True)
class Setting:
    """One scenario of Section 4.2 with its sizes.

    Parameters
    ----------
    scenario : {'chain', 'clique', 'marginal'}
        How the relevant features depend on one another.
    n_features : int
        p, all features.
    subspace_size : int
        q, features in memory at once.
    n_relevant : int
        r, relevant features.
    alpha : Fraction, or what stands for one
        Share of the subspace held for features already found; 0 is Random Subspace.

    Raises
    ------
    UsageError
        If the scenario is unknown or a size is outside its range.
    """

    scenario: str
    n_features: int
    subspace_size: int
    n_relevant: int
    alpha: Alpha = 0

    def __post_init__(self) -> None:
        if self.scenario not in SCENARIOS:
            raise core.UsageError(
                f"scenario: expected one of {', '.join(SCENARIOS)}, found {self.scenario!r}"
            )
        _check_size("n-features", self.n_features, None)
        _check_size("q", self.subspace_size, self.n_features)
        _check_size("n-relevant", self.n_relevant, self.n_features)
        object.__setattr__(self, "alpha", exact_alpha(self.alpha))

    @property
    def n_held_max(self) -> int:
        """floor(alpha q), the most found features a subspace is given."""
        return int(core.exact_share(self.alpha) * self.subspace_size)

    def n_held(self, n_found: int) -> int:
        """Return |R| = min(floor(alpha q), |F|) of Algorithm 1, step 2(a)."""
        return min(self.n_held_max, n_found)

    @property
    def n_findable(self) -> int:
        """The number of relevant features found after infinitely many iterations."""
        q, r = self.subspace_size, self.n_relevant
        if self.scenario == "chain":
            return min(q, r)
        if self.scenario == "clique":
            return r if r <= q else 0
        return r if r <= q or self.n_held_max < q else q

    def why_not(self) -> str | None:
        """Return why not all relevant features are ever found, or None when they are."""
        found, q, r = self.n_findable, self.subspace_size, self.n_relevant
        if found == r:
            return None
        if self.scenario == "clique":
            return f"a clique of {r} is seen only in a subspace holding all {r}; q is {q}"
        if self.scenario == "chain":
            return (
                f"feature {found + 1} of the chain is seen only beside the {found} before it; "
                f"q is {q}, so {found} of {r} are found and no more"
            )
        return (
            f"once {q} are found, alpha = {float(self.alpha):g} fills all q = {q} places with "
            f"found features: {q} of {r} are found and no more"
        )


def _check_size(name: str, value: int, limit: int | None) -> None:
    if value < 1 or (limit is not None and value > limit):
        found = f"{name}: found {value}"
        if limit is None:
            raise core.UsageError(f"{found}, expected at least 1")
        raise core.UsageError(f"{found}, expected 1 to {limit} (the number of features)")


# One iteration: the probabilities of finding 0, 1, 2, ... more features (Appendix D.3).


def marginal_gains(p: int, q: int, r: int, found: int, held: int) -> core.Floats:
    """Return the gains of marginal-only features: Eq. (12) and (13), a hypergeometric law.

    q - m are drawn among p - m, of which r - l are not yet found. The weights are formed by
    ratios outwards from the most likely count and divided by their sum. Probabilities of finding
    something are relatively accurate, however small; what is below 1e-308 is 0.

    Parameters
    ----------
    p, q, r : int
        All features, those of a subspace, and the relevant ones.
    found, held : int
        Found so far, l, and how many of them the subspace is given, m.

    Returns
    -------
    float64 (n,)
        Element d is the probability that d more are found.
    """
    pool, drawn, wanted = p - held, q - held, r - found
    others = pool - wanted
    low, high = max(0, drawn - others), min(drawn, wanted)
    if low == high:
        return np.append(np.zeros(high), 1.0)
    mode = min(max((drawn + 1) * (wanted + 1) // (pool + 2), low), high)
    mean = drawn * (wanted / pool)
    spread = int(12 * math.sqrt(mean + 1) + 60)  # what lies beyond is below 1e-30 of the whole
    low, high = max(low, mode - spread), min(high, mode + spread)

    def rising(count: core.Floats) -> core.Floats:
        more = (wanted - count) * (drawn - count)
        return more / ((count + 1) * (others - drawn + count + 1))

    above = np.cumprod(rising(np.arange(mode, high, dtype=np.float64)))
    below = np.cumprod(1.0 / rising(np.arange(mode - 1, low - 1, -1, dtype=np.float64)))
    weights = np.concatenate([below[::-1], [1.0], above])
    return np.concatenate([np.zeros(low), weights / weights.sum()])


# Products of the ratios (p - l)/(q - l), exact to far more digits than are shown, at any magnitude.
#
# Binomial coefficients at p = 10^9 through log-gamma lose six digits (two logarithms of 10^10 are
# subtracted). The probabilities of Section 4 are ratios of such coefficients and simplify to
# products of ratios of integers, which are formed here directly, in decimals of 40 digits whose
# exponents do not overflow.

DIGITS = Context(prec=40, Emax=MAX_EMAX, Emin=MIN_EMIN)


def ratio_product(n_features: int, subspace_size: int, start: int, stop: int) -> Decimal:
    """Return the product of (p - l)/(q - l) over ``start <= l < stop``.

    With ``start = 0`` this is C(p, q)/C(p - stop, q - stop), Theorem 4: the mean number of uniform
    draws of q among p until one holds ``stop`` given features; with ``start = m`` the same when m
    of them are held in every draw.

    Raises
    ------
    ValueError
        If ``stop > q``: a draw of q cannot hold more than q.
    """
    if stop > subspace_size:
        raise ValueError(f"{subspace_size} features cannot hold {stop}")
    with localcontext(DIGITS):
        ratios = (
            Decimal(n_features - level) / (subspace_size - level) for level in range(start, stop)
        )
        return math.prod(ratios, start=Decimal(1))


# Mean times in closed form: Theorems 4 to 7, and the same arguments for any alpha in [0, 1].
#
# Write h for the most features held, floor(alpha q). Under the paper's assumptions (D.1) the chain
# is found as its longest prefix drawn together. While l <= h features are found all are held, and
# the argument of Theorem 5 applies; from h on, the next features must be drawn together with those
# of the prefix that are not held, and the wait for the n-th is geometric whatever was found in
# between. Theorem 4 is h = 0, Theorem 5 is h >= n - 1.


def chain_time(setting: Setting, n_wanted: int) -> Decimal:
    """Return the mean number of iterations until the first ``n_wanted`` of a chain are found.

    With h = min(floor(alpha q), n - 1): the sum of (p - q)/(q - l) over l < h, plus the product
    of (p - l)/(q - l) over h <= l < n. Equations (1) and (3) at alpha = 0 and 1.
    """
    p, q = setting.n_features, setting.subspace_size
    held = setting.n_held(n_wanted - 1)
    with localcontext(DIGITS):
        waits = sum((Decimal(p - q) / (q - level) for level in range(held)), Decimal(0))
        return ratio_product(p, q, held, n_wanted) + waits


def clique_time(setting: Setting, n_wanted: int) -> Decimal:
    """Return the mean number of iterations until ``n_wanted`` members of a clique are found.

    The sum over l < n of r/(r - l) times the product of (p - m)/(q - m) over
    min(floor(alpha q), l) <= m < r. Equations (6) and (7) at alpha = 0 and 1.
    """
    p, q, r = setting.n_features, setting.subspace_size, setting.n_relevant
    held = setting.n_held(n_wanted - 1)
    with localcontext(DIGITS):
        together = ratio_product(p, q, held, r)
        total = Decimal(0)
        for found in range(n_wanted - 1, -1, -1):
            while held > setting.n_held(found):
                held -= 1
                together *= Decimal(p - held) / (q - held)
            total += together * r / (r - found)
    return total


# Mean iterations to find relevant features (Section 4.2).
#
# Assumptions are the paper's (Appendix D.1): infinite samples, K = q, the simplified tree in which
# one feature is tested at each level. Past the paper: any alpha in [0, 1], and r > q.

MOST_RELEVANT = {"chain": 10**6, "clique": 10**6, "marginal": 10**5}


def expected_time(setting: Setting, n_wanted: int | None = None) -> Decimal | None:
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
    Decimal or None
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
    sizes = (setting.n_features, setting.subspace_size, setting.n_relevant)

    def climb(found: int) -> core.Floats:
        return marginal_gains(*sizes, found, setting.n_held(found))

    return Decimal(mean_time(climb, wanted))


def mean_iterations(
    scenario: str, n_features: int, subspace_size: int, n_relevant: int, alpha: Alpha
) -> Decimal | None:
    """Return what plans show: :func:`expected_time` of a :class:`Setting`."""
    return expected_time(Setting(scenario, n_features, subspace_size, n_relevant, alpha))


def checked_wanted(setting: Setting, n_wanted: int | None) -> int:
    """Return the number wanted, all r when None; refuse what is out of range or out of reach."""
    limit = MOST_RELEVANT[setting.scenario]
    if setting.n_relevant > limit:
        raise core.UsageError(
            f"n-relevant: times are computed for at most {limit:,} relevant features in the "
            f"{setting.scenario} scenario, found {setting.n_relevant:,}"
        )
    wanted = setting.n_relevant if n_wanted is None else n_wanted
    if not 1 <= wanted <= setting.n_relevant:
        raise core.UsageError(
            f"wanted: expected 1 to {setting.n_relevant} features, found {wanted}"
        )
    return wanted


# RS beside SRS in one setting, as plain values for the command line and for JSON.


def compare(scenario: str, alpha: Alpha, **sizes: int) -> dict[str, Any]:
    """Return the mean iterations of RS and SRS.

    Parameters
    ----------
    scenario, alpha, **sizes
        Of a :class:`Setting`: that of SRS; for RS alpha is 0.

    Returns
    -------
    dict
        ``scenario``, ``n_features``, ``q``, ``n_relevant``, ``alpha``, ``rs``, ``srs``,
        ``log10_rs``, ``log10_srs``: rs and srs are null where nothing is found (then the logarithm
        is null too) or above 1.7e308; ``reason`` says which, and is there only then.
    """
    rs, srs = (Setting(scenario, alpha=each, **sizes) for each in ("0", alpha))
    both = {"rs": rs, "srs": srs}
    times = {name: expected_time(setting) for name, setting in both.items()}
    summary: dict[str, Any] = {
        "scenario": srs.scenario,
        "n_features": srs.n_features,
        "q": srs.subspace_size,
        "n_relevant": srs.n_relevant,
        "alpha": float(srs.alpha),
        **{name: finite(time) for name, time in times.items()},
        **{
            f"log10_{name}": None if time is None else float(time.log10())
            for name, time in times.items()
        },
    }
    reasons = [
        f"{name}: {setting.why_not() or 'above 1.7e308; see its logarithm'}"
        for name, setting in both.items()
        if summary[name] is None
    ]
    if reasons:
        summary["reason"] = "; ".join(reasons)
    return summary


def finite(time: Decimal | None) -> float | None:
    """Return a mean time as a float; None where there is none, or above 1.7e308."""
    return float(time) if time is not None and math.isfinite(float(time)) else None
