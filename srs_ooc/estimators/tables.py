"""What is given to an estimator: tables, targets and weights, checked as scikit-learn does."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from srs_ooc.ingestion.formats.in_memory import frame_library
from srs_ooc.store.store import Store

FEWEST_ROWS = 2


@dataclass(frozen=True)
class FitData:
    """What a fit learns from.

    Attributes
    ----------
    X : ndarray, DataFrame, pyarrow.Table or sparse matrix (n_rows, n_features)
        The table.
    y : (n_rows,)
        The target, as given.
    weights : float64 (n_rows,) or None
        Positive, and not all equal.
    groups : array-like (n_rows,) or None
        Rows that belong together.
    """

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None
    groups: Any


def is_store(X: Any) -> bool:
    """Return whether what stands for a table is a store, or the path of one."""
    return isinstance(X, Store | str | os.PathLike)


def checked_table(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check a table, and whether it is like that of the fit; frames are left as they are.

    ``reset``: it is that of the fit.

    Raises
    ------
    ValueError, TypeError
        As scikit-learn's own.
    """
    fewest = FEWEST_ROWS if reset else 1
    if frame_library(X) is None:
        return validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=("csr", "csc", "coo"),
            ensure_all_finite="allow-nan",
            ensure_min_samples=fewest,
        )
    if frame_library(X) == "pandas":
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    else:
        _check_names(estimator, names_of(X), reset=reset)
    if X.shape[0] < fewest:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) (shape={X.shape}) while a minimum of "
            f"{fewest} is required by {type(estimator).__name__}."
        )
    return X


def _check_names(estimator: Any, names: list[str], *, reset: bool) -> None:
    """Take or compare the names of a frame, which not every version of scikit-learn sees."""
    if reset:
        estimator.n_features_in_ = len(names)
        estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    expected = getattr(estimator, "feature_names_in_", None)
    if len(names) != estimator.n_features_in_:
        raise ValueError(
            f"X has {len(names)} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    if expected is not None and names != expected.tolist():
        raise ValueError(
            "The feature names should match those that were passed during fit, in their order."
        )


def names_of(frame: Any) -> list[str]:
    """Return the names of the columns of a frame of polars or PyArrow."""
    return [str(name) for name in getattr(frame, "column_names", None) or frame.columns]


def columns_of(frame: Any, places: NDArray[np.intp]) -> NDArray[Any]:
    """Return some columns, at least one, of a frame of polars or PyArrow as an array."""
    chosen = frame.select([names_of(frame)[place] for place in places])
    if frame_library(frame) == "polars":
        values: NDArray[Any] = chosen.to_numpy()
        return values
    return np.column_stack([column.to_numpy() for column in chosen.columns])


def checked_fit(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> FitData:
    """Check what is given to a fit; rows of weight 0 are left out, equal weights forgotten.

    Raises
    ------
    ValueError, TypeError
        As scikit-learn's own.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    X = checked_table(estimator, X, reset=True)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind in "fc":
        assert_all_finite(y, input_name="y")
    check_consistent_length(X, y, groups)
    if sample_weight is None:
        return FitData(X, y, None, groups)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.any(weights < 0) or not np.any(weights):
        raise ValueError("sample_weight: expected numbers that are not negative, and not all zero.")
    used = np.flatnonzero(weights)
    if len(used) < len(weights):
        X, y, weights = _safe_indexing(X, used), y[used], weights[used]
        groups = None if groups is None else _safe_indexing(groups, used)
    is_even = bool(np.all(weights == weights[0]))
    return FitData(X, y, None if is_even else weights, groups)
