"""A child process: one of the other methods on one table held in memory.

    python selection_peers.py METHOD FOLDER SEED [STORE]

reads FOLDER/values.npy and target.npy (integers: classes, floats: a regression), or the codes and
classes of a STORE in 20 GB of memory at most, and writes FOLDER/selected.json, the selected
columns, and FOLDER/ranking.u4, all columns best first, equal scores in random order.
"""

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOP = 20
MOST_NBYTES = 20_000_000_000
LEVEL = 0.1
N_JOBS = 2

Scored = tuple[NDArray[np.bool_] | None, NDArray[np.float64]]
"""The selected columns, None for the top 20 by score; and scores, larger for better."""


def is_regression(y: NDArray[np.generic]) -> bool:
    """Tell a regression from a classification."""
    return np.issubdtype(y.dtype, np.floating)


def ranksum(x: NDArray[np.float32], y: NDArray[np.generic], _: int) -> Scored:
    """Test each column: rank sum (two classes), Kruskal-Wallis (more) or rank correlation."""
    from scipy import stats

    pieces = []
    for start in range(0, x.shape[1], 1000):
        piece = np.asarray(x[:, start : start + 1000], dtype=np.float64)
        groups = [] if is_regression(y) else [piece[y == label] for label in np.unique(y)]
        if not groups:
            ranks = stats.rankdata(piece, axis=0)
            pieces.append(stats.pearsonr(ranks, stats.rankdata(y)[:, None], axis=0).pvalue)
        elif len(groups) == 2:
            pieces.append(stats.mannwhitneyu(*groups, axis=0, method="asymptotic").pvalue)
        else:
            pieces.append(stats.kruskal(*groups, axis=0).pvalue)
    return _corrected(np.concatenate(pieces))


def ftest(x: NDArray[np.float32], y: NDArray[np.generic], _: int) -> Scored:
    """Test each column by analysis of variance, or by its correlation in a regression."""
    from sklearn.feature_selection import f_classif, f_regression

    return _corrected((f_regression if is_regression(y) else f_classif)(x, y)[1])


def _corrected(p_values: NDArray[np.float64]) -> Scored:
    """Select by Benjamini and Hochberg at the level; an undefined p-value is 1."""
    from scipy.stats import false_discovery_control

    p_values = np.nan_to_num(p_values, nan=1.0)
    return false_discovery_control(p_values) <= LEVEL, -p_values


def mutual_info(x: NDArray[np.float32], y: NDArray[np.generic], seed: int) -> Scored:
    """Estimate mutual information by nearest neighbours.

    It works in processes: the peak reported is that of the largest one.
    """
    from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

    estimate = mutual_info_regression if is_regression(y) else mutual_info_classif
    return None, estimate(x, y, random_state=seed, n_jobs=N_JOBS)


def random_forest(x: NDArray[np.float32], y: NDArray[np.generic], seed: int) -> Scored:
    """Rank by the importance of 500 trees."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if is_regression(y) else RandomForestClassifier
    model = kind(500, max_features="sqrt", random_state=seed, n_jobs=N_JOBS)
    return None, model.fit(x, y).feature_importances_


def extra_trees(x: NDArray[np.float32], y: NDArray[np.generic], seed: int) -> Scored:
    """Rank by the importance of 500 trees with 5% of the columns at each node."""
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    kind = ExtraTreesRegressor if is_regression(y) else ExtraTreesClassifier
    model = kind(500, max_features=0.05, random_state=seed, n_jobs=N_JOBS)
    return None, model.fit(x, y).feature_importances_


def extra_trees_default(x: NDArray[np.float32], y: NDArray[np.generic], seed: int) -> Scored:
    """Rank by the importance of extra-trees with the package's defaults: 100 trees, K = sqrt."""
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    kind = ExtraTreesRegressor if is_regression(y) else ExtraTreesClassifier
    return None, kind(random_state=seed, n_jobs=N_JOBS).fit(x, y).feature_importances_


