"""Codes of a store changed in place while a command works: refused, or the right result."""

import os
import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from attack_parts.forks import Done, Words, commit_often, finish, is_at_work
from attack_parts.ground import METHODS, NETWORKS, Tally, digest, fresh, must, table, unclear
from attack_parts.kills import result_of

Way = Callable[[Random, Path, Path], None]


def _over(_: Random, file: Path, other: Path) -> None:
    """Write another table's codes over a file: not cut, not replaced, metadata not yet written."""
    with file.open("r+b") as out:
        out.write(other.read_bytes())


def _flip(random: Random, file: Path, _: Path) -> None:
    """Change one code, and set the time back."""
    before = file.stat()
    at = random.randrange(before.st_size)
    with file.open("r+b") as out:
        out.seek(at)
        code = out.read(1)[0]
        out.seek(at)
        out.write(bytes([code ^ 1]))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replace(_: Random, file: Path, other: Path) -> None:
    """Put another file in its place, from one moment to the next."""
    near = file.with_name("near")
    shutil.copy2(other, near)
    near.replace(file)


WAYS: dict[str, Way] = {
    "codes written over": _over,
    "a code flipped": _flip,
    "codes replaced": _replace,
}


def overwrites(tally: Tally, folder: Path, n_each: int) -> None:
    """Change the codes of a store under runs of each method, and under networks, so many times."""
    names, *rows = table(folder, 120, 200).read_text().splitlines()
    must("ingest", folder / "t.csv", folder / "whole.zarr")
    (folder / "o.csv").write_text("\n".join([names, *rows[::-1]]) + "\n")
    must("ingest", folder / "o.csv", folder / "other.zarr")
    store, run, edges = folder / "t.zarr", folder / "t.run", folder / "e.csv"
    made = (run, edges, folder / "e.csv.network")
    begin = ("--threads", 1)
    for name, options in METHODS.items():
        words: Words = ("run", store, "--out", run, *begin, *options)
        _attack(tally, f"run {name}", words, (partial(result_of, run), run), made, n_each)
    for name, options in NETWORKS.items():
        words = ("network", store, "--out", edges, *begin, *options)
        _attack(tally, f"network {name}", words, (partial(digest, edges), made[2]), made, n_each)


def _attack(
    tally: Tally,
    name: str,
    words: Words,
    result: tuple[Callable[[], str], Path],
    made: tuple[Path, ...],
    n_each: int,
) -> None:
    left = [(way, i) for way in WAYS for i in tally.left(f"{way}, {name}", n_each)]
    if not left:
        return
    (answer, ledger), folder = result, made[0].parent
    _renew(folder, made)
    begun = time.monotonic()
    must(*words)
    seconds, right = time.monotonic() - begun, answer()
    for way, i in left:
        with tally.attack(f"{way}, {name}", i) as random:
            _renew(folder, made)
            done, was_at_work = _disturbed(random, WAYS[way], words, ledger, seconds)
            tally.add(f"{way} while a command works: {name}", was_at_work)
            tally.add("of these, refused", bool(done.status))
            wrong = unclear(done)
            if not wrong and done.status:
                for file in _codes(folder / "whole.zarr"):
                    _over(random, folder / "t.zarr" / file, folder / "whole.zarr" / file)
                must("verify", folder / "t.zarr")
                must(*words)  # goes on from what was committed
            if not wrong and answer() != right:
                wrong = f"another result, after status {done.status}"
            if wrong:
                tally.breaks.append(f"{way} {i}, {name}: {wrong}")


def _renew(folder: Path, made: tuple[Path, ...]) -> None:
    for path in (*made, folder / "t.zarr"):
        fresh(path)
    shutil.copytree(folder / "whole.zarr", folder / "t.zarr")


def _codes(store: Path) -> list[Path]:
    return sorted(f.relative_to(store) for f in (store / "codes" / "c").rglob("*") if f.is_file())


def _disturbed(
    random: Random, way: Way, words: Words, ledger: Path, seconds: float
) -> tuple[Done, bool]:
    """Change codes at a random moment once a command has made its ledger; return how it ended.

    And whether it was at work then. Codes changed before the store is opened are its codes.
    """
    folder, was_at_work = ledger.parent, True

    def change(pid: int) -> None:
        nonlocal was_at_work
        while not ledger.exists() and is_at_work(pid):
            time.sleep(0.001)
        time.sleep(random.uniform(0, seconds))
        was_at_work = is_at_work(pid)
        for file in _codes(folder / "whole.zarr"):
            way(random, folder / "t.zarr" / file, folder / "other.zarr" / file)

    return finish(*words, before=commit_often, meanwhile=change), was_at_work
