"""Commands that read, make files, or go on where they stopped, in one place or another."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from attack_parts.forks import Words
from attack_parts.ground import METHODS


def readers(folder: Path) -> Sequence[Words]:
    """Return commands that make nothing."""
    store, run, trees = folder / "t.zarr", folder / "t.run", folder / "saved.run"
    return [
        ("features", run, "--csv"),
        ("features", run, "--why", "f0"),
        ("status", run),
        ("status", run, "--json"),
        ("inspect", store),
        ("inspect", store, "--verify"),
        ("verify", store),
        ("verify", run),
        ("verify", trees),
        ("compare", run, trees),
        ("runs", folder),
        ("plan", store),
        ("scores", store, "--csv"),
        ("features", run, "--store", store),
        ("sensitivity", trees, "--csv"),
        ("report", run, "--format", "json", "-o", "-"),
        ("report", run, "--format", "md", "-o", "-"),
    ]


def writers(folder: Path, out: Path) -> Sequence[tuple[Words, Path]]:
    """Return commands that make something in the folder ``out``, and what they make."""
    store, run, trees = folder / "t.zarr", folder / "t.run", folder / "saved.run"
    source = folder / "t.csv"
    made = [
        (("ingest", source, out / "k.zarr"), "k.zarr"),
        (("export", store, run, out / "k.csv", "--top", 50), "k.csv"),
        (("export", store, run, out / "k.parquet", "--top", 50), "k.parquet"),
        (("export", store, run, out / "s.zarr", "--top", 50), "s.zarr"),
        (("predict", trees, source, out / "p.csv"), "p.csv"),
        (("report", run, "-o", out / "r.json"), "r.json"),
        (("report", run, "-o", out / "r.html"), "r.html"),
    ]
    return [(words, out / name) for words, name in made]


def growers(folder: Path, out: Path) -> Sequence[tuple[Words, Path]]:
    """Return commands that go on where they stopped, and what they keep."""
    store = folder / "t.zarr"
    of_run = [
        (("run", store, "--out", out / f"{name}.run", "--threads", 1, *options), f"{name}.run")
        for name, options in METHODS.items()
        if name not in ("knn", "rs", "sensitivity")
    ]
    network = ("network", store, "--out", out / "e.csv", "--trees", 2, "--threads", 1)
    return [(words, out / name) for words, name in [*of_run, (network, "e.csv.network")]]


def mount(*words: str | Path) -> bool:
    """Call ``mount``; return whether it did."""
    return (
        subprocess.run(["mount", *map(str, words)], capture_output=True, check=False).returncode
        == 0
    )
