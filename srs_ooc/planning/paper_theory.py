"""Section 4 of the paper, computable: how many iterations, and what can be found at all.

Times: :class:`Setting` with :func:`expected_time` and its neighbours; then rounds of several
subspaces. See docs/research/theory.md and docs/research/errata.md.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import ShareLike, exact_share, floor_share

# Order-1 Markov chains that only climb: mean times, distributions after t steps, quantiles.
#
# A chain is a function giving, for a state l (features found), the probabilities of climbing d = 0,
# 1, ... states. Mean times come from back substitution and distributions from powers of two of the
# transition matrix; only positive numbers are added, so small probabilities keep their digits. The
# probability of leaving a state is kept apart from that of staying: 1 - 1e-17 is 1.

FloatArray = NDArray[np.float64]
Climb = Callable[[int], FloatArray]

MAX_STATES = 1001
MAX_DOUBLINGS = 1000
SLACK = 1e-12  # so that rounding does not add a step where the level is met exactly


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


class Powers:
    """Powers of two of a climbing chain's transition matrix, made when first needed.

    Parameters
    ----------
    climb : Climb
        Probabilities of climbing from each state.
    n_states : int
        States 0 to ``n_states - 1``; the last must be absorbing or never left upwards.

    Raises
    ------
    UsageError
        If there are more than 1,001 states (each power is a matrix of their square).
    """

    def __init__(self, climb: Climb, n_states: int) -> None:
        if n_states > MAX_STATES:
            raise UsageError(
                f"distributions over time are computed for at most {MAX_STATES - 1:,} relevant "
                f"features, found {n_states - 1:,}; mean times have no such limit"
            )
        moves = np.zeros((n_states, n_states))
        self._log_stay = np.zeros(n_states)
        for state in range(n_states - 1):
            row = climb(state)
            moves[state, state + 1 : state + row.size] = row[1:]
            self._log_stay[state] = _log_stay(float(row[0]), float(row[1:].sum()))
        self._moves = [moves]

    def after(self, n_steps: int) -> FloatArray:
        """Return float64 (n_states,), the distribution after ``n_steps`` from state 0."""
        found = self._start()
        for power in range(n_steps.bit_length()):
            if n_steps >> power & 1:
                found = self._advance(found, power)
        return found

    def quantile(self, level: float, n_wanted: int) -> int | None:
        """Return the fewest steps after which P(state >= n_wanted) >= ``level``.

        Doubling until it is, then bisection on the stored powers. None when it never is, or
        not within 2**1000 steps.
        """

        def short(found: FloatArray) -> bool:
            """Say whether the level is not met, from the smaller of the two tails."""
            if level < 0.5:
                return float(found[n_wanted:].sum()) < level * (1.0 - SLACK)
            return float(found[:n_wanted].sum()) > (1.0 - level) * (1.0 + SLACK)

        found, power = self._start(), 0
        while short(self._advance(found, power)):
            power += 1
            if power > MAX_DOUBLINGS:
                return None
        steps = 0
        for lower in range(power - 1, -1, -1):
            ahead = self._advance(found, lower)
            if short(ahead):
                found, steps = ahead, steps + (1 << lower)
        return steps + 1

    def _start(self) -> FloatArray:
        start = np.zeros(self._log_stay.size)
        start[0] = 1.0
        return start

    def _advance(self, found: FloatArray, power: int) -> FloatArray:
        """Return the distribution 2**power steps later."""
        while len(self._moves) <= power:
            self._moves.append(self._square(len(self._moves)))
        ahead: FloatArray = found * self._stay(power) + found @ self._moves[power]
        return ahead

    def _stay(self, power: int) -> FloatArray:
        """Return the probabilities of staying put for 2**power steps."""
        stay: FloatArray = np.exp(math.ldexp(1.0, power) * self._log_stay)
        return stay

    def _square(self, power: int) -> FloatArray:
        """Return the moves of 2**power steps from those of half as many.

        Rows are rescaled to the probability of leaving, known from one step to a rounding, so
        errors do not double with each squaring.
        """
        half, stay = self._moves[power - 1], self._stay(power - 1)
        moves: FloatArray = stay[:, None] * half + half * stay[None, :] + half @ half
        leaving = -np.expm1(math.ldexp(1.0, power) * self._log_stay)
        total = moves.sum(axis=1)
        scale = np.divide(leaving, total, out=np.ones_like(total), where=total > 0)
        rescaled: FloatArray = moves * scale[:, None]
        return rescaled


def _log_stay(stay: float, leaving: float) -> float:
    """Return the logarithm of the probability of staying, from the smaller of the two."""
    if stay >= 0.5:
        return math.log1p(-leaving)
    return math.log(stay) if stay > 0.0 else -math.inf


# What a computation of Section 4 is about: the scenario, p, q, r and alpha, checked.

SCENARIOS = ("chain", "clique", "marginal")
Alpha = ShareLike


def exact_alpha(alpha: Alpha) -> Fraction:
    """Return alpha as the exact number its decimal text says.

    Raises
    ------
    UsageError
        If alpha is no number or outside [0, 1].
    """
    try:
        return exact_share(alpha)
    except ValueError:
        raise UsageError(
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
            raise UsageError(
                f"scenario: expected one of {', '.join(SCENARIOS)}, found {self.scenario!r}"
            )
        _check_size("n-features", self.n_features, None)
        _check_size("q", self.subspace_size, self.n_features)
        _check_size("n-relevant", self.n_relevant, self.n_features)
        object.__setattr__(self, "alpha", exact_alpha(self.alpha))

    @property
    def n_held_max(self) -> int:
        """floor(alpha q), the most found features a subspace is given."""
        return floor_share(self.alpha, self.subspace_size)

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

    def why_not(self, n_wanted: int) -> str | None:
        """Return why ``n_wanted`` features are never found, or None when they are."""
        found, q, r = self.n_findable, self.subspace_size, self.n_relevant
        if n_wanted <= found:
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
            raise UsageError(f"{found}, expected at least 1")
        raise UsageError(f"{found}, expected 1 to {limit} (the number of features)")


# One iteration: the probabilities of finding 0, 1, 2, ... more features (Appendix D.3).
#
# Each function takes p, q, r, the number found so far and the number of those held in the subspace
# (at most q), and returns float64 (n,): element d is the probability that d more are found. In the
# printed matrices held = 0 is RS and held = found is SRS with alpha = 1. Probabilities of finding
# something are relatively accurate, however small; what is below 1e-308 is 0.


def gains(setting: Setting, n_found: int, n_held: int) -> FloatArray:
    """Return the probabilities of finding d = 0, 1, ... more in one iteration.

    Parameters
    ----------
    setting : Setting
        Scenario and sizes; its alpha is not used.
    n_found : int
        Relevant features found so far.
    n_held : int
        How many of them the subspace is given; the rest of it is drawn uniformly.
    """
    sizes = (setting.n_features, setting.subspace_size, setting.n_relevant)
    if n_found >= setting.n_relevant:
        return np.ones(1)
    if setting.scenario == "chain":
        return chain_gains(*sizes, n_found, n_held)
    if setting.scenario == "clique":
        return clique_gains(*sizes, n_found, n_held)
    return marginal_gains(*sizes, n_found, n_held)


def chain_gains(p: int, q: int, r: int, found: int, held: int) -> FloatArray:
    """Return the gains of the chain: Eq. (8) and (9), with the binomials corrected.

    The longest prefix drawn has length k exactly when the first k are in and the next is not:
    C(p - k - 1, q - k)/C(p - m, q - m) for k < r, not C(p - r, q - k)/C(p - m, q - m).
    """
    top = min(q, r)
    levels = np.arange(held, top, dtype=np.float64)
    at_least = np.cumprod((q - levels) / (p - levels))[found - held :]
    longest = np.arange(found + 1, top + 1, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):  # p = r: the last is set below
        next_missing = (p - q) / (p - longest)
    if top == r:
        next_missing[-1:] = 1.0
    return _with_stay(at_least * next_missing)


def clique_gains(p: int, q: int, r: int, found: int, held: int) -> FloatArray:
    """Return the gains of the clique: Eq. (10) and (11), at most one more an iteration."""
    if r > q:
        return np.ones(1)
    levels = np.arange(held, r, dtype=np.float64)
    together = float(np.prod((q - levels) / (p - levels)))
    return _with_stay(np.array([together * ((r - found) / r)]))


def marginal_gains(p: int, q: int, r: int, found: int, held: int) -> FloatArray:
    """Return the gains of marginal-only features: Eq. (12) and (13), a hypergeometric law.

    q - m are drawn among p - m, of which r - l are not yet found. The weights are formed by
    ratios outwards from the most likely count and divided by their sum.
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

    def rising(count: FloatArray) -> FloatArray:
        more = (wanted - count) * (drawn - count)
        ratios: FloatArray = more / ((count + 1) * (others - drawn + count + 1))
        return ratios

    above = np.cumprod(rising(np.arange(mode, high, dtype=np.float64)))
    below = np.cumprod(1.0 / rising(np.arange(mode - 1, low - 1, -1, dtype=np.float64)))
    weights = np.concatenate([below[::-1], [1.0], above])
    return np.concatenate([np.zeros(low), weights / weights.sum()])


