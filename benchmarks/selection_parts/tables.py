"""Tables on disk while they are needed: a store for ours, an array for the others."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measured import measure, srs_ooc

from selection_parts.problems import Problem
from selection_parts.scores import Truth, truth_of

HERE = Path(__file__).parent


@dataclass
class Table:
    """One table: a problem, a seed and a number of features; its files are made when asked for."""

    problem: Problem
    seed: int
    n_features: int
    folder: Path

    def store(self) -> Path:
        """Return the store."""
        store = self.folder / "table.zarr"
        if not store.exists() and self.problem.real:
            self._make_arrays()
            srs_ooc("ingest", self.folder / "table.csv", store)
        elif not store.exists():
            self._synth(store)
        return store

    def arrays(self) -> Path:
        """Return the folder of ``values.npy``, float32 (n, p), and ``target.npy``."""
        if not (self.folder / "target.npy").exists():
            if not self.problem.real:
                self.store()
            self._make_arrays()
        return self.folder

    def truth(self) -> Truth:
        """Return what is relevant."""
        if self.problem.real:
            return Truth(())
        self.store()
        return truth_of(json.loads((self.folder / "table.zarr.truth.json").read_text()))

    def _synth(self, store: Path) -> None:
        sizes = ("--rows", self.problem.n_rows, "--features", self.n_features)
        options = (*self.problem.options, "--seed", self.seed)
        srs_ooc("synth", self.problem.synth, store, *sizes, *options)

    def _make_arrays(self) -> None:
        script = [sys.executable, str(HERE / "make_arrays.py"), str(self.folder)]
        if self.problem.real:
            script += ["--real", self.problem.real, "--seed", str(self.seed)]
        done = measure(script)
        if done.status != 0:
            raise SystemExit(f"failed: {' '.join(script)}")


@contextmanager
def open_table(problem: Problem, seed: int, n_features: int, scratch: Path) -> Iterator[Table]:
    """Yield a table that is removed at the end; what an earlier one left is removed first."""
    folder = scratch / f"{problem.name}-{n_features}-{seed}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield Table(problem, seed, n_features, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
