"""Information criteria of subspaces: against direct formulas, known values, and what is refused."""

from dataclasses import replace
from math import isqrt, log, sqrt

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.errors import UsageError
from srs_ooc.base.records import Candidates, Iteration, RowSplit, Subspace
from srs_ooc.learners.tree_learner import Columns, path_of
from srs_ooc.methods.models.model_learner import EstimatorLearner, ModelParams
from srs_ooc.methods.models.models import Target
from srs_ooc.methods.rase import criteria as moments
from srs_ooc.methods.rase.criteria import InformationCriterion, check_criterion, deviances
from srs_ooc.trees.block import Block

RIC, EBIC = InformationCriterion("ric"), InformationCriterion("ebic", 0.5, 400)
SUBSETS = [[0], [3], [0, 1], [2, 4], [1, 3, 5], [0, 2, 3, 4]]


def sets_of(subsets, criterion):
    bounds = np.cumsum([0, *(len(own) for own in subsets)])
    return Candidates(np.concatenate(subsets).astype(np.int32), bounds, (), criterion)


def judged(sets, model, target, columns, rows):
    path = path_of(model, is_regression=target.is_regression)
    return sets.criterion.losses(sets, columns, target.values[rows], path)


def criteria(criterion, model, x, y, n_classes, subsets=SUBSETS):
    """What the part says of columns, standardised as a learner does it."""
    x = (x - x.mean(0)) / x.std(0)
    target, rows = Target(y, n_classes), np.arange(len(y))
    return judged(sets_of(subsets, criterion), model, target, x, rows)


def penalty(n_rows):
    return log(log(n_rows)) / sqrt(n_rows)


def kl_of_normals(m0, c0, m1, c1):
    inverse, apart = np.linalg.inv(c1), m1 - m0
    logs = log(np.linalg.det(c1) / np.linalg.det(c0))
    return 0.5 * (np.trace(inverse @ c0) + apart @ inverse @ apart - len(m0) + logs)


def slow_linear(x, y):
    parts = [x[y == k] for k in (0, 1)]
    within = sum(np.cov(p.T, bias=True).reshape(2 * [x.shape[1]]) * len(p) for p in parts) / len(x)
    apart = parts[1].mean(0) - parts[0].mean(0)
    return -apart @ np.linalg.inv(within) @ apart + penalty(len(x)) * x.shape[1]


def slow_quadratic(x, y):
    parts = [x[y == k] for k in (0, 1)]
    means = [p.mean(0) for p in parts]
    own = [np.cov(p.T, bias=True).reshape(2 * [x.shape[1]]) for p in parts]
    d = x.shape[1]
    total = penalty(len(x)) * d * (d + 3) / 2
    for a, b in ((0, 1), (1, 0)):
        share = len(parts[a]) / len(x)
        total -= 2 * share * kl_of_normals(means[a], own[a], means[b], own[b])
    return total


def slow_neighbours(x, y):
    x = (x - x.mean(0)) / x.std(0)
    parts = [x[y == k] for k in (0, 1)]
    total = penalty(len(x)) * x.shape[1]
    for own, other in (parts, parts[::-1]):
        k = isqrt(len(own))
        summed = 0.0
        for row in own:
            within = sorted(np.linalg.norm(own - row, axis=1))[k]  # itself is the first
            across = sorted(np.linalg.norm(other - row, axis=1))[k - 1]
            summed += log(across / within)
        kl = x.shape[1] / len(own) * summed + log(len(other) / (len(own) - 1))
        total -= 2 * len(own) / len(x) * kl
    return total


def slow_squares(x, y):
    design = np.column_stack([np.ones(len(x)), x])
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    each = log(len(x)) + 2 * 0.5 * log(400)
    return len(x) * log((left**2).sum() / len(x)) + each * x.shape[1]


def slow_logistic(x, y):
    from sklearn.linear_model import LogisticRegression

    fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(x, y)
    said = np.log(fit.predict_proba(x)[np.arange(len(y)), y])
    each = log(len(x)) + 2 * 0.5 * log(400)
    return -2 * said.sum() + each * x.shape[1] * (y.max())


