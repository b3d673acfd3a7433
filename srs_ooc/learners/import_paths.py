"""Estimators of scikit-learn by name or import path."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.learners.model_params import ModelParams

ALIASES = {
    "knn": ("sklearn.neighbors.KNeighborsClassifier", "sklearn.neighbors.KNeighborsRegressor"),
    "svm": ("sklearn.svm.SVC", "sklearn.svm.SVR"),
    "linear": ("sklearn.linear_model.LogisticRegression", "sklearn.linear_model.Ridge"),
    "lda": ("sklearn.discriminant_analysis.LinearDiscriminantAnalysis",) * 2,
    "qda": ("sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",) * 2,
}
"""The classifier and the regressor of each short name; discriminant analysis has no regressor."""


def path_of(model: str, *, is_regression: bool) -> str:
    """Return the import path that a short name stands for; any other as it is."""
    return ALIASES[model][is_regression] if model in ALIASES else model


def check_model_name(model: str) -> None:
    """Check that a model is a short name or could be an import path; nothing is imported.

    Raises
    ------
    UsageError
        If it is neither.
    """
    parts = model.split(".")
    is_path = len(parts) > 1 and all(part.isidentifier() for part in parts)
    if model not in ALIASES and not is_path:
        raise UsageError(
            f"--model: expected tree, {', '.join(ALIASES)} or an import path such as "
            f"sklearn.naive_bayes.GaussianNB, found {model[:80]!r}."
        )


def make_estimator(model: str, params: dict[str, Any], *, is_regression: bool) -> Any:
    """Return a new estimator.

    Parameters
    ----------
    model : str
        A short name or an import path.
    params : dict
        What its constructor is given.
    is_regression : bool
        Whether it is to predict numbers.

    Raises
    ------
    UsageError
        If there is none of that name, it is of another kind, or it refuses the parameters.
    """
    check_model_name(model)
    path = path_of(model, is_regression=is_regression)
    kind = _imported(path)
    estimator = _constructed(kind, path, params)
    from sklearn.base import is_classifier, is_regressor

    if not (is_regressor(estimator) if is_regression else is_classifier(estimator)):
        wanted = "regressor" if is_regression else "classifier"
        raise UsageError(
            f"--model: expected a {wanted} for this store's target, found {path}, which is none. "
            f"Name a {wanted}."
        )
    _check_jobs(estimator, path)
    return estimator


def load(params: ModelParams, *, is_regression: bool) -> None:
    """Import what a model needs, and check that the estimator can be made; errors as when it is."""
    make_estimator(params.model, params.parameters, is_regression=is_regression)


def _imported(path: str) -> type:
    """Return the class at an import path."""
    from sklearn.base import BaseEstimator

    module, _, name = path.rpartition(".")
    try:
        with current_folder_left_out():
            found = getattr(import_module(module), name)
    except Exception as error:  # whatever a module does as it loads
        raise UsageError(
            f"--model: expected an estimator at {path}, could not import it: "
            f"{type(error).__name__}: {str(error)[:200]}. Check the spelling, or install the "
            "package; of the current folder nothing is imported, unless PYTHONPATH names it."
        ) from error
    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        raise UsageError(
            f"--model: expected a class of scikit-learn estimators at {path}, found "
            f"{'another class' if isinstance(found, type) else type(found).__name__}. Name a "
            "class under sklearn.base.BaseEstimator."
        )
    return found


def _constructed(kind: Any, path: str, params: dict[str, Any]) -> Any:
    try:
        known = sorted(kind._get_param_names())
        unknown = sorted(set(params) - set(known))
        if unknown:
            raise UsageError(
                f"--model-params: expected parameters of {path} ({', '.join(known)}), found "
                f"{', '.join(unknown)[:200]}. Leave out what is not among them."
            )
        return kind(**params)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"--model-params: expected what {path} is made with, found that it refuses: "
            f"{str(error)[:300]}. Give its parameters as JSON."
        ) from error


def _check_jobs(estimator: Any, path: str) -> None:
    """Refuse processes of the estimator's own: they would not be counted against the cap."""
    for name, value in estimator.get_params().items():
        if name.split("__")[-1] == "n_jobs" and value not in (None, 1):
            raise UsageError(
                f"--model-params: expected {name} 1 for {path}, found {value}. Leave it out; "
                "--threads fits several subspaces at once."
            )


@contextmanager
def current_folder_left_out() -> Iterator[None]:
    """Import nothing from the current folder in the block, unless PYTHONPATH names that folder.

    A file that happens to lie there, such as ``joblib.py``, would be run otherwise.
    """
    found = list(sys.path)
    sys.path[:] = safe_path()
    try:
        yield
    finally:
        sys.path[:] = found


def safe_path() -> list[str]:
    """Return where modules are looked for, without the current folder."""
    here = os.path.realpath(".")
    named = {os.path.realpath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p}
    return [p for p in sys.path if os.path.realpath(p or ".") != here or here in named]
