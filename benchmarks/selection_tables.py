"""Tables of ``selection.py``: problems, stores made of them, the truth, and scores of answers."""

import gzip
import json
import os
import shutil
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from measured import measure, srs_ooc


def chosen(option: str, names: list[str] | None, known: list[str]) -> list[str]:
    """Return the names given, or all."""
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise SystemExit(f"{option}: expected {', '.join(known)}; found {', '.join(unknown)}")
    return names or known


def said(text: str) -> None:
    """Tell how the work goes."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Answer:
    """Source positions; ``reason`` says why there is no answer."""

    selected: Sequence[int]
    ranking: Sequence[int]
    reason: str | None = None

    @classmethod
    def failed(cls, reason: str) -> "Answer":
        """Return that there is no answer."""
        return cls((), (), reason=reason)


def read_answer(folder: Path) -> Answer:
    """Read what ``peers.py`` wrote: ``selected.json``, and ``ranking.u4`` of all features."""
    ranking = array("I")
    ranking.frombytes((folder / "ranking.u4").read_bytes())
    return Answer(json.loads((folder / "selected.json").read_text()), ranking)


def last_line(file: Path) -> str:
    """Return the last line of a file of messages."""
    lines = file.read_text(errors="replace").strip().splitlines() if file.exists() else []
    return lines[-1] if lines else "no message"


@dataclass(frozen=True)
class Truth:
    """Relevant features in units: a block counts once, else each feature is a unit."""

    units: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Scores:
    """``power``, ``f1`` and ``average_precision`` are None where nothing is relevant."""

    n_selected: int
    power: float | None
    false_share: float
    f1: float | None
    average_precision: float | None


def truth_of(record: dict[str, Any]) -> Truth:
    """Return the truth of the JSON record ``srs-ooc synth`` writes beside a table."""
    units = record.get("blocks") or [[name] for name in record["relevant"]]
    return Truth(tuple(tuple(position_of(name) for name in unit) for unit in units))


def position_of(name: str) -> int:
    """Return the source position in a feature's name."""
    return int(name.removeprefix("f"))


def score(truth: Truth, selected: Sequence[int], ranking: Iterable[int]) -> Scores:
    """Score one answer.

    The false share is that of irrelevant features among the selected, 0 where none is. F1 takes
    power for recall and one minus the false share for precision.
    """
    unit_of = {feature: i for i, unit in enumerate(truth.units) for feature in unit}
    n_false = sum(feature not in unit_of for feature in selected)
    false_share = n_false / max(1, len(selected))
    if not truth.units:
        return Scores(len(selected), None, false_share, None, None)
    power = len({unit_of[f] for f in selected if f in unit_of}) / len(truth.units)
    precision = 1 - false_share if selected else 0.0
    f1 = 2 * precision * power / (precision + power) if power else 0.0
    average = average_precision(unit_of, len(truth.units), ranking)
    return Scores(len(selected), power, false_share, f1, average)


def average_precision(unit_of: dict[int, int], n_units: int, ranking: Iterable[int]) -> float:
    """Return the mean over units of the precision where each is first found, 0 if never.

    Further members of a unit already found take no place in the ranking.
    """
    found: set[int] = set()
    place, total = 0, 0.0
    for feature in ranking:
        unit = unit_of.get(feature)
        if unit in found:
            continue
        place += 1
        if unit is not None:
            found.add(unit)
            total += len(found) / place
            if len(found) == n_units:
                break
    return total / n_units


REAL_TABLES = ("madelon", "arcene", "prostate_ge", "tox_171")


@dataclass(frozen=True)
class Problem:
    """One problem.

    ``kind`` is what is expected of it: ``interaction``, ``additive``, ``null`` or ``reported``.
    ``options`` go to ``more_problems.py NAME``.
    """

    name: str
    kind: str
    synth: str | None = None
    options: tuple[str, ...] = ()
    n_rows: int = 1000
    n_features: int = 50_000
    most_seeds: int = 20
    only_cheap_peers: bool = False
    real: str | None = None

    def capped(self, n_features: int | None) -> "Problem":
        """Return the problem with at most so many features; a real table keeps its own."""
        if n_features is None or self.real:
            return self
        return replace(self, n_features=min(n_features, self.n_features))


_SYNTH = [
    Problem("madelon", "interaction", "madelon", ("--relevant", "20")),
    Problem("blocks", "additive", "blocks", ("--relevant", "10")),
    Problem("chain", "interaction", "chain", ("--relevant", "3")),
    Problem("clique-2", "interaction", "clique", ("--relevant", "2"), 2000, 500),
    Problem("marginal", "additive", "marginal", ("--relevant", "5")),
    Problem("linear", "additive", "linear", ("--relevant", "15")),
    Problem("friedman", "interaction", "friedman"),
    Problem("shift", "additive", "shift", ("--relevant", "20"), n_rows=72),
    Problem("imbalance", "additive", "imbalance", ("--relevant", "20")),
    Problem("noise", "null", "noise"),
    Problem("noise-blocks", "null", "noise", ("--blocks",)),
    Problem("clique-3", "reported", "clique", ("--relevant", "3"), 2000, 500),
    Problem(
        "madelon-1m", "interaction", "madelon", ("--relevant", "20"), n_features=1_000_000,
        most_seeds=3, only_cheap_peers=True,
    ),
]  # fmt: skip


def all_problems(data: Path | None) -> dict[str, Problem]:
    """Return the problems by name; the real tables, with permuted targets, where there are any."""
    found = {problem.name: problem for problem in _SYNTH}
    if data is None:
        return found
    for table in REAL_TABLES:
        source = data / f"{table}.csv.gz"
        if source.exists():
            found[f"null-{table}"] = _permuted(f"null-{table}", source)
    return found


def _permuted(name: str, source: Path) -> Problem:
    with gzip.open(source, "rt") as lines:
        n_features = next(lines).count(",")
        n_rows = sum(1 for _ in lines)
    return Problem(name, "null", n_rows=n_rows, n_features=n_features, real=str(source))


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
        script = [HERE / "more_problems.py", self.problem.synth, store, *sizes, *options]
        _run_python(script)

    def _make_arrays(self) -> None:
        script: list[object] = [HERE / "selection_arrays.py", self.folder]
        if self.problem.real:
            script += ["--real", self.problem.real, "--seed", self.seed]
        _run_python(script)


def _run_python(script: list[object]) -> None:
    """Run a script and its arguments; anything but success ends the benchmark."""
    words = [sys.executable, *map(str, script)]
    if measure(words).status != 0:
        raise SystemExit(f"failed: {' '.join(words)}")


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
