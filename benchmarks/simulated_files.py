"""The PRS paper's simulated problems: files of a folder, each worked on in a process of its own."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from measured import measure

RELEVANT = {
    "checkerboard": range(50, 201, 50),
    "friedman": range(50, 251, 50),
    "hypercube": range(50, 251, 50),
    "linear": range(10),
}
Figures = dict[str, float]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add which problems and files to work on; ``--one`` is a process for a single file."""
    parser.add_argument("--problems", nargs="+", default=list(RELEVANT))
    parser.add_argument("--files", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)


def relevant_of(file: Path) -> list[int]:
    """Return the relevant features of the problem that a file is named after."""
    return list(RELEVANT[file.stem.split("_")[0]])


def means_of_files(
    script: str, options: list[str], folder: Path, problems: list[str], files: list[int]
) -> Iterator[tuple[str, Figures]]:
    """Yield each problem with the means of its files' figures, having printed those of each.

    Parameters
    ----------
    script : str
        What is started for each file, with its path first and ``--one`` for where figures go.
    options : list of str
        Its other arguments.
    folder : Path
        Where the files lie.
    problems : list of str
        Their names.
    files : list of int
        Their numbers.
    """
    for problem in problems:
        paths = [folder / f"{problem}_{i}.npz" for i in files]
        found = [_figures(script, options, path) for path in paths]
        yield problem, {name: sum(f[name] for f in found) / len(found) for name in found[0]}


def _figures(script: str, options: list[str], path: Path) -> Figures:
    with TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        done = measure([sys.executable, script, str(path), "--one", str(out), *options])
        found: Figures = json.loads(out.read_text()) | {"peak_mb": done.peak_mb}
    print(f"  {path.stem}: {json.dumps({k: round(v, 3) for k, v in found.items()})}", flush=True)
    return found