def lightgbm(x: NDArray[np.float32], y: NDArray[np.generic], seed: int) -> Scored:
    """Rank by the gain of 100 rounds of boosting."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    kind = LGBMRegressor if is_regression(y) else LGBMClassifier
    model = kind(importance_type="gain", random_state=seed, n_jobs=N_JOBS, verbose=-1)
    return None, model.fit(x, y).feature_importances_.astype(np.float64)


def boruta(x: NDArray[np.float32], y: NDArray[np.generic], seed: int) -> Scored:
    """Compare importances with those of shuffled columns, 20 rounds of 500 trees.

    Its own number of trees is 6,324 at 50,000 columns: extrapolated from 500 trees at 5,000
    columns, several times the limit.
    """
    from boruta import BorutaPy
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if is_regression(y) else RandomForestClassifier
    forest = kind(max_depth=5, n_jobs=N_JOBS)
    model = BorutaPy(forest, n_estimators=500, max_iter=20, random_state=seed)
    model.fit(np.asarray(x), y)
    return model.support_, -model.ranking_.astype(np.float64)


def lasso(x: NDArray[np.float32], y: NDArray[np.generic], seed: int) -> Scored:
    """Keep what an L1 penalty chosen by 3-fold cross-validation leaves."""
    from sklearn.linear_model import LassoCV, LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler().fit_transform(x)
    if is_regression(y):
        weights = LassoCV(cv=3, random_state=seed).fit(scaled, y).coef_[None, :]
    else:
        one = LogisticRegression(l1_ratio=1.0, solver="liblinear", random_state=seed)
        search = GridSearchCV(
            OneVsRestClassifier(one), {"estimator__C": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]}, cv=3
        )
        fitted = search.fit(scaled, y).best_estimator_
        weights = np.vstack([model.coef_ for model in fitted.estimators_])
    size = np.abs(weights).max(axis=0).astype(np.float64)
    return size > 0, size


def knockoffs(x: NDArray[np.float32], y: NDArray[np.generic], seed: int) -> Scored:
    """Filter by Gaussian model-X knockoffs with lasso statistics."""
    from knockpy import KnockoffFilter

    np.random.seed(seed)  # the package draws from the global generator
    found = KnockoffFilter(ksampler="gaussian", fstat="lasso")
    selected = found.forward(
        np.asarray(x, dtype=np.float64), y.astype(np.float64), fdr=LEVEL, shrinkage="ledoitwolf"
    )
    return selected.astype(bool), found.W


def ipss(x: NDArray[np.float32], y: NDArray[np.generic], seed: int) -> Scored:
    """Select by integrated path stability selection with gradient boosting, its default.

    Melikechi and Miller, arXiv 2410.02208. More than two classes it would take for numbers.
    """
    from ipss import ipss as selected_by

    if not is_regression(y) and len(np.unique(y)) > 2:
        raise SystemExit("expected two classes or numbers, found more classes")
    np.random.seed(seed)  # the package draws from the global generator
    found = selected_by(np.asarray(x, dtype=np.float64), y, target_fdr=LEVEL, n_jobs=N_JOBS)
    scores = np.array([found["efp_scores"][j] for j in range(x.shape[1])])
    return np.isin(np.arange(x.shape[1]), found["selected_features"]), -scores


FUNCTIONS: dict[str, Callable[[NDArray[np.float32], NDArray[np.generic], int], Scored]] = {
    function.__name__: function
    for function in (
        ranksum, ftest, mutual_info, random_forest, extra_trees, lightgbm, boruta, lasso, knockoffs,
        ipss,
    )
}  # fmt: skip
OF_SIZES = {"extra_trees_default": extra_trees_default}
"""Those of ``scale.py sizes`` alone."""


ON_CODES = {"ranksum"}
"""Methods that do with the codes as they are; the others want float32."""


def of_store(folder: Path, dtype: type) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the codes of a store (n, p), all in memory, in the order of their source; classes."""
    from srs_ooc.store.store import Store

    store = Store.open(folder)
    codes: NDArray[Any] = np.empty((store.n_features, store.n_rows), dtype)
    places, done = store.array("positions"), 0
    for index in range(store.manifest.n_chunks):
        raw = np.fromfile(folder / "codes" / "c" / str(index) / "0", dtype=np.uint8)
        piece = raw.reshape(-1, store.n_rows)[: store.n_features - done]
        codes[places[done : done + len(piece)]] = piece
        done += len(piece)
    return codes.T, store.target()


def main() -> None:
    """Run a method and write its answer."""
    name, folder, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if len(sys.argv) > 4:
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_NBYTES, MOST_NBYTES))
        dtype = np.uint8 if name in ON_CODES else np.float32
        values, target = of_store(Path(sys.argv[4]), dtype)
    else:
        values = np.load(folder / "values.npy", mmap_mode="r")
        target = np.load(folder / "target.npy")
    selected, scores = (FUNCTIONS | OF_SIZES)[name](values, target, seed)
    ties = np.random.default_rng(seed).permutation(len(scores))
    order = np.lexsort((ties, -scores))
    columns = order[:TOP] if selected is None else order[selected[order]]
    (folder / "ranking.u4").write_bytes(order.astype(np.uint32).tobytes())
    (folder / "selected.json").write_text(json.dumps(columns.tolist()))


if __name__ == "__main__":
    main()
