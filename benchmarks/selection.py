"""Selection, against the truth and against what else there is.

Claim: at `--fdr 0.1` the share of false features among the selected is at most the level, two
standard errors allowed, on every problem; nulls select something in at most 4 of 20 seeds; and on
every interaction problem the power is no worse than that of the best peer that holds its level.

Each method runs in a process of its own, so that its seconds and its peak memory are the operating
system's account of that process, start and reading of the table included; ours reads a store made
before, the others an array of float32. Peers are given 5 minutes; what takes longer is a line of
the table. A member of a block with a cause is not false, and a block counts once for power.

Results are kept, one file per problem, seed, method and version; what is there is not computed
again, so the same command goes on where it was stopped or where its minutes ended. The order is:
ours on every seed, then the cheap peers, then each dear one.

    python benchmarks/selection.py --cache FOLDER [--minutes 60] [--problems ...] [--methods ...]
        [--seeds 20] [--peer-seeds 3] [--p P] [--tag TAG] [--report]

Nulls of real tables need a folder of TABLE.csv.gz in SRS_OOC_DATA.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measured import Measured, measure
from selection_methods import (
    METHODS,
    Cache,
    Key,
    Method,
    Result,
    overview,
    passes,
    reach,
    run_ours,
    table,
    version_of_ours,
)
from selection_tables import (
    Answer,
    Problem,
    Table,
    all_problems,
    chosen,
    last_line,
    open_table,
    read_answer,
    said,
    score,
)

PEERS = Path(__file__).parent / "selection_peers.py"


@dataclass(frozen=True)
class Job:
    """One method on one table."""

    problem: Problem
    method: Method
    key: Key


class Benchmark:
    """What was asked for.

    Parameters
    ----------
    arguments : argparse.Namespace
        The command line.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        data = os.environ.get("SRS_OOC_DATA")
        known = all_problems(Path(data) if data else None)
        self.problems = [
            known[name].capped(arguments.p)
            for name in chosen("--problems", arguments.problems, list(known))
        ]
        self.methods = [
            METHODS[name] for name in chosen("--methods", arguments.methods, list(METHODS))
        ]
        self.seeds, self.peer_seeds = arguments.seeds, arguments.peer_seeds
        self.limit_seconds = arguments.limit_seconds
        self.ours = arguments.tag or f"srs-ooc-{version_of_ours()}"
        self.cache = Cache(arguments.cache / "results")
        self.scratch = arguments.cache / "tables"

    def jobs(self, methods: list[Method]) -> Iterator[list[Job]]:
        """Yield the work of some methods: jobs on the same table together, seed by seed."""
        for seed in range(self.seeds):
            for problem in self.problems:
                by_width: dict[int, list[Job]] = {}
                for method in methods:
                    if self._is_asked(problem, method, seed):
                        width = method.width(problem.n_features)
                        version = method.version(self.ours)
                        key = Key(problem.name, width, seed, method.name, version)
                        by_width.setdefault(width, []).append(Job(problem, method, key))
                yield from by_width.values()

    def _is_asked(self, problem: Problem, method: Method, seed: int) -> bool:
        if method.is_ours:
            return seed < problem.most_seeds
        holds = not problem.real or method.most_features is None
        return seed < self.peer_seeds and holds and (method.cheap or not problem.only_cheap_peers)

    def compute(self, deadline: float) -> bool:
        """Compute what is not there yet; False where the time ended first."""
        for methods in passes(self.methods):
            for together in self.jobs(methods):
                missing = [job for job in together if not self.cache.has(job.key)]
                if not missing:
                    continue
                first = missing[0]
                width, seed = first.key.n_features, first.key.seed
                with open_table(first.problem, seed, width, self.scratch) as opened:
                    for job in missing:
                        if time.monotonic() > deadline:
                            return False
                        self._run(job, opened)
        return True

    def _run(self, job: Job, opened: Table) -> None:
        if job.method.is_ours:
            done, answer = run_ours(job.method.name, opened)
        else:
            done, answer = self._run_peer(job.method.name, opened)
        name = f"{job.problem.name} seed {job.key.seed} {job.method.name}"
        if answer.reason is not None and done.status is not None:
            said(f"{name}: failed, not kept: {answer.reason}")
            return
        scores = None
        if done.status is not None:
            scores = score(opened.truth(), answer.selected, answer.ranking)
        self.cache.put(Result(job.key, done.seconds, done.cpu_seconds, done.peak_mb, scores))
        said(
            f"{name}: {scores or 'out of time'}; {done.seconds:.1f} s, "
            f"{done.cpu_seconds:.1f} CPU s, {done.peak_mb:.0f} MB"
        )

    def _run_peer(self, name: str, opened: Table) -> tuple[Measured, Answer]:
        folder, errors = opened.arrays(), opened.folder / "errors"
        command = [sys.executable, str(PEERS), name, str(folder), str(opened.seed)]
        limit = self.limit_seconds
        done = measure(command, limit_seconds=limit, out=os.devnull, errors=str(errors))
        if done.status != 0:
            return done, Answer.failed(last_line(errors))
        return done, read_answer(folder)

    def report(self) -> None:
        """Print the tables of what is there."""
        asked = {job.key for group in self.jobs(self.methods) for job in group}
        results = [result for result in self.cache.results() if result.key in asked]
        bounds = ["| problem | judge | false share | bound | seeds | |", "|---" * 6 + "|"]
        for problem in self.problems:
            own = [result for result in results if result.key.problem == problem.name]
            if own:
                print(table(problem, own))
                bounds += reach(problem, own)
        print("\n".join(bounds) + "\n")
        print(overview(self.problems, results))


def main() -> None:
    """Compute what is missing within the minutes given and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cache", type=Path, required=True, help="folder of results")
    parser.add_argument("--minutes", type=float, default=60.0, help="start nothing after these")
    parser.add_argument("--problems", nargs="+", help="default: all")
    parser.add_argument("--methods", nargs="+", help="default: all")
    parser.add_argument("--seeds", type=int, default=20, help="seeds 0 .. N - 1 of ours")
    parser.add_argument("--peer-seeds", type=int, default=3, help="the same for the others")
    parser.add_argument("--p", type=int, help="cap on the features of every problem, for a trial")
    parser.add_argument("--limit-seconds", type=float, default=300.0, help="of a peer")
    parser.add_argument(
        "--tag",
        help="version our results carry; default: the package's and a hash of its sources",
    )
    parser.add_argument("--report", action="store_true", help="only print what is there")
    arguments = parser.parse_args()
    benchmark = Benchmark(arguments)
    if not arguments.report and not benchmark.compute(time.monotonic() + 60 * arguments.minutes):
        said("the minutes ended first; the same command goes on")
    benchmark.report()


if __name__ == "__main__":
    main()