def _with_stay(moves: FloatArray) -> FloatArray:
    """Prepend the probability of finding nothing more."""
    return np.concatenate([[max(0.0, 1.0 - float(moves.sum()))], moves])


# Products of the ratios (p - l)/(q - l), exact to about a rounding, at any magnitude.
#
# Binomial coefficients at p = 10^9 through log-gamma lose six digits (two logarithms of 10^10 are
# subtracted). The probabilities of Section 4 are ratios of such coefficients and simplify to
# products of ratios of integers, which are formed here directly: integers in blocks, one correctly
# rounded division a block, exponent kept apart so that nothing overflows.

BLOCK = 16
LOG10_2 = math.log10(2.0)
LARGEST_EXPONENT = 1024


@dataclass(frozen=True)
class Magnitude:
    """A non-negative number ``mantissa * 2**exponent`` of any size.

    Parameters
    ----------
    mantissa : float
        0, or in [0.5, 1).
    exponent : int
        Power of two.
    """

    mantissa: float
    exponent: int

    @classmethod
    def of(cls, value: float) -> "Magnitude":
        """Return ``value`` (finite, not negative) as a magnitude."""
        return cls(*math.frexp(value))

    def __mul__(self, other: "Magnitude") -> "Magnitude":
        """Return the product."""
        mantissa, shift = math.frexp(self.mantissa * other.mantissa)
        return Magnitude(mantissa, self.exponent + other.exponent + shift)

    def __add__(self, other: "Magnitude") -> "Magnitude":
        """Return the sum."""
        if self.mantissa == 0.0 or (other.mantissa != 0.0 and self.exponent < other.exponent):
            self, other = other, self  # noqa: PLW0642 (addition commutes)
        distance = max(other.exponent - self.exponent, -LARGEST_EXPONENT)
        mantissa, shift = math.frexp(self.mantissa + math.ldexp(other.mantissa, distance))
        return Magnitude(mantissa, self.exponent + shift)

    @property
    def value(self) -> float:
        """The number as a float; ``inf`` beyond 1.7e308."""
        if self.exponent > LARGEST_EXPONENT:
            return math.inf
        return math.ldexp(self.mantissa, self.exponent)

    @property
    def log10(self) -> float:
        """The decimal logarithm, finite at any size above 0."""
        if sys.float_info.min <= self.value < math.inf:
            return math.log10(self.value)
        return math.log10(self.mantissa) + self.exponent * LOG10_2


