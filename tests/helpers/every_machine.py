"""Small runs of everything that decides, as one process: prints a digest of each result as JSON.

    python tests/helpers/every_machine.py FOLDER [few]

:mod:`test_every_machine` starts it as on other processors and compares. The tables have ties by
construction: genotypes, counts, one-hot columns, missing cells, and correlations of exactly a half.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from srs_ooc.cli import cli
from srs_ooc.synthetic.madelon import Madelon

N_ROWS = 160


def halves(rng, n_columns=90):
    """Balanced columns of 0 and 1, in threes with correlations of a half or nearly."""
    n_rows, columns = 504, []  # the root of a column's spread is irrational: float32 shows an order
    while len(columns) < n_columns:
        first = rng.permutation(np.arange(n_rows) % 2)
        columns.append(first)
        for _ in range(2):
            other = first.copy()
            for value in (0, 1):  # a quarter of each half trades places
                changed = rng.permutation(np.flatnonzero(first == value))[: n_rows // 8]
                other[changed] = 1 - value
            columns.append(other)
    return np.stack(columns[:n_columns], axis=1)


def genotypes(rng, n_columns=90):
    """Two alleles a person; neighbours share some of them."""
    alleles = rng.random((2, N_ROWS, n_columns)) < rng.uniform(0.1, 0.5, n_columns)
    for column in range(1, n_columns):
        if column % 4:
            alleles[:, : N_ROWS // 2, column] = alleles[:, : N_ROWS // 2, column - 1]
    return alleles.sum(axis=0)


def counts(rng, n_columns=90):
    """Counts, half of them 0."""
    return rng.poisson(0.7, (N_ROWS, n_columns))


def one_hot(rng, n_columns=90):
    """Columns of 0 and 1 in fives of which each row has one."""
    levels = np.stack([rng.permutation(np.arange(N_ROWS) % 5) for _ in range(n_columns // 5)])
    return (levels.T[:, :, None] == np.arange(5)).reshape(N_ROWS, -1)


def with_gaps(rng, n_columns=90):
    """Genotypes, one cell in twelve missing."""
    table = genotypes(rng, n_columns).astype(float)
    table[rng.random(table.shape) < 1 / 12] = np.nan
    return table


def numbers(rng, n_columns=90):
    """Normal numbers."""
    return rng.standard_normal((N_ROWS, n_columns))


def long(rng, n_columns=60):
    """More rows than leverage scores are computed exactly for."""
    return rng.integers(0, 9, (3100, n_columns))


TABLES = {of.__name__: of for of in (halves, genotypes, counts, one_hot, with_gaps, numbers, long)}
_SHORT = ("--iterations", 60, "--q", 40)
_PRS = ("--method", "prs", "--with", "models=12", "--with", "epochs=4", "--with", "folds=3")
_RASE = ("--method", "rase", "--with", "models=6", "--with", "candidates=12", "--with", "rounds=2")
_BY_CRITERION = (*_RASE, "--with", "validation_share=0")
OPTIONS = {
    "tests": (*_SHORT, "--fdr", 0.5),
    "probe": (*_SHORT, "--judge", "probe", "--probe-min-wins", 0.5),
    "random subspace": (*_SHORT, "--method", "rs"),
    "sensitivity": (*_SHORT, "--closing", "sensitivity", "--fdr", 0.5),
    "best splits, bootstrap": (*_SHORT, "--splitter", "best", "--bootstrap"),
    "leverage": (*_SHORT, "--method", "less", "--with", "rank=9"),
    "leverage of values": (
        *_SHORT,
        "--method",
        "less",
        "--with",
        "rank=9",
        "--with",
        "matrix=values",
    ),
    "norms": (*_SHORT, "--method", "less", "--with", "scores=norm"),
    "prs": _PRS,
    "prs, best splits": (*_PRS, "--splitter", "best", "--with", "thresholds=value"),
    "rase": _RASE,
    "rase, lda": (*_BY_CRITERION, "--model", "lda", "--with", "criterion=ric"),
    "rase, qda": (*_BY_CRITERION, "--model", "qda", "--with", "criterion=ric"),
    "rase, knn": (*_BY_CRITERION, "--model", "knn", "--with", "criterion=ric"),
    "rase, linear": (*_BY_CRITERION, "--model", "linear", "--with", "criterion=ebic"),
}
NETWORKS = {
    "genie3": ("--method", "genie3", "--with", "trees=10"),
    "srs": ("--method", "srs", "--with", "trees=40"),
    "prs": ("--method", "prs", "--with", "models=10", "--with", "epochs=3", "--with", "folds=3"),
    "joint": (
        "--method",
        "prs",
        "--with",
        "joint=0.01",
        "--with",
        "models=10",
        "--with",
        "epochs=3",
        "--with",
        "folds=3",
    ),
}
FEW = [("tests", "with_gaps"), ("tests", "halves"), ("leverage of values", "numbers")]
MANY = [
    *(("tests", table) for table in TABLES),
    *((name, "genotypes") for name in ("probe", "random subspace", "sensitivity")),
    *((name, "with_gaps") for name in ("best splits, bootstrap", "leverage", "prs", "rase")),
    *((name, "numbers") for name in ("leverage of values", "norms", "prs, best splits")),
    *((f"rase, {model}", "numbers") for model in ("lda", "qda", "knn", "linear")),
    ("rase, linear", "one_hot"),
    ("leverage", "long"),
    ("leverage of values", "long"),
]


def command(*arguments):
    """Run the command line in this process; return what it writes."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    if result.exit_code:
        raise AssertionError(f"{arguments}: {result.output}") from result.exception
    return result.stdout


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def stores(folder, names):
    """Make the tables, with a class that a few columns have a part in; yield names and stores."""
    for name in names:
        rng = np.random.default_rng(list(TABLES).index(name))
        table = TABLES[name](rng)
        signal = np.nan_to_num(table[:, :4].astype(float)).sum(axis=1)
        classes = (signal + rng.normal(0, 1, len(table)) > np.median(signal)).astype(int)
        np.save(folder / f"{name}.npy", table)
        for kind, target in (("classes", classes), ("amounts", np.round(signal + classes, 2))):
            file = folder / f"{name}-{kind}.txt"
            file.write_text("".join(f"{value}\n" for value in target))
            task = ("--task", "regression") if kind == "amounts" else ()
            store = folder / f"{name}-{kind}.zarr"
            command("ingest", folder / f"{name}.npy", store, "--target-file", file, *task)
        yield name


