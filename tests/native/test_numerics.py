"""Logarithms, powers, sums of products and eigenvectors without a library.

Those of the Python reference have the same bits on every machine. A mathematical library may round
its last digit differently from one processor to the next; these use only what IEEE 754 fixes: sums,
products, quotients, and exact scaling by powers of two.
"""

import math
import subprocess
import sys

import numpy as np
import pytest
from examples import examples, given, st
from numpy.typing import NDArray

from srs_ooc.native import _native, numerics

_LN2_HIGH = 0.6931471805598903
"""The first 42 bits of ln 2, so that its product with an exponent is exact."""
_LN2_LOW = 5.497923018708371e-14
_INV_LN2 = 1.4426950408889634
_SQRT_HALF = 0.7071067811865476
_LOG_TERMS = 12
_EXP_TERMS = 14
LEAST_POWER, LARGEST_POWER = -700.0, 700.0


def log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return natural logarithms of finite numbers above 0, to about 2e-16 of their size.

    With ``x = m 2**e`` and m between sqrt(1/2) and sqrt(2):
    ``ln x = e ln 2 + 2 (s + s**3 / 3 + s**5 / 5 + ...)``, ``s = (m - 1) / (m + 1)``.
    """
    m, e = np.frexp(x)
    small = m < _SQRT_HALF
    m = np.where(small, 2.0 * m, m)
    exponent = (e - small).astype(np.float64)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    series = np.full_like(s, 1.0 / (2 * _LOG_TERMS - 1))
    for k in range(_LOG_TERMS - 2, -1, -1):
        series *= square
        series += 1.0 / (2 * k + 1)
    out: NDArray[np.float64] = exponent * _LN2_HIGH + (2.0 * s * series + exponent * _LN2_LOW)
    return out


def exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return e to the power of ``x``, which is taken as -700 at least and 700 at most."""
    x = np.clip(x, LEAST_POWER, LARGEST_POWER)
    k = np.rint(x * _INV_LN2)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    series = np.ones_like(r)
    for n in range(_EXP_TERMS, 0, -1):
        series *= r / n
        series += 1.0
    out: NDArray[np.float64] = np.ldexp(series, k.astype(np.int32))
    return out


POSITIVE = st.floats(min_value=1e-300, max_value=1e300)
POWERS = st.floats(min_value=-690, max_value=690)


@given(st.lists(POSITIVE, min_size=1, max_size=20))
def test_logarithms_agree_with_the_library(numbers):
    x = np.array(numbers)
    np.testing.assert_allclose(log(x), np.log(x), rtol=1e-15, atol=1e-16)


@given(st.lists(POWERS, min_size=1, max_size=20))
def test_powers_agree_with_the_library(numbers):
    x = np.array(numbers)
    np.testing.assert_allclose(exp(x), np.exp(x), rtol=4e-15)


@given(st.lists(st.floats(min_value=5e-324, max_value=1e308), max_size=150))
def test_native_logarithms_have_the_same_bits(numbers):
    x = np.array(numbers)
    assert numerics.logs(x).tobytes() == log(x).tobytes()


@given(st.lists(st.floats(allow_nan=False), max_size=150))
def test_native_powers_have_the_same_bits(numbers):
    x = np.array(numbers)
    assert numerics.powers(x).tobytes() == exp(x).tobytes()


def test_fixed_vectors_keep_their_bits():
    found = [float(x).hex() for x in log(np.array([1.0, 0.05, 3.0, 1e-60]))]
    assert found == LOGS
    assert [float(x).hex() for x in exp(np.array([0.0, 1.0, -3.7, 115.0]))] == POWERS_OF_E


def test_a_power_beyond_the_range_is_its_end():
    assert exp(np.array([1e9, -1e9])).tolist() == exp(np.array([700.0, -700.0])).tolist()


LOGS = ["0x0.0p+0", "-0x1.7f7427b73e391p+1", "0x1.193ea7aad030bp+0", "-0x1.144f69ff9ffc4p+7"]
POWERS_OF_E = ["0x1.0000000000000p+0", "0x1.5bf0a8b14576ap+1", "0x1.9511fc6871044p-6"]
POWERS_OF_E += ["0x1.e103201f299b3p+165"]


@given(st.floats(min_value=-0.999, max_value=1e6))
def test_log1p_agrees_with_the_library(x):
    assert numerics.log1p(x) == pytest.approx(math.log1p(x), rel=1e-14, abs=1e-300)


@given(st.integers(0, 5000))
def test_factorials_agree_with_the_library(n):
    assert numerics.log_factorial(n) == pytest.approx(math.lgamma(n + 1.0), rel=1e-14, abs=1e-15)


SHAPES = st.tuples(st.integers(0, 300), st.integers(0, 40), st.integers(0, 40))


