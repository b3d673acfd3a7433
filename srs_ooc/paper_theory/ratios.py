"""Products of the ratios (p - l)/(q - l), exact to about a rounding, at any magnitude.

Binomial coefficients at p = 10^9 through log-gamma lose six digits (two logarithms of 10^10 are
subtracted). The probabilities of Section 4 are ratios of such coefficients and simplify to
products of ratios of integers, which are formed here directly: integers in blocks, one correctly
rounded division a block, exponent kept apart so that nothing overflows.
"""

import math
import sys
from dataclasses import dataclass

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
