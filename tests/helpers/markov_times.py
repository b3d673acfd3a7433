"""Times and distributions of a setting of Section 4 by its Markov chain alone."""

from srs_ooc.planning.paper_theory import (
    Powers,
    Setting,
    checked_wanted,
    mean_time,
    one_iteration,
)


def markov_time(setting: Setting, n_wanted: int | None = None) -> float | None:
    """Return ``expected_time``, whatever the scenario: None where never, inf beyond 1.7e308."""
    wanted = checked_wanted(setting, n_wanted)
    if wanted > setting.n_findable:
        return None
    return mean_time(one_iteration(setting), wanted)


def found_distribution(setting: Setting, n_iterations: int) -> list[float]:
    """Return the probabilities that 0, 1, ..., r features are found after ``n_iterations``."""
    powers = Powers(one_iteration(setting), setting.n_relevant + 1)
    distribution: list[float] = powers.after(n_iterations).tolist()
    return distribution
