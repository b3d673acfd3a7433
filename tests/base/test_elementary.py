"""Logarithms and powers without a mathematical library."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.elementary import exp, log
from srs_ooc.samplers import elementary as native

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
    assert native.log(x).tobytes() == log(x).tobytes()


@given(st.lists(st.floats(allow_nan=False), max_size=150))
def test_native_powers_have_the_same_bits(numbers):
    x = np.array(numbers)
    assert native.exp(x).tobytes() == exp(x).tobytes()


def test_fixed_vectors_keep_their_bits():
    found = [float(x).hex() for x in log(np.array([1.0, 0.05, 3.0, 1e-60]))]
    assert found == LOGS
    assert [float(x).hex() for x in exp(np.array([0.0, 1.0, -3.7, 115.0]))] == POWERS_OF_E


def test_a_power_beyond_the_range_is_its_end():
    assert exp(np.array([1e9, -1e9])).tolist() == exp(np.array([700.0, -700.0])).tolist()


LOGS = ["0x0.0p+0", "-0x1.7f7427b73e391p+1", "0x1.193ea7aad030bp+0", "-0x1.144f69ff9ffc4p+7"]
POWERS_OF_E = [
    "0x1.0000000000000p+0",
    "0x1.5bf0a8b14576ap+1",
    "0x1.9511fc6871044p-6",
    "0x1.e103201f299b3p+165",
]
