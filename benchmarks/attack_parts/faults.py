"""Damaged files: the undisturbed answer or one message, from every command that reads."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from attack_parts.forks import Words, finish, kill_after
from attack_parts.ground import (
    METHODS,
    NETWORKS,
    Tally,
    digest,
    fresh,
    lasting,
    must,
    random_of,
    table,
    unclear,
)

BLOCK = 4096


def damage(random: Random, place: Path) -> tuple[Path, str]:
    """Damage one file under ``place``; return its path in there, and what was done."""
    files = [file for file in sorted(place.rglob("*")) if file.is_file() and file.stat().st_size]
    file = random.choice(files)
    name = random.choice(sorted(WAYS))
    at = WAYS[name](random, file)
    return file.relative_to(place), f"{name} {file.relative_to(place)} at {at}"


def _flip(random: Random, file: Path) -> int:
    data = bytearray(file.read_bytes())
    at = random.randrange(len(data))
    data[at] ^= 1 << random.randrange(8)
    file.write_bytes(data)
    return at


def _cut(random: Random, file: Path) -> int:
    data = file.read_bytes()
    at = random.randrange(len(data))
    file.write_bytes(data[:at])
    return at


def _remove(_: Random, file: Path) -> int:
    file.unlink()
    return 0


def _zero(random: Random, file: Path) -> int:
    data = bytearray(file.read_bytes())
    at = random.randrange(len(data)) // BLOCK * BLOCK
    end = min(at + BLOCK, len(data))
    data[at:end] = bytes(end - at)
    file.write_bytes(data)
    return at


def _misplace(random: Random, file: Path) -> int:
    """Write one block of the file over another, as a disk does that writes to the wrong place."""
    data = bytearray(file.read_bytes())
    n_blocks = -(-len(data) // BLOCK)
    source, at = (random.randrange(n_blocks) * BLOCK for _ in range(2))
    copied = data[source : source + BLOCK][: len(data) - at]
    data[at : at + len(copied)] = copied
    file.write_bytes(data)
    return at


def _append(random: Random, file: Path) -> int:
    n_bytes = file.stat().st_size
    with file.open("ab") as opened:
        opened.write(random.randbytes(random.choice((1, 100, BLOCK))))
    return n_bytes


def _exchange(random: Random, file: Path) -> int:
    """Put another file of the same folder in its place."""
    others = [f for f in sorted(file.parent.iterdir()) if f.is_file()]
    file.write_bytes(random.choice(others).read_bytes())
    return 0


WAYS: dict[str, Callable[[Random, Path], int]] = {
    "flip": _flip,
    "flip a bit": _flip,
    "cut": _cut,
    "remove": _remove,
    "zero a block": _zero,
    "misplace a block": _misplace,
    "append": _append,
    "exchange": _exchange,
}


READS_CODES = {"run", "scores", "predict", "report", "compact", "sensitivity", "network", "export"}
"""Commands that read codes of a store, which are compared with their checksums by `verify` only."""

TRIES = 300

ENLARGED = {"tests": 500, "trees": 400}
"""Iterations that a finished run is resumed with, after damage."""


@dataclass(frozen=True)
class Thing:
    """What is damaged, and the commands that read it.

    Attributes
    ----------
    place : Path
        The folder; a copy of it stands at ``copy`` when commands run.
    commands : sequence of Words
        In the order in which they run.
    outs : tuple of Path
        What they write.
    is_store : bool
        Whether any damage must be found by ``verify``.
    before : str
        What `features` says of a finished run that is resumed with more iterations.
    """

    place: Path
    copy: Path
    commands: Sequence[Words]
    outs: tuple[Path, ...]
    is_store: bool = False
    before: str = ""


def faults(tally: Tally, folder: Path, n_each: int) -> None:
    """Damage a store, runs of each method, finished and killed, and networks so many times."""
    store = folder / "t.zarr"
    must("ingest", table(folder), store)
    for name in METHODS:
        for state in ("finished", "killed", "resumed", "enlarged"):
            thing = f"{state} {name}"
            if state != "enlarged" or name in ENLARGED:
                _attack(tally, thing, partial(_run, folder, store, name, state), n_each)
    for name in NETWORKS:
        _attack(tally, f"network {name}", partial(_network, folder, name), n_each)
    _attack(tally, "store", partial(_store, folder, store), 3 * n_each)


def _run(folder: Path, store: Path, name: str, state: str) -> Thing:
    kept, run = folder / f"{name}.kept", folder / f"{name}.run"
    words: Words = ("run", store, "--out", run, "--threads", 1, *METHODS[name])
    fresh(run)  # else it goes on with what was damaged last, or is done at once
    if state in ("killed", "resumed"):
        _killed(words, run)
    else:
        must(*words)
        if name == "tests":
            must("compact", run, "--folds", 2, "--threads", 1)
    shutil.copytree(run, fresh(kept))
    commands, outs = _of_run(folder, run, name, state)
    before = must("features", run, "--csv") if state == "enlarged" else ""
    return Thing(kept, run, commands, outs, before=before)


def _killed(words: Words, run: Path) -> None:
    """Have a run that was killed between commits, with what it leaves beside its ledger."""
    begin = time.monotonic()
    must(*words)
    seconds, random = time.monotonic() - begin, random_of(0, str(run.name))
    for _ in range(TRIES):
        fresh(run)
        kill_after(words, random.uniform(0.02, seconds))
        log = run / "ledger.sqlite-wal"
        if log.exists() and log.stat().st_size and not _is_finished(run):
            return
    raise RuntimeError(f"{run.name}: no kill left it between commits")


def _is_finished(run: Path) -> bool:
    """Ask a copy, since whoever reads a run may tidy up behind it."""
    copy = run.with_suffix(".asked")
    shutil.copytree(run, fresh(copy))
    done = finish("status", copy, "--json")
    return bool(done.status) or '"state": "finished"' in done.out


def _of_run(
    folder: Path, run: Path, name: str, state: str
) -> tuple[Sequence[Words], tuple[Path, ...]]:
    store, out, small = folder / "t.zarr", folder / "out.csv", folder / "out.zarr"
    page = folder / "out.json"
    if state in ("resumed", "enlarged"):
        more = ("--iterations", ENLARGED[name]) if state == "enlarged" else ()
        resume = ("resume", run, "--threads", 1, *more)
        return [resume, ("features", run, "--csv"), ("verify", run)], (out,)
    commands: list[Words] = [
        ("status", run, "--json"),
        ("features", run, "--csv"),
        ("verify", run),
        ("export", store, run, out, "--top", 5),
        ("report", run, "-o", page, "--overwrite"),
    ]
    if name == "trees":
        commands += [("predict", run, folder / "t.csv", out), ("sensitivity", run, "--csv")]
    if state == "finished":
        commands += [
            ("features", run),
            ("compare", run, run),
            ("export", store, run, small, "--top", 5),
        ]
        if name == "tests":
            commands.append(("compact", run, "--folds", 2, "--threads", 1, "--csv"))
    commands += [("resume", run, "--threads", 1), ("features", run, "--csv")]
    return commands, (out, small, page)


def _network(folder: Path, name: str) -> Thing:
    narrow, out = folder / "narrow.zarr", folder / "e.csv"
    if not narrow.exists():
        must("ingest", table(folder, 60, 40, "narrow.csv"), narrow)
    kept, run = folder / f"{name}.network", folder / "e.csv.network"
    words: Words = ("network", narrow, "--out", out, "--threads", 1, *NETWORKS[name])
    fresh(out)
    fresh(run)
    must(*words)
    shutil.copytree(run, fresh(kept))
    return Thing(kept, run, [words, (*words, "--top", 50)], (out,))


def _store(folder: Path, store: Path) -> Thing:
    kept, run, out = folder / "t.kept", folder / "s.run", folder / "out.csv"
    small, other = folder / "out.zarr", folder / "other.run"
    options: Words = ("--judge", "probe", "--save-trees", "--bootstrap", "--threads", 1)
    must("run", store, "--out", run, "--iterations", 200, *options)
    shutil.copytree(store, fresh(kept))
    commands: list[Words] = [
        ("verify", store),
        ("inspect", store, "--json"),
        ("inspect", store),
        ("features", run, "--csv"),
        ("export", store, run, out, "--top", 20),
        ("export", store, run, small, "--top", 20),
        ("scores", store, "--csv"),
        ("scores", store, "--csv", "--with", "scores=norm"),
        ("predict", run, store, out),
        ("sensitivity", run, "--csv"),
        ("run", store, "--out", other, "--iterations", 30, "--threads", 1, "--json"),
        ("features", other, "--csv"),
        ("network", store, "--with", "trees=1", "--out", out, "--threads", 1),
    ]
    outs = (out, small, other, folder / "out.csv.network")
    return Thing(kept, store, commands, outs, is_store=True)


def _attack(tally: Tally, name: str, make: Callable[[], Thing], n_each: int) -> None:
    left = tally.left(name, n_each)
    if not left:
        return
    thing = make()
    right = [answer for _, answer in _all_of(thing)]
    if bad := [right[i] for i in (0, -1) if right[i].startswith(("!", "?"))]:
        raise RuntimeError(f"{name}, undisturbed: {bad}")
    if right != (again := [answer for _, answer in _all_of(thing)]):
        differ = [w for w, a, b in zip(thing.commands, right, again, strict=True) if a != b]
        raise RuntimeError(f"{name}: not the same twice: {differ}")
    for i in left:
        with tally.attack(name, i) as random:
            _damaged(tally, random, name, thing, right)


def _damaged(tally: Tally, random: Random, name: str, thing: Thing, right: list[str]) -> None:
    _renew(thing)
    file, what = damage(random, thing.copy)
    is_codes = thing.is_store and file.parts[:2] == ("codes", "c")
    is_changed = digest(thing.copy) != digest(thing.place)
    state, _, method = name.partition(" ")
    tally.add(f"damaged files of `{state}`: {method or 'all'}", is_changed)
    stopped = False
    for words, answer, expected in _disturbed(tally, thing, right):
        stopped |= words[0] == "resume" and answer.startswith("?")
        wrong = answer[1:] if answer.startswith("!") else ""
        if not wrong and not answer.startswith("?") and answer != expected:
            wrong = "another answer with exit status 0"
            if is_codes and words[0] in READS_CODES:
                tally.add("other answers from damaged codes, found by verify alone")
                wrong = ""
            elif stopped and words[0] == "features" and _is_as_stopped(answer, thing.before):
                tally.add("of these, `features` of a run that could not go on")
                wrong = ""
        if thing.is_store and words[0] == "verify" and is_changed and answer == expected:
            wrong = "damage is not found"
        if wrong:
            tally.breaks.append(f"{name}, {what}, {' '.join(map(str, words[:1]))}: {wrong}")


def _is_as_stopped(answer: str, before: str) -> bool:
    """Return whether what is said of a run that could not go on has the verdict before, or none."""
    return answer == before or ",true," not in answer


def _disturbed(tally: Tally, thing: Thing, right: list[str]) -> Sequence[tuple[Words, str, str]]:
    found = _all_of(thing, renews=False)
    tally.add("commands on damaged files", len(found))
    tally.add("of these, refused", sum(answer.startswith("?") for _, answer in found))
    return [(words, answer, best) for (words, answer), best in zip(found, right, strict=True)]


def _renew(thing: Thing) -> None:
    shutil.copytree(thing.place, fresh(thing.copy))


def _all_of(thing: Thing, *, renews: bool = True) -> list[tuple[Words, str]]:
    """Return each command's answer; "?" if it was refused, "!" and what it was for a bad end."""
    if renews:
        _renew(thing)
    found = []
    for words in thing.commands:
        for out in thing.outs if words[0] != "features" else ():
            fresh(out)
        done = finish(*words)
        wrong = unclear(done)
        if wrong:
            answer = f"!{wrong}"
        elif done.status:
            answer = f"?{done.err}"
        elif words[0] == "features":
            answer = done.out
        else:
            answer = lasting(done.out) + "".join(map(digest, thing.outs[:2]))
            answer += "".join(lasting(o.read_text()) for o in thing.outs[2:] if o.is_file())
        found.append((words, answer))
    return found
