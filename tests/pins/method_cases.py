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
    return ("--with", f"scores={file}")


def _held_out(folder):
    file = folder / "held-out.txt"
    file.write_text("".join(f"r{i}\n" for i in range(0, N_ROWS, 4)))
    return ("--with", f"validation_rows={file}")


PLAIN = _store()
MIXED = _store(missing=True, categories=True)
REGRESSION = _store("amount", "--task", "regression")
GRADES = _store("grade")
_SHORT = ("--iterations", 60, "--q", 20)
_LESS = ("--method", "less", *_SHORT)
_PROBE = ("--judge", "probe", "--iterations", 200, "--q", 12, "--probe-min-wins", 0.7)
_PRS = (
    "--method", "prs", "--with", "models=10", "--with", "folds=3", "--with", "epochs=12",
    "--with", "inclusion=0.1", "--with", "learning_rate=0.02",
)  # fmt: skip
_SEARCH = (
    "--method", "rase", "--with", "models=8", "--with", "candidates=12", "--with", "rounds=3",
    "--with", "max_size=4",
)  # fmt: skip
_RASE = (*_SEARCH, "--with", "folds=3")
_MODEL = ("--method", "rs", "--iterations", 40, "--q", 8, "--with", "model_folds=3")
_SHORT_SEARCH = (*_SEARCH, "--with", "rounds=2", "--with", "models=4", "--with", "candidates=6")

CASES = {
    "rs": (PLAIN, ("--method", "rs", *_SHORT)),
    "rs, probe, draw block 8": (PLAIN, ("--method", "rs", *_PROBE, "--with", "draw_block=8")),
    "srs, keep 3": (PLAIN, (*_SHORT, "--iterations", 300, "--with", "keep=3")),
    "srs, closed by sensitivity": (
        PLAIN, (*_SHORT, "--closing", "sensitivity", "--bootstrap"),
    ),
    "srs, closed by sensitivity, regression": (
        REGRESSION, (*_SHORT, "--closing", "sensitivity", "--bootstrap"),
    ),
    "less": (PLAIN, _LESS),
    "less, rank 5, not centred, trees": (
        PLAIN, (*_LESS, "--judge", "probe", "--with", "rank=5", "--with", "center=no",
         "--save-trees"),
    ),
    "less by leverage of values": (PLAIN, (*_LESS, "--with", "matrix=values")),
    "less by norms": (PLAIN, (*_LESS, "--with", "scores=norm")),
    "less by norms of codes, missing and categories": (
        MIXED, (*_LESS, "--with", "scores=norm", "--with", "matrix=codes"),
    ),
    "less by a file": (PLAIN, ("--method", "less", *_PROBE, _scores)),
    "less with replacement": (PLAIN, (*_LESS, "--with", "replacement=yes")),
    "prs": (PLAIN, _PRS),
    "prs, trees, some rows held out by name": (PLAIN, (*_PRS, "--save-trees", _held_out)),
    "prs, sparsity and smoothness on a grid": (
        PLAIN, (*_PRS, "--with", "sparsity=0.01", "--with", "smoothness=0.01",
         "--with", "grid=6x10"),
    ),
    "prs, patience, grown again": (PLAIN, (*_PRS, "--with", "patience=2",
     "--with", "effective_share=0.99")),
    "prs, regression": (REGRESSION, _PRS),
    "prs, 3 classes, missing and categories": (
        _store("grade", missing=True, categories=True), _PRS,
    ),
    "prs, screened": (PLAIN, (*_PRS, "--with", "screen=15", "--with", "screen_draws=10")),
    "prs, linear": (PLAIN, (*_PRS, "--model", "linear")),
    "rase": (PLAIN, _RASE),
    "rase, trees": (PLAIN, (*_RASE, "--save-trees")),
    "rase, oob": (PLAIN, (*_RASE, "--with", "criterion=oob")),
    "rase, validation": (PLAIN, (*_SEARCH, "--with", "criterion=validation")),
    "rase, cutoff of the training rows, floor, nothing held out": (
        PLAIN, (*_RASE, "--with", "vote_cutoff=training", "--with", "floor=0.5",
         "--with", "validation_share=0"),
    ),
    "rase, regression": (REGRESSION, _RASE),
    "rase, 3 classes, missing and categories": (
        _store("grade", missing=True, categories=True), _RASE,
    ),
    "rase, screened": (PLAIN, (*_RASE, "--with", "screen=15", "--with", "screen_draws=10")),
    "rase, lda by ric": (PLAIN, (*_SEARCH, "--model", "lda", "--with", "criterion=ric")),
    "rase, qda by ric": (PLAIN, (*_SEARCH, "--model", "qda", "--with", "criterion=ric")),
    "rase, knn by ric": (PLAIN, (*_SHORT_SEARCH, "--model", "knn", "--with", "criterion=ric")),
    "rase, linear by ebic": (
        PLAIN, (*_SEARCH, "--model", "linear", "--with", "criterion=ebic",
         "--with", "ebic_gamma=0.5"),
    ),
    "rase, linear by ebic, 3 classes": (
        GRADES, (*_SEARCH, "--model", "linear", "--with", "criterion=ebic"),
    ),
    "rase, linear by ebic, regression": (
        REGRESSION, (*_SEARCH, "--model", "linear", "--with", "criterion=ebic"),
    ),
    "rase, knn by cross-validation": (
        PLAIN,
        (*_SHORT_SEARCH, "--with", "folds=3", "--model", "knn",
         "--with", 'model_params={"n_neighbors": 3}'),
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
        PLAIN, (*_MODEL, "--model", "knn", "--with", "model_importance=permutation"),
    ),
    "srs of knn": (PLAIN, (*_MODEL, "--method", "srs", "--iterations", 150, "--model", "knn")),
}  # fmt: skip
ON_TWO_THREADS = ("srs, closed by sensitivity", "less", "prs", "rase, trees", "rs of knn")
"""Cases run again with two workers, against the same pin."""


def pin_of_method(name, folder, threads=1):
    make, options = CASES[name]
    with without_trials():
        return run_of(make, options, folder, threads)
