"""Features selected on half of a real table: how well a forest predicts the other half by them.

Claim: the selected features predict held-out rows about as well as all of them do, or better, and
there are few. Selection sees the training half only; the halves are the same for every method and
stratified by class. The forest is scikit-learn's random forest of 500 trees. Boruta (500 trees, 20
rounds) is given the same training half, and is left out of a table with ``--without-boruta``.

Ours is ``srs-ooc run`` with its defaults. Seconds are of processor time, all threads together.

    python benchmarks/held_out.py --data FOLDER [--tables madelon arcene ...] [--seeds 3]
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean

import numpy as np
from measured import find_srs_ooc
from numpy.typing import NDArray
from selection_peers import boruta
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

TABLES = ["madelon", "arcene", "prostate_ge", "tox_171"]
SHOWN = 8


def cpu_seconds() -> float:
    """Return the processor time so far of this process and of those it waited for."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def srs_ooc(*arguments: object) -> str:
    """Run a command and return what it says."""
    command = [find_srs_ooc(), *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def row_ids(rows: NDArray[np.intp]) -> list[str]:
    """Return the ids that a store gives to the rows of a file without ids: numbers from 1."""
    return [str(row + 1) for row in rows.tolist()]


class Table:
    """A real table, in memory and as a store."""

    def __init__(self, source: Path, folder: Path) -> None:
        header, *lines = gzip.decompress(source.read_bytes()).decode().splitlines()
        self.names = header.split(",")[:-1]
        self.values = np.array([line.split(",")[:-1] for line in lines], np.float32)
        self.target = np.array([line.rsplit(",", 1)[1] for line in lines])
        self.folder, self.store = folder, folder / "table.zarr"
        srs_ooc("ingest", source, self.store)

    def halves(self, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows of the training and of the test half."""
        rows = np.arange(len(self.target))
        train, test = train_test_split(rows, test_size=0.5, stratify=self.target, random_state=seed)
        return np.sort(train), np.sort(test)

    def ours(self, train: NDArray[np.intp], seed: int) -> list[str]:
        """Return the names selected on the training half, best first."""
        ids = self.folder / "rows"
        ids.write_text("\n".join(row_ids(train)) + "\n")
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            run = Path(scratch) / "a.run"
            asked = ("--rows", ids, "--seed", seed, "--memory-mb", 512)
            srs_ooc("run", self.store, "--out", run, *asked)
            found = json.loads(srs_ooc("features", run, "--json", "--selected"))
        return [record["name"] for record in found]

    def accuracy(
        self, train: NDArray[np.intp], test: NDArray[np.intp], columns: list[int], seed: int
    ) -> float:
        """Return the accuracy on the test half of a forest on some columns; nan for none."""
        if not columns:
            return float("nan")
        forest = RandomForestClassifier(500, random_state=seed, n_jobs=-1)
        forest.fit(self.values[np.ix_(train, np.array(columns))], self.target[train])
        return float(forest.score(self.values[np.ix_(test, np.array(columns))], self.target[test]))


def compare(table: Table, name: str, seeds: int, *, with_boruta: bool) -> None:
    """Print the lines of one table."""
    place = {feature: i for i, feature in enumerate(table.names)}
    results: dict[str, list[tuple[int, float, float]]] = {}
    for seed in range(seeds):
        train, test = table.halves(seed)
        start = cpu_seconds()
        found = table.ours(train, seed)
        seconds = {"all features": 0.0, "srs-ooc": cpu_seconds() - start}
        chosen: dict[str, list[int]] = {"all features": list(range(len(table.names)))}
        chosen["srs-ooc"] = [place[feature] for feature in found]
        print(f"  {name} seed {seed}: {', '.join(found[:SHOWN])}", file=sys.stderr)
        if with_boruta:
            start = cpu_seconds()
            mask, _ = boruta(table.values[train], table.target[train], seed)
            assert mask is not None
            seconds["Boruta"] = cpu_seconds() - start
            chosen["Boruta"] = np.flatnonzero(mask).tolist()
        for method, columns in chosen.items():
            accuracy = table.accuracy(train, test, columns, seed)
            results.setdefault(method, []).append((len(columns), accuracy, seconds[method]))
    for method, rows in results.items():
        counts, accuracies, times = zip(*rows, strict=True)
        each = ", ".join(f"{value:.3f}" for value in accuracies)
        size = ", ".join(map(str, counts))
        print(f"| {name} | {method} | {size} | {each} | {mean(times):.1f} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--without-boruta", action="store_true")
    options = parser.parse_args()
    print("| table | features | selected, by seed | accuracy, by seed | CPU s |")
    print("|---" * 5 + "|")
    for name in options.tables:
        with tempfile.TemporaryDirectory() as scratch:
            table = Table(options.data / f"{name}.csv.gz", Path(scratch))
            compare(table, name, options.seeds, with_boruta=not options.without_boruta)


if __name__ == "__main__":
    main()
