"""Every method on the same problems: score, average precision, models, seconds, peak memory.

    python benchmarks/compare_methods.py --results FILE [--data FOLDER] [--problems NAME ...]
        [--methods NAME ...] [--numbers 1 2 3] [--limit-minutes 15] [--memory-mb 512] [--report]

FOLDER holds the files of the PRS paper, ``NAME_1.npz`` and so on; without it they are left out.
``--numbers`` are those of the files, or seeds. Each run adds a line to FILE, and what is there is
not done again. Each method learns from the same part of the rows with its defaults. The score is
that of scikit-learn's forest on the other rows (accuracy, R2), given as many of the first features
of the ranking as are relevant; the average precision is that of the ranking. Seconds are those of
the processor, of all threads. Needs scikit-learn and pandas.

What needs arrays is done by processes of their own, as the peak of a command begins at this one's:
``compare_methods.py ingest FILE.npz STORE``, ``score STORE N_TRAIN N_BEST < names`` and ``peer
STORE N_TRAIN NAME``.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from measured import Measured, Record, Results, find_srs_ooc, measure, said
from selection import average_precision, position_of

PAPERS = {
    "checkerboard": range(50, 201, 50),
    "friedman": range(50, 251, 50),
    "hypercube": range(50, 251, 50),
    "linear": range(10),
}
"""Problems of the PRS paper, 400 rows to learn from and 500 features: who is relevant."""

SYNTH = {
    "madelon, p = 5,000": ("madelon", "--rows", "2000", "--features", "5000", "--relevant", "20"),
    "chain of 3, p = 5,000": ("chain", "--rows", "2000", "--features", "5000", "--relevant", "3"),
    "clique of 2, p = 500": ("clique", "--rows", "4000", "--features", "500", "--relevant", "2"),
    "linear, p = 5,000": ("linear", "--rows", "2000", "--features", "5000", "--relevant", "15"),
    "shift, n = 72": ("shift", "--rows", "144", "--features", "5000", "--relevant", "20"),
}
"""Problems of ``more_problems.py`` and its arguments; the first half of the rows is learnt from."""

METHODS = {
    "srs": (),
    "srs, closing by sensitivity": ("--closing", "sensitivity"),
    "srs, judge probe": ("--judge", "probe"),
    "rs": ("--method", "rs"),
    "less": ("--method", "less"),
    "less by norms": ("--method", "less", "--with", "scores=norm"),
    "prs": ("--method", "prs"),
    "prs, screen of 500": ("--method", "prs", "--with", "screen=500", "--with", "patience=300"),
    "rase": ("--method", "rase"),
    "rase, screen of 500": ("--method", "rase", "--with", "screen=500"),
    "rase, lda by ric": ("--method", "rase", "--model", "lda", "--with", "criterion=ric"),
    "rs, nearest neighbours": ("--method", "rs", "--model", "knn"),
    "rs, support vectors": ("--method", "rs", "--model", "svm"),
    "rs, linear": ("--method", "rs", "--model", "linear"),
}
"""Options of ``srs-ooc run``; else its defaults."""

PEERS = ("forest (scikit-learn)", "F-test (scikit-learn)")
TREES = 500
"""Of a forest."""

MORE_PROBLEMS = Path(__file__).with_name("more_problems.py")


@dataclass(frozen=True)
class Table:
    """A store in a folder, of whose rows the first ``n_train`` are learnt from."""

    folder: Path
    n_train: int
    relevant: list[str]

    @property
    def store(self) -> Path:
        """Where the store is."""
        return self.folder / "table.zarr"


def python(*words: object, given: str | None = None) -> str:
    """Return what a script prints."""
    texts = [sys.executable, *map(str, words)]
    done = subprocess.run(texts, input=given, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def make_table(folder: Path, problem: str, number: int, data: Path | None) -> Table:
    """Make the store of a problem, and the file of the rows to learn from."""
    store = folder / "table.zarr"
    if problem in PAPERS:
        assert data is not None
        path = (data / f"{problem}_{number}.npz").resolve()
        n_train = int(python(__file__, "ingest", path, store))
        relevant = [f"f{i}" for i in PAPERS[problem]]
    else:
        kind, *options = SYNTH[problem]
        python(MORE_PROBLEMS, kind, store, *options, "--seed", number)
        truth = json.loads(Path(f"{store}.truth.json").read_text())
        n_train, relevant = truth["parameters"]["n_rows"] // 2, truth["relevant"]
    (folder / "train.txt").write_text("".join(f"{i + 1}\n" for i in range(n_train)))
    return Table(folder, n_train, relevant)


def rank(table: Table, method: str, given: argparse.Namespace) -> tuple[Measured, list[str], int]:
    """Run a method; return what it took, its ranking (none if out of time), and its models."""
    limit, out = 60.0 * given.limit_minutes, table.folder / "said.json"
    if method in PEERS:
        peer = [sys.executable, __file__, "peer", str(table.store), str(table.n_train), method]
        done = measure(peer, limit_seconds=limit, out=str(out))
        return done, json.loads(out.read_text()) if done.status == 0 else [], 0
    run = table.folder / f"{list(METHODS).index(method)}.run"
    errors = table.folder / "errors.txt"
    words: list[object] = [find_srs_ooc(), "run", table.store, "--out", run, "-q", *METHODS[method]]
    words += ["--rows", table.folder / "train.txt", "--memory-mb", given.memory_mb]
    done = measure([*map(str, words)], limit_seconds=limit, out=str(out), errors=str(errors))
    if done.status not in {0, None}:
        raise SystemExit(errors.read_text())
    status = json.loads(said("status", run, "--json"))
    n_models = status["iterations"] * (status.get("candidates") or 1)
    if done.status is None:
        return done, [], n_models
    ranked = json.loads(said("features", run, "--json"))
    return done, [feature["name"] for feature in ranked], n_models


def one_run(table: Table, method: str, given: argparse.Namespace) -> Record:
    """Return what one method comes to on one table."""
    done, names, n_models = rank(table, method, given)
    found = {"cpu": done.cpu_seconds, "mb": done.peak_mb, "models": n_models}
    if not names:
        return found
    n_best = len(table.relevant)
    words = (__file__, "score", table.store, table.n_train, n_best)
    units = {position_of(name): i for i, name in enumerate(table.relevant)}
    return found | {
        "score": float(python(*words, given="\n".join(names))),
        "ap": average_precision(units, n_best, map(position_of, names)),
    }


def report(lines: list[Record]) -> str:
    """Return the table of means."""
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for line in lines:
        found[line["problem"], line["method"]].append(line["found"])
    head = "| problem | method | tables | average precision | score | models | CPU s | peak MB |"
    rows = [head, "|---" * 8 + "|"]
    problems, methods = [*PAPERS, *SYNTH], [*METHODS, *PEERS]
    for problem, method in sorted(
        found, key=lambda pair: (problems.index(pair[0]), methods.index(pair[1]))
    ):
        runs = found[problem, method]
        ended = [run for run in runs if "ap" in run]
        quality = [
            f"{mean(run[name] for run in ended):.2f}" if ended else "" for name in ("ap", "score")
        ]
        cost = [f"{mean(run[name] for run in runs):,.0f}" for name in ("models", "cpu", "mb")]
        tables = f"{len(runs)}" if len(ended) == len(runs) else f"{len(ended)} of {len(runs)}"
        rows.append("| " + " | ".join([problem, method, tables, *quality, *cost]) + " |")
    return "\n".join(rows)


def ingest(path: Path, store: Path) -> None:
    """Make a store of a file of the PRS paper, the rows to learn from first; print how many."""
    import numpy as np

    import srs_ooc

    parts = ("train", "valid", "test")
    with np.load(path) as data:
        values = np.concatenate([data[f"X_{part}"] for part in parts])
        target = np.concatenate([data[f"y_{part}"] for part in parts])
        n_train = len(data["y_train"]) + len(data["y_valid"])
    is_regression = len(np.unique(target)) > 2
    labels = target if is_regression else [f"c{int(label)}" for label in target]
    srs_ooc.ingest(values, store, target=labels)
    print(n_train)


def read(store: Path, names: list[str] | None) -> tuple[list[str], Any, Any, bool]:
    """Return names, all if none are given, values, targets, and whether those are numbers."""
    import srs_ooc

    opened = srs_ooc.open_store(store)
    names = list(opened.names) if names is None else names
    is_regression = opened.manifest.task == "regression"
    return names, srs_ooc.read(opened, names).to_numpy(), opened.target(), is_regression


def forest(is_regression: bool) -> Any:
    """Return scikit-learn's forest."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if is_regression else RandomForestClassifier
    return kind(TREES, random_state=0, n_jobs=1)


