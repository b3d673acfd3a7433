"""The trees of a search as a classifier and as a regressor of scikit-learn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from srs_ooc import api
from srs_ooc.base.errors import UsageError
from srs_ooc.ensemble.model import Model
from srs_ooc.estimators.parameters import weights_text
from srs_ooc.estimators.selector import SRSSelector
from srs_ooc.estimators.tables import checked_table, is_store
from srs_ooc.estimators.workspace import python_errors
from srs_ooc.learners.models import TREE
from srs_ooc.results.result import RunResult
from srs_ooc.store.store import Store


class _Ensemble(SRSSelector):
    """A selector that keeps its trees, and predicts by them."""

    _saves_trees = True

    def _request(self, store: Store) -> dict[str, Any]:
        if self.model not in (None, TREE):
            raise UsageError(
                f"model: expected {TREE} in {type(self).__name__}, which predicts by its trees, "
                f"found {self.model!r}. Select with SRSSelector(model={self.model!r}), and put "
                "what predicts after it in a pipeline."
            )
        return super()._request(store)

    def _take_result(self, result: RunResult) -> None:
        super()._take_result(result)
        self.ensemble_ = Model.of(result.run, result.store.place)

    def _shares(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        with python_errors():
            data = api.store_of(X) if is_store(X) else checked_table(self, X, reset=False)
            return self.ensemble_.shares(data)


class SRSClassifier(ClassifierMixin, _Ensemble):
    """The trees of a search as a classifier, which selects features too.

    Its trees are those of the paper's ensemble, each on a random subspace; a probability is the
    mean over trees of the class shares in the leaf. Parameters and attributes are those of
    :class:`SRSSelector`; the judge is ``probe`` unless another is named, since trees are kept of
    features only.

    Attributes
    ----------
    classes_ : (n_classes,)
        Class labels.
    ensemble_ : Model
        The trees; they are pickled with the estimator, some hundred kilobytes for a thousand trees
        on a few hundred rows.
    """

    def _target(self, y: NDArray[Any]) -> NDArray[Any]:
        check_classification_targets(y)
        self._is_coded = True
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__}: expected at least two classes, found one class "
                f"({self.classes_[0]!r})."
            )
        return codes

    def _task(self) -> str:
        return "classification"

    def _class_weight(self, store: Store) -> str | None:
        if not isinstance(self.class_weight, dict) or not self._is_coded:
            return super()._class_weight(store)
        given = self.class_weight
        weights = [float(given.get(label, 1.0)) for label in self.classes_.tolist()]
        return weights_text({str(code): weight for code, weight in enumerate(weights)})

    def _take_names(self, store: Store) -> None:
        if not store.manifest.classes:
            raise ValueError(f"{store.place}: expected a target of classes, found numbers.")
        super()._take_names(store)
        self._is_coded = False
        self.classes_ = np.array(store.manifest.classes)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, float64 (n_samples, n_classes).

        ``X`` is what :meth:`fit` takes, without the target.
        """
        return self._shares(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, the first of equal ones."""
        shares = self._shares(X)
        predicted: NDArray[Any] = self.classes_[shares.argmax(axis=1)]
        return predicted


class SRSRegressor(RegressorMixin, _Ensemble):
    """The trees of a search as a regressor, which selects features too.

    A prediction is the mean over trees of the mean target in the leaf. Parameters and attributes
    are those of :class:`SRSSelector`; the judge is ``probe`` unless another is named.

    Attributes
    ----------
    ensemble_ : Model
        The trees; they are pickled with the estimator.
    """

    def _target(self, y: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(y, dtype=np.float64)

    def _task(self) -> str:
        return "regression"

    def _take_names(self, store: Store) -> None:
        if store.manifest.classes:
            raise ValueError(f"{store.place}: expected a target of numbers, found classes.")
        super()._take_names(store)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the number predicted for each row, float64 (n_samples,)."""
        return self._shares(X)[:, 0]
