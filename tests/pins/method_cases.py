"""Small runs of every method, every criterion and every model, with all that they rank by."""

from access import without_trials
from run_cases import make_store, run_of

N_ROWS, N_FEATURES = 100, 60


def _store(target="label", *options, n_rows=N_ROWS, n_features=N_FEATURES, **form):
    def make(folder):
        return make_store(folder, target, *options, n_rows=n_rows, n_features=n_features, **form)

    return make


def _scores(folder):
    """A file of scores by which features are drawn: the later, the more often."""
    file = folder / "scores.csv"
    lines = [f"g{i},{1 + i % 7}\n" for i in range(N_FEATURES)]
    file.write_text("name,score\n" + "".join(lines))
    return ("--scores", file)


def _held_out(folder):
    file = folder / "held-out.txt"
    file.write_text("".join(f"r{i}\n" for i in range(0, N_ROWS, 4)))
    return ("--validation-rows", file)


PLAIN = _store()
MIXED = _store(missing=True, categories=True)
REGRESSION = _store("amount", "--task", "regression")
GRADES = _store("grade")
_SHORT = ("--iterations", 60, "--q", 20)
_LESS = ("--method", "less", *_SHORT)
_PROBE = ("--judge", "probe", "--iterations", 200, "--q", 12, "--probe-min-wins", 0.7)
_PRS = (
    "--method", "prs", "--models", 10, "--folds", 3, "--epochs", 12, "--inclusion", 0.1,
    "--learning-rate", 0.02,
)  # fmt: skip
_SEARCH = ("--method", "rase", "--models", 8, "--candidates", 12, "--rounds", 3, "--max-size", 4)
_RASE = (*_SEARCH, "--folds", 3)
_MODEL = ("--method", "rs", "--iterations", 40, "--q", 8, "--model-folds", 3)
_SHORT_SEARCH = (*_SEARCH, "--rounds", 2, "--models", 4, "--candidates", 6)

CASES = {
    "rs": (PLAIN, ("--method", "rs", *_SHORT)),
    "rs, probe, draw block 8": (PLAIN, ("--method", "rs", *_PROBE, "--draw-block", 8)),
    "srs, keep 3": (PLAIN, (*_SHORT, "--iterations", 300, "--keep", 3)),
    "srs, closed by sensitivity": (
        PLAIN, (*_SHORT, "--closing", "sensitivity", "--bootstrap"),
    ),
    "srs, closed by sensitivity, regression": (
        REGRESSION, (*_SHORT, "--closing", "sensitivity", "--bootstrap"),
    ),
    "less": (PLAIN, _LESS),
    "less, rank 5, not centred, trees": (
        PLAIN, (*_LESS, "--judge", "probe", "--rank", 5, "--no-center", "--save-trees"),
    ),
    "less by leverage of values": (PLAIN, (*_LESS, "--matrix", "values")),
    "less by norms": (PLAIN, (*_LESS, "--scores", "norm")),
    "less by norms of codes, missing and categories": (
        MIXED, (*_LESS, "--scores", "norm", "--matrix", "codes"),
    ),
    "less by a file": (PLAIN, ("--method", "less", *_PROBE, _scores)),
    "less with replacement": (PLAIN, (*_LESS, "--replacement")),
    "prs": (PLAIN, _PRS),
    "prs, trees, some rows held out by name": (PLAIN, (*_PRS, "--save-trees", _held_out)),
    "prs, sparsity and smoothness on a grid": (
        PLAIN, (*_PRS, "--sparsity", 0.01, "--smoothness", 0.01, "--grid", "6x10"),
    ),
    "prs, patience, grown again": (PLAIN, (*_PRS, "--patience", 2, "--effective-share", 0.99)),
    "prs, regression": (REGRESSION, _PRS),
    "prs, 3 classes, missing and categories": (
        _store("grade", missing=True, categories=True), _PRS,
    ),
    "prs, screened": (PLAIN, (*_PRS, "--screen", 15, "--screen-draws", 10)),
    "prs, linear": (PLAIN, (*_PRS, "--model", "linear")),
    "rase": (PLAIN, _RASE),
    "rase, trees": (PLAIN, (*_RASE, "--save-trees")),
    "rase, oob": (PLAIN, (*_RASE, "--criterion", "oob")),
    "rase, validation": (PLAIN, (*_SEARCH, "--criterion", "validation")),
    "rase, cutoff of the training rows, floor, nothing held out": (
        PLAIN, (*_RASE, "--vote-cutoff", "training", "--floor", 0.5, "--validation-share", 0),
    ),
    "rase, regression": (REGRESSION, _RASE),
    "rase, 3 classes, missing and categories": (
        _store("grade", missing=True, categories=True), _RASE,
    ),
    "rase, screened": (PLAIN, (*_RASE, "--screen", 15, "--screen-draws", 10)),
    "rase, lda by ric": (PLAIN, (*_SEARCH, "--model", "lda", "--criterion", "ric")),
    "rase, qda by ric": (PLAIN, (*_SEARCH, "--model", "qda", "--criterion", "ric")),
    "rase, knn by ric": (PLAIN, (*_SHORT_SEARCH, "--model", "knn", "--criterion", "ric")),
    "rase, linear by ebic": (
        PLAIN, (*_SEARCH, "--model", "linear", "--criterion", "ebic", "--ebic-gamma", 0.5),
    ),
    "rase, linear by ebic, 3 classes": (
        GRADES, (*_SEARCH, "--model", "linear", "--criterion", "ebic"),
    ),
    "rase, linear by ebic, regression": (
        REGRESSION, (*_SEARCH, "--model", "linear", "--criterion", "ebic"),
    ),
    "rase, knn by cross-validation": (
        PLAIN,
        (*_SHORT_SEARCH, "--folds", 3, "--model", "knn", "--model-params", '{"n_neighbors": 3}'),
    ),
    "rs of knn": (PLAIN, (*_MODEL, "--model", "knn")),
    "rs of knn, missing": (_store(missing=True), (*_MODEL, "--model", "knn")),
    "rs of svm": (PLAIN, (*_MODEL, "--model", "svm")),
    "rs of linear": (PLAIN, (*_MODEL, "--model", "linear")),
    "rs of lda": (PLAIN, (*_MODEL, "--model", "lda")),
    "rs of qda": (PLAIN, (*_MODEL, "--model", "qda")),
    "rs of an import path": (PLAIN, (*_MODEL, "--model", "sklearn.naive_bayes.GaussianNB")),
    "rs of knn, regression": (REGRESSION, (*_MODEL, "--model", "knn")),
    "rs of linear, regression": (REGRESSION, (*_MODEL, "--model", "linear")),
    "rs of svm, regression": (REGRESSION, (*_MODEL, "--model", "svm")),
    "rs of knn, by permutation": (
        PLAIN, (*_MODEL, "--model", "knn", "--model-importance", "permutation"),
    ),
    "srs of knn": (PLAIN, (*_MODEL, "--method", "srs", "--iterations", 150, "--model", "knn")),
}  # fmt: skip
ON_TWO_THREADS = ("srs, closed by sensitivity", "less", "prs", "rase, trees", "rs of knn")
"""Cases run again with two workers, against the same pin."""


def pin_of_method(name, folder, threads=1):
    make, options = CASES[name]
    with without_trials():
        return run_of(make, options, folder, threads)
