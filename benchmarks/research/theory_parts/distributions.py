"""Small discrete distributions of (X_1, ..., X_p, Y), exact: integer weights of every cell.

Independence is decided by cross-multiplying integers, so "zero" is zero and ties are ties.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

Values = tuple[int, ...]
Features = frozenset[int]


@dataclass(frozen=True)
class Distribution:
    """A joint distribution over p discrete features and a discrete output.

    Parameters
    ----------
    n_features : int
        p; features are numbered from 0.
    cells : tuple of ((x_1, ..., x_p), y, weight)
        Every cell of positive weight, once; probabilities are weights over their sum.
    """

    n_features: int
    cells: tuple[tuple[Values, int, int], ...]

    @classmethod
    def of(cls, weights: Iterable[tuple[Values, int, int]]) -> "Distribution":
        """Return the distribution of weighted cells; equal cells add up, zeros are dropped.

        Raises
        ------
        ValueError
            If a weight is negative, no weight is positive, or the features differ in number.
        """
        totals: Counter[tuple[Values, int]] = Counter()
        for features, y, weight in weights:
            if weight < 0:
                raise ValueError(f"negative weight {weight} at {features}, {y}")
            totals[features, y] += weight
        cells = tuple(sorted((x, y, w) for (x, y), w in totals.items() if w))
        widths = {len(x) for x, _, _ in cells}
        if len(widths) != 1:
            raise ValueError("expected at least one cell, all with the same number of features")
        return cls(widths.pop(), cells)

    @classmethod
    def of_bits(
        cls, n_bits: int, observe: Callable[[Values], tuple[Values, int]]
    ) -> "Distribution":
        """Return the distribution of ``observe(bits)`` for ``n_bits`` fair independent bits."""
        return cls.of((*observe(bits), 1) for bits in product((0, 1), repeat=n_bits))

    @property
    def features(self) -> Features:
        """V, the set of all features."""
        return frozenset(range(self.n_features))

    @property
    def total(self) -> int:
        """The sum of the weights."""
        return sum(weight for _, _, weight in self.cells)

    def independent(self, tested: Iterable[int], given: Iterable[int] = ()) -> bool:
        """Return whether Y is independent of the features ``tested`` given those in ``given``.

        P(b) P(s, y, b) = P(s, b) P(y, b) for every value of each, zeros included.
        """
        chosen, condition = sorted(tested), sorted(given)
        joint: Counter[tuple[Values, Values, int]] = Counter()
        for x, y, weight in self.cells:
            joint[_take(x, condition), _take(x, chosen), y] += weight
        by_b: Counter[Values] = Counter()
        by_sb: Counter[tuple[Values, Values]] = Counter()
        by_yb: Counter[tuple[Values, int]] = Counter()
        for (b, s, y), weight in joint.items():
            by_b[b] += weight
            by_sb[b, s] += weight
            by_yb[b, y] += weight
        return all(
            by_b[b] * joint[b, s, y] == weight * by_yb[b, y]
            for (b, s), weight in by_sb.items()
            for (b2, y) in list(by_yb)
            if b2 == b
        )

    def extended(self, n_irrelevant: int) -> "Distribution":
        """Return it with fair bits, independent of everything, added as last features."""
        return Distribution.of(
            (x + noise, y, weight)
            for x, y, weight in self.cells
            for noise in product((0, 1), repeat=n_irrelevant)
        )

    def probability(self, features: Values, y: int) -> Fraction:
        """Return the probability of one cell."""
        weight = sum(w for x, y2, w in self.cells if x == features and y2 == y)
        return Fraction(weight, self.total)


def _take(values: Values, places: list[int]) -> Values:
    return tuple(values[place] for place in places)
