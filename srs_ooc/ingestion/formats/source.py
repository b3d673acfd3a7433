"""Where a table is read from: a file under its own name, or a scratch copy of standard input."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from srs_ooc.base.errors import InputError

_PIECE_NBYTES = 1 << 18


@dataclass(frozen=True)
class SourceFile:
    """A file to read, and what to call it in messages and in the manifest.

    Attributes
    ----------
    path : Path
        The file.
    shown : str
        Its name for messages.
    name : str
        Its name for the manifest.
    stamp : os.stat_result or None
        What the system knew of the file when it was named; None if there was none.
    """

    path: Path
    shown: str
    name: str
    stamp: os.stat_result | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stamp", _stamp_of(self.path))

    def __str__(self) -> str:
        return self.shown

    @classmethod
    def file(cls, path: Path) -> "SourceFile":
        """Return a file under its own name."""
        return cls(path, str(path), path.name)

    def check_unchanged(self) -> None:
        """Refuse a file that was written to, replaced or removed since it was named.

        Raises
        ------
        InputError
            Naming it.
        """
        before, now = self.stamp, _stamp_of(self.path)
        if before is None or now is None:
            changed = before is not now
        else:
            keys = ("st_dev", "st_ino", "st_size", "st_mtime_ns")
            changed = any(getattr(before, key) != getattr(now, key) for key in keys)
        if changed:
            raise InputError(
                f"{self}: expected a file that stays as it is while it is read, found that it was "
                "written to, replaced or removed. Ingest it again once it is complete, or a copy."
            )


def settle_source(path: Path, scratch: Path) -> SourceFile:
    """Return ``path`` as a source; of ``-``, a copy of standard input in the folder ``scratch``.

    A table is read more than once (its first megabyte, its rows, and, under a tight cap, all of it
    once more to count the rows), which standard input cannot be.
    """
    if str(path) != "-":
        return SourceFile.file(path)
    copy = scratch / "standard-input"
    with copy.open("wb") as file:
        while data := sys.stdin.buffer.read(_PIECE_NBYTES):
            file.write(data)
    return SourceFile(copy, "standard input", "-")


def _stamp_of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None  # whoever reads it says what is wrong
