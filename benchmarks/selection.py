"""Selection, against the truth and against what else there is.

Claim: at `--fdr 0.1` the share of false features among the selected is at most the level, two
standard errors allowed, on every problem; nulls select something in at most 4 of 20 seeds; and on
every interaction problem the power is no worse than that of the best peer that holds its level.

Each method runs in a process of its own, so that its seconds and its peak memory are the operating
system's account of that process, start and reading of the table included; ours reads a store made
before, the others an array of float32. Peers are given 5 minutes; what takes longer is a line of
the table. A member of a block with a cause is not false, and a block counts once for power.

Results are kept in FOLDER/results.jsonl with the versions of the packages; what is there is not
computed again, so the same command goes on where it was stopped or where its minutes ended.

    python benchmarks/selection.py --cache FOLDER [--minutes 60] [--problems ...] [--methods ...]
        [--seeds 20] [--peer-seeds 3] [--p P] [--report]

Many more designs, of fewer features, and real tables with their target permuted: ``evidence.py``.
"""

import argparse
import json
import math
import os
import shutil
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import mean, stdev

from measured import Measured, Record, Results, features_of, find_srs_ooc, measure

HERE = Path(__file__).parent
LEVEL, NULL_SHARE = 0.1, 4 / 20
CAP_MB = "512"

Units = tuple[tuple[int, ...], ...]
"""Relevant features: a block counts once, else each feature is a unit."""


def truth_of(store: Path) -> Units:
    """Return the truth by the JSON record that ``srs-ooc synth`` writes beside a table."""
    record = json.loads(Path(f"{store}.truth.json").read_text())
    units = record.get("blocks") or [[name] for name in record["relevant"]]
    return tuple(tuple(position_of(name) for name in unit) for unit in units)


def position_of(name: str) -> int:
    """Return the source position in a feature's name."""
    return int(name.removeprefix("f"))


def score(units: Units, selected: Sequence[int], ranking: Iterable[int]) -> Record:
    """Score one answer; power, F1 and average precision are None where nothing is relevant.

    The false share is that of irrelevant features among the selected, 0 where none is. F1 takes
    power for recall and one minus the false share for precision.
    """
    unit_of = {feature: i for i, unit in enumerate(units) for feature in unit}
    n_false = sum(feature not in unit_of for feature in selected)
    false_share = n_false / max(1, len(selected))
    found: Record = {"selected": len(selected), "false share": false_share}
    if not units:
        return found | dict.fromkeys(("power", "F1", "average precision"))
    power = len({unit_of[f] for f in selected if f in unit_of}) / len(units)
    precision = 1 - false_share if selected else 0.0
    f1 = 2 * precision * power / (precision + power) if power else 0.0
    average = average_precision(unit_of, len(units), ranking)
    return found | {"power": power, "F1": f1, "average precision": average}


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


@dataclass(frozen=True)
class Problem:
    """A problem of ``more_problems.py`` with its options.

    ``kind`` is what is expected of it: ``interaction``, ``additive``, ``null`` or ``reported``.
    """

    kind: str
    words: tuple[str, ...]
    n_rows: int = 1000
    n_features: int = 50_000


PROBLEMS = {
    "madelon": Problem("interaction", ("madelon", "--relevant", "20")),
    "blocks": Problem("additive", ("blocks", "--relevant", "10")),
    "chain": Problem("interaction", ("chain", "--relevant", "3")),
    "clique-2": Problem("interaction", ("clique", "--relevant", "2"), 2000, 500),
    "marginal": Problem("additive", ("marginal", "--relevant", "5")),
    "linear": Problem("additive", ("linear", "--relevant", "15")),
    "friedman": Problem("interaction", ("friedman",)),
    "shift": Problem("additive", ("shift", "--relevant", "20"), n_rows=72),
    "imbalance": Problem("additive", ("imbalance", "--relevant", "20")),
    "noise": Problem("null", ("noise",)),
    "noise-blocks": Problem("null", ("noise", "--blocks")),
    "clique-3": Problem("reported", ("clique", "--relevant", "3"), 2000, 500),
}