def ratio(numerator: int, denominator: int) -> Magnitude:
    """Return ``numerator / denominator`` of two integers, correctly rounded."""
    return Magnitude.of(numerator / denominator)


def ratio_product(n_features: int, subspace_size: int, start: int, stop: int) -> Magnitude:
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
    product = Magnitude.of(1.0)
    for first in range(start, stop, BLOCK):
        above = below = 1
        for level in range(first, min(first + BLOCK, stop)):
            above *= n_features - level
            below *= subspace_size - level
        product *= ratio(above, below)
    return product


# Mean times in closed form: Theorems 4 to 7, and the same arguments for any alpha in [0, 1].
#
# Write h for the most features held, floor(alpha q). Under the paper's assumptions (D.1) the chain
# is found as its longest prefix drawn together. While l <= h features are found all are held, and
# the argument of Theorem 5 applies; from h on, the next features must be drawn together with those
# of the prefix that are not held, and the wait for the n-th is geometric whatever was found in
# between. Theorem 4 is h = 0, Theorem 5 is h >= n - 1.


def chain_time(setting: Setting, n_wanted: int) -> Magnitude:
    """Return the mean number of iterations until the first ``n_wanted`` of a chain are found.

    With h = min(floor(alpha q), n - 1): the sum of (p - q)/(q - l) over l < h, plus the product
    of (p - l)/(q - l) over h <= l < n. Equations (1) and (3) at alpha = 0 and 1.
    """
    p, q = setting.n_features, setting.subspace_size
    held = setting.n_held(n_wanted - 1)
    waits = math.fsum((p - q) / (q - level) for level in range(held))
    return ratio_product(p, q, held, n_wanted) + Magnitude.of(waits)


