"""The main job end to end: a table larger than the memory allowed, a run stopped and resumed.

Claims shown: 1,000 rows x 20,000 features (a CSV file of about 150 MB) are ingested under a cap of
128 MB and searched under a cap of 96 MB; Ctrl-C costs nothing but the time until the same command
is given again; the whole takes less than three minutes.

Uses the standard library only and drives the installed ``srs-ooc`` as a user would. Peak memory is
measured from outside: each command is a direct child of this small process, whose own few
megabytes are the least a child's peak can read.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from measured import MB, measure

INTERRUPTED = 128 + signal.SIGINT


@dataclass(frozen=True)
class Step:
    """One command: what it was for, how long it took, what it held at most, what it was allowed."""

    name: str
    seconds: float
    peak_mb: float
    cap_mb: int | None

    @property
    def fits(self) -> bool:
        """Whether the peak stayed under the cap."""
        return self.cap_mb is None or self.peak_mb < self.cap_mb


class Demo:
    """The commands of the demonstration, run in the current folder.

    Parameters
    ----------
    command : Path
        The ``srs-ooc`` to drive.
    """

    def __init__(self, command: Path) -> None:
        self.command = command
        self.steps: list[Step] = []

    def _step(
        self,
        name: str,
        arguments: list[str],
        *,
        cap_mb: int | None,
        status: int = 0,
        meanwhile: Callable[[int], None] = lambda pid: None,
    ) -> None:
        """Run a command to its end and record what it took; ``meanwhile`` is given its id."""
        cap = [] if cap_mb is None else ["--memory-mb", str(cap_mb)]
        print(f"\n$ srs-ooc {' '.join([*arguments, *cap])}", flush=True)
        done = measure([str(self.command), *arguments, *cap], meanwhile=meanwhile)
        self.steps.append(Step(name, done.seconds, done.peak_mb, cap_mb))
        if done.status != status:
            sys.exit(f"demo: expected exit status {status} of this command, found {done.status}")

    def do(self, name: str, *arguments: str, cap_mb: int | None = None) -> None:
        """Run a command to its end and record it."""
        self._step(name, [*arguments], cap_mb=cap_mb)

    def interrupt(self, name: str, *arguments: str, cap_mb: int, after: int) -> None:
        """Run a command and send it what Ctrl-C sends once ``after`` iterations are on disk."""

        def stop(pid: int) -> None:
            while self._iterations() < after and not _ended(pid):
                time.sleep(0.2)
            os.kill(pid, signal.SIGINT)

        self._step(name, [*arguments], cap_mb=cap_mb, status=INTERRUPTED, meanwhile=stop)

    def _iterations(self) -> int:
        found = subprocess.run(
            [self.command, "status", "table.run", "--json"], capture_output=True, check=False
        )
        return int(json.loads(found.stdout)["iterations"]) if found.returncode == 0 else 0

    def features(self, run: str) -> list[dict[str, object]]:
        """Return the records of ``srs-ooc features``."""
        print(f"\n$ srs-ooc features {run} --json", flush=True)
        found = subprocess.run(
            [self.command, "features", run, "--json"], capture_output=True, check=True
        )
        records: list[dict[str, object]] = json.loads(found.stdout)
        return records


def _ended(pid: int) -> bool:
    """Tell whether a child has ended, leaving it to be waited for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def clear(folder: Path) -> None:
    """Make ``folder``, without what an earlier demonstration left in it."""
    folder.mkdir(exist_ok=True)
    for name in ("table.csv", "table.csv.truth.json"):
        (folder / name).unlink(missing_ok=True)
    for name in ("table.zarr", "table.run"):
        shutil.rmtree(folder / name, ignore_errors=True)


def report_selection(records: list[dict[str, object]], relevant: set[str]) -> None:
    """Print the selected features against the truth."""
    selected = [str(record["name"]) for record in records if record["selected"]]
    right = relevant.intersection(selected)
    precision = len(right) / len(selected) if selected else 0.0
    recall = len(right) / len(relevant)
    f1 = 2 * len(right) / (len(selected) + len(relevant))
    top = [str(record["name"]) for record in records if int(str(record["rank"])) <= len(relevant)]
    print(f"\n{len(selected)} of {len(records):,} features selected; * is truly relevant:")
    print("  " + " ".join(f"{name}{'*' if name in relevant else ''}" for name in selected))
    print(f"  precision {precision:.2f}, recall {recall:.2f}, F1 {f1:.2f}")
    print(
        f"  the {len(top)} ranked first hold "
        f"{len(relevant.intersection(top))} of the {len(relevant)} relevant"
    )


def report_steps(steps: list[Step], table: Path, seconds: float) -> bool:
    """Print what each step took; return whether every step stayed under its cap."""
    print(f"\n{table.name} holds {table.stat().st_size / MB:.0f} MB.")
    print(f"{'step':<18}{'seconds':>9}{'peak MB':>9}{'cap MB':>8}")
    for step in steps:
        cap = "-" if step.cap_mb is None else str(step.cap_mb)
        note = "" if step.fits else "  over the cap"
        print(f"{step.name:<18}{step.seconds:>9.1f}{step.peak_mb:>9.1f}{cap:>8}{note}")
    print(f"{'in all':<18}{seconds:>9.1f}")
    return all(step.fits for step in steps)


def main() -> None:
    """Run the demonstration; exit status 1 if a command failed or a cap did not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("demo"))
    parser.add_argument("--command", type=Path, default=Path(sys.executable).with_name("srs-ooc"))
    parser.add_argument("--features", type=int, default=20_000)
    parser.add_argument("--iterations", type=int, default=8_000)
    options = parser.parse_args()
    command = options.command.absolute()
    clear(options.folder)
    os.chdir(options.folder)

    began = time.perf_counter()
    demo = Demo(command)
    shape = ("--rows", "1000", "--features", str(options.features), "--relevant", "20")
    demo.do("synthesise", "synth", "madelon", "table.csv", *shape, "--seed", "0")
    demo.do("ingest", "ingest", "table.csv", "table.zarr", "--target", "target", cap_mb=128)
    run = ["run", "table.zarr", "--alpha", "0.5"]
    run += ["--iterations", str(options.iterations)]
    demo.interrupt("run, interrupted", *run, cap_mb=96, after=options.iterations // 4)
    demo.do("run, resumed", *run, cap_mb=96)
    records = demo.features("table.run")

    relevant = set(json.loads(Path("table.csv.truth.json").read_text())["relevant"])
    report_selection(records, relevant)
    if not report_steps(demo.steps, Path("table.csv"), time.perf_counter() - began):
        sys.exit(1)


if __name__ == "__main__":
    main()
