"""What was computed: one file of arrays for each step, by problem, width, seed and step."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class TableKey:
    """A table: a problem so wide, and its seed."""

    problem: str
    n_features: int
    seed: int


class ArrayCache:
    """A folder of arrays.

    Parameters
    ----------
    folder : Path
        Made when the first arrays are put there.
    version : str
        Of what computes them; those of another are not seen.
    """

    def __init__(self, folder: Path, version: str) -> None:
        self._folder, self._version = folder, version

    def _path(self, table: TableKey, step: str) -> Path:
        name = f"seed{table.seed}-{step}@{self._version}.npz"
        return self._folder / f"{table.problem}-{table.n_features}" / name

    def has(self, table: TableKey, step: str) -> bool:
        """Tell whether a step is done."""
        return self._path(table, step).exists()

    def get(self, table: TableKey, step: str) -> Arrays:
        """Return what a step that is done gave."""
        with np.load(self._path(table, step)) as held:
            return {name: held[name] for name in held.files}

    def put(self, table: TableKey, step: str, arrays: Arrays) -> None:
        """Keep what a step gave; the file appears complete or not at all."""
        path, named = self._path(table, step), dict[str, Any](arrays)
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}.part")
        with scratch.open("wb") as stream:
            np.savez(stream, **named)
        scratch.replace(path)