def clique_time(setting: Setting, n_wanted: int) -> Magnitude:
    """Return the mean number of iterations until ``n_wanted`` members of a clique are found.

    The sum over l < n of r/(r - l) times the product of (p - m)/(q - m) over
    min(floor(alpha q), l) <= m < r. Equations (6) and (7) at alpha = 0 and 1.
    """
    p, q, r = setting.n_features, setting.subspace_size, setting.n_relevant
    held = setting.n_held(n_wanted - 1)
    together = ratio_product(p, q, held, r)
    total = Magnitude.of(0.0)
    for found in range(n_wanted - 1, -1, -1):
        while held > setting.n_held(found):
            held -= 1
            together *= ratio(p - held, q - held)
        total += together * ratio(r, r - found)
    return total


# Iterations to find relevant features, and features found after so many iterations (Section 4.2).
#
# Assumptions are the paper's (Appendix D.1): infinite samples, K = q, the simplified tree in which
# one feature is tested at each level. Past the paper: any alpha in [0, 1], and r > q.

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


# Rounds of several subspaces drawn from the same F: iterations lost, wall-clock won.
#
# SRS is sequential: F changes after each tree. Growing s trees from one F lets s workers go at once
# but feeds each with what was known before the round. Within a round R is drawn from F as it stood,
# so the number held is fixed while the number found climbs: s steps of the chain with that number
# held make one step of the chain of rounds.


def one_round(setting: Setting, round_size: int) -> Climb:
    """Return the Markov chain of the number found, one round a step."""
    most = setting.n_held_max
    saturated = _matrix(setting, most, most) if most < setting.n_relevant else np.ones((1, 1))

    def climb(found: int) -> FloatArray:
        held = setting.n_held(found)
        if held == most and most < setting.n_relevant:
            return _repeat(saturated[found - most :, found - most :], round_size)
        return _repeat(_matrix(setting, held, found), round_size)

    return climb


def round_cost(
    setting: Setting, round_size: int, n_wanted: int | None = None
) -> dict[str, float] | None:
    """Return what rounds of ``round_size`` subspaces cost and win against one at a time (means).

    Returns
    -------
    dict of str to float, or None
        ``n_rounds`` until ``n_wanted`` features (all by default) are found; ``n_iterations``, the
        subspaces grown until then; ``n_lost``, how many more these are than one at a time
        (negative where late accumulation helps); ``speedup``, the wall-clock won by as many workers
        as a round has subspaces, each as fast as one. None where they are never found, or the mean
        passes 1.7e308.

    Raises
    ------
    UsageError
        If the round size is below 1, or r above 1,000.
    """
    if round_size < 1:
        raise UsageError(f"round size: expected at least 1, found {round_size}")
    if setting.n_relevant >= MAX_STATES:
        raise UsageError(
            f"rounds are computed for at most {MAX_STATES - 1:,} relevant features, "
            f"found {setting.n_relevant:,}"
        )
    single = expected_time(setting, n_wanted)
    if single is None:
        return None
    wanted = setting.n_relevant if n_wanted is None else n_wanted
    n_rounds = mean_time(one_round(setting, round_size), wanted)
    if not math.isfinite(n_rounds * round_size):
        return None
    n_iterations = round_size * n_rounds
    return {
        "n_rounds": n_rounds,
        "n_iterations": n_iterations,
        "n_lost": n_iterations - single.value,
        "speedup": single.value / n_rounds,
    }