def results(folder, cases, *, with_networks):
    """Yield the name and the digest of each result."""
    weights = Madelon(n_rows=9, n_features=500, n_relevant=400, seed=1)._weights
    yield "synth madelon", digest(weights.tobytes().hex())  # its cells are rounded to few digits
    list(stores(folder, sorted({table for _, table in cases})))
    for number, (name, table) in enumerate(cases):
        kinds = ["classes"]
        if name not in ("rase, lda", "rase, qda", "rase, knn"):
            kinds.append("amounts")
        for kind in kinds:
            run = folder / f"{number}-{kind}.run"
            command("run", folder / f"{table}-{kind}.zarr", "--out", run, *OPTIONS[name])
            said = command("features", run, "--csv")
            facts = json.loads(command("status", run, "--json"))
            said += json.dumps(facts.get("verdict"), sort_keys=True)
            yield f"{name}, {table}, {kind}", digest(said)
    if not with_networks:
        return
    store, targets = folder / "with_gaps-classes.zarr", folder / "targets.txt"
    names = command("inspect", store, "--names").splitlines()
    targets.write_text("\n".join(names[::3]))
    for name, options in NETWORKS.items():
        edges = folder / f"{name}.csv"
        command("network", store, "--targets", targets, "--out", edges, *options)
        yield f"network {name}", digest(edges.read_text())
    kept = command("compact", folder / "0-classes.run", "--folds", 2, "--csv")
    yield "compact", digest(kept)


def main():
    folder, few = Path(sys.argv[1]), sys.argv[2:] == ["few"]
    print(json.dumps(dict(results(folder, FEW if few else MANY, with_networks=not few))))


if __name__ == "__main__":
    main()
