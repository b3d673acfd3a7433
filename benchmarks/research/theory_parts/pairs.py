"""How often two features are in one subspace when C is drawn by blocks of neighbours.

With n features, m of them drawn and R empty (``tests/helpers/distinct_reference.py`` says how): a
window of m items on a circle of the n in a random order of blocks. One feature is in it with
probability m/n.
Two of them, D steps apart on the circle, are in it together in (m - D)+ + (m - n + D)+ of its n
places, so all depends on the law of D.
"""

from fractions import Fraction
from itertools import product
from math import prod


def pair_chance(n_features: int, n_drawn: int, block_size: int, i: int, j: int) -> Fraction:
    """Return the probability that stored features ``i`` and ``j`` are drawn together.

    Parameters
    ----------
    n_features, n_drawn : int
        n and m.
    block_size : int
        g; 1 gives m (m - 1) / (n (n - 1)).
    i, j : int
        Two different positions.
    """
    i, j = min(i, j), max(i, j)
    total = sum(
        (_given_shift(n_features, n_drawn, block_size, i, j, shift) for shift in range(block_size)),
        Fraction(0),
    )
    return total / block_size


def neighbour_chance(block_size: int, distance: int) -> Fraction:
    """Return the probability that two features so far apart on disk are in one block."""
    return max(Fraction(0), 1 - Fraction(distance, block_size))


def mean_across_chance(n_features: int, n_drawn: int, block_size: int) -> Fraction:
    """Return the mean probability that features of different blocks are drawn together.

    For blocks all of one size g <= m <= n - g: what is left of a feature's m (m - 1) / n pairs
    once the (m (g - 1) - (g^2 - 1)/3) / n inside its block are taken away, shared by n - g others.
    """
    n, m, g = n_features, n_drawn, block_size
    return (m * (m - g) + Fraction(g * g - 1, 3)) / (n * (n - g))


def _windows(n: int, m: int, distance: int) -> int:
    """Return in how many of n places a window of m holds two items so far apart on the circle."""
    return max(0, m - distance) + max(0, m - n + distance)


def _given_shift(n: int, m: int, g: int, i: int, j: int, shift: int) -> Fraction:
    first, second = (i + shift) // g, (j + shift) // g
    if first == second:
        return Fraction(_windows(n, m, j - i), n)
    n_blocks = (n - 1 + shift) // g + 1
    begins = [max(0, block * g - shift) for block in range(n_blocks)] + [n]
    # From i to the end of its block, the blocks between, and on to j.
    own = begins[first + 1] - i + j - begins[second]
    odd = [
        begins[block + 1] - begins[block]
        for block in {0, n_blocks - 1} - {first, second}
        if begins[block + 1] - begins[block] != g
    ]
    n_others = n_blocks - 2
    total = Fraction(0)
    for n_between in range(n_others + 1):
        for chosen in product((0, 1), repeat=len(odd)):
            n_odd = sum(chosen)
            ways = _falling(n_between, n_odd) * _falling(n_others - n_between, len(odd) - n_odd)
            distance = own + (n_between - n_odd) * g
            distance += sum(size for size, is_in in zip(odd, chosen, strict=True) if is_in)
            if ways:
                total += Fraction(ways * _windows(n, m, distance), _falling(n_others, len(odd)) * n)
    return total / (n_others + 1)


def _falling(value: int, count: int) -> int:
    return prod(range(value, value - count, -1))
