"""Madelon: the target is in the interaction of the informative features, and nowhere else."""

import numpy as np
import pytest

from srs_ooc.base.errors import UsageError
from srs_ooc.synthetic.problem_tables import columns, rows
from srs_ooc.synthetic.problems import FLIPPED, Madelon


def test_a_quarter_is_informative_and_five_span_all_twenty() -> None:
    problem = Madelon(2000, 200, 20, seed=0)
    truth = problem.truth()
    assert len(truth.relevant) == 20
    assert len(truth.roles["informative"]) == 5
    spectrum = np.linalg.svd(columns(problem, np.array(truth.relevant, dtype=np.uint32)))[1]
    assert spectrum[5] < 1e-3 * spectrum[4]


@pytest.mark.parametrize("n_relevant", [1, 4, 20, 40, 80])
def test_scale_tells_nothing(n_relevant: int) -> None:
    problem = Madelon(20_000, 100, n_relevant, seed=1)
    table = rows(problem, 0, problem.n_rows)
    assert np.abs(table.mean(axis=0)).max() < 0.05
    assert np.abs(table.std(axis=0) - 1).max() < 0.05


def test_irrelevant_features_know_nothing_of_the_class() -> None:
    problem = Madelon(4000, 500, 20, seed=2)
    labels = problem.target(0, problem.n_rows)
    irrelevant = np.setdiff1d(np.arange(500), problem.truth().relevant).astype(np.uint32)
    values = columns(problem, irrelevant)
    shift = values[:, labels == 0].mean(axis=1) - values[:, labels == 1].mean(axis=1)
    scores = shift * np.sqrt(problem.n_rows) / 2
    assert abs(scores.std() - 1) < 0.15
    assert np.abs(scores).max() < 5


def neighbour_accuracy(values: np.ndarray, labels: np.ndarray) -> float:
    """Leave-one-out accuracy of the nearest neighbour."""
    squares = (values**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * values @ values.T
    np.fill_diagonal(distances, np.inf)
    return float((labels[distances.argmin(axis=1)] == labels).mean())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_together_the_informative_features_tell_the_class_alone_they_do_not(seed: int) -> None:
    problem = Madelon(1000, 50, 20, seed=seed)
    labels = problem.target(0, problem.n_rows)
    places = np.array(problem.truth().roles["informative"], dtype=np.uint32)
    values = columns(problem, places).T
    assert neighbour_accuracy(values, labels) > 0.8
    assert max(neighbour_accuracy(values[:, [j]], labels) for j in range(5)) < 0.7


@pytest.mark.parametrize("seed", range(8))
def test_every_informative_feature_matters_even_in_two_dimensions(seed: int) -> None:
    """Of the balanced labellings of a square, those that leave a coordinate out are not used."""
    problem = Madelon(4000, 10, 8, seed=seed)
    labels = problem.target(0, problem.n_rows)
    values = columns(problem, np.array(problem.truth().roles["informative"], dtype=np.uint32)).T
    exclusive_or = (values[:, 0] > 0) ^ (values[:, 1] > 0)
    agreement = float((exclusive_or == labels).mean())
    assert max(agreement, 1 - agreement) > 0.85


def test_classes_are_balanced_and_a_hundredth_is_flipped() -> None:
    problem = Madelon(32_000, 20, 20, seed=5)
    labels = problem.target(0, problem.n_rows)
    assert abs(labels.mean() - 0.5) < 0.005
    clean = problem._cluster & 1
    assert abs((labels != clean).mean() - FLIPPED) < 0.003


def test_noise_does_not_depend_on_the_width() -> None:
    narrow, wide = Madelon(50, 40, 1, seed=6), Madelon(50, 400, 1, seed=6)
    shared = np.setdiff1d(np.arange(40), [*narrow.truth().relevant, *wide.truth().relevant])
    places = shared.astype(np.uint32)
    np.testing.assert_array_equal(columns(narrow, places), columns(wide, places))


def test_relevant_places_are_spread() -> None:
    places = [place for seed in range(50) for place in Madelon(2, 1000, 20, seed).truth().relevant]
    counts = np.bincount(np.array(places) // 250, minlength=4)
    assert np.abs(counts - 250).max() < 60


@pytest.mark.parametrize(("n_features", "n_relevant"), [(10, 0), (10, 11), (5000, 1001)])
def test_a_number_of_relevant_features_out_of_range_is_refused(
    n_features: int, n_relevant: int
) -> None:
    with pytest.raises(UsageError, match=f"--relevant: expected 1 to .* found {n_relevant}"):
        Madelon(10, n_features, n_relevant, seed=0)


def test_fixed_vectors() -> None:
    """A seed once published names the same table for good."""
    problem = Madelon(6, 12, 9, seed=0)
    truth = problem.truth()
    assert truth.roles == {"informative": (0, 4), "redundant": (1, 2, 3, 6, 8, 9, 11)}
    assert problem.target(0, 6).tolist() == [1, 1, 0, 0, 1, 0]
    assert rows(problem, 2, 4)[:, [0, 1, 4, 5, 7, 10, 11]].tolist() == [
        [-1.1628, -1.4181, 1.405, -0.0118, 1.0953, 0.1399, -1.5807],
        [1.2416, 0.9058, -0.8912, -0.1932, -2.1663, -1.6288, 1.4579],
    ]
