"""Times and distributions of a setting of Section 4 by its Markov chain alone."""

from theory_over_time import one_iteration, powers

from srs_ooc.methods.theory.paper_theory import Setting, checked_wanted, mean_time


def markov_time(setting: Setting, n_wanted: int | None = None) -> float | None:
    """Return ``expected_time``, whatever the scenario: None where never, inf beyond 1.7e308."""
    wanted = checked_wanted(setting, n_wanted)
    if wanted > setting.n_findable:
        return None
    return mean_time(one_iteration(setting), wanted)


def found_distribution(setting: Setting, n_iterations: int) -> list[float]:
    """Return the probabilities that 0, 1, ..., r features are found after ``n_iterations``."""
    distribution: list[float] = powers(setting).after(n_iterations).tolist()
    return distribution
