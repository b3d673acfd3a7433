"""Flipped bits, cut and removed files: the right answer or one message, from every command."""

import shutil
from pathlib import Path
from random import Random

from attack_parts.ground import METHODS, Tally, Words, finish, fresh, is_clear, must, table


def faults(tally: Tally, folder: Path, n_each: int, seed: int) -> None:
    """Damage runs of each method and a network so many times."""
    random = Random(seed)  # noqa: S311
    store = folder / "t.zarr"
    must("ingest", table(folder), store)
    for name, options in METHODS.items():
        run = folder / f"{name}.run"
        must("run", store, "--out", run, "--threads", 1, *options)
        _attack(tally, random, name, run, store, n_each)
    network = folder / "t.network"
    must("network", store, "--out", network, "--trees", 5, "--threads", 1)
    _attack(tally, random, "network", network, store, n_each)


def _commands(name: str, place: Path, store: Path, out: Path) -> list[Words]:
    if name == "network":
        return [("network", store, "--out", place, "--trees", 5, "--threads", 1)]
    commands: list[Words] = [
        ("features", place, "--csv"),
        ("status", place, "--json"),
        ("export", store, place, out, "--top", 5),
        ("verify", place),
        ("report", place, "--out", out.with_suffix(".html"), "--overwrite"),
        ("resume", place),
    ]
    return commands


def _attack(tally: Tally, random: Random, name: str, place: Path, store: Path, n_each: int) -> None:
    copy, out = place.with_suffix(".copy"), place.parent / "out.csv"
    right = {}
    fresh(copy)
    shutil.copytree(place, copy)
    for words in _commands(name, copy, store, out):
        fresh(out)
        done = finish(*words)
        right[words[0]] = _answer(str(words[0]), done.stdout, out)
    for _ in range(n_each):
        fresh(copy)
        shutil.copytree(place, copy)
        what = _damage(random, copy)
        tally.add(f"faults in {name}")
        for words in _commands(name, copy, store, out):
            fresh(out)
            done = finish(*words)
            tally.add("commands")
            wrong = is_clear(done)
            if not wrong and not done.returncode:
                answer = _answer(str(words[0]), done.stdout, out)
                wrong = "" if answer == right[words[0]] else "another answer with exit status 0"
            if wrong:
                tally.breaks.append(f"{name}, {what}, {words[0]}: {wrong}")


def _answer(command: str, printed: str, out: Path) -> str:
    """Return what has to be the same; how long things took may differ."""
    if command == "export":
        return out.read_text() if out.exists() else ""
    return printed if command == "features" else ""


def _damage(random: Random, place: Path) -> str:
    """Damage one file; return what was done."""
    files = [file for file in sorted(place.rglob("*")) if file.is_file() and file.stat().st_size]
    file = random.choice(files)
    data = bytearray(file.read_bytes())
    at, way = random.randrange(len(data)), random.choice(("flip", "flip", "cut", "remove"))
    if way == "flip":
        data[at] ^= 1 << random.randrange(8)
        file.write_bytes(data)
    elif way == "cut":
        file.write_bytes(data[:at])
    else:
        file.unlink()
    return f"{way} {file.relative_to(place)} at {at} of {len(data)}"
