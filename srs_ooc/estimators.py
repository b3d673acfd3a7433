"""Estimators of scikit-learn: ``SRSSelector``, ``SRSClassifier``, ``SRSRegressor``.

A fit turns the table into a store, in a temporary folder, and runs the search on it: the same as
``srs-ooc ingest`` and ``srs-ooc run``, to the bit. What is kept are arrays of a value a feature
and, of a classifier or regressor, its trees; the folder is removed. Only this module imports
scikit-learn.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import _safe_indexing, check_random_state, validation
from sklearn.utils.multiclass import check_classification_targets

from srs_ooc import api
from srs_ooc.base.arrays import Bools, Floats, Indices
from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.base.options import python_spelling, whole_given
from srs_ooc.ingestion.formats.in_memory import check_index, column_of, frame_library, levels_of
from srs_ooc.ingestion.ingest import ingest
from srs_ooc.ingestion.rows import check_counts
from srs_ooc.learners.tree_learner import TREE
from srs_ooc.results.result import Result
from srs_ooc.runs.request import DEFAULT_MEMORY_MB
from srs_ooc.runs.spec import declared
from srs_ooc.store.opening import store_of
from srs_ooc.store.store import Store

__all__ = ["SRSClassifier", "SRSRegressor", "SRSSelector"]


_SEEDS = 1 << 32
_DROP = "Drop such columns from X, merge their categories, or turn them into numbers."
FEWEST_ROWS = 2
MOST_ROWS_OF_VALUES = 512
"""Of more rows only the range of values of each code is kept, which takes less disk."""
_TEXTS, _NUMBERS = ("direction", "measure"), ("effect", "low", "high")
_EFFECTS = np.dtype([*((name, object) for name in _TEXTS), *((name, float) for name in _NUMBERS)])


def weights_text(weights: dict[str, float]) -> str:
    """Return weights of classes as the command line has them."""
    return ",".join(f"{label}={weight!r}" for label, weight in weights.items())


# What is given to an estimator: tables, targets and weights, checked as scikit-learn does.


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
        return validation.validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=("csr", "csc", "coo"),
            ensure_all_finite="allow-nan",
            ensure_min_samples=fewest,
        )
    _check_distinct(X)
    if frame_library(X) == "pandas":
        validation.validate_data(estimator, X, reset=reset, skip_check_array=True)
    else:
        _check_names(estimator, X, reset=reset)
    if X.shape[0] < fewest:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) (shape={X.shape}) while a minimum of "
            f"{fewest} is required by {type(estimator).__name__}."
        )
    return X


def _check_distinct(frame: Any) -> None:
    """Refuse a frame with two columns of one name, before scikit-learn stumbles over them."""
    names = frame.columns if frame_library(frame) == "pandas" else names_of(frame)
    places: dict[str, int] = {}
    for place, name in enumerate(map(str, names), start=1):
        if places.setdefault(name, place) != place:
            raise ValueError(
                f"X: expected distinct column names, found {name!r} at {places[name]} and {place}. "
                "Rename them."
            )


def _check_names(estimator: Any, X: Any, *, reset: bool) -> None:
    """Take or compare the names of a frame, which not every version of scikit-learn sees."""
    validation._check_n_features(estimator, X, reset=reset)
    names = names_of(X)
    if reset:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif names != list(getattr(estimator, "feature_names_in_", names)):
        raise ValueError(
            "The feature names should match those that were passed during fit, in their order."
        )


def names_of(frame: Any) -> list[str]:
    """Return the names of the columns of a frame of polars or PyArrow."""
    return [str(name) for name in getattr(frame, "column_names", None) or frame.columns]


def _columns(X: Any, places: Indices) -> Any:
    """Return some columns of a table."""
    if frame_library(X) in (None, "pandas"):
        return _safe_indexing(X, places, axis=1)
    return X.select([names_of(X)[place] for place in places])


def checked_fit(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[Any, NDArray[Any], Floats | None, Any]:
    """Return what is given to a fit, checked: table, target, weights and groups.

    Rows of weight 0 are left out, equal weights forgotten.

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
    given, y = y, validation.column_or_1d(y, warn=True)
    if y.dtype.kind == "O":
        y = np.array([np.nan if label is None else label for label in y], dtype=object)
    validation.assert_all_finite(y, input_name="y")
    validation.check_consistent_length(X, y, groups)
    for what, one in (("y", given), ("sample_weight", sample_weight), ("groups", groups)):
        check_index(getattr(X, "index", None), one, what)
    y = y if levels_of(given) is None else given
    if sample_weight is None:
        return X, y, None, groups
    weights = validation._check_sample_weight(sample_weight, X, dtype=np.float64)
    if np.any(weights < 0) or not np.any(weights):
        raise ValueError("sample_weight: expected numbers that are not negative, and not all zero.")
    used = np.flatnonzero(weights)
    if len(used) < len(weights):
        X, y, weights = _safe_indexing(X, used), _safe_indexing(y, used), weights[used]
        groups = None if groups is None else _safe_indexing(groups, used)
    return X, y, None if np.all(weights == weights[0]) else weights, groups


