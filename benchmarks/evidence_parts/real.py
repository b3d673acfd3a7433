"""Real tables whose target is permuted: nothing is relevant, and features are as they come."""

import os
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from evidence_parts.designs import Labels, Make, Table, Values


@lru_cache(maxsize=1)
def read(file: Path) -> tuple[Values, Labels]:
    """Return the values (n, p) of a table, and its last column, the classes, as numbers."""
    cells = np.loadtxt(file, str, delimiter=",", skiprows=1)
    return cells[:, :-1].astype(np.float64), np.unique(cells[:, -1], return_inverse=True)[1]


def permuted(rng: np.random.Generator, file: Path) -> Table:
    """Return a table with its target permuted."""
    values, target = read(file)
    return Table(values, rng.permutation(target), test="kruskal")


def real_designs() -> dict[str, Make]:
    """Return a design for each TABLE.csv.gz in the folder SRS_OOC_DATA; none without it."""
    folder = os.environ.get("SRS_OOC_DATA")
    files = sorted(Path(folder).glob("*.csv.gz")) if folder else []
    names = [file.name.removesuffix(".csv.gz") for file in files]
    return {
        f"{name}, target permuted": partial(permuted, file=file)
        for name, file in zip(names, files, strict=True)
    }
