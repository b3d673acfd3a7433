"""Mean times in closed form: Theorems 4 to 7, and the same arguments for any alpha in [0, 1].

Write h for the most features held, floor(alpha q). Under the paper's assumptions (D.1) the
chain is found as its longest prefix drawn together. While l <= h features are found all are
held, and the argument of Theorem 5 applies; from h on, the next features must be drawn together
with those of the prefix that are not held, and the wait for the n-th is geometric whatever was
found in between. Theorem 4 is h = 0, Theorem 5 is h >= n - 1.
"""

import math

from srs_ooc.paper_theory.ratios import Magnitude, ratio, ratio_product
from srs_ooc.paper_theory.settings import Setting


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
