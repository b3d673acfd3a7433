"""Caps: each command at the smallest one it names works, and its peak stays under it.

The cap is the one that the command names where 1 MB is given. Peaks are measured from outside, on
processes started afresh (``measured.py``).
"""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from measured import Measured, measure

from attack_parts.forks import Words
from attack_parts.ground import METHODS, Tally, fresh

N_CHOSEN = 40
"""Features that a network is made of."""


@dataclass(frozen=True)
class Table:
    """A table that was written into a folder, in every format that suits it."""

    folder: Path

    def ingests(self) -> Iterator[tuple[str, Words]]:
        """Yield each format with the sources and options of its ingest."""
        target = ("--target-file", self.folder / "y.txt")
        for kind in ("csv", "csv.gz", "features.csv", "npy", "npz", "parquet", "svmlight"):
            path = self.folder / f"t.{kind}"
            if not path.exists():
                continue
            if kind == "features.csv":
                samples = ("--samples", self.folder / "samples.csv", "--id", "id", "--target", "y")
                yield kind, (path, "--orient", "features", *samples)
            else:
                yield kind, (path, *(() if kind in ("csv", "csv.gz", "svmlight") else target))


def _write(folder: Path, n_rows: int, n_features: int, name: str = "f{}", share: float = 1) -> None:
    """Write one table; ``share`` of its cells are not 0."""
    import numpy as np

    rng = np.random.default_rng(0)
    values = rng.integers(0, 99, (n_rows, n_features)) / 8
    values[rng.random(values.shape) >= share] = 0
    labels = ["uv"[i % 2] for i in range(n_rows)]
    values[::2, : min(3, n_features)] += 9
    names = [name.format(i) for i in range(n_features)]
    (folder / "y.txt").write_text("\n".join(labels) + "\n")
    (folder / "chosen.txt").write_text("\n".join(names[:N_CHOSEN]) + "\n")
    _texts(folder, values.tolist(), names, labels)
    _binaries(folder, values, names, is_sparse=share < 1)


def _texts(folder: Path, rows: list[list[float]], names: list[str], labels: list[str]) -> None:
    import gzip

    lines = [",".join([*names, "y"])]
    lines += [",".join([*(f"{v:g}" for v in r), y]) for r, y in zip(rows, labels, strict=True)]
    text = "\n".join(lines) + "\n"
    (folder / "t.csv").write_text(text)
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode(), 1))
    with (folder / "t.svmlight").open("w") as file:
        for row, label in zip(rows, labels, strict=True):
            cells = " ".join(f"{i + 1}:{v:g}" for i, v in enumerate(row) if v)
            file.write(f"{int(label == 'u')} {cells}\n")
    ids = [f"s{i}" for i in range(len(rows))]
    with (folder / "t.features.csv").open("w") as file:
        file.write(",".join(["id", *ids]) + "\n")
        for name, column in zip(names, zip(*rows, strict=True), strict=True):
            file.write(",".join([name, *(f"{v:g}" for v in column)]) + "\n")
    pairs = [f"{i},{label}\n" for i, label in zip(ids, labels, strict=True)]
    (folder / "samples.csv").write_text("id,y\n" + "".join(pairs))


def _binaries(folder: Path, values: "object", names: list[str], *, is_sparse: bool) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet
    from scipy import sparse

    array = np.asarray(values)
    np.save(folder / "t.npy", array)
    if is_sparse:
        sparse.save_npz(folder / "t.npz", sparse.csr_matrix(array))
    else:
        np.savez(folder / "t.npz", array)
    columns = dict(zip(names, array.T, strict=True))
    parquet.write_table(pa.table(columns), folder / "t.parquet")


TABLES: dict[str, Callable[[Path], None]] = {
    "small": lambda folder: _write(folder, 60, 40),
    "few rows": lambda folder: _write(folder, 24, 60_000),
    "many rows": lambda folder: _write(folder, 60_000, 12),
    "wide names": lambda folder: _write(folder, 24, 8_000, "{:0>300}"),
    "sparse": lambda folder: _write(folder, 300, 6_000, share=0.02),
}


HANGS = 300
_NAMED = re.compile(r"--memory-mb (\d+)")
JUDGES: dict[str, Words] = {
    "positive": ("--judge", "positive", "--iterations", 20),
    "svm": ("--model", "linear", "--iterations", 10, "--q", 5),
}
FEWER: dict[str, Words] = {
    name: [12 if before == "--iterations" else word
           for before, word in zip((None, *words), words, strict=False)]
    for name, words in METHODS.items()
}  # fmt: skip
"""The methods with few iterations: what they take of memory does not depend on how many."""


