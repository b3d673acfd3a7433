"""Order-1 Markov chains that only climb: mean times, distributions after t steps, quantiles.

A chain is a function giving, for a state l (features found), the probabilities of climbing
d = 0, 1, ... states. Mean times come from back substitution and distributions from powers of
two of the transition matrix; only positive numbers are added, so small probabilities keep their
digits. The probability of leaving a state is kept apart from that of staying: 1 - 1e-17 is 1.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError

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
