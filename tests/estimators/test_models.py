"""Other models than trees in estimators: the run of the command line, and what is refused."""

import numpy as np
import pytest
from sklearn.base import clone

import srs_ooc
from srs_ooc.estimators import SRSClassifier, SRSRegressor, SRSSelector
from srs_ooc.learners import model_learner
from srs_ooc.learners.model_learner import Trial


@pytest.fixture(autouse=True)
def no_processes(monkeypatch):
    """No process tries the model; it takes seconds."""
    monkeypatch.setattr(model_learner, "tried", lambda *_: Trial(0, 0, 0.01))


@pytest.fixture
def table():
    values = np.random.default_rng(0).standard_normal((120, 12))
    return values, (values[:, 0] + values[:, 1] > 0).astype(int)


@pytest.mark.few(1)
@pytest.mark.parametrize("n_rows", [120, 600])
def test_a_fit_is_the_run_of_the_same_options_to_the_bit(table, tmp_path, n_rows):
    values, labels = (np.tile(part.T, -(-n_rows // 120)).T[:n_rows] for part in table)
    model = {"method": "rs", "model": "knn", "model_params": {"n_neighbors": 3}, "iterations": 30}
    fitted = clone(SRSSelector(**model, n_features_to_select=2)).fit(values, labels)
    assert np.flatnonzero(fitted.support_).tolist() == [0, 1]
    assert fitted.transform(values).shape == (n_rows, 2)
    srs_ooc.ingest(values, tmp_path / "t.zarr", target=labels, keep_values=n_rows <= 512)
    found = srs_ooc.run(tmp_path / "t.zarr", **model).features("records")
    names = [record["name"] for record in found]
    assert [f"f{i}" for i in np.argsort(fitted.ranking_)] == names
    assert fitted.n_selected_ == 0


def test_what_takes_trees_refuses_other_models_by_name(table):
    for kind in (SRSClassifier, SRSRegressor):
        with pytest.raises(ValueError, match=rf"^model: expected tree in {kind.__name__}.*'knn'"):
            kind(model="knn").fit(*table)
    with pytest.raises(ValueError, match=r"^model_params: expected with model knn"):
        SRSSelector(model_params={"n_neighbors": 3}).fit(*table)


def test_small_subspaces_are_judged_by_another_model(table):
    few = {"models": 2, "candidates": 4, "rounds": 1, "folds": 2, "max_size": 2}
    selector = SRSSelector(model="linear", method="rase", options=few, n_features_to_select=1)
    assert selector.fit(*table).support_.sum() == 1


def test_a_table_of_few_features_gets_subspaces_that_lack_some(table, tmp_path):
    srs_ooc.ingest(table[0], tmp_path / "t.zarr", target=table[1])
    made = srs_ooc.run(tmp_path / "t.zarr", method="rs", model="linear", iterations=2)
    assert made.status.parts["run"]["subspace_size"] == 6