def score(store: Path, n_train: int, n_best: int) -> None:
    """Print what a forest on the first features of a ranking scores on the other rows."""
    _, values, target, is_regression = read(store, sys.stdin.read().split()[:n_best])
    fitted = forest(is_regression).fit(values[:n_train], target[:n_train])
    print(fitted.score(values[n_train:], target[n_train:]))


def peer(store: Path, n_train: int, name: str) -> None:
    """Print the names ranked by a peer that holds the table in memory."""
    import numpy as np
    from sklearn.feature_selection import f_classif, f_regression

    names, values, target, is_regression = read(store, None)
    values, target = values[:n_train], target[:n_train]
    if name.startswith("forest"):
        worth = forest(is_regression).fit(values, target).feature_importances_
    else:
        worth = np.nan_to_num((f_regression if is_regression else f_classif)(values, target)[0])
    print(json.dumps([names[i] for i in np.argsort(-worth, kind="stable")]))


def compare() -> None:
    """Do what is left, then print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--problems", nargs="+", choices=[*PAPERS, *SYNTH])
    parser.add_argument("--methods", nargs="+", choices=[*METHODS, *PEERS])
    parser.add_argument("--numbers", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--limit-minutes", type=float, default=15)
    parser.add_argument("--memory-mb", type=int, default=512)
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    results = Results(given.results)
    problems = given.problems or [*(PAPERS if given.data else ()), *SYNTH]
    for number in [] if given.report else given.numbers:
        for problem in problems:
            keys = [
                {"problem": problem, "method": method, "number": number}
                for method in given.methods or [*METHODS, *PEERS]
            ]
            missing = [key for key in keys if results.find(key) is None]
            if not missing:
                continue
            with TemporaryDirectory() as folder:
                table = make_table(Path(folder), problem, number, given.data)
                for key in missing:
                    found = one_run(table, str(key["method"]), given)
                    results.add(key | {"found": found})
    print(report(results.records))


def main() -> None:
    """Compare, or do what needs arrays."""
    match sys.argv[1:]:
        case "ingest", path, store:
            ingest(Path(path), Path(store))
        case "score", store, n_train, n_best:
            score(Path(store), int(n_train), int(n_best))
        case "peer", store, n_train, name:
            peer(Path(store), int(n_train), name)
        case _:
            compare()


if __name__ == "__main__":
    main()
