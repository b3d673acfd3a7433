"""Scores: what is counted, what is left out, and numbers near the ends of doubles."""

import numpy as np
import pytest

from srs_ooc.ensemble.prediction import Scores


def test_missing_labels_are_left_out_and_unknown_ones_count_as_wrong():
    scores = Scores(["a", "b"])
    shares = np.array([[0.75, 0.25]] * 6)
    scores.add(["a", "", "NA", "-nan", "zebra", "b"], [0] * 6, shares)
    assert (scores.n_rows, scores.n_unlabelled, scores.n_unknown) == (3, 3, 1)
    assert scores.accuracy == pytest.approx(1 / 3)
    assert scores.log_loss == pytest.approx(-(np.log(0.75) + np.log(1e-15) + np.log(0.25)) / 3)


def test_a_class_may_be_called_like_a_missing_value():
    scores = Scores(["NA", "b"])
    scores.add(["NA"], [0], np.array([[1.0, 0.0]]))
    assert (scores.accuracy, scores.n_unlabelled) == (1, 0)


def test_targets_that_are_no_numbers_are_left_out():
    scores = Scores([])
    scores.add(["1", "", "tall", "3", "inf"], [0] * 5, np.array([[1.0], [9], [9], [2], [9]]))
    assert (scores.n_rows, scores.n_unlabelled, scores.n_unknown) == (2, 1, 2)
    assert scores.r2 == 0.5
    assert scores.rmse == np.sqrt(0.5)


@pytest.mark.parametrize("exponent", [-1000, 0, 1000])
def test_scores_do_not_depend_on_the_unit_of_targets(exponent):
    """Squares of differences would leave the range of doubles at both ends."""
    targets = np.ldexp([1.0, 2, 4, 7], exponent)
    means = np.ldexp([[1.5], [2], [3], [6.5]], exponent)
    scores = Scores([], 2.0**-exponent)
    scores.add([repr(t) for t in targets.tolist()], [0] * 4, means)
    plain = Scores([])
    plain.add(["1", "2", "4", "7"], [0] * 4, np.array([[1.5], [2], [3], [6.5]]))
    assert scores.r2 == plain.r2
    assert scores.rmse == np.ldexp(plain.rmse, exponent)


def test_an_error_beyond_doubles_has_no_score():
    scores = Scores([])
    scores.add(["1e300", "-1e300"], [0, 0], np.zeros((2, 1)))
    assert scores.r2 is None
    assert scores.rmse is None
