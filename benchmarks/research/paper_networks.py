"""The DREAM4 networks against Table 5 of the PRS paper, and GENIE3 against scikit-learn in time.

Prints four tables, each on all 100 rows: the area under precision-recall of GENIE3, mean of seeds;
the same of SRS and of PRS, by itself and joint, with as many epochs as ``--epochs`` says (the
paper: 3,000); processor seconds of the same forests, ours and scikit-learn's, in turns, on one
core, on tables of noise from 100 x 100 to 500 x 5,000; and a network of 5,000 genes x 500 rows
under 512 MB: seconds a target, peak resident size from outside, and the whole extrapolated from the
targets that were run.

    python benchmarks/research/paper_networks.py --data FOLDER [--only PART]

FOLDER holds ``netK_expression.csv.gz`` (columns ``part``, G1 .. G100) and ``netK_gold.tsv.gz``
(regulator, target, 0 or 1). Nothing else is read or downloaded.
"""

import argparse
import csv
import gzip
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.metrics import average_precision_score

import srs_ooc

PUBLISHED = {1: 0.17, 2: 0.15, 3: 0.25}
WAYS = [("forest", "all"), ("forest", "sqrt"), ("extra-trees", "all"), ("extra-trees", "sqrt")]
KINDS = {"forest": RandomForestRegressor, "extra-trees": ExtraTreesRegressor}
LARGE = 5000, 500
SHAPES = ("100x100", "100x1000", "500x1000", "100x5000", "500x5000")
OTHERS: dict[str, tuple[dict[int, float], dict[str, Any]]] = {
    "srs": ({}, {"method": "srs"}),
    "prs": ({1: 0.14, 2: 0.09, 3: 0.19}, {"method": "prs"}),
    "joint": ({1: 0.09, 2: 0.11, 3: 0.17}, {"method": "prs"}),
}
"""The paper's areas with trees, and the options."""


def area(edges: Path, gold: Path) -> float:
    """Return the average precision of edges over all pairs of a gold standard."""
    with edges.open(newline="") as stream:
        weights = {
            (r["regulator"], r["target"]): float(r["weight"]) for r in csv.DictReader(stream)
        }
    with gzip.open(gold, "rt") as stream:
        pairs = [line.split() for line in stream]
    scores = [weights.get((a, b), 0.0) for a, b, _ in pairs]
    return float(average_precision_score([int(is_edge) for *_, is_edge in pairs], scores))


def store_of(data: Path, number: int, folder: Path) -> Path:
    """Ingest a network once; return its store."""
    store = folder / f"net{number}.zarr"
    if not store.exists():
        source = data / f"net{number}_expression.csv.gz"
        srs_ooc.ingest(source, store, target="part", memory_mb=512)
    return store


def table5(data: Path, folder: Path, asked: argparse.Namespace) -> None:
    """Print areas under precision-recall of GENIE3's ensembles beside those published."""
    print(f"area under precision-recall, 100 rows, {asked.trees} trees a target")
    for ensemble, k in WAYS:
        for number in asked.networks:
            options = {"ensemble": ensemble, "k": k, "trees": asked.trees}
            of_seeds(data, folder, asked, (f"{ensemble}, K {k}", number, PUBLISHED), options)


def methods(data: Path, folder: Path, asked: argparse.Namespace) -> None:
    """Print areas of other methods beside those published."""
    descent = {
        "epochs": asked.epochs,
        "models": asked.models,
        "folds": asked.folds,
        "learning_rate": asked.learning_rate,
        "thresholds": asked.thresholds,
    }
    if asked.patience is not None:
        descent["patience"] = asked.patience
    own = {"srs": {"trees": asked.trees}, "prs": descent,
           "joint": {**descent, "joint": asked.joint}}  # fmt: skip
    print(f"area under precision-recall, 100 rows; srs: {asked.trees} trees; prs: {descent}")
    for name in asked.methods:
        published, options = OTHERS[name]
        for number in asked.networks:
            of_seeds(data, folder, asked, (name, number, published), options | own[name])


def of_seeds(
    data: Path,
    folder: Path,
    asked: argparse.Namespace,
    head: tuple[str, int, dict[int, float]],
    options: dict[str, Any],
) -> None:
    """Print the area of one way on one network, mean of seeds, one core."""
    name, number, published = head
    found, start = [], time.process_time()
    store, gold = store_of(data, number, folder), data / f"net{number}_gold.tsv.gz"
    for seed in range(asked.seeds):
        with TemporaryDirectory(dir=folder) as scratch:
            out = Path(scratch) / "edges.csv"
            srs_ooc.network(store, out, seed=seed, threads=1, **options)
            found.append(area(out, gold))
    seconds = (time.process_time() - start) / asked.seeds
    print(
        f"{name:20} network {number}   {statistics.mean(found):.3f} ({np.std(found):.3f}), "
        f"{asked.seeds} seeds; published {published.get(number, 'nothing')}; "
        f"{seconds:.0f} processor s each",
        flush=True,
    )


def one_of_ours(store: Path, targets: list[str], seed: int, **options: object) -> float:
    """Return the processor seconds of a network."""
    with TemporaryDirectory() as scratch:
        out = Path(scratch) / "edges.csv"
        start = time.process_time()
        srs_ooc.network(store, out, targets=targets, seed=seed, threads=1, **options)
        return time.process_time() - start


