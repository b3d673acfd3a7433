"""Methods of ``selection.py``: how each is run, what is kept of it, and its tables of figures."""

import hashlib
import json
import math
import os
import subprocess
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from measured import Measured, find_srs_ooc, measure
from selection_tables import Answer, Problem, Scores, Table, last_line, position_of

SOURCES = {".py", ".cpp", ".hpp"}
NO_RESULTS = {"cli", "report", "plan", "paper_theory", "predict", "synth", "store"}
"""Parts of the package whose changes leave the result of a run as it is."""


@dataclass(frozen=True)
class Method:
    """One method: ``package`` is whose version its results carry, "" for ours.

    ``cheap`` ones run before the others; ``most_features`` is what it can hold: it gets a table of
    the same problem so wide.
    """

    name: str
    label: str
    package: str
    cheap: bool = False
    most_features: int | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it is a judge of ``srs-ooc``."""
        return not self.package

    def width(self, n_features: int) -> int:
        """Return how many of so many features it gets."""
        return min(n_features, self.most_features or n_features)

    def version(self, ours: str) -> str:
        """Return the version its results carry: that of its package, or ``ours``."""
        return ours if self.is_ours else f"{self.package}-{package_version(self.package)}"


METHODS = {
    method.name: method
    for method in (
        Method("tests", "srs-ooc", ""),
        Method("probe", "srs-ooc, judge probe", ""),
        Method("ranksum", "rank sum + BH", "scipy", cheap=True),
        Method("ftest", "F + BH", "scikit-learn", cheap=True),
        Method("random_forest", "random forest, top 20", "scikit-learn"),
        Method("lasso", "lasso", "scikit-learn"),
        Method("knockoffs", "knockoffs, p <= 1,000", "knockpy", most_features=1000),
        Method("lightgbm", "LightGBM, top 20", "lightgbm"),
        Method("mutual_info", "mutual information, top 20", "scikit-learn"),
        Method("extra_trees", "extra trees, top 20", "scikit-learn"),
        Method("boruta", "Boruta, 20 rounds of 500 trees", "Boruta"),
        Method("ipss", "IPSS, gradient boosting, p <= 5,000", "ipss", most_features=5000),
    )
}


def package_version(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        raise SystemExit(
            f"expected the package {package}, found none. Install the extra `bench`, or leave its "
            "methods out with --methods."
        ) from None


def version_of_ours() -> str:
    """Return the version of the package and a hash of those of its sources that decide results."""
    spec = find_spec("srs_ooc")
    if spec is None or spec.origin is None:
        raise SystemExit("expected srs-ooc to be installed, found none")
    folder = Path(spec.origin).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.suffix in SOURCES and place.parts[0] not in NO_RESULTS:
            digest.update(str(place).encode() + path.read_bytes())
    return f"{package_version('srs-ooc')}-{digest.hexdigest()[:8]}"


def passes(methods: Sequence[Method]) -> list[list[Method]]:
    """Return the methods in the order of work: ours, the cheap peers, then each dear one."""
    ours = [method for method in methods if method.is_ours]
    cheap = [method for method in methods if method.cheap]
    dear = [[method] for method in methods if not method.is_ours and not method.cheap]
    return [group for group in (ours, cheap, *dear) if group]


@dataclass(frozen=True)
class Key:
    """What a result is of."""

    problem: str
    n_features: int
    seed: int
    method: str
    version: str

    @property
    def path(self) -> Path:
        """Place of the result inside a cache folder."""
        name = f"seed{self.seed}-{self.method}@{self.version}.json"
        return Path(f"{self.problem}-{self.n_features}") / name


@dataclass(frozen=True)
class Result:
    """One method on one table; ``scores`` is None where it was out of time."""

    key: Key
    seconds: float
    cpu_seconds: float
    peak_mb: float
    scores: Scores | None


class Cache:
    """A folder of results.

    Parameters
    ----------
    folder : Path
        Made when the first result is put there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, key: Key) -> bool:
        """Tell whether a result is there."""
        return (self.folder / key.path).exists()

    def put(self, result: Result) -> None:
        """Keep a result; the file appears complete or not at all."""
        path = self.folder / result.key.path
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}.part")
        scratch.write_text(json.dumps(asdict(result), indent=1) + "\n")
        scratch.replace(path)

    def results(self) -> Iterator[Result]:
        """Yield all results."""
        for path in sorted(self.folder.glob("*/*.json")):
            record = json.loads(path.read_text())
            key = Key(**record.pop("key"))
            scores = Scores(**record["scores"]) if record["scores"] else None
            yield Result(key, record["seconds"], record["cpu_seconds"], record["peak_mb"], scores)


LEVEL = 0.1
CAP_MB = "512"


def run_ours(method: str, table: Table) -> tuple[Measured, Answer]:
    """Run a judge on a table, all else by default, in a process of its own; read what it found."""
    run, errors = table.folder / f"{method}.run", table.folder / "errors"
    options = ["--judge", method, "--memory-mb", CAP_MB, "--seed", str(table.seed)]
    command = [find_srs_ooc(), "run", str(table.store()), "--out", str(run), *options]
    done = measure(command, out="/dev/null", errors=str(errors))
    if done.status != 0:
        return done, Answer.failed(last_line(errors))
    return done, read_selection(run)


