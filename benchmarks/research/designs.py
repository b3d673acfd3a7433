"""Designs of the screen, the closing stage and the cut, losers included, on tuning tables.

Claim: over the tables of all problems together, no design tried here has more power than the
chosen one by two standard errors or more.

Tables are those of `benchmarks/selection.py`, with seeds from 100: its own seeds, from 0, which are
reported on, have no part here. One process, one worker. Each step (screen, closed ranking) is kept
in the cache by table and version, so the same command goes on where it was stopped, and designs of
the closing stage share one screen. About 25 minutes on one core with nothing else to do.

Every design begins with the package's own engine, decoys, tally and ranking; its elimination, tree
kernel, groups and counting are used as they are. Importances that the kernel does not tally (of
large nodes, of rows left out) are computed from the recorded trees.

    python benchmarks/research/designs.py --cache FOLDER [--minutes 60] [--problems ...]
        [--designs ...] [--seeds 3] [--tag TAG] [--quick] [--report]
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # the modules that all benchmarks share

from designs_catalogue import GROUPS, Design
from designs_steps import ArrayCache, Held, TableKey, TableWork, rank_table, selection_table
from selection_methods import version_of_ours
from selection_tables import Problem, all_problems, chosen, open_table, said

FIRST_SEED = 100
PROBLEMS = ("madelon", "linear", "shift", "blocks", "imbalance", "chain")
QUICK_FEATURES = 120


class Benchmark:
    """What was asked for.

    Parameters
    ----------
    arguments : argparse.Namespace
        The command line.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        names = [design.name for group in GROUPS for design in group.designs]
        wanted = set(chosen("--designs", arguments.designs, list(dict.fromkeys(names))))
        wanted |= {"chosen", "trees-alone"}  # what the others are compared with
        self.groups = [
            replace(group, designs=tuple(d for d in group.designs if d.name in wanted))
            for group in GROUPS
        ]
        most = QUICK_FEATURES if arguments.quick else None
        known = all_problems(None)
        self.problems = [
            known[name].capped(most)
            for name in chosen("--problems", arguments.problems, list(PROBLEMS))
        ]
        self.seeds = range(FIRST_SEED, FIRST_SEED + (1 if arguments.quick else arguments.seeds))
        version = arguments.tag or f"srs-ooc-{version_of_ours()}"
        self.cache = ArrayCache(arguments.cache / "results", version)
        self.scratch = arguments.cache / "tables"

    def tables(self) -> Iterator[tuple[Problem, TableKey]]:
        """Yield the tables, seed by seed."""
        for seed in self.seeds:
            for problem in self.problems:
                yield problem, TableKey(problem.name, problem.n_features, seed)

    def designs_on(self, table: TableKey) -> Iterator[Design]:
        """Yield the designs that are tried on a table."""
        for group in self.groups:
            for design in group.designs:
                asked = table.seed - FIRST_SEED < design.most_seeds
                if asked and table.problem in design.problems:
                    yield design

    def compute(self, deadline: float) -> bool:
        """Compute what is not there yet; False where the time ended first."""
        for problem, key in self.tables():
            wanted = (ranked for design in self.designs_on(key) for ranked in design.rankings)
            work = TableWork(key, wanted, self.cache)
            if work.is_done:
                continue
            with open_table(problem, key.seed, key.n_features, self.scratch) as opened:
                start = time.monotonic()
                for step in work.steps(opened):
                    now = time.monotonic()
                    said(f"{key.problem} seed {key.seed} {step}: {now - start:.1f} s")
                    start = now
                    if now > deadline:
                        return False
        return True

    def report(self) -> None:
        """Print the tables of what is there."""
        held = Held(self.cache, tuple(key for _, key in self.tables()))
        for group in self.groups:
            if group.ranks:
                print("\n".join(rank_table(held, group)))
            print("\n".join(selection_table(held, group)))


def main() -> None:
    """Compute what is missing within the minutes given and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cache", type=Path, required=True, help="folder of results")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no step after these")
    parser.add_argument("--problems", nargs="+", help="default: all")
    parser.add_argument("--designs", nargs="+", help="default: all; the chosen one always")
    parser.add_argument("--seeds", type=int, default=3, help="tables of a problem, seeds 100 ...")
    parser.add_argument("--tag", help="version; default: the package's and a hash of its sources")
    parser.add_argument("--quick", action="store_true", help="tiny tables, one seed: a trial")
    parser.add_argument("--report", action="store_true", help="only print what is there")
    arguments = parser.parse_args()
    benchmark = Benchmark(arguments)
    if not arguments.report and not benchmark.compute(time.monotonic() + 60 * arguments.minutes):
        said("the minutes ended first; the same command goes on")
    benchmark.report()


if __name__ == "__main__":
    main()
