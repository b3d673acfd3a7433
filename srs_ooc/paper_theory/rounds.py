"""Rounds of several subspaces drawn from the same F: iterations lost, wall-clock won.

SRS is sequential: F changes after each tree. Growing s trees from one F lets s workers go at once
but feeds each with what was known before the round. Within a round R is drawn from F as it stood,
so the number held is fixed while the number found climbs: s steps of the chain with that number
held make one step of the chain of rounds.
"""

import math
from dataclasses import dataclass

import numpy as np

from srs_ooc.base.errors import UsageError
from srs_ooc.paper_theory.chains import MAX_STATES, Climb, FloatArray, mean_time
from srs_ooc.paper_theory.moves import gains
from srs_ooc.paper_theory.settings import Setting
from srs_ooc.paper_theory.times import expected_time


@dataclass(frozen=True)
class RoundCost:
    """What rounds of ``round_size`` subspaces cost and win against one at a time (means).

    Parameters
    ----------
    round_size : int
        Subspaces drawn from one F.
    n_rounds : float
        Rounds until found.
    n_iterations : float
        Subspaces grown until found: ``round_size * n_rounds``.
    n_one_at_a_time : float
        Iterations until found with rounds of one.
    """

    round_size: int
    n_rounds: float
    n_iterations: float
    n_one_at_a_time: float

    @property
    def n_lost(self) -> float:
        """Iterations more than one at a time (negative where late accumulation helps)."""
        return self.n_iterations - self.n_one_at_a_time

    @property
    def speedup(self) -> float:
        """Wall-clock won by as many workers as a round has subspaces, each as fast as one."""
        return self.n_one_at_a_time / self.n_rounds


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


def round_cost(setting: Setting, round_size: int, n_wanted: int | None = None) -> RoundCost | None:
    """Return the mean cost of finding ``n_wanted`` features (all by default) in rounds.

    Returns
    -------
    RoundCost or None
        None where they are never found, or the mean passes 1.7e308.

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
    return RoundCost(round_size, n_rounds, round_size * n_rounds, single.value)


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
