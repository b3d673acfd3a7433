"""Places that refuse.

Folders and files without permission, read-only mounts, disks that are full, limits on files,
closed and full streams.
"""

import ctypes
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

from attack_parts.forks import Done, Words, commit_often, finish, kill_after
from attack_parts.ground import (
    METHODS,
    NETWORKS,
    Tally,
    digest,
    fresh,
    lasting,
    left_behind,
    must,
    random_of,
    table,
    unclear,
)


def readers(folder: Path) -> Sequence[Words]:
    """Return commands that make nothing."""
    store, run, trees = folder / "t.zarr", folder / "t.run", folder / "saved.run"
    return [
        ("features", run, "--csv"),
        ("features", run, "--why", "f0"),
        ("status", run),
        ("status", run, "--json"),
        ("inspect", store),
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
    network = ("network", store, "--out", out / "e.csv", "--with", "trees=2", "--threads", 1)
    return [(words, out / name) for words, name in [*of_run, (network, "e.csv.network")]]


def mount(*words: str | Path) -> bool:
    """Call ``mount``; return whether it did."""
    return (
        subprocess.run(["mount", *map(str, words)], capture_output=True, check=False).returncode
        == 0
    )


DISK_KB = 8192
DAY = 86_400


def _limit_files(n_bytes: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


def _limit_descriptors(n: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))


def limits(tally: Tally, words: Words, out: Path, n_each: int) -> None:
    """Let no file be larger than a limit, from small to enough; and few be open."""
    expected = _undisturbed(words, out)
    for i in range(n_each):
        fresh(out)
        limit = int(500 * 1.5**i)
        done = finish(*words, before=partial(_limit_files, limit))
        tally.add("limits on the size of files")
        _judge(tally, f"files of {limit}", words, out, done.status, unclear(done), expected)
    for n in range(5, 5 + n_each):
        fresh(out)
        done = finish(*words, before=partial(_limit_descriptors, n))
        tally.add("limits on open files")
        _judge(tally, f"{n} open files", words, out, done.status, unclear(done), expected)


def _undisturbed(words: Words, out: Path) -> str:
    fresh(out)
    must(*words)
    return _answer(words, out)


def _answer(words: Words, out: Path) -> str:
    """Return what a command came to; of what goes on, what it says when it is asked again."""
    if words[0] == "run":
        return must("features", out, "--csv") + digest(out / "trees.bin")
    if words[0] == "network":
        edges = digest(out.with_suffix(""))
        fresh(out.with_suffix(""))
        return edges
    return (
        lasting(out.read_text())
        if out.suffix == ".json"
        else ""
        if out.suffix == ".html"
        else digest(out)
    )


def _judge(
    tally: Tally, where: str, words: Words, out: Path, status: int | None, wrong: str, expected: str
) -> None:
    """Compare what a command came to in a narrow place; go on with what it left, with room."""
    grows = words[0] in ("run", "network")
    if not wrong and status and not grows and out.exists():
        wrong = "left behind"
    if not wrong and status and (left := left_behind(out.parent)) and not grows:
        wrong = f"left behind: {left}"
    if not wrong and status and grows:
        after = finish(*words)
        wrong = unclear(after) or (f"cannot go on: {after.err[:200]}" if after.status else "")
        status = after.status
    if not wrong and not status and _answer(words, out) != expected:
        wrong = "another result"
    if wrong:
        name = words[0] if words[0] != "export" and words[0] != "run" else f"{words[0]} {out.name}"
        tally.breaks.append(f"{where}, {name}: {wrong}")


def full_disk(tally: Tally, words: Words, out: Path, n_each: int) -> None:
    """Have a small disk with less and less room."""
    if not mount("-t", "tmpfs", "-o", f"size={DISK_KB}k", "none", out.parent):
        return
    try:
        expected = _undisturbed(words, out)
        for i in range(n_each):
            fresh(out)
            free_kb = int(4 * 1.4**i)
            ballast = out.parent / "ballast"
            _fill(ballast, free_kb)
            done = finish(*words)
            ballast.unlink()
            tally.add("disks that are full")
            where = f"{free_kb} KB of disk"
            _judge(tally, where, words, out, done.status, unclear(done), expected)
    finally:
        subprocess.run(["umount", "-l", str(out.parent)], check=True, capture_output=True)


def _fill(ballast: Path, free_kb: int) -> None:
    place = os.statvfs(ballast.parent)
    n_bytes = place.f_bavail * place.f_frsize - free_kb * 1024
    with ballast.open("wb") as file:
        if n_bytes > 0:
            os.posix_fallocate(file.fileno(), 0, n_bytes)


CAPABILITY_VERSION = 0x20080522
DAC_OVERRIDES = 0b110
"""To read and write whatever the permissions are, as a bit set of capabilities."""
CLONE_NEWNS = 0x20000


def places(tally: Tally, folder: Path, n_each: int) -> None:
    """Read where nothing may be written, write where little fits, under a clock that goes back."""
    _ground(folder)
    outside = _empty(folder.with_name(folder.name + "-out"))
    try:
        has_mounts = _has_own_mounts()
        once: dict[str, Callable[[], None]] = {
            "permissions": partial(_permissions, tally, folder, outside),
            "streams": partial(_streams, tally, folder),
        }
        of_each = {"limits": limits, "clock": _clock}
        if has_mounts:
            once["read-only mount"] = partial(_read_only_mount, tally, folder, outside)
            of_each["full disk"] = full_disk
        else:
            print("no mounts here: read-only mounts and full disks not tried")
        for name, attack in once.items():
            if tally.left(name):
                with tally.attack(name):
                    attack()
                _empty(outside)
        _unreadable(tally, folder, n_each)
        for name, one in of_each.items():
            for words, out in [*writers(folder, outside), *growers(folder, outside)]:
                if tally.left(thing := f"{name}, {words[0]} {out.name}"):
                    with tally.attack(thing):
                        one(tally, words, out, n_each)
                    _empty(outside)
    finally:
        shutil.rmtree(outside, ignore_errors=True)


def _ground(folder: Path) -> None:
    store, trees = folder / "t.zarr", folder / "saved.run"
    source = table(folder)
    must("ingest", source, store)
    must("run", store, "--out", folder / "t.run", "--threads", 1, *METHODS["tests"])
    must("run", store, "--out", trees, "--threads", 1, *METHODS["trees"])
    must("predict", trees, source, folder / "warm.csv")  # notes thresholds with the run


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    return folder


def _clock(tally: Tally, words: Words, out: Path, n_each: int) -> None:
    """Set the clock back each time it is read, stop the work, and go on a day before."""
    expected = _undisturbed(words, out)
    random = random_of(tally.seed, f"clock {out.name}")
    for _ in range(-(-n_each // 4)):
        fresh(out)
        if words[0] in ("run", "network"):
            kill_after(words, random.uniform(0.05, 0.6), partial(_go_back, 0))
        for file in [f for f in out.parent.rglob("*") if f.is_file()]:
            os.utime(file, (time.time() + DAY,) * 2)
        done = finish(*words, before=partial(_go_back, DAY))
        tally.add("clocks that go back")
        _judge(tally, "clock", words, out, done.status, unclear(done), expected)
        if done.status:
            tally.breaks.append(f"clock, {words[0]} {out.name}: {done.status} {done.err[-200:]}")


def _go_back(seconds: float) -> None:
    """Set the clock of this process back, an hour more each time it is read."""
    now, n_read = time.time() - seconds, count()
    time.time = lambda: now - 3600 * next(n_read)
    time.time_ns = lambda: int(1e9 * time.time())
    commit_often()


def _has_own_mounts() -> bool:
    """Have this process mount what nobody else sees, where it may."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() or libc.unshare(CLONE_NEWNS):
        return False
    return mount("--make-rprivate", "/")


def _obeys() -> None:
    """Take from this process what lets root read and write without permission."""
    libc = ctypes.CDLL(None, use_errno=True)
    head = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    held = (ctypes.c_uint32 * 6)()
    if libc.capget(head, held):
        raise OSError(ctypes.get_errno(), "capget")
    for i in range(3):  # effective, permitted, inheritable
        held[i] &= ~DAC_OVERRIDES
    if libc.capset(head, held):
        raise OSError(ctypes.get_errno(), "capset")


def _chmod_all(folder: Path, *, writable: bool) -> None:
    for path in [folder, *folder.rglob("*")]:
        mode = 0o755 if path.is_dir() else 0o644
        path.chmod(mode if writable else mode & 0o555)


def _permissions(tally: Tally, folder: Path, outside: Path) -> None:
    """Run every command as one who may read, and write nowhere but outside."""
    right = _commands(folder, outside)
    _chmod_all(folder, writable=False)
    try:
        _only_outside(tally, "permissions", folder, right, _obeys)
    finally:
        _chmod_all(folder, writable=True)


def _commands(folder: Path, outside: Path) -> dict[Words, str]:
    """Return commands that write nowhere but outside, and what each says; nothing is left there."""
    commands = [*readers(folder), *(words for words, _ in writers(folder, outside))]
    right = {words: _said(words, must(*words)) for words in commands}
    for _, out in writers(folder, outside):
        fresh(out)
    return right


def _only_outside(
    tally: Tally,
    where: str,
    folder: Path,
    right: dict[Words, str],
    before: Callable[[], None] | None,
) -> None:
    """Run commands in a folder that nothing can be written into, and those that would."""
    for words, expected in right.items():
        done = finish(*words, before=before)
        tally.add(f"commands that write outside: {where}")
        if done.status or _said(words, done.out) != expected:
            what = f"{done.status} {done.err.strip()[:300]}"
            tally.breaks.append(f"{where}, {words[0]}: {what}")
    for words, out in [*writers(folder, folder), *growers(folder, folder)]:
        _refused(tally, where, words, out, before)


def _said(words: Words, printed: str) -> str:
    """Return what a command said, without what is measured anew each time."""
    return "" if words[0] == "plan" else lasting(printed)


def _refused(
    tally: Tally, where: str, words: Words, out: Path, before: Callable[[], None] | None
) -> None:
    done = finish(*words, before=before)
    tally.add(f"commands refused: {where}")
    wrong = unclear(done) or ("" if done.status else "did not fail")
    if wrong or out.exists():
        tally.breaks.append(f"{where}, {words[0]} into it: {wrong or 'left behind'}")


def _unreadable(tally: Tally, folder: Path, n_each: int) -> None:
    """Take from one file or folder after another the permission to read it."""
    left = tally.left("unreadable", n_each)
    commands = [words for words in readers(folder) if words[0] != "runs"] if left else []
    right = {words: _said(words, must(*words)) for words in commands}
    names = ("t.zarr", "t.run", "saved.run")
    paths = sorted(p for name in names for p in (folder / name).rglob("*"))
    for i in left:
        with tally.attack("unreadable", i) as random:
            path = random.choice(paths)
            mode = path.stat().st_mode
            path.chmod(0)
            for words in commands:
                done = finish(*words, before=_obeys)
                tally.add("commands where something cannot be read")
                wrong = unclear(done)
                if not wrong and not done.status and _said(words, done.out) != right[words]:
                    wrong = "another answer with exit status 0"
                if wrong:
                    what = path.relative_to(folder)
                    tally.breaks.append(f"{what} unreadable, {words[0]}: {wrong}")
            path.chmod(mode)


def _read_only_mount(tally: Tally, folder: Path, outside: Path) -> None:
    right, where = _commands(folder, outside), "a read-only mount"
    if not (mount("--bind", folder, folder) and mount("-o", "remount,bind,ro", folder)):
        return
    try:
        _only_outside(tally, where, folder, right, None)
        _refused(tally, where, ("resume", folder / "t.run", "--iterations", 900), folder / "none",
                 None)  # fmt: skip
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


def _closed(numbers: tuple[int, ...]) -> None:
    """As Python starts where they are closed."""
    for number in numbers:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)


def _to_full(number: int) -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), number)


def _streams(tally: Tally, folder: Path) -> None:
    """Close the standard streams, or send them where nothing fits."""
    ways: dict[str, Callable[[], None]] = {
        "no input": partial(_closed, (0,)),
        "no output": partial(_closed, (1,)),
        "no errors": partial(_closed, (2,)),
        "none": partial(_closed, (0, 1, 2)),
        "full output": partial(_to_full, 1),
        "full errors": partial(_to_full, 2),
    }
    for words in readers(folder):
        right = _said(words, must(*words))
        for name, before in ways.items():
            done = finish(*words, before=before)
            tally.add("closed and full streams")
            wrong = unclear(done)
            if "errors" in name or name == "none":
                wrong = "" if done.status in (0, 2) else wrong
            if not wrong and name in ("no input", "no errors", "full errors"):
                wrong = (
                    "" if _said(words, done.out) == right and not done.status else "another answer"
                )
            if not wrong and name == "full output" and done.status != 2:
                wrong = "did not say that nothing was written"
            if wrong:
                tally.breaks.append(f"{name}, {words[0]}: {wrong}")


FAULTS = ("503", "cut", "reset", "slow", "whole")
SHARES = (0.02, 0.1, 0.3, 0.7)
"""Shares of the requests that fail."""


def servers(tally: Tally, folder: Path, n_each: int) -> None:
    """Read a store at a web server that fails, and one that is changed meanwhile."""
    served, other = folder / "served", folder / "other"
    for path in (served, other):
        path.mkdir()
    _ground(folder)
    names, *rows = table(other).read_text().splitlines()
    (other / "t.csv").write_text("\n".join([names, *rows[::-1]]) + "\n")
    must("ingest", other / "t.csv", other / "t.zarr")
    os.environ["SRS_OOC_CACHE_DIR"] = str(folder / "cache")
    _point(served, folder / "t.zarr")
    pid, url = _serve(served)
    try:
        for name, words, out in _of_servers(folder, url):
            _attack_served(tally, name, words, out, n_each)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _serve(folder: Path) -> tuple[int, str]:
    """Start the tests' server in a process of its own; ``share`` beside the folder says how bad."""
    sys.path.append(str(Path(__file__).parents[2] / "tests"))
    server = importlib.import_module("helpers.object_server").ObjectServer(folder)
    random, share = random_of(0, "server"), folder.with_name("share")

    def fault(*_: object) -> str | None:
        fails = share.exists() and random.random() < float(share.read_text() or 0)
        return random.choice(FAULTS) if fails else None

    server.fault = fault
    pid = os.fork()
    if not pid:
        server.serve_forever()
    return pid, server.url


def _point(served: Path, store: Path) -> None:
    """Have the server show a store, from one moment to the next."""
    link = served / "next"
    link.symlink_to(store)
    link.replace(served / "t.zarr")


def _of_servers(folder: Path, url: str) -> Sequence[tuple[str, Words, Path]]:
    """Return commands on the store at a server, and what they make."""
    store, run, edges = f"{url}/t.zarr", folder / "served.run", folder / "served.csv"
    methods = ("tests", "trees", "less", "prs", "rase")
    made: list[tuple[str, Words, Path]] = [
        (f"run {name}", ("run", store, "--out", run, "--threads", 1, *METHODS[name]), run)
        for name in methods
    ]
    words = ("network", store, "--out", edges, "--threads", 1)
    made += [(f"network {n}", (*words, *options), edges) for n, options in NETWORKS.items()]
    return [
        *made,
        ("export", ("export", store, folder / "t.run", edges, "--top", 20), edges),
        ("predict", ("predict", folder / "saved.run", store, edges), edges),
        ("scores", ("scores", store, "--csv"), edges),
        ("verify", ("verify", store), edges),
    ]


def _attack_served(tally: Tally, name: str, words: Words, out: Path, n_each: int) -> None:
    folder = out.parent
    ways: dict[str, Callable[[Random, Words, Path, float], Done]] = {
        "failing": _failing, "changed": _changed,
    }  # fmt: skip
    left = {way: tally.left(f"{way}, {name}", n_each) for way in ways}
    if not any(left.values()):
        return
    made = (out, folder / "served.csv.network", folder / "cache")
    begun = time.monotonic()
    right = [_whole(words, out, place, *made) for place in (folder / "other", folder)]
    seconds = (time.monotonic() - begun) / 2
    for way, attack in ways.items():
        for i in left[way]:
            with tally.attack(f"{way}, {name}", i) as random:
                for path in made:
                    fresh(path)
                done = attack(random, words, folder, seconds)
                tally.add(f"stores at a server that is {way}: {name}")
                tally.add("of these, refused", bool(done.status))
                wrong = unclear(done)
                if not wrong and done.status:  # goes on with the store with which it began
                    found = [_whole(words, out, place) for place in (folder, folder / "other")]
                    is_right = right[1] in found or right[0] in found
                    wrong = (
                        "" if is_right else f"then {done.err[-200:]}{[one[-300:] for one in found]}"
                    )
                elif not wrong and _of_served(words, out, done) not in right:
                    wrong = "another result with status 0"
                if wrong:
                    tally.breaks.append(f"{way} server {i}, {name}: {wrong}")


def _whole(words: Words, out: Path, place: Path, *made: Path) -> str:
    """Return what a command comes to on the store of a place; what it says if it is refused."""
    for path in made:  # else it goes on, with what was kept of the store
        fresh(path)
    _point(out.parent / "served", place / "t.zarr")
    try:
        done = finish(*words)
        return done.err if done.status else _of_served(words, out, done)
    finally:
        _point(out.parent / "served", out.parent / "t.zarr")


def _of_served(words: Words, out: Path, done: Done) -> str:
    if words[0] == "run":
        stores = [place / "t.zarr" for place in (out.parent, out.parent / "other")]
        read = [finish("features", out, "--csv", "--store", store) for store in stores]
        return "".join(one.out for one in read if not one.status) + digest(out / "trees.bin")
    return digest(out) + (lasting(done.out) if words[0] in ("scores", "verify") else "")


def _impatient() -> None:
    commit_often()
    vars(sys.modules["srs_ooc.store.objects"]).update(
        FIRST_WAIT=0.005, LONGEST_WAIT=0.02, TIMEOUT=2.0
    )


def _failing(random: Random, words: Words, folder: Path, _: float) -> Done:
    """Let a share of the requests fail: refused, cut half-way, reset, in drops, all of a file."""
    share = folder / "share"
    share.write_text(str(random.choice(SHARES)))
    try:
        return finish(*words, before=_impatient)
    finally:
        share.unlink()


def _changed(random: Random, words: Words, folder: Path, seconds: float) -> Done:
    """Put another store of the same names at the same URL while a command reads it."""
    moment, pid = random.uniform(0, seconds), os.fork()
    if not pid:
        time.sleep(moment)
        _point(folder / "served", folder / "other" / "t.zarr")
        os._exit(0)
    done = finish(*words, before=_impatient)
    os.waitpid(pid, 0)
    _point(folder / "served", folder / "t.zarr")
    return done
