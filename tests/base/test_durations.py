"""Durations in a unit that suits them."""

import pytest

from srs_ooc.base.text import describe_seconds


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.00298, "2.98 ms"),
        (1.0, "1 s"),
        (119.0, "119 s"),
        (120.0, "2 min"),
        (3462.0, "57.7 min"),
        (7200.0, "2 h"),
        (2 * 86400.0, "2 days"),
        (731 * 86400.0, "2 years"),
        (1e12, "31,688 years"),
    ],
)
def test_a_duration_has_the_unit_of_which_there_are_two_or_more(seconds, said):
    assert describe_seconds(seconds) == said