def one_of_theirs(values: np.ndarray, ensemble: str, k: str, trees: int, seed: int) -> float:
    """Return the processor seconds of scikit-learn's forest on the first gene as the target."""
    start = time.process_time()
    inputs = values[:, 1:].astype(np.float32)
    many = None if k == "all" else k
    peer = KINDS[ensemble](trees, max_features=many, random_state=seed, n_jobs=1)
    peer.fit(inputs, values[:, 0] / values[:, 0].std())
    for tree in peer.estimators_:
        tree.tree_.compute_feature_importances(normalize=False)
    return time.process_time() - start


def sizes(folder: Path, repeats: int, shapes: list[str]) -> None:
    """Print processor seconds of the same forests by size of the table, in turns, one core each.

    Ours are networks of 2 to 20 targets of 100 to 1,000 trees (GENIE3's number), as the size
    allows, start included. scikit-learn's are of one target and fewer trees, times what is missing:
    its trees are grown one by one, each in the same time.
    """
    print(f"processor milliseconds a tree, one core, {repeats} turns")
    for shape in shapes:
        n_rows, n_genes = map(int, shape.split("x"))
        values = np.random.default_rng(0).standard_normal((n_rows, n_genes))
        np.save(folder / "genes.npy", np.column_stack([values, np.arange(n_rows) % 2]))
        store = folder / f"{shape}.zarr"
        srs_ooc.ingest(folder / "genes.npy", store, memory_mb=512)
        for ensemble, k in WAYS:
            cells = n_rows * (n_genes if k == "all" else n_genes**0.5)
            names = [f"f{i}" for i in range(max(2, min(20, round(1e6 / cells))))]
            trees = max(100, min(1000, round(2e7 / cells)))
            few = max(3, min(100, round(5e6 / cells)))
            ours, theirs = [], []
            for seed in range(repeats):
                options = {"ensemble": ensemble, "k": k, "trees": trees}
                spent = one_of_ours(store, names, seed, **options)
                ours.append(spent / len(names) / trees * 1e3)
                theirs.append(one_of_theirs(values, ensemble, k, few, seed) / few * 1e3)
            ratios = [a / b for a, b in zip(theirs, ours, strict=True)]
            print(
                f"{shape:>9} {f'{ensemble}, K {k}':19} ours {statistics.median(ours):8.3f} "
                f"({len(names)} targets, {trees} trees)   scikit-learn "
                f"{statistics.median(theirs):9.3f} ({few})   {statistics.median(ratios):5.1f} "
                f"times ({min(ratios):.1f} to {max(ratios):.1f})",
                flush=True,
            )


def large_store(folder: Path) -> Path:
    """Ingest a table of many genes, each of which follows one of 200; return its store."""
    n_genes, n_rows = LARGE
    rng = np.random.default_rng(0)
    values = rng.standard_normal((n_rows, n_genes), dtype=np.float32)
    values[:, 200:] += values[:, rng.integers(0, 200, n_genes - 200)]
    np.save(folder / "genes.npy", np.column_stack([values, np.arange(n_rows) % 2]))
    srs_ooc.ingest(folder / "genes.npy", folder / "genes.zarr", memory_mb=512)
    return folder / "genes.zarr"


def large(folder: Path, n_targets: int, trees: int) -> None:
    """Print seconds a target and the peak of a network of 5,000 genes x 500 rows under 512 MB."""
    n_genes, n_rows = LARGE
    store, targets = large_store(folder), folder / "targets.txt"
    targets.write_text("".join(f"f{n_genes - 1 - i}\n" for i in range(n_targets)))
    print(f"{n_genes} genes x {n_rows} rows, {trees} trees a target, under 512 MB, one core")
    for ensemble, k in WAYS:
        command = [sys.executable, "-P", "-m", "srs_ooc", "network", store, "--targets", targets]
        command += [
            "--with",
            f"ensemble={ensemble}",
            "--k",
            k,
            "--with",
            f"trees={trees}",
            "--threads",
            1,
        ]
        command += ["--memory-mb", 512, "--out", folder / f"{ensemble}-{k}.csv"]
        line = ["/usr/bin/time", "-f", "%U %S %M", *map(str, command)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        user, system, peak_kb = done.stderr.split()[-3:]
        each = (float(user) + float(system)) / n_targets
        print(
            f"{f'{ensemble}, K {k}':22} {each:8.2f} processor s a target; peak "
            f"{int(peak_kb) * 1024 / 1e6:.0f} MB; all {n_genes} targets, extrapolated: "
            f"{each * n_genes / 3600:.1f} h on one core",
            flush=True,
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", choices=["table5", "methods", "sizes", "large"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trees", type=int, default=100, help="of a target in Table 5")
    parser.add_argument("--methods", nargs="+", choices=list(OTHERS), default=list(OTHERS))
    parser.add_argument("--networks", nargs="+", type=int, choices=[1, 2, 3], default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=3000)
    parser.add_argument("--patience", type=int, help="of prs")
    parser.add_argument("--thresholds", choices=["rank", "value"], default="value", help="of prs")
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--learning-rate", type=float, default=0.001)
    parser.add_argument("--joint", type=float, default=0.001, help="lambda of Eq. 21")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), metavar="ROWSxGENES")
    parser.add_argument("--large-targets", type=int, default=4)
    parser.add_argument("--large-trees", type=int, default=100)
    asked = parser.parse_args()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if asked.only in (None, "table5"):
            table5(asked.data, folder, asked)
        if asked.only in (None, "methods"):
            methods(asked.data, folder, asked)
        if asked.only in (None, "sizes"):
            sizes(folder, asked.repeats, asked.shapes)
        if asked.only in (None, "large"):
            large(folder, asked.large_targets, asked.large_trees)


if __name__ == "__main__":
    main()
