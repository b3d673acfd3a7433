"""Scores of a selection, by hand."""

import pytest
from selection_tables import Truth, score, truth_of

SINGLE = Truth(((3,), (5,)))
BLOCKS = Truth(((0, 1, 2), (10, 11, 12)))


def test_features_each_for_itself():
    found = score(SINGLE, [3, 7], [3, 7, 5, 0])
    assert (found.n_selected, found.power, found.false_share, found.f1) == (2, 0.5, 0.5, 0.5)
    assert found.average_precision == pytest.approx((1 + 2 / 3) / 2)


def test_a_block_counts_once_and_its_members_are_not_false():
    found = score(BLOCKS, [0, 1, 2, 9], [1, 0, 2, 9, 12])
    assert (found.power, found.false_share) == (0.5, 0.25)
    assert found.f1 == pytest.approx(2 * 0.75 * 0.5 / 1.25)
    # Places: 1 is the first, 9 the second, 12 the third; 0 and 2 take none.
    assert found.average_precision == pytest.approx((1 + 2 / 3) / 2)


def test_nothing_selected_is_not_false():
    found = score(SINGLE, [], [0, 1, 2])
    assert (found.power, found.false_share, found.f1, found.average_precision) == (0, 0, 0, 0)


def test_on_a_null_every_selection_is_false():
    assert score(Truth(()), [4], [4]).false_share == 1
    assert score(Truth(()), [], [4]).false_share == 0
    assert score(Truth(()), [4], [4]).power is None


def test_the_truth_is_read_from_the_record_beside_a_table():
    assert truth_of({"relevant": ["f3", "f5"]}) == SINGLE
    assert truth_of({"relevant": ["f1", "f2"], "blocks": [["f1", "f2"]]}) == Truth(((1, 2),))
