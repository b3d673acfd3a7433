"""How far two seeds agree on the first features of real tables.

    python benchmarks/agreement.py --data FOLDER [--tables prostate_ge ...] [--seeds 4] [--first 20]

The mean, over pairs of seeds, of the features in both lists as a share of those in either.
"""

import argparse
from itertools import combinations
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import srs_ooc

TABLES = ["prostate_ge", "tox_171", "arcene"]


def first_of(store: Path, seed: int, count: int) -> set[str]:
    """Return the features that a run lists first."""
    result = srs_ooc.run(store, out=store.parent / f"{seed}.run", seed=seed)
    return set(result.features(top=count).name)


def agreement(lists: list[set[str]]) -> float:
    """Return the mean share of features in both of two lists, among those in either."""
    return mean(len(a & b) / len(a | b) for a, b in combinations(lists, 2))


def main() -> None:
    """Print a line a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first", type=int, default=20)
    asked = parser.parse_args()
    print("| table | agreement |\n|---|---|")
    for table in asked.tables:
        with TemporaryDirectory() as folder:
            store = Path(folder) / "t.zarr"
            srs_ooc.ingest(asked.data / f"{table}.csv.gz", store)
            lists = [first_of(store, seed, asked.first) for seed in range(asked.seeds)]
        print(f"| {table} | {agreement(lists):.2f} |", flush=True)


if __name__ == "__main__":
    main()
