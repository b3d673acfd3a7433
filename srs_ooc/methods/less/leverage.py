"""Leverage scores of columns, for tables of few rows and of many, and squared norms.

They are computed in streaming passes over a table that does not fit in memory.
"""

from dataclasses import KW_ONLY, dataclass

import numpy as np

import srs_ooc.extend as core


def shifted(columns: core.ScoredColumns, *, center: bool) -> core.ScoredColumns:
    """Return the columns less a number near their means, of the same dtype; as they are if not.

    Whole numbers stay whole and no larger than they were, so that their products sum exactly; a
    constant column is exactly 0. What is left of the means is taken off where products are summed.
    """
    if not center:
        return columns
    out = columns - columns[:, :1]
    out -= np.rint(out.mean(axis=1, dtype=np.float64))[:, None].astype(columns.dtype)
    return out


# Leverage scores, from left singular vectors: in two passes for tables of few rows.

VECTOR_BITS = 26
"""Vectors are rounded to whole multiples of ``2**-VECTOR_BITS``, so that their products with codes
sum exactly, in whatever order they are added."""

MOST_ROWS = 3000
"""Rows up to which the Gram matrix is made; above, see :class:`SketchedLeverage`."""


@dataclass(eq=False)
class Leverage:
    """Leverage scores (Eq. 1 of Kyrillidis and Zouzias 2014) by the Gram matrix of the rows.

    The first pass sums A A' = U S^2 U', the second scores the columns by its eigenvectors: pi_j is
    (1/r) sum over i <= r of v_i(j)^2, with v_i(j) = u_i . a_j / sigma_i.

    Parameters
    ----------
    n_rows, n_columns : int
        Size of the table: n and d.
    rank : int
        r: singular vectors to sum over; as many as there are, where fewer.
    center : bool
        Take each column's mean off.
    exact : bool
        The numbers are codes, whose products float64 sums without rounding.

    Attributes
    ----------
    vectors : float64 (r, n_rows)
        u_i, once all passes but the last are over, ...
    squares : float64 (r,)
        ... and sigma_i^2, largest first; fewer where others are 0.
    """

    n_rows: int
    n_columns: int
    rank: int
    _: KW_ONLY
    center: bool
    exact: bool = False

    def __post_init__(self) -> None:
        self.rank, self.n_passes = min(self.rank, self.n_rows), 2
        self.vectors = self.squares = self._scores = np.zeros(0)
        self._gram: core.Floats | None = None
        self._found: tuple[core.Floats, core.Floats] | None = None

    @property
    def nbytes(self) -> int:
        """The Gram matrix, then what its eigenvectors take; vectors, scores, and a block."""
        # Eigenvectors: the matrix and a copy, LAPACK's 2 n^2 numbers of workspace, the result.
        summing = 16 * self.n_rows**2 + 16 * max(self.n_rows, core.BLOCK_CELLS)
        finding = 41 * self.n_rows**2
        vectors = 24 * self.rank * (self.n_rows + core.BLOCK_COLUMNS)
        return max(summing, finding) + vectors + 8 * self.n_columns

    def update(self, first: int, columns: core.ScoredColumns) -> None:
        """Learn from some columns, or score them."""
        some = shifted(columns, center=self.center)
        if self._found is None:
            self._add(first, some)
            return
        vectors, scales = self._found
        out = self._scores[first : first + len(columns)]
        # One vector after the other: a sum along rows may be taken in another order elsewhere.
        found = core.numerics.products(vectors, some.T, exact=self.exact)
        for of_one, scale in zip(found, scales, strict=True):
            out += np.square(of_one) * scale

    def _add(self, first: int, some: core.ScoredColumns) -> None:
        """Add up products of rows."""
        if self._gram is None:
            self._gram = np.zeros((self.n_rows, self.n_rows))
        self._gram += core.numerics.products(some, some, exact=self.exact)

    def end_pass(self) -> None:
        """Find the singular vectors once all products are there."""
        if self._found is None:
            assert self._gram is not None
            if self.center:
                means = self._gram.mean(axis=0)  # made that of A with these taken off its columns
                self._gram -= means
                self._gram -= (means - means.mean())[:, None]
            found = core.numerics.top_eigenvectors(self._gram, self.rank)
            self._gram = None
            self._begin_scoring(*found)

    def _begin_scoring(self, vectors: core.Floats, squares: core.Floats) -> None:
        """Score from the next pass on, by vectors u_i (r, n_rows) and sigma_i^2."""
        self.vectors, self.squares = vectors, squares
        scales = np.ldexp(1.0, -2 * VECTOR_BITS) / (squares * max(1, len(squares)))
        self._found = np.rint(np.ldexp(vectors, VECTOR_BITS)).T, scales
        self._scores = np.zeros(self.n_columns)

    def scores(self) -> core.Floats:
        """Return the leverage scores; they sum to 1 unless all columns are constant."""
        return self._scores


# Leverage scores for tables of many rows, by a random range finder.
#
# Halko, Martinsson and Tropp 2011 (SIAM Review 53, Algorithms 4.3 and 5.1), with random signs in
# place of Gaussians: they have the same guarantees up to constants, and their sums are exact.

