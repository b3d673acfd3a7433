"""What tests of single features see, alone and joined: power and false share, or nulls.

    python benchmarks/contrasts.py [--designs NAME ...] [--seeds FROM TO] [--nulls]

On the tables of ``benchmarks/evidence.py``, with the codes of a store as a run has them, and
Benjamini and Hochberg at a level of 0.1: no trees. Beside it the simple test that is
told the design. ``--nulls``: of designs in which nothing is relevant, the chance that a feature's
p-value is at most t, over t.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from evidence import LEVEL, make_store, table_of
from evidence_designs import DESIGNS, SYNTH, selected_by_test
from numpy.typing import NDArray

from srs_ooc.evidence.rank_tests import (
    CERTAIN,
    NO_CONTRAST,
    Contrast,
    RankTarget,
    least_passing,
    shares_beside,
    strongest_contrasts,
)
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block

TESTS: dict[str, Contrast | None] = {contrast.name.lower(): contrast for contrast in Contrast}
TESTS["joined"] = None
SHARED = "shared"
"""Joined, too, but by shares that are what the other features show, as the judge ``tests`` does."""
HEADS = ["told", *TESTS, SHARED]
BARS = (1e-2, 1e-3, 1e-4)


def strengths_of(design: str, seed: int) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.intp]]:
    """Return the strengths of all features by each test, and which of them are relevant."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.zarr"
        table = table_of(design, seed)
        make_store(table, path)
        store = Store.open(path)
        positions = store.array("positions")
        is_relevant = np.isin(positions, table.relevant)
        codes, target = _codes(store), target_of(store)
        missing = store.manifest.missing_code
        found = {
            test: strongest_contrasts(codes, missing, target, only=only)[0]
            for test, only in TESTS.items()
        }
        found[SHARED] = shared(codes, missing, target)
    return found, np.flatnonzero(is_relevant)


def shared(codes: NDArray[Any], missing: int, target: RankTarget) -> NDArray[np.float64]:
    """Return the strengths by shares that are what the other features show."""
    even = np.full(NO_CONTRAST, 1 / NO_CONTRAST)
    found, own = strongest_contrasts(codes, missing, target, shares=even)
    own[found < np.log10(len(codes) / CERTAIN)] = NO_CONTRAST
    counts = np.bincount(own, minlength=NO_CONTRAST)[:NO_CONTRAST]
    shares = shares_beside(counts, own)
    return strongest_contrasts(codes, missing, target, shares=shares)[0]


def _codes(store: Store) -> NDArray[Any]:
    columns = store.columns(mapped=True)
    block = Block(store.n_features, store.n_rows, store.manifest.code_nbytes, tiled=False)
    columns.gather(np.arange(store.n_features, dtype=np.uint32), block)
    columns.close()
    return block.as_columns(store.n_features)


def target_of(store: Store) -> RankTarget:
    """Return the target as the tests take it."""
    target, strata = store.target(), store.strata()
    if not store.manifest.classes:
        return RankTarget.of_values(target.astype(np.float64), strata)
    return RankTarget.of_classes(target.astype(np.int64), len(store.manifest.classes), strata)


def scored(chosen: NDArray[np.intp], relevant: NDArray[np.intp]) -> tuple[float, float]:
    """Return power and false share."""
    n_true = len(np.intersect1d(chosen, relevant))
    return n_true / max(len(relevant), 1), 1 - n_true / max(len(chosen), 1) if len(chosen) else 0.0


def power(design: str, seeds: range) -> str:
    """Return a line of means over the seeds."""
    found: dict[str, list[tuple[float, float]]] = {test: [] for test in HEADS}
    for seed in seeds:
        by_test, relevant = strengths_of(design, seed)
        for test, own in by_test.items():
            found[test].append(scored(np.flatnonzero(own >= least_passing(own, LEVEL)), relevant))
        if (table := table_of(design, seed)).test:
            found["told"].append(scored(selected_by_test(table, LEVEL), np.array(table.relevant)))
    cells = [_cell(runs) for runs in found.values()]
    return f"| {design} | {len(seeds)} | " + " | ".join(cells) + " |"


def _cell(runs: list[tuple[float, float]]) -> str:
    if not runs:
        return ""
    means = np.mean(runs, axis=0)
    return f"{means[0]:.2f}, {means[1]:.2f}"


def nulls(design: str, seeds: range) -> str:
    """Return a line of chances over their levels, for the joined test."""
    every = np.concatenate([strengths_of(design, seed)[0]["joined"] for seed in seeds])
    shares = [np.mean(every >= -np.log10(bar)) / bar for bar in BARS]
    return f"| {design} | {len(every):,} | " + " | ".join(f"{s:.2f}" for s in shares) + " |"


def main() -> None:
    """Print a line for each design."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--designs", nargs="+")
    parser.add_argument("--seeds", nargs=2, type=int, default=(0, 10))
    parser.add_argument("--nulls", action="store_true")
    asked = parser.parse_args()
    is_null = {design: design.startswith("noise") for design in [*DESIGNS, *SYNTH]}
    designs = asked.designs or [d for d in is_null if is_null[d] == asked.nulls]
    heads = [f"p <= {bar:g}" for bar in BARS] if asked.nulls else HEADS
    print("| design | " + " | ".join(["columns" if asked.nulls else "seeds", *heads]) + " |")
    print("|---" * (len(heads) + 2) + "|")
    for design in designs:
        line = nulls if asked.nulls else power
        print(line(design, range(*asked.seeds)), flush=True)


if __name__ == "__main__":
    main()