@pytest.mark.few(4)
@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize(
    ("criterion", "model", "slow", "n_classes"),
    [
        (RIC, "lda", slow_linear, 2),
        (RIC, "qda", slow_quadratic, 2),
        (RIC, "knn", slow_neighbours, 2),
        (EBIC, "linear", slow_squares, 1),
        (EBIC, "linear", slow_logistic, 2),
        (EBIC, "linear", slow_logistic, 3),
    ],
)
def test_criteria_equal_the_direct_formulas(monkeypatch, criterion, model, slow, n_classes, shares):
    monkeypatch.setattr(moments, "_WHOLE_IS_CHEAPER", 1000 if shares else 0)
    rng = np.random.default_rng(n_classes)
    x = rng.standard_normal((70, 6)) * [1, 5, 0.1, 1, 1, 100] + 3
    x[:, 4] += x[:, 2]
    noisy = x[:, 0] + x[:, 3] + rng.standard_normal(70)
    y = noisy if n_classes == 1 else (n_classes * noisy.argsort().argsort() // 80).astype(int)
    found = criteria(criterion, model, x, y, n_classes)
    wanted = [slow(x[:, own], y) for own in SUBSETS]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@examples(25)
@given(seed=st.integers(0, 2**32), model=st.sampled_from(["lda", "qda", "linear"]))
def test_a_criterion_depends_on_its_own_columns_alone_and_not_on_their_scale(seed, model):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((40, 6)), np.arange(40) % 2
    criterion = EBIC if model == "linear" else RIC
    all_at_once = criteria(criterion, model, x, y, 2)
    turned = x @ np.diag(rng.uniform(0.01, 100, 6)) + rng.standard_normal(6)
    for number, own in enumerate(SUBSETS):
        alone = criteria(criterion, model, turned[:, own], y, 2, [list(range(len(own)))])
        assert alone[0] == pytest.approx(all_at_once[number], rel=1e-6, abs=1e-8)


def test_ratio_criteria_of_many_rows_are_the_divergences_of_the_densities():
    rng = np.random.default_rng(0)
    n = 60_000
    y = np.repeat([0, 1], [n // 3, n - n // 3])
    mixed = np.array([[1.0, 0.0], [0.6, 0.8]])
    m0, m1, c0, c1 = np.zeros(2), np.array([1.0, -0.5]), np.eye(2), mixed @ mixed.T
    z = rng.standard_normal((n, 2))
    x = np.where((y == 0)[:, None], z, m1 + z @ mixed.T)
    kl = kl_of_normals(m0, c0, m1, c1) / 3 + kl_of_normals(m1, c1, m0, c0) * 2 / 3
    found = criteria(RIC, "qda", x, y, 2, [[0, 1]])[0]
    assert found - penalty(n) * 5 == pytest.approx(-2 * kl, rel=0.03)
    x = np.where((y == 0)[:, None], z @ mixed.T, m1 + z @ mixed.T)
    apart = m1 @ np.linalg.inv(c1) @ m1
    found = criteria(RIC, "lda", x, y, 2, [[0, 1]])[0]
    assert found - penalty(n) * 2 == pytest.approx(-apart, rel=0.03)
    z, y = z[:3000], y[::20]
    z[:, 0] += 0.8 * y
    found = criteria(RIC, "knn", z, y, 2, [[0, 1]])[0]
    assert found - penalty(3000) * 2 == pytest.approx(-0.64, rel=0.3)


def test_the_true_subspace_is_best():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((300, 6))
    line = 1.5 * x[:, 0] - 1.5 * x[:, 1]
    classes = (line + rng.logistic(size=300) > 0).astype(int)
    spread = np.where(classes[:, None] == 1, [1, 3, 1, 1, 1, 1], 1) * rng.standard_normal((300, 6))
    moved = rng.standard_normal((300, 6)) + classes[:, None] * [1.5, 1.5, 0, 0, 0, 0]
    subsets = [[0], [1], [0, 1], [0, 1, 2], [2, 3], [0, 1, 4, 5], [1, 3]]

    def best(criterion, model, x, y, n_classes):
        return subsets[int(np.argmin(criteria(criterion, model, x, y, n_classes, subsets)))]

    assert best(RIC, "lda", moved, classes, 2) == [0, 1]
    assert best(RIC, "qda", spread, classes, 2) == [1]
    assert best(RIC, "knn", moved, classes, 2)[:2] == [0, 1]
    assert best(EBIC, "linear", x, classes, 2) == [0, 1]
    assert best(EBIC, "linear", x, line + rng.standard_normal(300), 1) == [0, 1]


@pytest.mark.parametrize("model", ["lda", "qda", "linear", "knn"])
def test_what_cannot_be_computed_is_infinite(model):
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((24, 16)), np.arange(24) % 2
    x[:, 3] = x[:, 1] - 2 * x[:, 2]
    x[:, 4] = 0.0
    criterion = EBIC if model == "linear" else RIC
    subsets = [[1, 2], [1, 2, 3], [4], [0, 4], [0], list(range(5, 16)), list(range(16))]
    rows, target = np.arange(24), Target(y, 2)
    found = judged(sets_of(subsets, criterion), model, target, x, rows)
    assert np.isfinite(found[:6]).tolist() == [True, False, False, False, True, True]
    assert np.isinf(found[6])
    few = np.concatenate([rows[y == 0], rows[y == 1][:5]])  # five of a class
    found = judged(sets_of([[0, 1, 2], [0, 1, 5, 6, 7]], criterion), model, target, x[few], few)
    assert np.isfinite(found).tolist() == [True, model != "qda"]
    one = rows[y == 0]
    assert np.isinf(judged(sets_of([[0]], criterion), model, target, x[one], one))[0]


def test_distances_of_zero_leave_no_neighbour_criterion():
    y = np.arange(40) % 2
    x = np.column_stack([np.arange(40) // 20, np.random.default_rng(0).standard_normal(40)])
    found = criteria(RIC, "knn", x, y, 2, [[0], [1], [0, 1]])
    assert np.isfinite(found).tolist() == [False, True, True]


def test_separated_classes_have_deviance_zero_and_fewer_columns_win():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((50, 6)), np.arange(50) % 2
    x[:, 2] += 20 * y
    found = criteria(EBIC, "linear", x, y, 2, [[0, 2], [2], [2, 5], [0]])
    each = log(50) + log(400)
    assert found[:3].tolist() == pytest.approx([2 * each, each, 2 * each], abs=1e-9)
    assert found[0] == found[2]
    partly = np.stack([np.ones(50), np.where(y == 1, 1.0, x[:, 0] > 0)])[None]
    n = int((partly[0, 1] == 1).sum())  # among these 25 of class 1, none among the others
    bound = -2 * (25 * log(25 / n) + (n - 25) * log(1 - 25 / n))
    assert deviances(partly, np.eye(2)[:, y])[0] == pytest.approx(bound, abs=1e-6)


def test_a_perfect_line_is_finite_and_fewer_columns_win():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((30, 6))
    found = criteria(EBIC, "linear", x, 2 * x[:, 1] + 1, 1, [[1], [1, 2], [2]])
    assert np.isfinite(found).all()
    assert found.argmin() == 0
    constant = criteria(EBIC, "linear", x, np.ones(30), 1, [[1]])
    assert np.isinf(constant[0])


def test_a_learner_judges_candidates_by_the_rows_to_fit_on_alone():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 250, (6, 60)).astype(np.uint8)
    codes[2, ::7] = 255
    y = np.arange(60) % 2
    fitted = np.arange(0, 60, dtype=np.int32)[np.arange(60) % 5 != 0]
    split = RowSplit(fitted, fitted[:0])
    candidates = replace(sets_of(SUBSETS, RIC), splits=(split,))
    learner = EstimatorLearner(ModelParams.restored({"model": "lda"}), Target(y, 2))
    block = Block(6, 60, 1, tiled=False)
    block.codes.view(np.uint8).reshape(-1, 60)[:6] = codes
    features = np.arange(6, dtype=np.uint32)
    work = Iteration(0, Subspace(features, candidates), 3)
    found = learner.fit(block, Columns(features, features), work)
    x = np.where(codes == 255, np.nan, codes.astype(float)).T[fitted]
    x = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
    np.testing.assert_allclose(
        found.losses, [slow_linear(x[:, s], y[fitted]) for s in SUBSETS], rtol=1e-9
    )
    assert not found.importance.any()


@pytest.mark.parametrize(
    ("criterion", "model", "n_classes", "says"),
    [
        ("ric", "tree", 2, "expected --model lda, qda or knn"),
        ("ric", "svm", 2, "expected --model lda, qda or knn"),
        ("ric", "lda", 3, "found 3 classes"),
        ("ric", "lda", 1, "found a regression"),
        ("ebic", "tree", 2, "expected --model linear"),
        ("ebic", "lda", 2, "LogisticRegression"),
        ("ebic", "knn", 1, "LinearRegression"),
    ],
)
def test_a_model_without_the_criterion_is_refused_by_name(criterion, model, n_classes, says):
    with pytest.raises(UsageError, match=f"criterion={criterion}") as caught:
        check_criterion(criterion, model, n_classes)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("criterion", "model", "n_classes"),
    [
        ("cv", "tree", 5),
        ("oob", "svm", 1),
        ("ric", "sklearn.discriminant_analysis.LinearDiscriminantAnalysis", 2),
        ("ric", "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis", 2),
        ("ebic", "sklearn.linear_model.LogisticRegression", 3),
        ("ebic", "sklearn.linear_model.LinearRegression", 1),
    ],
)
def test_a_model_that_has_the_criterion_is_accepted(criterion, model, n_classes):
    check_criterion(criterion, model, n_classes)