# A folder to work in that is removed after, and errors as scikit-learn's callers expect them.


@contextmanager
def python_errors() -> Iterator[None]:
    """Raise what is wrong with arguments as ``ValueError``; count only growth against caps."""
    try:
        with python_spelling(), growth_counted():
            yield
    except (InputError, UsageError) as error:
        found = getattr(error, "found", None)
        raise ValueError(f"{found} {_DROP}" if found else str(error)) from error


@contextmanager
def workspace(cache_dir: str | Path | None) -> Iterator[Path]:
    """Yield a folder of its own in ``cache_dir``, or in the system's; it is removed after.

    Raises
    ------
    OSError
        If it cannot be made there.
    """
    try:
        folder = TemporaryDirectory(prefix="srs-ooc-", dir=cache_dir)
    except OSError as error:
        named = "the temporary folder" if cache_dir is None else f"cache_dir {str(cache_dir)!r}"
        raise type(error)(
            error.errno,
            f"{named}: expected a folder that exists and can be written, found: "
            f"{error.strerror}. Make it, or name another with cache_dir",
        ) from error
    with folder:
        yield Path(folder.name)


class SRSSelector(SelectorMixin, BaseEstimator):
    """Feature selection by random subspaces with trees, out of core, under a memory cap.

    Parameters that are None are settled as on the command line; ``srs_ooc.options()`` says what
    each of them means. Of a table that is no store ``adjust`` has columns by name or place: they
    are no features then, never selected, and last in ``ranking_``.

    Parameters
    ----------
    method : str, optional
        How subspaces are chosen. Default: srs.
    judge : str, optional
        Test of relevance: a final verdict by tests of features alone and beside others
        (docs/evidence.md), the paper's probe, or any positive importance; none for a method that
        only ranks. Default: tests; probe with its own options or save_trees; none with method
        prs or rase.
    model : str, optional
        What is fitted on each subspace: tree, knn, svm, linear, lda, qda, or the import path of a
        scikit-learn estimator such as sklearn.naive_bayes.GaussianNB (docs/methods/models.md).
        Default: tree. Other models than trees rank features and select none: say
        ``n_features_to_select``.
    model_params : dict, optional
        Parameters of the estimator. Default: scikit-learn's.
    alpha : float, optional
        With method srs: Share of the subspace held for features that lead, or passed, so far (0:
        Random Subspace). Not a significance level. Default: 0.5.
    subspace_size : int or 'max', optional
        Features in memory at a time, or 'max' for all the cap holds. Default: 5% of the features,
        at least 100, within the cap; with method less twice their square root; with rase room for
        all subspaces of a model.
    fdr : float, optional
        With judge tests: Level L: of the features selected a share of at most .999 L + .009 is
        expected to be false. Default: 0.1.
    keep : int, optional
        With judge tests: Leading features held in every other subspace. Default: 10.
    closing : str, optional
        With judge tests: What the last stage scores by: the impurity that splits decrease, or
        what altering a feature costs on rows that a tree was not grown on (docs/methods/rfest.md).
        Default: impurity.
    adjust : str, or sequence of names or places, optional
        With judge tests: Covariates of the store to adjust for: names separated by commas, or all.
        Features are tested beside them (docs/methods/adjusting.md). Default: none.
    pairs : str, optional
        With judge tests: Pairs of features that are looked at for what shows only together, beside
        those that the search finds: all; auto: all of up to 77,000 features; none. Default: auto.
    probe_min_draws : int, optional
        With judge probe: A feature must have been drawn more often than this. Default: 10.
    probe_min_wins : float, optional
        With judge probe: ... and have beaten the probe in at least this share of them. Default:
        0.95.
    max_features : int, float or str, optional
        Candidate features drawn at each node: a whole number, a share of q such as 0.1, sqrt or
        log2. Default: q.
    impurity : str, optional
        Impurity that splits decrease. Default: gini; variance for a regression.
    splitter : str, optional
        One random split a candidate (extra-trees), or the best one (CART). Default: random.
    thresholds : str, optional
        Random thresholds uniform between the ranks of values at the node, or between the values
        themselves; best ones midway between either. By values as in scikit-learn. Default: rank.
    min_impurity_decrease : float, optional
        Least importance of a split; in a regression a share of the variance. Default: 0.
    bootstrap : bool, optional
        Grow each tree on as many rows drawn with replacement. Default: no.
    row_sample : int, optional
        Grow the trees of a subspace on so many rows, drawn anew for each: as many of each class, or
        one of each quantile of the target. Default: all; with judge tests 4000 of 20000 or more,
        unless trees are saved or bootstrapped.
    class_weight : dict or str, optional
        none, balanced, or NAME=WEIGHT,NAME=WEIGHT. Default: none. Or weights by class label, 1 for
        those that are not named.
    max_depth : int, optional
        Deepest split level. Default: no limit.
    min_samples_leaf : int, optional
        Fewest rows in a leaf. Default: 1.
    trees_per_subspace : int, optional
        Trees grown on each subspace once it is paged in; 1 is the paper's. Default: 1.
    draw_block : int, optional
        With method srs or rs: Draw new features in blocks of G neighbours on disk: each as often,
        in fewer and longer reads; for a store larger than memory. 1 is the paper's. Default: 1; of
        a store larger than the cap, blocks of 64 KB.
    round_size : int, optional
        Iterations between updates of the kept features; 1 is the paper's. Default: 1.
    options : dict, optional
        Options of a method from another package, by name.
    n_features_to_select : int, optional
        Take so many features by rank, whatever is selected.
    min_features_to_select : int
        Where fewer are selected, take so many by rank, so that what comes after in a pipeline has
        columns; 0 if not given. ``n_selected_`` and the verdict stay as they are.
    iterations : int, optional
        Subspaces grown; as ``srs-ooc plan`` advises, if not given.
    halves : int, optional
        Then repeat the search on so many random halves of the rows, such as 20 (an even number),
        for ``stability_``.
    task : {'auto', 'classification', 'regression'}
        What ``y`` is.
    min_class_rows : int, optional
        Refuse classes of fewer rows, as :func:`srs_ooc.ingest` does: of 20 rows or more, classes of
        one row, if not given.
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
        Show a bar, and the disk that is taken.

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
        did not reach the last stage.
    effects_ : structured (n_features_in_,)
        With a final verdict, of selected and marginally significant features, alone: ``direction``
        and ``measure`` (texts, None elsewhere), ``effect`` and its interval ``low``, ``high``
        (NaN elsewhere), of which 5% miss on average. Of the rows of the fit, so likely overstated.
    n_selected_ : int
        Features that the test selects, whatever ``n_features_to_select`` and
        ``min_features_to_select``.
    stability_ : float (n_features_in_,)
        Share of the halves of the rows that select each feature; only with ``halves``.
    n_iterations_ : int
        Subspaces grown.
    n_features_in_, feature_names_in_
        As in scikit-learn; of a store, the names of its features.
    """

    # As GroupKFold asks for those of a split.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    _saves_trees = False
    _kind = ""  # the only task there is
    class_weight: dict[Any, float] | str | None
    n_features_to_select: int | None
    min_features_to_select: int
    task: str

    def __init__(
        self,
        *,
        method: str | None = None,
        judge: str | None = None,
        model: str | None = None,
        model_params: dict[str, Any] | None = None,
        alpha: float | None = None,
        subspace_size: int | str | None = None,
        fdr: float | None = None,
        keep: int | None = None,
        closing: str | None = None,
        adjust: Any = None,
        pairs: str | None = None,
        probe_min_draws: int | None = None,
        probe_min_wins: float | None = None,
        max_features: int | float | str | None = None,
        impurity: str | None = None,
        splitter: str | None = None,
        thresholds: str | None = None,
        min_impurity_decrease: float | None = None,
        bootstrap: bool | None = None,
        row_sample: int | None = None,
        class_weight: dict[Any, float] | str | None = None,
        max_depth: int | None = None,
        min_samples_leaf: int | None = None,
        trees_per_subspace: int | None = None,
        draw_block: int | None = None,
        round_size: int | None = None,
        options: dict[str, Any] | None = None,
        n_features_to_select: int | None = None,
        min_features_to_select: int = 0,
        iterations: int | None = None,
        halves: int | None = None,
        task: str = "auto",
        min_class_rows: int | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        memory_mb: int | None = None,
        cache_dir: str | Path | None = None,
        verbose: int = 0,
    ) -> None:
        given = locals()  # kept as they are: scikit-learn compares them with what was given
        self.__dict__.update({name: given[name] for name in given if name != "self"})

    def _request(self, store: Store) -> dict[str, Any]:
        """Return what the parameters ask of a run of ``store``, by keywords of ``api.run``."""
        identity = {n: v for n, v in self.get_params(deep=False).items() if n in declared()}
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(_SEEDS, dtype=np.int64)
        if not (self.adjust is None or isinstance(self.adjust, str)):
            identity["adjust"] = ",".join(map(str, self.adjust))
        return {
            **identity,
            **(self.options or {}),
            "seed": int(seed),
            "class_weight": self._class_weight(store),
            "iterations": self.iterations,
            "halves": self.halves,
            "memory_mb": self.memory_mb,
            "threads": effective_n_jobs(self.n_jobs),
            "save_trees": self._saves_trees,
            "progress": bool(self.verbose),
        }

    def _class_weight(self, store: Store) -> str | None:
        """Return weights by label as a run has them, 1 for a class that is not named."""
        if not isinstance(self.class_weight, dict):
            return self.class_weight
        named = {str(label): float(weight) for label, weight in self.class_weight.items()}
        return weights_text({label: named.get(label, 1.0) for label in store.manifest.classes})

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
            Rows that belong together: the verdict permutes whole groups. Where metadata are routed,
            they are asked for, as by ``GroupKFold``; ``set_fit_request(groups=False)`` declines.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the table or an option is not as expected.
        OSError
            If ``cache_dir`` is missing.
        srs_ooc.base.errors.StoreError, srs_ooc.base.errors.BudgetError
            If the disk has no room; if ``memory_mb`` cannot hold the work.
        """
        with python_errors(), workspace(self.cache_dir) as folder:
            if is_store(X):
                if any(given is not None for given in (y, sample_weight, groups)):
                    raise ValueError(
                        "expected y, sample_weight and groups to be None with a store, which has "
                        "its own. Leave them out, or ingest the table again with others."
                    )
                store = store_of(X)
                self._take_names(store)
                features = np.arange(store.n_features)
            else:
                checked = checked_fit(self, X, y, sample_weight, groups)
                store, features = self._ingested(folder, *checked)
            request = self._request(store)
            if len(features) < self.n_features_in_:
                request["adjust"] = "all"
            self._take_result(api.run(store, out=folder / "fit.run", **request), features)
        return self

    def _target(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return ``y`` as it is ingested."""
        return y

    def _ingested(
        self, folder: Path, X: Any, y: NDArray[Any], weights: Floats | None, groups: Any
    ) -> tuple[Store, Indices]:
        """Return the store of a table, made in ``folder``, and which columns its features are."""
        features, covariates = self._parted(X)
        ingest(
            _columns(X, features) if covariates else X,
            folder / "X.zarr",
            target=self._target(y),
            task=self._kind or self.task,
            weights=weights,
            groups=None if groups is None else list(groups),
            memory_mb=DEFAULT_MEMORY_MB if self.memory_mb is None else self.memory_mb,
            keep_values=X.shape[0] <= MOST_ROWS_OF_VALUES,
            min_class_rows=self.min_class_rows,
            covariates=covariates,
        )
        return Store.open(folder / "X.zarr"), features

    def _parted(self, X: Any) -> tuple[Indices, dict[str, Any]]:
        """Return the places of the features, and the values of the covariates by name."""
        n, given = self.n_features_in_, self.adjust
        if given is None or given == "none":
            return np.arange(n), {}
        names = list(getattr(self, "feature_names_in_", [f"x{i}" for i in range(n)]))
        wanted = given.split(",") if isinstance(given, str) else list(given)
        places: list[Any] = [names.index(one) if one in names else one for one in wanted]
        for place in places:
            if not isinstance(place, Integral) or not 0 <= int(place) < n:
                raise ValueError(
                    f"adjust: expected names of columns of X, or places from 0 to {n - 1}, found "
                    f"{place!r}. Name columns that X has."
                )
        features = np.setdiff1d(np.arange(n), places)
        if not len(features):
            raise ValueError("adjust: expected columns of X that are left, found none. Name fewer.")
        chosen = _columns(X, np.array(places := [*set(places)]))
        if hasattr(chosen, "toarray"):
            chosen = chosen.toarray()
        return features, {str(names[i]): column_of(chosen, at) for at, i in enumerate(places)}

    def _take_names(self, store: Store) -> None:
        self.n_features_in_ = store.n_features
        self.feature_names_in_ = np.array(list(store.names), dtype=object)

    def _take_result(self, result: Result, features: Indices) -> None:
        reading, n = result.reading, self.n_features_in_
        positions, verdict = features[reading.positions], reading.verdict
        selected = reading.selected()
        self.n_selected_ = len(selected)
        least = self._number("min_features_to_select", 0)
        if self.n_features_to_select is not None:
            selected = reading.top(self._number("n_features_to_select", 1))
        elif len(selected) < least:
            selected = reading.top(least)
        self.support_, self.ranking_ = np.zeros(n, np.bool_), np.full(n, n)
        self.support_[features], self.ranking_[features] = reading.mask(selected), reading.ranks()
        self.feature_importances_ = np.zeros(n)
        importances = np.maximum(reading.importances(slice(0, len(features))), 0.0)
        self.feature_importances_[positions] = importances
        if verdict is not None:
            self.q_values_ = np.full(n, np.nan)
            self.q_values_[positions[verdict.table["stored"]]] = verdict.table["q_value"]
            self.effects_ = np.full(n, np.array((None, None, *[np.nan] * 3), _EFFECTS))
            for feature in verdict.table["stored"].tolist():
                line = reading.record(0, feature)
                if line.effect is not None:
                    found = (getattr(line, name) for name in _EFFECTS.names or ())
                    self.effects_[positions[feature]] = tuple(found)
        elif hasattr(self, "q_values_"):
            del self.q_values_, self.effects_
        self.n_iterations_ = reading.n_iterations
        if (halves := result.halves) is not None:
            self.stability_ = np.zeros(n)
            self.stability_[positions[halves.features]] = halves.counts / halves.n_halves
        elif hasattr(self, "stability_"):
            del self.stability_

    def _number(self, name: str, low: int) -> int:
        n = getattr(self, name)
        if not isinstance(n, Integral) or not low <= int(n) <= self.n_features_in_:
            raise ValueError(
                f"{name}: expected a whole number from {low} to the {self.n_features_in_} features "
                f"there are, found {n!r}."
            )
        return int(n)

    def _get_support_mask(self) -> Bools:
        validation.check_is_fitted(self)
        support: Bools = self.support_
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
            As ``set_output`` says. With no column, and a warning, where nothing is selected and
            ``min_features_to_select`` is 0.
        """
        validation.check_is_fitted(self)
        if not is_store(X):
            if frame_library(X) == "pandas":
                _check_distinct(X)
            if frame_library(X) in (None, "pandas"):
                return super().transform(X)
            support = self._get_support_mask()
            checked_table(self, X, reset=False)
            if not support.any():
                return self._transform(np.empty(X.shape))
            chosen = np.flatnonzero(support).tolist()
            return np.column_stack([column_of(X, place).to_numpy() for place in chosen])
        from srs_ooc.results.exporting import values_of

        with python_errors():
            store = store_of(X)
            pairs = zip(store.names, getattr(self, "feature_names_in_", ()), strict=False)
            if store.n_features != self.n_features_in_ or any(a != b for a, b in pairs):
                raise ValueError(
                    f"{store.place}: expected a store with the {self.n_features_in_} features of "
                    f"the fit, in their order, found {store.n_features}, or others. Ingest a table "
                    "that has them."
                )
            if not self.support_.any():
                return self._transform(np.empty((store.n_rows, self.n_features_in_)))
            return values_of(store, self.get_support(indices=True))

    def _transform(self, X: Any) -> Any:
        if self.support_.any():
            return super()._transform(X)
        warnings.warn(
            "No features were selected, so no column is left for what comes after, such as the "
            "next step of a pipeline. min_features_to_select=1 takes the best by rank there.",
            UserWarning,
            stacklevel=3,
        )
        return X.iloc[:, :0] if hasattr(X, "iloc") else np.empty((X.shape[0], 0), X.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags


# The trees of a search as a classifier and as a regressor of scikit-learn.


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

    def _take_result(self, result: Result, features: Indices) -> None:
        from srs_ooc.ensemble.prediction import Model

        super()._take_result(result, features)
        self.ensemble_ = Model.of(result.run, result.store.place)

    def _shares(self, X: Any) -> Floats:
        validation.check_is_fitted(self)
        with python_errors():
            data = store_of(X) if is_store(X) else checked_table(self, X, reset=False)
            return self.ensemble_.predict(data, by_name=False)[1]


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

    _kind = "classification"

    def _target(self, y: NDArray[Any]) -> NDArray[Any]:
        check_classification_targets(y)
        self._is_coded = True
        self.classes_, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__}: expected at least two classes, found one class "
                f"({self.classes_[0]!r})."
            )
        n_rows = dict(zip(map(str, self.classes_.tolist()), counts.tolist(), strict=True))
        check_counts("y", n_rows, whole_given(self.min_class_rows, "min_class_rows"))
        return codes

    def _class_weight(self, store: Store) -> str | None:
        if not isinstance(self.class_weight, dict) or not self._is_coded:
            return super()._class_weight(store)
        weights = [float(self.class_weight.get(label, 1.0)) for label in self.classes_.tolist()]
        return weights_text({str(code): weight for code, weight in enumerate(weights)})

    def _take_names(self, store: Store) -> None:
        if not store.manifest.classes:
            raise ValueError(f"{store.place}: expected a target of classes, found numbers.")
        super()._take_names(store)
        self._is_coded = False
        self.classes_ = np.array(store.manifest.classes)

    def predict_proba(self, X: Any) -> Floats:
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

    _kind = "regression"

    def _target(self, y: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(y, dtype=np.float64)

    def _take_names(self, store: Store) -> None:
        if store.manifest.classes:
            raise ValueError(f"{store.place}: expected a target of numbers, found classes.")
        super()._take_names(store)

    def predict(self, X: Any) -> Floats:
        """Return the number predicted for each row, float64 (n_samples,)."""
        return self._shares(X)[:, 0]