def _matrix(setting: Setting, n_held: int, first: int) -> FloatArray:
    """Return the one-iteration transition matrix of states ``first`` to r with ``n_held`` held."""
    n_states = setting.n_relevant - first + 1
    matrix = np.zeros((n_states, n_states))
    for state in range(n_states):
        row = gains(setting, first + state, n_held)
        matrix[state, state : state + row.size] = row
    return matrix


def _repeat(matrix: FloatArray, n_steps: int) -> FloatArray:
    """Return the distribution after ``n_steps`` from the first state."""
    climbed = np.zeros(matrix.shape[0])
    climbed[0] = 1.0
    for _ in range(n_steps):
        climbed = climbed @ matrix
    return climbed


# RS beside SRS in one setting, as plain values for the command line and for JSON.


def compare(
    rs: Setting,
    srs: Setting,
    *,
    share: Alpha | None = None,
    quantile: float | None = None,
    after: int | None = None,
    round_size: int | None = None,
) -> dict[str, Any]:
    """Return the mean iterations of RS and SRS, and what else was asked.

    Parameters
    ----------
    rs, srs : Setting
        The same setting with alpha = 0 and with the alpha of interest.
    share : number or text, optional
        Of the relevant features, to be found instead of all.
    quantile : float, optional
        Adds the iterations that are enough with this probability.
    after : int, optional
        Adds the number found after so many iterations.
    round_size : int, optional
        Adds the cost of rounds of so many subspaces.

    Returns
    -------
    dict
        ``scenario``, ``n_features``, ``q``, ``n_relevant``, ``alpha``, ``rs``, ``srs``,
        ``log10_rs``, ``log10_srs``: rs and srs are null where nothing is found (then the logarithm
        is null too) or above 1.7e308; ``reason`` says which, and is there only then. ``share``,
        ``quantile``, ``after`` and ``rounds`` are there only when asked.
    """
    wanted = n_wanted_for(srs, 1 if share is None else share)
    both = {"rs": rs, "srs": srs}
    times = {name: expected_time(setting, wanted) for name, setting in both.items()}
    summary: dict[str, Any] = {
        "scenario": srs.scenario,
        "n_features": srs.n_features,
        "q": srs.subspace_size,
        "n_relevant": srs.n_relevant,
        "alpha": float(srs.alpha),
        **{name: finite(time) for name, time in times.items()},
        **{f"log10_{name}": time and time.log10 for name, time in times.items()},
    }
    reasons = [
        f"{name}: {setting.why_not(wanted) or 'above 1.7e308; see its logarithm'}"
        for name, setting in both.items()
        if summary[name] is None
    ]
    if reasons:
        summary["reason"] = "; ".join(reasons)
    if share is not None:
        summary |= {"share": float(share), "n_wanted": wanted}
    if quantile is not None:
        enough = {name: time_quantile(setting, quantile, wanted) for name, setting in both.items()}
        summary["quantile"] = {"level": quantile} | enough
    if after is not None:
        found = {name: expected_found(setting, [after])[0] for name, setting in both.items()}
        summary["after"] = {"iterations": after} | found
    if round_size is not None:
        costs = {name: round_cost(setting, round_size, wanted) for name, setting in both.items()}
        summary["rounds"] = {"round_size": round_size} | costs
    return summary


def finite(time: Magnitude | None) -> float | None:
    """Return a mean time as a float; None where there is none, or above 1.7e308."""
    return time.value if time is not None and math.isfinite(time.value) else None
