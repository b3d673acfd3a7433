from fractions import Fraction

import pytest

from srs_ooc.base.errors import UsageError
from srs_ooc.planning.paper_theory import Setting, exact_alpha


@pytest.mark.parametrize(
    ("alpha", "q", "held"),
    [
        ("0.29", 100, 29),
        (0.29, 100, 29),
        (0.57, 100, 57),
        ("0.1", 9, 0),
        (1, 7, 7),
        ("1e-2", 300, 3),
    ],
)
def test_alpha_is_taken_by_its_decimal_text(alpha, q, held):
    assert Setting("chain", 1000, q, 1, alpha).n_held_max == held


def test_no_more_is_held_than_was_found():
    setting = Setting("chain", 100, 10, 8, "0.5")
    assert [setting.n_held(n) for n in range(9)] == [0, 1, 2, 3, 4, 5, 5, 5, 5]


@pytest.mark.parametrize("alpha", ["x", "nan", "inf", -0.1, 1.5, ""])
def test_alpha_outside_0_to_1_is_refused(alpha):
    with pytest.raises(UsageError, match="alpha"):
        exact_alpha(alpha)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("ring", 10, 5, 2), "scenario"),
        (("chain", 0, 1, 1), "n-features"),
        (("chain", 10, 11, 2), "q: found 11, expected 1 to 10"),
        (("chain", 10, 0, 2), "q"),
        (("chain", 10, 5, 0), "n-relevant"),
        (("chain", 10, 5, 11), "n-relevant"),
    ],
)
def test_sizes_out_of_range_are_refused_by_name(arguments, named):
    with pytest.raises(UsageError, match=named):
        Setting(*arguments)


@pytest.mark.parametrize(
    ("scenario", "alpha", "findable"),
    [
        ("chain", 0, 3),
        ("chain", 1, 3),
        ("clique", 0, 0),
        ("clique", 1, 0),
        ("marginal", 0, 5),
        ("marginal", Fraction(2, 3), 5),
        ("marginal", 1, 3),
    ],
)
def test_with_more_relevant_features_than_places_the_reason_is_given(scenario, alpha, findable):
    setting = Setting(scenario, 9, 3, 5, alpha)
    assert setting.n_findable == findable
    assert (setting.why_not(5) is None) == (findable == 5)
    if findable < 5:
        assert "q" in setting.why_not(5)
