"""scikit-learn's own checks of estimators; each failure that is expected says why."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from srs_ooc.estimators import SRSClassifier, SRSRegressor, SRSSelector

WEIGHTS = (
    "A row twice is not a row of weight 2, but in distribution: permutations and random thresholds "
    "are drawn for each row there is, as those of scikit-learn's own random forests. "
    "A row of weight 0 is left out exactly, which test_estimators.py holds."
)
CLASS_WEIGHTS = (
    "The check asks that all of noise is predicted as the heavy class, once it has set "
    "min_weight_fraction_leaf, which there is not here: trees grow until leaves are pure, where "
    "weights say nothing. test_estimators.py holds it with min_samples_leaf."
)
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
OF_CLASSIFIERS = {"check_class_weight_classifiers": CLASS_WEIGHTS}


def expected(estimator):
    return EXPECTED | (OF_CLASSIFIERS if isinstance(estimator, SRSClassifier) else {})


@pytest.mark.few(4)
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [SRSSelector(iterations=20), SRSClassifier(iterations=30), SRSRegressor(iterations=30)],
    expected_failed_checks=expected,
)
def test_an_estimator_is_one_of_scikit_learn(estimator, check):
    check(estimator)