@dataclass(frozen=True)
class Method:
    """One method: ``package`` is whose version its results carry.

    ``most_features`` is what it can hold: it gets a table of the same problem so wide.
    """

    label: str
    package: str = "srs-ooc"
    most_features: int = sys.maxsize

    @property
    def is_ours(self) -> bool:
        """Whether it is a judge of ``srs-ooc``."""
        return self.package == "srs-ooc"

    def version(self) -> str:
        """Return the version of its package."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            raise SystemExit(
                f"expected the package {self.package}, found none. Install the extra `bench`, or "
                "leave its methods out with --methods."
            ) from None


METHODS = {
    "tests": Method("srs-ooc"),
    "probe": Method("srs-ooc, judge probe"),
    "ranksum": Method("rank sum + BH", "scipy"),
    "ftest": Method("F + BH", "scikit-learn"),
    "random_forest": Method("random forest, top 20", "scikit-learn"),
    "lasso": Method("lasso", "scikit-learn"),
    "knockoffs": Method("knockoffs, p <= 1,000", "knockpy", 1000),
    "lightgbm": Method("LightGBM, top 20", "lightgbm"),
    "mutual_info": Method("mutual information, top 20", "scikit-learn"),
    "extra_trees": Method("extra trees, top 20", "scikit-learn"),
    "boruta": Method("Boruta, 20 rounds of 500 trees", "Boruta"),
    "ipss": Method("IPSS, gradient boosting, p <= 5,000", "ipss", 5000),
}
"""Ours by their judges, peers by their functions in ``selection_peers.py``."""


@dataclass(frozen=True)
class Answer:
    """Source positions; ``reason`` says why there is no answer."""

    selected: Sequence[int] = ()
    ranking: Sequence[int] = ()
    reason: str | None = None


@contextmanager
def made_table(problem: Problem, seed: int, n_features: int, scratch: Path) -> Iterator[Path]:
    """Yield a folder with ``table.zarr``, its truth and its arrays, which is removed at the end."""
    folder = scratch / f"{'-'.join(problem.words)}-{n_features}-{seed}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sizes = ("--rows", problem.n_rows, "--features", n_features, "--seed", seed, "--arrays")
    kind, *options = problem.words
    script = [HERE / "more_problems.py", kind, folder / "table.zarr", *options, *sizes]
    words = [sys.executable, *map(str, script)]
    try:
        if measure(words).status != 0:
            raise SystemExit(f"failed: {' '.join(words)}")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_ours(judge: str, folder: Path, seed: int) -> tuple[Measured, Answer]:
    """Run a judge on a table, all else by default; read what it found."""
    run, errors = folder / f"{judge}.run", folder / "errors"
    options = ["--judge", judge, "--memory-mb", CAP_MB, "--seed", str(seed)]
    command = [find_srs_ooc(), "run", str(folder / "table.zarr"), "--out", str(run), *options]
    done = measure(command, out=os.devnull, errors=str(errors))
    if done.status != 0:
        return done, Answer(reason=last_line(errors))
    selected, ranking = [], array("I")
    for record in features_of(run):
        position = position_of(record["name"])
        ranking.append(position)
        if record["selected"]:
            selected.append(position)
    return done, Answer(selected, ranking)


def run_peer(name: str, folder: Path, seed: int, limit_seconds: float) -> tuple[Measured, Answer]:
    """Run a peer on the arrays of a table; read what it found."""
    errors = folder / "errors"
    command = [sys.executable, str(HERE / "selection_peers.py"), name, str(folder), str(seed)]
    done = measure(command, limit_seconds=limit_seconds, out=os.devnull, errors=str(errors))
    return done, read_answer(folder) if done.status == 0 else Answer(reason=last_line(errors))


def read_answer(folder: Path) -> Answer:
    """Read what a peer wrote: ``selected.json``, and ``ranking.u4`` of all features."""
    ranking = array("I")
    ranking.frombytes((folder / "ranking.u4").read_bytes())
    return Answer(json.loads((folder / "selected.json").read_text()), ranking)


def last_line(file: Path) -> str:
    """Return the last line of a file of messages."""
    lines = file.read_text(errors="replace").strip().splitlines() if file.exists() else []
    return lines[-1] if lines else "no message"


class Benchmark:
    """What was asked for, and what is known of it.

    Parameters
    ----------
    asked : argparse.Namespace
        The command line.
    """

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked
        self._folder = asked.cache
        self._folder.mkdir(parents=True, exist_ok=True)
        self._results = Results(self._folder / "results.jsonl")

    def keys(self) -> Iterator[tuple[Record, list[Record]]]:
        """Yield tables, seed by seed, each with what is asked for on it."""
        asked = self._asked
        for seed in range(max(asked.seeds, asked.peer_seeds)):
            for problem in asked.problems:
                by_table: dict[int, list[Record]] = {}
                for name in asked.methods:
                    method = METHODS[name]
                    if seed < (asked.seeds if method.is_ours else asked.peer_seeds):
                        width = min(PROBLEMS[problem].n_features, asked.p, method.most_features)
                        key = {"method": name, "version": method.version()}
                        by_table.setdefault(width, []).append(key)
                for width, keys in by_table.items():
                    table = {"problem": problem, "n_features": width, "seed": seed}
                    yield table, [table | key for key in keys]

    def compute(self) -> bool:
        """Compute what is not there yet; False where the time ended first."""
        deadline = time.monotonic() + 60 * self._asked.minutes
        for table, keys in self.keys():
            missing = [key for key in keys if self._results.find(key) is None]
            if not missing:
                continue
            if time.monotonic() > deadline:
                return False
            shape = PROBLEMS[table["problem"]], table["seed"], table["n_features"]
            with made_table(*shape, self._folder / "tables") as folder:
                for key in missing:
                    if time.monotonic() > deadline:
                        return False
                    self._run(key, folder)
        return True

    def _run(self, key: Record, folder: Path) -> None:
        name, seed = key["method"], key["seed"]
        if METHODS[name].is_ours:
            done, answer = run_ours(name, folder, seed)
        else:
            done, answer = run_peer(name, folder, seed, self._asked.limit_seconds)
        said = f"{key['problem']} seed {seed} {name}"
        if answer.reason is not None and done.status is not None:
            print(f"{said}: failed, not kept: {answer.reason}", file=sys.stderr, flush=True)
            return
        is_late = done.status is None
        scores: Record = {"late": is_late}
        if not is_late:
            scores |= score(truth_of(folder / "table.zarr"), answer.selected, answer.ranking)
        costs = {"seconds": done.seconds, "CPU s": done.cpu_seconds, "peak MB": done.peak_mb}
        self._results.add(key | scores | costs)
        print(f"{said}: {scores | costs}", file=sys.stderr, flush=True)

    def report(self) -> None:
        """Print the tables of what is there."""
        wanted = [key for _, keys in self.keys() for key in keys]
        results = [found for key in wanted if (found := self._results.find(key)) is not None]
        bounds = ["| problem | judge | false share | bound | seeds | |", "|---" * 6 + "|"]
        for name in self._asked.problems:
            own = [result for result in results if result["problem"] == name]
            if own:
                print(table(name, own))
                bounds += reach(name, own)
        print("\n".join(bounds))


SCORES = {
    "selected": ".1f",
    "power": ".2f",
    "false share": ".3f",
    "F1": ".2f",
    "average precision": ".2f",
    "seconds": ".1f",
    "CPU s": ".1f",
    "peak MB": ".0f",
}
"""What a table shows, and with how many digits."""


def standard_error(values: list[float]) -> float:
    """Return the standard error of a mean, 0 for a single value."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def _values(results: Iterable[Record], name: str) -> list[float]:
    found = (result.get(name) for result in results)
    return [value for value in found if value is not None]