@examples(40)
@given(SHAPES, st.integers(0))
def test_products_agree_with_blas_and_have_the_same_bits_on_every_instruction_set(shape, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal(shape[:2]), rng.standard_normal((shape[0], shape[2]))
    found = numerics.products(a, b)
    np.testing.assert_allclose(found, a.T @ b, atol=1e-12)
    for isa in _native.isas():
        out = np.zeros_like(found)
        _native.add_products(a, b, out, isa)
        assert out.tobytes() == found.tobytes()


LIMITED = """
import resource
import numpy as np
from pathlib import Path
from srs_ooc.native import _native

few, rows, out = np.ones((2, 1)), np.ones((2, 400_000)), np.zeros((1, 400_000))
pages = int(Path("/proc/self/statm").read_text().split()[0])
most = pages * resource.getpagesize() + 64_000_000
resource.setrlimit(resource.RLIMIT_AS, (most, most))
_native.add_products(few, rows, out)
_native.add_products(rows, few, out.reshape(-1, 1))
assert (out == 4).all()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_products_of_few_terms_and_many_rows_take_little_memory():
    subprocess.run([sys.executable, "-c", LIMITED], check=True)


KINDS = ["rank", "ties", "whole numbers"]


def symmetric(kind, n, seed):
    rng = np.random.default_rng(seed)
    if kind == "rank":
        half = rng.standard_normal((n, max(1, n // 3)))
    elif kind == "ties":
        half = np.kron(np.eye(-(-n // 3)), np.ones((3, 3)))[:n]
    else:
        half = rng.integers(0, 3, (n, 3 * n)).astype(float) * 10.0 ** rng.integers(-60, 60)
    return half @ half.T


@examples(60)
@given(st.sampled_from(KINDS), st.integers(1, 40), st.integers(1, 40), st.integers(0))
def test_eigenvectors_are_those_of_the_matrix(kind, n, rank, seed):
    matrix, rank = symmetric(kind, n, seed), min(rank, n)
    vectors, values = numerics.top_eigenvectors(matrix.copy(), rank)
    size = np.abs(matrix).max() or 1.0
    expected = np.linalg.eigvalsh(matrix)[::-1]
    kept = min(rank, int((expected > n * np.finfo(float).eps * max(expected[0], 0.0)).sum()))
    assert len(values) in (kept, kept - 1, kept + 1)  # where rounding leaves what is 0
    np.testing.assert_allclose(values / size, expected[: len(values)] / size, atol=1e-12)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(len(values)), atol=1e-9)
    rest = matrix @ vectors.T - vectors.T * values
    np.testing.assert_allclose(rest / size, 0, atol=1e-10)


@pytest.mark.parametrize("n", [24, 60, 100, 198])
@pytest.mark.parametrize("n_columns", [1, 2, 5])
@pytest.mark.parametrize("power", [-310, -150, 0, 150])
def test_few_columns_and_many_rows_have_eigenvectors(n, n_columns, power):
    rng = np.random.default_rng(n)
    half = np.repeat(rng.integers(0, 3, (n // 2, n_columns)), 2, axis=0).astype(float)
    matrix = half @ half.T
    vectors, values = numerics.top_eigenvectors(matrix * 10.0**power, 20)
    expected = np.linalg.eigvalsh(matrix)[::-1][: len(values)]
    assert len(values) == np.linalg.matrix_rank(half)
    np.testing.assert_allclose(values / 10.0**power, expected, rtol=1e-9)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(len(values)), atol=1e-9)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_no_eigenvectors_are_made_up_of_numbers_that_are_not_finite(number):
    matrix = np.eye(4)
    matrix[1, 2] = number
    vectors, values = numerics.top_eigenvectors(matrix, 2)
    assert np.isnan(vectors).all()
    assert np.isnan(values).all()


@pytest.mark.parametrize("kind", KINDS)
def test_eigenvectors_have_the_same_bits_on_every_instruction_set(kind):
    found = set()
    for isa in _native.isas():
        matrix, values, vectors = symmetric(kind, 37, 3), np.empty(9), np.empty((37, 9))
        _native.top_eigenvectors(matrix, values, vectors, isa)
        found.add(values.tobytes() + vectors.tobytes())
    assert len(found) == 1


def test_matrices_of_other_shapes_or_types_are_refused():
    ones = np.ones((3, 3))
    with pytest.raises(ValueError, match="b: expected shape"):
        _native.add_products(ones, ones[:2], ones)
    with pytest.raises(ValueError, match="values, how many: expected 0 to 3, found 4"):
        _native.top_eigenvectors(ones, np.empty(4), np.empty((3, 4)))
    with pytest.raises(TypeError):
        _native.add_products(ones, ones, ones.astype(np.float32))


@examples(30)
@given(st.integers(1, 12), st.integers(1, 30), st.integers(0))
def test_an_orthonormal_basis_spans_the_rows(n_rows, n_columns, seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n_rows, n_columns))
    rows[n_rows // 2 :] = rows[: n_rows - n_rows // 2] * 3.0
    basis = numerics.orthonormal(rows)
    there = np.abs(basis).sum(axis=1) > 0
    assert there.sum() == np.linalg.matrix_rank(rows)
    np.testing.assert_allclose(basis[there] @ basis[there].T, np.eye(there.sum()), atol=1e-12)
    np.testing.assert_allclose((rows @ basis.T) @ basis, rows, atol=1e-10)


@pytest.mark.parametrize("power", [-600, 600])
def test_a_basis_is_that_of_the_directions_however_long_the_rows_are(power):
    rows = np.random.default_rng(0).standard_normal((4, 30))
    expected = numerics.orthonormal(rows)
    assert numerics.orthonormal(np.ldexp(rows, power)).tobytes() == expected.tobytes()
