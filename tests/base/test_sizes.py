"""Sizes: rounding up, and what a person reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.text import MB, ceil_div, describe_nbytes, megabytes


@given(st.integers(0, 1 << 70), st.integers(1, 1 << 40))
def test_ceil_div_is_the_least_enough(numerator: int, denominator: int) -> None:
    quotient = ceil_div(numerator, denominator)
    assert quotient * denominator >= numerator
    assert (quotient - 1) * denominator < numerator


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (150_130_335, "150.1 MB"),
        (20_000_000_000, "20.0 GB"),
        (406_000_000_000_000, "406.0 TB"),
    ],
)
def test_a_size_is_told_in_its_largest_unit(n_bytes: int, text: str) -> None:
    assert describe_nbytes(n_bytes) == text


def test_a_megabyte_is_a_million_bytes() -> None:
    assert MB == 10**6
    assert megabytes(128 * MB) == 128.0
    assert megabytes(1_249_999) == 1.2
