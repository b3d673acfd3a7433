import book
import pytest
from digests import differences
from plan_cases import NEEDS, PLANS, pin_of_needs, pin_of_plan

PINS = book.read()


@pytest.mark.parametrize("name", NEEDS)
def test_a_cap_holds_the_subspace_that_is_pinned(name, tmp_path):
    assert pin_of_needs(name, tmp_path) == PINS["needs"][name]


@pytest.mark.parametrize("name", NEEDS)
def test_the_largest_subspace_needs_no_more_than_its_cap(name):
    for cap, needs in PINS["needs"][name].items():
        if needs["largest q"] > 1:
            assert needs["smallest cap at largest q"] <= int(cap.split()[0]) * 10**6


@pytest.mark.few(1)
@pytest.mark.parametrize("name", PLANS)
def test_a_plan_has_the_numbers_that_are_pinned(name, tmp_path):
    # Some numbers come from equations solved in floats, which round as the machine does.
    found = pin_of_plan(name, tmp_path)
    assert list(differences(PINS["plans"][name], found, close=1e-8)) == []