@dataclass(frozen=True)
class Case:
    """A command, what it makes, and whether what it made is kept for those that follow."""

    name: str
    words: Words
    makes: Path | None = None


def caps(tally: Tally, folder: Path, _: int, __: int) -> None:
    """Go through the grid of commands and shapes."""
    for name, write in TABLES.items():
        if not tally.asks_for(name):
            continue
        place = folder / name
        place.mkdir()
        _in_child(partial(write, place))
        for case in _cases(place, Table(place)):
            _try(tally, name, case, place)


def _in_child(make: Callable[[], object]) -> None:
    """Make tables in a process of its own: the peak of a command begins at this one's."""
    import os

    pid = os.fork()
    if not pid:
        try:
            make()
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("a table was not made")


def _try(tally: Tally, shape: str, case: Case, folder: Path) -> None:
    what = f"{shape}, {case.name}"
    if case.makes:
        fresh(case.makes)
    refused, message = _ended(case.words, 1, folder)
    named = _NAMED.findall(message)
    if refused.status != 2 or not named:
        tally.breaks.append(f"{what} at 1 MB: {refused.status} {message[-300:]}")
        return
    cap = int(named[-1])
    done, message = _ended(case.words, cap, folder)
    tally.add("commands at the smallest cap named")
    if done.status != 0:
        tally.breaks.append(f"{what} at {cap} MB: {done.status} {message[-300:]}")
    elif done.peak_mb > cap:
        tally.breaks.append(f"{what} at {cap} MB: peak {done.peak_mb:.1f} MB")
    least = tally.measures.setdefault("closest peak, as a share of the cap", 0.0)
    tally.measures["closest peak, as a share of the cap"] = max(least, round(done.peak_mb / cap, 3))
    if done.status != 0 and case.makes:  # what follows reads it
        _ended(case.words, 2000, folder)


def _ended(words: Words, cap_mb: int, folder: Path) -> tuple[Measured, str]:
    errors = folder / "errors.txt"
    line = [sys.executable, "-m", "srs_ooc", *map(str, words), "--memory-mb", str(cap_mb)]
    done = measure(line, limit_seconds=HANGS, out="/dev/null", errors=str(errors))
    return done, errors.read_text(errors="replace").strip()


def _cases(folder: Path, table: Table) -> Iterator[Case]:
    store = folder / "csv.zarr"
    for kind, words in table.ingests():
        out = folder / f"{kind}.zarr"
        yield Case(f"ingest {kind}", ("ingest", *words, out), out)
    yield Case("inspect", ("inspect", store))
    yield Case("verify store", ("verify", store))
    yield Case("scores", ("scores", store, "--csv"))
    yield Case("scores norm", ("scores", store, "--csv", "--scores", "norm"))
    for name, options in (FEWER | JUDGES).items():
        run = folder / f"{name}.run"
        yield Case(f"run {name}", ("run", store, "--out", run, "--threads", 1, *options), run)
    yield from _of_runs(folder, store)
    out, chosen = folder / "e.csv", folder / "chosen.txt"
    files = ("--regulators", chosen, "--targets", chosen)
    words = ("network", store, "--out", out, *files, "--threads", 1)
    yield Case("network", (*words, "--trees", 3), out)


def _of_runs(folder: Path, store: Path) -> Iterator[Case]:
    run, trees, out = folder / "decoys.run", folder / "trees.run", folder / "out"
    for kind in ("csv", "parquet", "zarr"):
        made = folder / f"out.{kind}"
        yield Case(f"export {kind}", ("export", store, run, made, "--top", 5), made)
    for name in ("decoys", "trees", "permutations", "less"):
        read = folder / f"{name}.run"
        yield Case(f"features of {name}", ("features", read, "--csv"))
        yield Case(f"status of {name}", ("status", read))
        yield Case(f"verify of {name}", ("verify", read))
    for kind in ("json", "md", "html"):
        made = folder / f"report.{kind}"
        yield Case(f"report {kind}", ("report", run, "-o", made), made)
    for kind, data in (("a store", store), ("csv", folder / "t.csv")):
        yield Case(f"predict {kind}", ("predict", trees, data, out), out)
    yield Case("sensitivity", ("sensitivity", trees, "--csv"))
    yield Case("compact", ("compact", run, "--folds", 2, "--repeats", 1, "--threads", 1),
               run / "compact")  # fmt: skip
