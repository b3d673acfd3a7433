"""Section 4 of the paper over time: how sure, how many found, and rounds of several subspaces.

Claim: the number of relevant features found is an order-1 Markov chain that only climbs (Appendix
D.3), so that its distribution after any number of iterations can be computed. RS beside SRS:

    python benchmarks/research/theory_over_time.py chain --n-features 850000 --q 2500 \\
        --n-relevant 4 --alpha 0.5 --quantile 0.99 --after 1000 --round-size 16

Mean times are those of `srs-ooc theory` (docs/research/theory.md).
"""

import argparse
import math
from collections.abc import Sequence

import numpy as np

from srs_ooc.base.arrays import Floats
from srs_ooc.base.errors import UsageError
from srs_ooc.methods.theory.paper_theory import (
    SCENARIOS,
    Climb,
    Setting,
    checked_wanted,
    expected_time,
    marginal_gains,
    mean_time,
)

# One iteration: the probabilities of finding 0, 1, 2, ... more features (Appendix D.3).
#
# Each function takes p, q, r, the number found so far and the number of those held in the subspace
# (at most q), and returns float64 (n,): element d is the probability that d more are found. In the
# printed matrices held = 0 is RS and held = found is SRS with alpha = 1. Probabilities of finding
# something are relatively accurate, however small; what is below 1e-308 is 0.


def gains(setting: Setting, n_found: int, n_held: int) -> Floats:
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


def chain_gains(p: int, q: int, r: int, found: int, held: int) -> Floats:
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


def clique_gains(p: int, q: int, r: int, found: int, held: int) -> Floats:
    """Return the gains of the clique: Eq. (10) and (11), at most one more an iteration."""
    if r > q:
        return np.ones(1)
    levels = np.arange(held, r, dtype=np.float64)
    together = float(np.prod((q - levels) / (p - levels)))
    return _with_stay(np.array([together * ((r - found) / r)]))


def _with_stay(moves: Floats) -> Floats:
    """Prepend the probability of finding nothing more."""
    return np.concatenate([[max(0.0, 1.0 - float(moves.sum()))], moves])


def one_iteration(setting: Setting) -> Climb:
    """Return the Markov chain of the number found, one iteration a step (Appendix D.3)."""
    return lambda found: gains(setting, found, setting.n_held(found))


# Distributions after t steps come from powers of two of the transition matrix; only positive
# numbers are added, so small probabilities keep their digits. The probability of leaving a state is
# kept apart from that of staying: 1 - 1e-17 is 1.

MAX_STATES = 1001
MAX_DOUBLINGS = 1000
SLACK = 1e-12  # so that rounding does not add a step where the level is met exactly


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

    def after(self, n_steps: int) -> Floats:
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

        def short(found: Floats) -> bool:
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

    def _start(self) -> Floats:
        start = np.zeros(self._log_stay.size)
        start[0] = 1.0
        return start

    def _advance(self, found: Floats, power: int) -> Floats:
        """Return the distribution 2**power steps later."""
        while len(self._moves) <= power:
            self._moves.append(self._square(len(self._moves)))
        ahead: Floats = found * self._stay(power) + found @ self._moves[power]
        return ahead

    def _stay(self, power: int) -> Floats:
        """Return the probabilities of staying put for 2**power steps."""
        stay: Floats = np.exp(math.ldexp(1.0, power) * self._log_stay)
        return stay

    def _square(self, power: int) -> Floats:
        """Return the moves of 2**power steps from those of half as many.

        Rows are rescaled to the probability of leaving, known from one step to a rounding, so
        errors do not double with each squaring.
        """
        half, stay = self._moves[power - 1], self._stay(power - 1)
        moves: Floats = stay[:, None] * half + half * stay[None, :] + half @ half
        leaving = -np.expm1(math.ldexp(1.0, power) * self._log_stay)
        total = moves.sum(axis=1)
        scale = np.divide(leaving, total, out=np.ones_like(total), where=total > 0)
        rescaled: Floats = moves * scale[:, None]
        return rescaled


