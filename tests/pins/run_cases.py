"""Small runs with every judge and every option that changes what is grown."""

from access import (
    MEMORY,
    command,
    digests_of_run,
    features_of_run,
    ingest_file,
    json_of,
    status_of_run,
)
from digests import digest_of_json, rounded
from pinned_tables import run_table

_ROLES = ("weight", "batch", "family", "amount", "family_label", "grade", "label")


def make_store(folder, target="label", *options, uses=(), n_rows=80, **form):
    """A store of the run table with one target and no more roles than asked."""
    table = run_table(n_rows, **form)
    unused = [name for name in _ROLES if name not in (target, *uses)]
    file = folder / "table.csv"
    file.write_text(table.without(*unused).text(), encoding="utf-8")
    return ingest_file(file, folder / "store", "--target", target, "--row-ids", "id", *options)


def _store(**form):
    target, options = form.pop("target", "label"), form.pop("options", ())
    return lambda folder: make_store(folder, target, *options, **form)


def _names(file, names):
    file.write_text("".join(f"{name}\n" for name in names))
    return file


def _excluding(folder):
    excluded = _names(folder / "excluded.txt", [f"g{i}" for i in range(2, 300, 7)])
    rows = _names(folder / "rows.txt", [f"r{i}" for i in range(80) if i % 5])
    return ("--exclude", excluded, "--rows", rows)


PLAIN = _store()
_TESTS = ("--iterations", 150, "--q", 60)
_PROBE = ("--judge", "probe", "--iterations", 400, "--q", 40, "--probe-min-wins", 0.7)
_EASY = ("--probe-min-wins", 0.5)
_POSITIVE = ("--judge", "positive", "--iterations", 60, "--q", 30)
_REGRESSION = _store(target="amount", options=("--task", "regression"))
_WEIGHTED = _store(uses=("weight",), options=("--weights", "weight"))
_STRATA = _store(uses=("batch",), options=("--strata", "batch"))
_FAMILIES = _store(target="family_label", uses=("family",), options=("--groups", "family"))
_MIXED = _store(missing=True, categories=True)

CASES = {
    "positive": (PLAIN, _POSITIVE),
    "probe": (PLAIN, _PROBE),
    "probe, alpha 0": (PLAIN, (*_PROBE, "--alpha", "0")),
    "probe, round size 4": (PLAIN, (*_PROBE, "--with", "round_size=4")),
    "probe, draw block 16": (PLAIN, (*_PROBE, "--with", "draw_block=16")),
    "probe, 3 trees on each subspace": (PLAIN, (*_PROBE, "--trees-per-subspace", 3)),
    "probe, K sqrt, depth 3, leaves of 4": (
        PLAIN, (*_PROBE, "--k", "sqrt", "--max-depth", 3, "--min-samples-leaf", 4, *_EASY),
    ),
    "probe, entropy, 3 classes": (_store(target="grade"), (*_PROBE, "--with", "impurity=entropy")),
    "probe, balanced classes": (_store(target="grade"), (*_PROBE, "--class-weight", "balanced")),
    "probe, thresholds between values": (_MIXED, (*_PROBE, "--with", "thresholds=value")),
    "probe, uint16 codes": (_store(options=("--code-dtype", "uint16"), n_rows=300), _PROBE),
    "probe, excluded features and some rows": (PLAIN, (*_PROBE, _excluding)),
    "probe, missing left out": (_store(missing=True), (*_PROBE, "--exclude-missing")),
    "trees, random splits": (PLAIN, (*_PROBE, "--save-trees")),
    "trees, best splits": (PLAIN, (*_PROBE, "--save-trees", "--splitter", "best")),
    "trees, bootstrap": (PLAIN, (*_PROBE, "--save-trees", "--bootstrap")),
    "trees, regression": (_REGRESSION, (*_PROBE, "--save-trees")),
    "trees, missing and categories": (_MIXED, (*_PROBE, "--save-trees")),
    "trees, least decrease": (PLAIN, (*_PROBE, "--save-trees",
     "--with", "min_impurity_decrease=0.01")),
    "tests": (PLAIN, _TESTS),
    "tests, few rows": (_store(n_rows=24), _TESTS),
    "tests, level 0.3, seed 7": (PLAIN, (*_TESTS, "--fdr", 0.3, "--seed", 7)),
    "tests, 3 classes": (_store(target="grade"), _TESTS),
    "tests, 3 classes, missing and categories": (
        _store(target="grade", missing=True, categories=True), _TESTS,
    ),
    "tests, regression": (_REGRESSION, _TESTS),
    "tests, strata": (_STRATA, _TESTS),
    "tests, weights": (_WEIGHTED, _TESTS),
    "tests, regression, strata": (
        _store(
            target="amount", uses=("batch",), options=("--task", "regression", "--strata", "batch")
        ),
        _TESTS,
    ),
    "tests, groups of rows": (_FAMILIES, _TESTS),
    "tests, missing and categories": (_MIXED, _TESTS),
    "tests, uint16 codes": (_store(options=("--code-dtype", "uint16"), n_rows=300), _TESTS),
    "tests, excluded features and some rows": (PLAIN, (*_TESTS, _excluding)),
    "tests, several pages of tallies": (
        _store(n_rows=24, n_features=17_000), ("--iterations", 60, "--q", 700),
    ),
}  # fmt: skip
ON_TWO_THREADS = (
    "tests",
    "probe, round size 4",
    "trees, bootstrap",
)
"""Cases run again with two workers, against the same pin."""


def results_of(run, store):
    return digests_of_run(run, store) | {
        "features": features_of_run(run, store),
        "status": status_of_run(run),
    }


def pin_of_run(name, folder, threads=1, more=()):
    make, options = CASES[name]
    return run_of(make, options, folder, threads, more)


def run_of(make, options, folder, threads=1, more=()):
    """All that is pinned of a run that is made in ``folder``."""
    store, run = make(folder), folder / "run"
    options = [
        part for option in options for part in (option(folder) if callable(option) else (option,))
    ]
    command("run", store, "--out", run, "--threads", threads, *MEMORY, *options, *more)
    return results_of(run, store) | predictions_of(run, folder, options)


def predictions_of(run, folder, options):
    """Predictions for the table itself, where trees were saved: floats to nine digits."""
    if "--save-trees" not in options:
        return {}
    out = folder / "predictions.csv"
    report = json_of("predict", run, folder / "table.csv", out, *MEMORY, "--json")
    report.pop("n_training_rows")  # pinned before there was one
    return {"predictions": digest_of_cells(out.read_text()), "scores": rounded(report)}


def digest_of_cells(text):
    rows = [[_cell(cell) for cell in line.split(",")] for line in text.splitlines()]
    return f"{len(rows)} lines {digest_of_json(rows)}"


def _cell(text):
    try:
        return rounded(float(text))
    except ValueError:
        return text
