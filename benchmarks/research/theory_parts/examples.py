"""Small exact distributions: the three scenarios of Section 4.2, and a counterexample.

Each is tested to have the degrees it is said to have.
"""

from itertools import product

from theory_parts.distributions import Distribution, Values


def chain(n_relevant: int) -> Distribution:
    """Return Y = parity of the first i of r fair bits, i uniform in 1..r.

    The smallest conditioning that makes bit i dependent is all the bits before it: degree i - 1.
    """
    cells = [
        (bits, sum(bits[:length]) % 2, 1)
        for bits in product((0, 1), repeat=n_relevant)
        for length in range(1, n_relevant + 1)
    ]
    return Distribution.of(cells)


def clique(n_relevant: int) -> Distribution:
    """Return Y = parity of r fair bits: every bit has degree r - 1."""
    return Distribution.of_bits(n_relevant, lambda bits: (bits, sum(bits) % 2))


def marginal(n_relevant: int) -> Distribution:
    """Return Y = one of r fair bits, which one uniform: all of degree 0, strongly relevant."""
    cells = [
        (bits, bits[place], 1)
        for bits in product((0, 1), repeat=n_relevant)
        for place in range(n_relevant)
    ]
    return Distribution.of(cells)


def masked_by_each_other() -> Distribution:
    """Return three binary features for which Proposition 5 fails with q = 2, K = 2, alpha = 0.

    Features X, Z1, Z2 and Y take values +1 and -1 (coded 1 and 0), with weights
    4 + 2 (x + y)(z1 + z2) + x y + 2 z1 z2 + 2 x y z1 z2, out of 64, all positive. Each Z is
    closer to Y than X is, and given either Z alone Y is independent of X; given both it is not.
    X (feature 0) is strongly relevant of degree 0, but in no tree on two features does it get
    any importance: in {X, Z} the split on Z is strictly better and leaves nothing to X.
    """

    def weight(x: int, z1: int, z2: int, y: int) -> int:
        return 4 + 2 * (x + y) * (z1 + z2) + x * y + 2 * z1 * z2 + 2 * x * y * z1 * z2

    def coded(*signs: int) -> Values:
        return tuple((sign + 1) // 2 for sign in signs)

    return Distribution.of(
        (coded(x, z1, z2), (y + 1) // 2, weight(x, z1, z2, y))
        for x, z1, z2, y in product((-1, 1), repeat=4)
    )