def _log_stay(stay: float, leaving: float) -> float:
    """Return the logarithm of the probability of staying, from the smaller of the two."""
    if stay >= 0.5:
        return math.log1p(-leaving)
    return math.log(stay) if stay > 0.0 else -math.inf


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
    return powers(setting).quantile(level, wanted)


def expected_found(setting: Setting, iterations: Sequence[int]) -> list[float]:
    """Return the mean number of relevant features found after each number of iterations.

    Raises
    ------
    UsageError
        If a number is negative, or r is above 1,000.
    """
    if any(n < 0 for n in iterations):
        raise UsageError(f"iterations: expected 0 or more, found {min(iterations)}")
    over_time = powers(setting)
    return [
        math.fsum(found * chance for found, chance in enumerate(over_time.after(n).tolist()))
        for n in iterations
    ]


def powers(setting: Setting) -> Powers:
    """Return the powers of the chain of the number found, one iteration a step."""
    return Powers(one_iteration(setting), setting.n_relevant + 1)


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

    def climb(found: int) -> Floats:
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
        "n_lost": n_iterations - float(single),
        "speedup": float(single) / n_rounds,
    }


def _matrix(setting: Setting, n_held: int, first: int) -> Floats:
    """Return the one-iteration transition matrix of states ``first`` to r with ``n_held`` held."""
    n_states = setting.n_relevant - first + 1
    matrix = np.zeros((n_states, n_states))
    for state in range(n_states):
        row = gains(setting, first + state, n_held)
        matrix[state, state : state + row.size] = row
    return matrix


def _repeat(matrix: Floats, n_steps: int) -> Floats:
    """Return the distribution after ``n_steps`` from the first state."""
    climbed = np.zeros(matrix.shape[0])
    climbed[0] = 1.0
    for _ in range(n_steps):
        climbed = climbed @ matrix
    return climbed


def lines(
    rs: Setting, srs: Setting, quantile: float | None, after: int | None, round_size: int | None
) -> list[str]:
    """Return what was asked, for a reader."""
    both = {"RS  (alpha = 0)": rs, f"SRS (alpha = {float(srs.alpha):g})": srs}
    said = []
    if quantile is not None:
        said.append(f"iterations enough with probability {quantile:g}")
        for name, setting in both.items():
            enough = time_quantile(setting, quantile)
            said.append(f"  {name:<21}{'never' if enough is None else f'{enough:,}'}")
    if after is not None:
        said.append(f"mean number found after {after:,} iterations")
        said += [f"  {name:<21}{expected_found(s, [after])[0]:.6g}" for name, s in both.items()]
    if round_size is not None:
        said.append(f"rounds of {round_size} subspaces drawn from one F (means)")
        for name, setting in both.items():
            said.append(f"  {name:<21}{_cost(round_cost(setting, round_size))}")
    return said


def _cost(cost: dict[str, float] | None) -> str:
    if cost is None:
        return "never, or beyond 1.7e308"
    return (
        f"{cost['n_rounds']:,.6g} rounds, {cost['n_lost']:+,.4g} iterations against one at a "
        f"time, wall-clock {cost['speedup']:.4g} times shorter"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what was asked of RS and SRS in one setting."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("scenario", choices=SCENARIOS)
    for name in ("n-features", "q", "n-relevant"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--alpha", default="1")
    parser.add_argument("--quantile", type=float)
    parser.add_argument("--after", type=int)
    parser.add_argument("--round-size", type=int)
    given = parser.parse_args(arguments)
    sizes = (given.n_features, given.q, given.n_relevant)
    rs, srs = (Setting(given.scenario, *sizes, alpha) for alpha in ("0", given.alpha))
    print("\n".join(lines(rs, srs, given.quantile, given.after, given.round_size)))


if __name__ == "__main__":
    main()
