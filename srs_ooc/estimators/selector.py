"""Feature selection as a transformer of scikit-learn."""

from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from srs_ooc import api
from srs_ooc.estimators.parameters import Parameters
from srs_ooc.estimators.tables import FitData, checked_fit, checked_table, columns_of, is_store
from srs_ooc.estimators.workspace import disk_nbytes, python_errors, require_disk, workspace
from srs_ooc.ingestion.formats.in_memory import frame_library
from srs_ooc.ingestion.pipeline import ingest
from srs_ooc.results.exporting import values_of
from srs_ooc.results.ranking import arrays_of, best
from srs_ooc.results.result import RunResult
from srs_ooc.runs.settling import DEFAULT_MEMORY_MB
from srs_ooc.store.store import Store

MOST_ROWS_OF_VALUES = 512
"""Of more rows only the range of values of each code is kept, which takes less disk."""


class SRSSelector(SelectorMixin, Parameters):
    """Feature selection by random subspaces with trees, out of core, under a memory cap.

    Parameters that are None are settled as on the command line; ``srs_ooc.options()`` says what
    each of them means.

    Parameters
    ----------
    method, judge : str, optional
        How subspaces are chosen (``srs``, ``rs``, ...), and the test of relevance (``decoy``,
        ``probe``, ``positive``).
    model : str, optional
        What is fitted on each subspace: ``tree``, ``knn``, ``svm``, ``linear``, or the import path
        of a scikit-learn estimator; with the methods ``rs``, ``srs``, ``less`` and ``prs``.
        Other models than trees rank features and select none: say ``n_features_to_select``.
    model_params : dict, optional
        Parameters of that estimator.
    alpha : float, optional
        Share of a subspace held for features already kept; not a significance level.
    subspace_size : int or 'max', optional
        q of the paper: features of a subspace.
    fdr : float, optional
        With the judge ``decoy``: bound on the expected share of false features.
    decoys, permutations, keep : int, optional
        Families of decoys, permutation runs, leading items held; with the judge ``decoy``.
    replays : int, optional
        The former name of ``permutations``; it goes with the next version.
    closing : {'impurity', 'sensitivity'}, optional
        What its closing stage scores by.
    probe_min_draws, probe_min_wins : int, float, optional
        The test of the judge ``probe``.
    max_features : int, float or str, optional
        K of the paper: candidate features at a node.
    impurity, splitter, thresholds, min_impurity_decrease, bootstrap, max_depth, min_samples_leaf, \
trees_per_subspace : optional
        How trees are grown.
    class_weight : dict, str, optional
        Weight by class label; ``balanced``; or as on the command line.
    draw_block, round_size : int, optional
        How subspaces are drawn.
    options : dict, optional
        Options of a method from another package, by name.
    n_features_to_select : int, optional
        Take so many features by rank, whatever is selected.
    iterations : int, optional
        Subspaces grown; as ``srs-ooc plan`` advises, if not given.
    until_stable : bool
        End the screen before, once its ranking is stable.
    task : {'auto', 'classification', 'regression'}
        What ``y`` is.
    random_state : int, RandomState or None
        Everything random follows from it. An integer is the seed of the command line, whose default
        is 0, too.
    n_jobs : int, optional
        Threads; one if not given, all cores if -1. Results do not depend on it.
    memory_mb : int, optional
        Cap in MB of 10^6 bytes on what a fit adds to the memory of the process; 512 if not given.
    cache_dir : path, optional
        Folder in which a fit makes its temporary folder, which is removed at its end; that of the
        system, if not given.
    verbose : int
        Show a bar, where tqdm is installed, and the disk that is taken.

    Attributes
    ----------
    support_ : bool (n_features_in_,)
        Selected features.
    ranking_ : int (n_features_in_,)
        Rank of each feature, from 1.
    feature_importances_ : float (n_features_in_,)
        Mean decrease in impurity over the trees on subspaces that the feature was in; with
        another model the score by which features are ranked, 0 where it is below.
    q_values_ : float (n_features_in_,)
        With a final verdict: smallest level at which the feature would be selected; NaN where it
        did not reach the closing stage.
    n_selected_ : int
        Features that the test selects, whatever ``n_features_to_select``.
    n_iterations_ : int
        Subspaces grown.
    n_features_in_, feature_names_in_
        As in scikit-learn; of a store, the names of its features.
    """

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None) -> Self:
        """Search for the features that are informative about ``y``.

        Parameters
        ----------
        X : ndarray, DataFrame, pyarrow.Table, sparse matrix, Store or path
            (n_samples, n_features). NaN and nulls are missing values, texts are categories. Of a
            store, its own target, weights and groups are taken, and nothing is ingested.
        y : array-like (n_samples,), optional
            Class labels or numbers; None with a store.
        sample_weight : array-like (n_samples,), optional
            Weights; rows of weight 0 are left out.
        groups : array-like (n_samples,), optional
            Rows that belong together: the verdict permutes whole groups.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the table or an option is not as expected.
        OSError
            If ``cache_dir`` is missing or has no room.
        srs_ooc.base.errors.BudgetError
            If ``memory_mb`` cannot hold the work.
        """
        with python_errors(), workspace(self.cache_dir) as folder:
            if is_store(X):
                if any(given is not None for given in (y, sample_weight, groups)):
                    raise ValueError(
                        "expected y, sample_weight and groups to be None with a store, which has "
                        "its own. Leave them out, or ingest the table again with others."
                    )
                store = api.store_of(X)
                self._take_names(store)
            else:
                data = checked_fit(self, X, y, sample_weight, groups)
                store = self._ingested(folder, data)
            self._take_result(api.run(store, out=folder / "fit.run", **self._request(store)))
        return self

    def _target(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return ``y`` as it is ingested."""
        return y

    def _task(self) -> str:
        return self.task

    def _ingested(self, folder: Path, data: FitData) -> Store:
        """Return the store of a table, made in ``folder``."""
        n_rows, n_features = data.X.shape
        keeps_values = n_rows <= MOST_ROWS_OF_VALUES
        n_bytes = disk_nbytes(n_rows, n_features, keeps_values=keeps_values)
        require_disk(folder, n_bytes, self.cache_dir)
        if self.verbose:
            print(f"[{type(self).__name__}] up to {n_bytes / 1e6:.0f} MB of disk in {folder}")
        ingest(
            data.X,
            folder / "fit.zarr",
            target=self._target(data.y).tolist(),
            task=self._task(),
            weights=data.weights,
            groups=None if data.groups is None else list(data.groups),
            memory_mb=DEFAULT_MEMORY_MB if self.memory_mb is None else self.memory_mb,
            keep_values=keeps_values,
            min_class_rows=1,
        )
        return Store.open(folder / "fit.zarr")

    def _take_names(self, store: Store) -> None:
        self.n_features_in_ = store.n_features
        self.feature_names_in_ = np.array(list(store.names), dtype=object)

    def _take_result(self, result: RunResult) -> None:
        reading = result.reading
        found = arrays_of(reading)
        self.support_ = found.selected
        self.n_selected_ = int(np.count_nonzero(found.selected))
        if self.n_features_to_select is not None:
            self.support_ = best(reading, self._n_to_select())
        self.ranking_, self.feature_importances_ = found.ranking, found.importance
        if found.q_values is not None:
            self.q_values_ = found.q_values
        elif hasattr(self, "q_values_"):
            del self.q_values_
        self.n_iterations_ = reading.n_iterations

    def _n_to_select(self) -> int:
        n = self.n_features_to_select
        if not isinstance(n, Integral) or not 1 <= n <= self.n_features_in_:
            raise ValueError(
                f"n_features_to_select: expected None or a whole number from 1 to the "
                f"{self.n_features_in_} features there are, found {n!r}."
            )
        return int(n)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        support: NDArray[np.bool_] = self.support_
        return support

    def transform(self, X: Any) -> Any:
        """Return the selected columns of a table.

        Parameters
        ----------
        X : ndarray, DataFrame, pyarrow.Table, sparse matrix, Store or path
            (n_samples, n_features). Of a store, only the chunks that hold selected columns are
            read; its features must be those of the fit.

        Returns
        -------
        ndarray, sparse matrix or DataFrame (n_samples, n_selected)
            As ``set_output`` says. With no column, and a warning, where nothing is selected.
        """
        if not is_store(X):
            if frame_library(X) in (None, "pandas"):
                return super().transform(X)
            support = self._get_support_mask()
            checked_table(self, X, reset=False)
            if not support.any():
                return self._transform(np.empty(X.shape))
            return columns_of(X, np.flatnonzero(support))
        check_is_fitted(self)
        with python_errors():
            store = api.store_of(X)
            self._check_names(store)
            if not self.support_.any():
                return self._transform(np.empty((store.n_rows, self.n_features_in_)))
            return values_of(store, self.get_support(indices=True))

    def _check_names(self, store: Store) -> None:
        names = getattr(self, "feature_names_in_", None)
        differ = store.n_features != self.n_features_in_
        if not differ and names is not None:
            differ = any(a != b for a, b in zip(store.names, names, strict=True))
        if differ:
            raise ValueError(
                f"{store.place}: expected a store with the {self.n_features_in_} features of the "
                f"fit, in their order, found {store.n_features}, or others. Ingest a table that "
                "has them."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags
