"""Compile the kernel of two commits, and compare what that takes.

    python benchmarks/research/bench_compile.py [--before b691ef3c] [--after HEAD] [--repeats 3]

Claim: all instruction sets take 0.49 of what b691ef3c took (docs/research/compiling.md).

Each commit is exported and compiled afresh in a folder of its own, in turns, by the nanobind, cmake
and ninja of this Python, without ccache. Printed: seconds of the processor (user and system, of all
that was started), of the clock, and medians of ratios. The clock says something only on a machine
that does nothing else. With ``--units`` each source is compiled alone instead, once: its seconds
before and after.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def seconds_of(command: list[str], folder: Path) -> tuple[float, float]:
    """Run a command; return the seconds of the processor and of the clock."""
    start = os.times()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    end = os.times()
    before, after = (t.children_user + t.children_system for t in (start, end))
    return after - before, end.elapsed - start.elapsed


def configured(commit: str, folder: Path) -> Path:
    """Export a commit, have its build files written, and return the build folder."""
    source, build = folder / "source", folder / "build"
    source.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    subprocess.run(["tar", "x"], cwd=source, check=True, input=archive)
    options = [
        "CMAKE_BUILD_TYPE=Release",
        "CMAKE_EXPORT_COMPILE_COMMANDS=ON",
        "CCACHE=CCACHE-NOTFOUND",
    ]
    options += [f"Python_EXECUTABLE={sys.executable}", "SKBUILD_SABI_COMPONENT="]
    command = ["cmake", "-G", "Ninja", "-S", str(source), "-B", str(build)]
    seconds_of([*command, *(f"-D{option}" for option in options)], folder)
    return build


def units_of(build: Path) -> dict[str, float]:
    """Compile each source alone; return the seconds of the processor by object."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        command = shlex.split(entry["command"])
        name = command[command.index("-o") + 1]
        (build / name).parent.mkdir(parents=True, exist_ok=True)
        found[name.removeprefix("CMakeFiles/")] = seconds_of(command, build)[0]
    return found


def compare_units(builds: dict[str, Path]) -> None:
    """Print the seconds of each source, before and after."""
    before, after = (units_of(build) for build in builds.values())
    for name in sorted(before.keys() | after.keys()):
        print(f"{before.get(name, 0.0):6.1f} {after.get(name, 0.0):6.1f}  {name}")
    print(f"{sum(before.values()):6.1f} {sum(after.values()):6.1f}  all")


def main() -> None:
    """Compile both commits in turns and print what that took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--before", default="b691ef3c")
    parser.add_argument("--after", default="HEAD")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--units", action="store_true", help="each source alone")
    args = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ratios = []
    for repeat in range(1 if args.units else args.repeats):
        with tempfile.TemporaryDirectory() as folder:
            names = (args.before, args.after) if repeat % 2 == 0 else (args.after, args.before)
            builds = {name: configured(name, Path(folder, name)) for name in names}
            if args.units:
                return compare_units(builds)
            took = {name: seconds_of(["ninja"], build) for name, build in builds.items()}
        for name, (processor, clock) in took.items():
            print(f"{name}: {processor:.1f} s of the processor, {clock:.1f} s", flush=True)
        ratios.append([a / b for a, b in zip(took[args.after], took[args.before], strict=True)])
    processor, clock = (statistics.median(column) for column in zip(*ratios, strict=True))
    print(f"ratio: {processor:.2f} of the processor, {clock:.2f} of the clock")


if __name__ == "__main__":
    main()