MORE = 10
"""Columns of the sketch beyond the rank."""
_PRODUCT_BITS = 8
_LARGEST_SUM = 2.0 ** (53 - 2 * _PRODUCT_BITS)
"""Of products of codes (in place of missing ones means, of no more bits) and rounded products: up
to this float64 holds it exactly, whatever the order."""


@dataclass(eq=False, kw_only=True)
class SketchedLeverage(Leverage):
    """Approximate leverage scores (Eq. 1): of A projected on the range of A (A' A)^q S.

    S are random signs, r + 10 of each column. A pass makes A S, each power pass A A' Q from an
    orthonormal basis Q of what the pass before made; the last but one gives the singular vectors
    within the range of Q (Rayleigh and Ritz), the last one the scores.

    Parameters
    ----------
    n_rows, n_columns : int
        Size of the table: n and d.
    rank : int
        r.
    center : bool
        Take each column's mean off.
    power_passes : int
        q: more give a better range, for a pass over the table each.
    key : int
        64-bit key of the signs.
    exact : bool
        The numbers are codes, whose products float64 sums without rounding.
    """

    power_passes: int
    key: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._width = min(self.rank + MORE, self.n_rows)
        self.n_passes = self.power_passes + 3
        self._pass = 0
        self._basis: core.Floats | None = None
        self._sums: core.Floats = np.zeros((0, 0))

    @property
    def nbytes(self) -> int:
        """Sums and basis with what making them takes, the scores, and a block twice."""
        matrices = 48 * self.n_rows * self._width + 24 * self._width * (
            core.BLOCK_COLUMNS + self._width
        )
        return matrices + 16 * max(self.n_rows, core.BLOCK_CELLS) + 8 * self.n_columns

    def _add(self, first: int, some: core.ScoredColumns) -> None:
        """Add some columns to the sums of this pass."""
        if not self._sums.size:
            self._sums = np.zeros((self.n_rows, self._width))
        if self._basis is None:
            # Random signs: bits of hashes of the columns' numbers.
            numbers, n_words = np.arange(first, first + len(some)), core.ceil_div(self._width, 64)
            words = [core.derive_array(core.derive(self.key, i), numbers) for i in range(n_words)]
            places = np.arange(64, dtype=np.uint64)
            bits = [(hashes[:, None] >> places) & np.uint64(1) for hashes in words]
            factors = 2.0 * np.concatenate(bits, axis=1)[:, : self._width] - 1.0
        else:
            factors = core.numerics.products(some.T, self._basis.T, exact=self.exact)
            # In units of 1, few enough bits for products of theirs to sum exactly.
            factors = np.rint(np.ldexp(factors, _PRODUCT_BITS - VECTOR_BITS))
            factors = np.ldexp(factors, -_PRODUCT_BITS)
        largest = float(np.abs(some).max()) * float(np.abs(factors).sum(axis=0).max())
        exact = self.exact and largest <= _LARGEST_SUM
        self._sums += core.numerics.products(some, factors, exact=exact)

    def end_pass(self) -> None:
        """Turn the sums into a basis, or into the singular vectors."""
        self._pass += 1
        if self._found is not None:
            return
        sums, self._sums = self._sums, np.zeros((0, 0))
        if self.center:
            sums -= sums.mean(axis=0)
        if self._pass < self.n_passes - 1:
            basis = core.numerics.orthonormal(np.ascontiguousarray(sums.T))
            self._basis = np.rint(np.ldexp(basis, VECTOR_BITS))
            return
        assert self._basis is not None
        basis = np.ldexp(self._basis, -VECTOR_BITS)
        inner = core.numerics.products(basis.T, sums)
        vectors, values = core.numerics.top_eigenvectors((inner + inner.T) / 2, self.rank)
        self._begin_scoring(core.numerics.products(vectors.T, basis), values)
        self._basis = None


# Squared norms of columns ("Norm-based sampling", Section 5 of Kyrillidis and Zouzias 2014).


class SquaredNorm:
    """The squared Euclidean norm of each column; centred, it is the variance times the rows.

    Parameters
    ----------
    n_rows, n_columns : int
        Size of the table.
    center : bool
        Take each column's mean off.
    """

    n_passes = 1

    def __init__(self, n_rows: int, n_columns: int, *, center: bool) -> None:
        self._n_rows, self._n_columns, self._center = n_rows, n_columns, center
        self._scores: core.Floats = np.zeros(0)

    @property
    def nbytes(self) -> int:
        """The scores, and a block three times."""
        return 8 * self._n_columns + 24 * max(self._n_rows, core.BLOCK_CELLS)

    def update(self, first: int, columns: core.ScoredColumns) -> None:
        """Add up the squares of some columns."""
        if not len(self._scores):
            self._scores = np.zeros(self._n_columns)
        some = shifted(columns, center=self._center).astype(np.float64)
        squares = np.square(some).sum(axis=1)
        if self._center:
            squares = np.maximum(squares - np.square(some.sum(axis=1)) / self._n_rows, 0.0)
        self._scores[first : first + len(columns)] = squares

    def end_pass(self) -> None:
        """There is nothing to do."""

    def scores(self) -> core.Floats:
        """Return the squared norms."""
        return self._scores
