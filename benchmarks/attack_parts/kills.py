"""Kills at random moments; what was killed is finished, and compared with an undisturbed one."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from attack_parts.ground import (
    METHODS,
    Tally,
    Words,
    digest,
    fresh,
    kill_after,
    must,
    result_of,
    table,
)


def kills(tally: Tally, folder: Path, n_each: int, seed: int) -> None:
    """Kill each command so many times."""
    random = Random(seed)  # noqa: S311
    source, store = table(folder, 300, 400), folder / "t.zarr"
    must("ingest", source, store)
    _ingests(tally, random, source, folder, n_each)
    for name, options in METHODS.items():
        run = folder / f"{name}.run"
        words = ("run", store, "--out", run, "--threads", 1, *options)
        _going_on(tally, random, f"run {name}", words, run, n_each, partial(result_of, run))
    network = folder / "t.network"
    words = ("network", store, "--out", network, "--trees", 20, "--threads", 1)
    _going_on(tally, random, "network", words, network, n_each, lambda: _edges(network))
    _readers(tally, random, folder, store, n_each)


def _edges(network: Path) -> str:
    return "".join(digest(file) for file in sorted(network.glob("*.csv")))


def _ingests(tally: Tally, random: Random, source: Path, folder: Path, n: int) -> None:
    out = folder / "killed.zarr"
    words = ("ingest", source, out)
    expected, seconds = _undisturbed(words, out, lambda: digest(out))
    for _ in range(n):
        fresh(out)
        tally.add("kills of ingest", kill_after(words, random.uniform(0.1, seconds)))
        if out.exists() and digest(out) != expected:
            tally.breaks.append("ingest: a store that is there differs")
        fresh(out)
        must(*words)
        left = [file.name for file in folder.iterdir() if "partial" in file.name]
        if digest(out) != expected or left:
            tally.breaks.append(f"ingest: another store after a kill, or left behind: {left}")


def _undisturbed(words: Words, out: Path, answer: Callable[[], str]) -> tuple[str, float]:
    """Return what an undisturbed command comes to, and its seconds."""
    fresh(out)
    begin = time.monotonic()
    must(*words)
    return answer(), time.monotonic() - begin


def _going_on(
    tally: Tally,
    random: Random,
    name: str,
    words: Words,
    out: Path,
    n: int,
    answer: Callable[[], str],
) -> None:
    """Kill what can be gone on with, several times in a row, and let it end."""
    expected, seconds = _undisturbed(words, out, answer)
    done = 0
    while done < n:
        fresh(out)
        for _ in range(min(4, n - done)):
            tally.add(f"kills of {name}", kill_after(words, random.uniform(0.15, seconds)))
            done += 1
        must(*words)
        if answer() != expected:
            tally.breaks.append(f"{name}: another result after kills")


def _readers(tally: Tally, random: Random, folder: Path, store: Path, n: int) -> None:
    run, out = folder / "decoys.run", folder / "out.csv"
    for name, words, target in (
        ("export", ("export", store, run, out, "--top", 50), out),
        ("verify", ("verify", run), run),
        ("compact", ("compact", run, "--folds", 2), run / "compact"),
    ):
        before = result_of(run)
        seconds = _undisturbed(words, target if target != run else folder / "none", str)[1]
        expected = digest(target)
        for _ in range(n):
            if target != run:
                fresh(target)
            tally.add(f"kills of {name}", kill_after(words, random.uniform(0.1, seconds)))
            if name == "export" and out.exists() and digest(out) != expected:
                tally.breaks.append("export: a file that is there differs")
            fresh(out)
            must(*words)
            if digest(target) != expected or result_of(run) != before:
                tally.breaks.append(f"{name}: another result after a kill")
