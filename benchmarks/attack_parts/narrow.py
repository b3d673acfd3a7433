"""Narrow places: limits on the size and the number of files, and disks that are full."""

import os
import resource
import signal
import subprocess
from functools import partial
from pathlib import Path

from attack_parts.forks import Words, finish
from attack_parts.ground import Tally, digest, fresh, lasting, left_behind, must, unclear
from attack_parts.place_commands import growers, mount, writers

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
