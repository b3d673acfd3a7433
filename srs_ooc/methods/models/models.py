"""Models other than trees: how they are found, made and fitted.

A model is an estimator of scikit-learn by name or import path. Blocks of codes become tables of
numbers for it, and it computes in one thread, so that sums do not depend on the cores of a
machine.
"""

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

import srs_ooc.extend as core
from srs_ooc.extend import ALIASES, path_of

# Estimators of scikit-learn by name or import path.


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
        raise core.UsageError(
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
    estimator = _constructed(_imported(path), path, params)
    from sklearn.base import is_classifier, is_regressor

    if not (is_regressor(estimator) if is_regression else is_classifier(estimator)):
        wanted = "regressor" if is_regression else "classifier"
        raise core.UsageError(
            f"--model: expected a {wanted} for this store's target, found {path}, which is none. "
            f"Name a {wanted}."
        )
    for name, value in estimator.get_params().items():  # processes would not be counted
        if name.split("__")[-1] == "n_jobs" and value not in (None, 1):
            raise core.UsageError(
                f"model_params: expected {name} 1 for {path}, found {value}. Leave it out; "
                "--threads fits several subspaces at once."
            )
    return estimator


def _imported(path: str) -> type:
    """Return the class at an import path.

    Nothing is imported from the current folder, unless PYTHONPATH names it: a file that happens to
    lie there, such as ``joblib.py``, would be run otherwise.
    """
    from sklearn.base import BaseEstimator

    before, (module, _, name) = list(sys.path), path.rpartition(".")
    sys.path[:] = safe_path()
    try:
        found = getattr(import_module(module), name)
    except Exception as error:  # whatever a module does as it loads
        raise core.UsageError(
            f"--model: expected an estimator at {path}, could not import it: "
            f"{type(error).__name__}: {str(error)[:200]}. Check the spelling, or install the "
            "package; of the current folder nothing is imported, unless PYTHONPATH names it."
        ) from error
    finally:
        sys.path[:] = before
    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        raise core.UsageError(
            f"--model: expected a class of scikit-learn estimators at {path}, found "
            f"{'another class' if isinstance(found, type) else type(found).__name__}. Name a "
            "class under sklearn.base.BaseEstimator."
        )
    return found


def _constructed(kind: Any, path: str, params: dict[str, Any]) -> Any:
    try:
        known = sorted(kind._get_param_names())
        if unknown := sorted(set(params) - set(known)):
            raise core.UsageError(
                f"model_params: expected parameters of {path} ({', '.join(known)}), found "
                f"{', '.join(unknown)[:200]}. Leave out what is not among them."
            )
        return kind(**params)
    except (TypeError, ValueError, RuntimeError) as error:
        raise core.UsageError(
            f"model_params: expected what {path} is made with, found that it refuses: "
            f"{str(error)[:300]}. Give its parameters as JSON."
        ) from error


def safe_path() -> list[str]:
    """Return where modules are looked for, without the current folder."""
    here = os.path.realpath(".")
    named = {os.path.realpath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p}
    return [p for p in sys.path if os.path.realpath(p or ".") != here or here in named]


_SEEDS = 1 << 31


def unchecked() -> Any:
    """Return a context in which scikit-learn checks neither parameters nor for finite numbers."""
    from sklearn import config_context

    return config_context(assume_finite=True, skip_parameter_validation=True)


# An estimator fitted on some rows, as a function of others.

LARGEST_LOSS = 16.0
"""What the loss of a row counts at most; that of classes is at most 1."""


@dataclass(frozen=True)
class Target:
    """What rows are to be predicted as.

    Attributes
    ----------
    values : int32 or float64 (n_rows,)
        Class codes, or numbers.
    n_classes : int
        1 for numbers.
    """

    values: core.Ints32 | core.Floats
    n_classes: int

    @property
    def is_regression(self) -> bool:
        """Whether it is numbers."""
        return self.n_classes == 1

    def constant(self, fitted: core.Integers, n_held: int) -> core.Floats:
        """Return the prediction of no model: the class shares of some rows, or their mean."""
        known = self.values[fitted]
        if self.is_regression:
            return np.full((n_held, 1), known.mean())
        shares = np.bincount(known.astype(np.intp), minlength=self.n_classes) / len(known)
        return np.tile(shares, (n_held, 1))

    def losses(self, predicted: core.Floats, rows: core.Integers) -> core.Floats:
        """Return the loss of each row; float64 (n_held,).

        Half the Brier score, ``1/2 sum over k of (share_k - [y = k])^2``, which is the error rate
        of a model that gives whole votes; of numbers the squared error over the variance of all.
        """
        known = self.values[rows]
        if self.is_regression:
            off = (predicted[:, 0] - known) / self.values.std()
            found = off * off
        else:
            off = predicted.copy()
            off[np.arange(len(rows)), known.astype(np.intp)] -= 1.0
            found = np.square(off).sum(axis=1) / 2
        losses: core.Floats = np.nan_to_num(found, nan=LARGEST_LOSS)
        return np.minimum(losses, LARGEST_LOSS)

    def errors(self, predicted: core.Floats, rows: core.Integers) -> core.Floats:
        """Return the squared error of each row, or 1 where its class is not the likeliest.

        Of equally likely classes the first is said.
        """
        known = self.values[rows]
        if not self.is_regression:
            return np.asarray(predicted.argmax(1) != known, np.float64)
        off = predicted[:, 0] - known
        return np.nan_to_num(off * off, nan=np.inf)


class BaseModel:
    """Fits estimators of one kind, each on other rows and columns.

    What never changes is looked up once. The first fit has the parameters checked by scikit-learn;
    for small models that takes as long as the fit.

    Parameters
    ----------
    model : str
        A short name or an import path.
    params : dict
        What the constructor is given.
    target : Target
        Of all rows.

    Raises
    ------
    UsageError
        If there is no such estimator; see :func:`make_estimator`.
    """

    def __init__(self, model: str, params: dict[str, Any], target: Target) -> None:
        first = make_estimator(model, params, is_regression=target.is_regression)
        self._model, self._kind, self._params, self._target = model, type(first), params, target
        given = sorted(first.get_params().items(), key=lambda item: str(item[0]))
        self._unseeded = [
            (place, name)
            for place, (name, value) in enumerate(given)
            if name.split("__")[-1] == "random_state" and value is None
        ]
        self._is_checked = False

    def fit(
        self, columns: core.Floats, fitted: core.Integers, key: int
    ) -> Callable[[core.Floats], core.Floats]:
        """Return what says class shares, or one number, of each of some rows; (n, n_classes).

        Parameters
        ----------
        columns : float64 (n_fitted, n_columns)
            The rows fitted on, standardised.
        fitted : int (n_fitted,)
            Which they are.
        key : int
            64-bit key of what the estimator draws at random, where its parameters do not say.

        Raises
        ------
        UsageError
            If the estimator cannot be fitted, or, of what is returned, asked.
        """
        target, known = self._target, self._target.values[fitted]
        if columns.shape[1] == 0 or bool((known == known[0]).all()):
            # Nothing to learn by, or nothing to tell apart.
            return lambda rows: target.constant(fitted, len(rows))
        center, scale = 0.0, 1.0
        if target.is_regression:
            center, scale = float(known.mean()), float(known.std()) or 1.0
            known = ((known - center) / scale).astype(np.float64)
        try:
            estimator = self._fitted(columns, known, key)
        except Exception as error:  # whatever a library raises
            raise _refused(self._model, "fitted", error) from error

        def predict(rows: core.Floats) -> core.Floats:
            if len(rows) == 0:  # which libraries refuse
                return target.constant(fitted, 0)
            try:
                with unchecked():
                    if target.is_regression:
                        said = np.asarray(estimator.predict(rows), np.float64).reshape(-1, 1)
                        return center + scale * said
                    shares = np.zeros((len(rows), target.n_classes))
                    if hasattr(estimator, "predict_proba"):
                        shares[:, estimator.classes_] = estimator.predict_proba(rows)
                    else:  # whole votes
                        shares[np.arange(len(rows)), estimator.predict(rows)] = 1.0
                    return shares
            except Exception as error:
                raise _refused(self._model, "asked to predict", error) from error

        return predict

    def _fitted(self, columns: core.Floats, known: NDArray[Any], key: int) -> Any:
        """Return a new estimator fitted on finite columns."""
        estimator = self._kind(**deepcopy(self._params))
        for place, name in self._unseeded:
            estimator.set_params(**{name: core.derive(key, place) % _SEEDS})
        with unchecked() if self._is_checked else nullcontext():
            estimator.fit(columns, known)
        self._is_checked = True
        return estimator


def _refused(model: str, what: str, error: Exception) -> core.UsageError:
    return core.UsageError(
        f"--model {model}: expected an estimator that can be {what} on numbers, found that it "
        f"cannot: {type(error).__name__}: {str(error)[:300].rstrip('.')}. Change model_params, "
        "model_folds or --subspace-size, or choose another model."
    )


# Blocks of codes as tables of numbers, for models that need numbers.


@dataclass(frozen=True)
class DecodedBlock:
    """The columns of a subspace as numbers.

    Attributes
    ----------
    values : float64 (n_rows, n_columns)
        0 where missing. Each column is divided by a power of two, so that squares are finite.
    is_known : bool (n_rows, n_columns)
        Where nothing is missing.
    """

    values: core.Floats
    is_known: core.Bools

    @classmethod
    def of(cls, block: core.Block, n_columns: int) -> "DecodedBlock":
        """Decode the first columns; a code stands for itself where a block has no values."""
        codes = block.as_columns(n_columns)
        is_known = (codes != np.iinfo(codes.dtype).max).T
        values = np.empty((block.n_rows, n_columns))
        for j, column in enumerate(codes):
            values[:, j] = column
            if block.values is not None:
                own = block.values[j]
                scaled = np.ldexp(own, -int(np.frexp(np.abs(own).max())[1]))
                # the code of what is missing is beyond the last
                values[:, j] = scaled.take(column, mode="clip")
        values[~is_known] = 0.0
        return cls(values, is_known)

    def only(self, columns: core.Integers) -> "DecodedBlock":
        """Return some of the columns."""
        return DecodedBlock(self.values[:, columns], self.is_known[:, columns])

    def standardised(
        self, fitted: core.Integers, held: core.Integers
    ) -> tuple[core.Floats, core.Floats]:
        """Return the rows to fit on and those held out, by mean and scale of the former alone.

        Means and standard deviations are of what is known; what is missing becomes the mean, 0.
        A column that does not vary is 0.
        """
        train, is_known = self.values[fitted], self.is_known[fitted]
        count = np.maximum(is_known.sum(axis=0), 1)
        mean = train.sum(axis=0) / count
        train -= mean
        train[~is_known] = 0.0
        spread = np.sqrt(np.square(train).sum(axis=0) / count)
        varies = spread > _ROUNDING * np.abs(mean)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
        train *= scale
        rest = self.values[held]
        rest -= mean
        rest *= scale
        rest[~self.is_known[held]] = 0.0
        return train, rest


_ROUNDING = 1e-12
"""A deviation that is a smaller share of the mean than this is of rounding alone."""


# Libraries held to one thread, so that sums do not depend on the cores of a machine.

_own = threading.local()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold the libraries that are loaded to one thread each in the block; hush their warnings.

    BLAS counts its threads for the whole process, OpenMP for each thread that calls it: workers
    call :func:`pin_worker` besides. Warnings of models, such as of steps that did not converge,
    would come once a subspace.
    """
    # Not around each fit: filters and BLAS are the process's, and workers would undo each other's.
    with ThreadpoolController().limit(limits=1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(sklearn|scipy|numpy)(\.|$)")
        from sklearn.exceptions import ConvergenceWarning

        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def pin_worker() -> None:
    """Hold OpenMP to one thread where this thread calls it; once a thread."""
    if not getattr(_own, "is_pinned", False):
        ThreadpoolController().select(user_api="openmp").limit(limits=1)
        _own.is_pinned = True