def _mean(values: list[float], form: str = ".2f") -> str:
    return f"{mean(values):{form}}" if values else "-"


def row(label: str, results: list[Record]) -> str:
    """Return the line of one method on one problem: means over seeds."""
    n_late = sum(result["late"] for result in results)
    seeds = str(len(results)) + (f" ({n_late} out of time)" if n_late else "")
    cells = {name: _mean(_values(results, name), form) for name, form in SCORES.items()}
    false = _values(results, "false share")
    cells["false share"] += f" ± {standard_error(false):.3f}" if len(false) > 1 else ""
    return "| " + " | ".join([label, seeds, *cells.values()]) + " |"


def table(name: str, results: list[Record]) -> str:
    """Return the table of one problem."""
    problem = PROBLEMS[name]
    n_features = max(result["n_features"] for result in results)
    lines = [
        f"### {name}: n = {problem.n_rows:,}, p = {n_features:,} ({problem.kind})\n",
        "| method | seeds | " + " | ".join(SCORES) + " |",
        "|---" * (2 + len(SCORES)) + "|",
    ]
    for key, method in METHODS.items():
        own = [result for result in results if result["method"] == key]
        if own:
            lines.append(row(method.label, own))
    return "\n".join(lines) + "\n"


def reach(name: str, results: list[Record]) -> list[str]:
    """Return for each judge of ours whether its false share is within what is to be reached.

    At most the level plus two standard errors; on a null at most 4 of 20 seeds with a selection.
    """
    lines = []
    for judge in (judge for judge, method in METHODS.items() if method.is_ours):
        false = _values((r for r in results if r["method"] == judge), "false share")
        if not false:
            continue
        is_null = PROBLEMS[name].kind == "null"
        bound = NULL_SHARE if is_null else LEVEL + 2 * standard_error(false)
        verdict = "holds" if mean(false) <= bound else "FAILS"
        cells = (name, judge, f"{mean(false):.3f}", f"{bound:.3f}", str(len(false)), verdict)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Compute what is missing within the minutes given and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cache", type=Path, required=True, help="folder of results")
    parser.add_argument("--minutes", type=float, default=60.0, help="start nothing after these")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=[*PROBLEMS])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=[*METHODS])
    parser.add_argument("--seeds", type=int, default=20, help="seeds 0 .. N - 1 of ours")
    parser.add_argument("--peer-seeds", type=int, default=3, help="the same for the others")
    parser.add_argument("--p", type=int, default=sys.maxsize,
                        help="cap on the features of every problem, for a trial")  # fmt: skip
    parser.add_argument("--limit-seconds", type=float, default=300.0, help="of a peer")
    parser.add_argument("--report", action="store_true", help="only print what is there")
    asked = parser.parse_args()
    benchmark = Benchmark(asked)
    if not asked.report and not benchmark.compute():
        print("the minutes ended first; the same command goes on", file=sys.stderr)
    benchmark.report()


if __name__ == "__main__":
    main()
