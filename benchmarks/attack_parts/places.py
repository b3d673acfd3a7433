"""Places that refuse.

Folders and files without permission, read-only mounts, disks that are full, limits on files,
closed and full streams.
"""

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from attack_parts.forks import Words, finish
from attack_parts.ground import (
    METHODS,
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


DISK_KB = 8192


def _limit_files(n_bytes: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


def _limit_descriptors(n: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))


def limits(tally: Tally, folder: Path, outside: Path, n_each: int) -> None:
    """Let no file be larger than a limit, from small to enough; and few be open."""
    for words, out in [*writers(folder, outside), *growers(folder, outside)]:
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


def full_disk(tally: Tally, folder: Path, outside: Path, n_each: int) -> None:
    """Have a small disk with less and less room."""
    if not mount("-t", "tmpfs", "-o", f"size={DISK_KB}k", "none", outside):
        return
    try:
        for words, out in [*writers(folder, outside), *growers(folder, outside)]:
            expected = _undisturbed(words, out)
            for i in range(n_each):
                fresh(out)
                free_kb = int(4 * 1.4**i)
                ballast = outside / "ballast"
                _fill(ballast, free_kb)
                done = finish(*words)
                ballast.unlink()
                tally.add("disks that are full")
                where = f"{free_kb} KB of disk"
                _judge(tally, where, words, out, done.status, unclear(done), expected)
            fresh(out)
    finally:
        subprocess.run(["umount", "-l", str(outside)], check=True, capture_output=True)


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


def places(tally: Tally, folder: Path, n_each: int, seed: int) -> None:
    """Read where nothing may be written, and write where little fits."""
    store, run, trees = folder / "t.zarr", folder / "t.run", folder / "saved.run"
    source = table(folder)
    must("ingest", source, store)
    must("run", store, "--out", run, "--threads", 1, *METHODS["decoys"])
    must("run", store, "--out", trees, "--threads", 1, *METHODS["trees"])
    must("predict", trees, source, folder / "warm.csv")  # notes thresholds with the run
    outside = folder.with_name(folder.name + "-out")
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    try:
        mounts = _has_own_mounts()
        attacks: dict[str, Callable[[], None]] = {
            "permissions": lambda: _permissions(tally, folder, outside),
            "unreadable": lambda: _unreadable(tally, folder, n_each, seed),
            "streams": lambda: _streams(tally, folder),
            "limits": lambda: limits(tally, folder, outside, n_each),
        }
        if mounts:
            attacks["read-only mount"] = lambda: _read_only_mount(tally, folder, outside)
            attacks["full disk"] = lambda: full_disk(tally, folder, outside, n_each)
        else:
            tally.add("no mounts here: read-only mounts and full disks not tried", 0)
        for name, attack in attacks.items():
            if tally.asks_for(name):
                attack()
    finally:
        shutil.rmtree(outside, ignore_errors=True)


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
    commands = [*readers(folder), *(words for words, _ in writers(folder, outside))]
    right = {words: _said(words, must(*words)) for words in commands}
    for _, out in writers(folder, outside):
        fresh(out)
    _chmod_all(folder, writable=False)
    try:
        for words in commands:
            done = finish(*words, before=_obeys)
            tally.add("commands of one who may not write there")
            if done.status or _said(words, done.out) != right[words]:
                what = f"{done.status} {done.err.strip()[:300]}"
                tally.breaks.append(f"permissions, {words[0]}: {what}")
        for words, out in [*writers(folder, folder), *growers(folder, folder)]:
            _refused(tally, "permissions", words, out, _obeys)
    finally:
        _chmod_all(folder, writable=True)


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


def _unreadable(tally: Tally, folder: Path, n_each: int, seed: int) -> None:
    """Take from one file or folder after another the permission to read it."""
    commands = [words for words in readers(folder) if words[0] != "runs"]
    right = {words: _said(words, must(*words)) for words in commands}
    paths = [p for name in ("t.zarr", "t.run", "saved.run") for p in (folder / name).rglob("*")]
    random = random_of(seed, "unreadable")
    for path in random.sample(paths, min(n_each, len(paths))):
        mode = path.stat().st_mode
        path.chmod(0)
        tally.add("files and folders without permission to read")
        for words in commands:
            done = finish(*words, before=_obeys)
            tally.add("commands where something cannot be read")
            wrong = unclear(done)
            if not wrong and not done.status and _said(words, done.out) != right[words]:
                wrong = "another answer with exit status 0"
            if wrong:
                tally.breaks.append(f"{path.relative_to(folder)} unreadable, {words[0]}: {wrong}")
        path.chmod(mode)


def _read_only_mount(tally: Tally, folder: Path, outside: Path) -> None:
    commands = [*readers(folder), *(words for words, _ in writers(folder, outside))]
    right = {words: _said(words, must(*words)) for words in commands}
    for _, out in writers(folder, outside):
        fresh(out)
    if not (mount("--bind", folder, folder) and mount("-o", "remount,bind,ro", folder)):
        return
    try:
        for words in commands:
            done = finish(*words)
            tally.add("commands on a read-only mount")
            if done.status or _said(words, done.out) != right[words]:
                tally.breaks.append(f"read-only mount, {words[0]}: {done.status} {done.err[:300]}")
        for words, out in [*writers(folder, folder), *growers(folder, folder)]:
            _refused(tally, "a read-only mount", words, out, None)
        _refused(tally, "a read-only mount", ("resume", folder / "t.run", "--iterations", 900),
                 folder / "none", None)  # fmt: skip
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
