"""Ways to damage one file of a folder, as disks, copies and people do."""

from collections.abc import Callable
from pathlib import Path
from random import Random

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
