"""One iteration: the probabilities of finding 0, 1, 2, ... more features (Appendix D.3).

Each function takes p, q, r, the number found so far and the number of those held in the subspace
(at most q), and returns float64 (n,): element d is the probability that d more are found. In the
printed matrices held = 0 is RS and held = found is SRS with alpha = 1. Probabilities of finding
something are relatively accurate, however small; what is below 1e-308 is 0.
"""

import math

import numpy as np
from numpy.typing import NDArray

from srs_ooc.paper_theory.settings import Setting

FloatArray = NDArray[np.float64]


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
