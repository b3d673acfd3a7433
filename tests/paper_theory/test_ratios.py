import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.planning.paper_theory import Magnitude, ratio_product


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
def test_sums_and_products_are_those_of_floats_to_a_rounding(a, b):
    total = Magnitude.of(a) + Magnitude.of(b)
    assert math.isclose(total.value, a + b, rel_tol=1e-15)
    product = Magnitude.of(a) * Magnitude.of(b)
    assert math.isclose(product.log10, math.log10(a) + math.log10(b), rel_tol=1e-12, abs_tol=1e-12)


def test_adding_zero_changes_nothing():
    assert (Magnitude.of(0.0) + Magnitude.of(3.0)).value == 3.0
    assert (Magnitude.of(1e-5) + Magnitude.of(0.0)).value == 1e-5


def test_beyond_double_range_the_value_is_infinite_and_the_logarithm_is_not():
    huge = Magnitude.of(1e300) * Magnitude.of(1e300)
    assert huge.value == math.inf
    assert huge.log10 == pytest.approx(600.0, rel=1e-15)
    assert (huge + Magnitude.of(1.0)).log10 == pytest.approx(600.0, rel=1e-15)


@pytest.mark.parametrize(
    ("p", "q", "start", "stop"),
    [(10**9, 100, 0, 30), (10**9, 5000, 17, 4000), (10**9, 10**6, 0, 90), (12, 12, 0, 12)],
)
def test_products_equal_exact_rationals_up_to_a_billion_features(p, q, start, stop):
    exact = math.prod(Fraction(p - level, q - level) for level in range(start, stop))
    found = ratio_product(p, q, start, stop)
    if exact < 10**308:
        assert abs(Fraction(found.value) / exact - 1) < 1e-12
    mantissa = Fraction(found.mantissa) * Fraction(2) ** found.exponent
    assert abs(mantissa / exact - 1) < 1e-12


def test_the_product_is_the_ratio_of_binomials():
    exact = Fraction(math.comb(1000, 40), math.comb(1000 - 7, 40 - 7))
    assert ratio_product(1000, 40, 0, 7).value == pytest.approx(float(exact), rel=1e-15)


def test_more_features_than_places_is_refused():
    with pytest.raises(ValueError, match="cannot hold"):
        ratio_product(100, 5, 0, 6)