def read_selection(run: Path) -> Answer:
    """Return the selected features of a run, and all by rank."""
    selected, ranking = [], array("I")
    for record in records(run):
        position = position_of(record["name"])
        ranking.append(position)
        if is_selected(record):
            selected.append(position)
    return Answer(selected, ranking)


def is_selected(record: dict[str, Any]) -> bool:
    """Tell whether a line of ``srs-ooc features --json`` is of a selected feature."""
    return bool(record["selected"])


def records(run: Path, *options: str) -> Iterator[dict[str, Any]]:
    """Yield the records of ``srs-ooc features --json``, best first: one a line, never all held."""
    command = [find_srs_ooc(), "features", str(run), "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if line.startswith("{"):
                yield json.loads(line.rstrip(",\n"))
    if process.returncode != 0:
        raise SystemExit(f"failed: {' '.join(command)}")


COLUMNS = (
    "method", "seeds", "selected", "power", "false share", "F1", "average precision", "seconds",
    "CPU s", "peak MB",
)  # fmt: skip
NULL_SHARE = 4 / 20


def standard_error(values: list[float]) -> float:
    """Return the standard error of a mean, 0 for a single value."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _values(results: Iterable[Result], name: str) -> list[float]:
    found = (getattr(result.scores, name) for result in results if result.scores is not None)
    return [value for value in found if value is not None]


def _mean(values: list[float], form: str = ".2f") -> str:
    return f"{mean(values):{form}}" if values else "-"


def row(label: str, results: list[Result]) -> str:
    """Return the line of one method on one problem: means over seeds."""
    n_late = sum(result.scores is None for result in results)
    seeds = str(len(results)) + (f" ({n_late} out of time)" if n_late else "")
    false = _values(results, "false_share")
    spread = f" ± {standard_error(false):.3f}" if len(false) > 1 else ""
    cells = [
        label,
        seeds,
        _mean(_values(results, "n_selected"), ".1f"),
        _mean(_values(results, "power")),
        _mean(false, ".3f") + spread,
        _mean(_values(results, "f1")),
        _mean(_values(results, "average_precision")),
        _mean([result.seconds for result in results], ".1f"),
        _mean([result.cpu_seconds for result in results], ".1f"),
        _mean([result.peak_mb for result in results], ".0f"),
    ]
    return "| " + " | ".join(cells) + " |"


def table(problem: Problem, results: list[Result]) -> str:
    """Return the table of one problem."""
    shape = f"n = {problem.n_rows:,}, p = {problem.n_features:,}"
    lines = [
        f"### {problem.name}: {shape} ({problem.kind})\n",
        "| " + " | ".join(COLUMNS) + " |",
        "|---" * len(COLUMNS) + "|",
    ]
    for name, method in METHODS.items():
        own = [result for result in results if result.key.method == name]
        if own:
            lines.append(row(method.label, own))
    return "\n".join(lines) + "\n"


def reach(problem: Problem, results: list[Result]) -> list[str]:
    """Return for each judge of ours whether its false share is within what is to be reached.

    At most the level plus two standard errors; on a null at most 4 of 20 seeds with a selection.
    """
    lines = []
    for name in (name for name, method in METHODS.items() if method.is_ours):
        false = _values((r for r in results if r.key.method == name), "false_share")
        if not false:
            continue
        bound = NULL_SHARE if problem.kind == "null" else LEVEL + 2 * standard_error(false)
        verdict = "holds" if mean(false) <= bound else "FAILS"
        lines.append(
            f"| {problem.name} | {name} | {mean(false):.3f} | {bound:.3f} | {len(false)} | "
            f"{verdict} |"
        )
    return lines


def overview(problems: list[Problem], results: list[Result]) -> str:
    """Return one table of all problems and methods: power / false share, CPU seconds, peak MB."""
    found = {result.key.method for result in results}
    methods = [name for name in METHODS if name in found]
    lines = [
        "| problem | " + " | ".join(METHODS[name].label for name in methods) + " |",
        "|---" * (len(methods) + 1) + "|",
    ]
    for problem in problems:
        on_it = [result for result in results if result.key.problem == problem.name]
        cells = [_cell([r for r in on_it if r.key.method == name]) for name in methods]
        if any(cells):
            lines.append(f"| {problem.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(results: list[Result]) -> str:
    if not results:
        return ""
    peak = f"{mean(result.peak_mb for result in results):.0f} MB"
    done = [result for result in results if result.scores is not None]
    late = f", {len(results) - len(done)} out of time" if len(done) < len(results) else ""
    if not done:
        return f"out of time, {peak}"
    power, false = _mean(_values(done, "power")), _mean(_values(done, "false_share"))
    cpu = mean(result.cpu_seconds for result in done)
    return f"{power} / {false}, {cpu:.0f} s, {peak} ({len(done)}{late})"
