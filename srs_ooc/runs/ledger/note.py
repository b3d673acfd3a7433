"""How far a ledger was committed, noted outside of it.

A database whose write-ahead log is lost or damaged goes back to an earlier commit without an error.
So commits are counted in the ledger, and a small file beside it says how many there were. It is
written once a commit is safe on disk, and so may lag behind the ledger, but never be ahead of it.

The file has two slots of one disk sector each, written in turn, and each is one line of JSON with a
checksum: a write that is cut short spoils one of them, and the other is the note before.
"""

import json
import os
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote

from srs_ooc.base.errors import RunError

NOTE_FILE = "committed.json"
_SLOT_NBYTES = 512
_N_SLOTS = 2
_sync = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True)
class Noted:
    """Commits there were, and the iteration that the run then stood at."""

    commits: int
    iteration: int

    def line(self) -> bytes:
        """Return the content of a slot."""
        record = asdict(self) | {"crc": self._crc()}
        return json.dumps(record).encode().ljust(_SLOT_NBYTES - 1) + b"\n"

    @staticmethod
    def from_line(line: bytes) -> "Noted | None":
        """Return what a slot says, or None if it is not as it was written."""
        try:
            record = json.loads(line)
            noted = Noted(int(record["commits"]), int(record["iteration"]))
            return noted if record["crc"] == noted._crc() else None
        except (ValueError, KeyError, TypeError):
            return None

    def _crc(self) -> int:
        return zlib.crc32(b"%d %d" % (self.commits, self.iteration))


class NoteWriter:
    """Keeps the note of a run.

    Parameters
    ----------
    run : Path
        Its folder.
    start : Noted, optional
        Makes the file anew, saying this.

    Raises
    ------
    OSError
        If the file cannot be opened or made.
    """

    def __init__(self, run: Path, start: Noted | None = None) -> None:
        flags = os.O_RDWR | (0 if start is None else os.O_CREAT)
        self._handle = os.open(run / NOTE_FILE, flags, 0o644)
        if start is not None:
            os.pwrite(self._handle, start.line() * _N_SLOTS, 0)
            os.fsync(self._handle)

    def write(self, noted: Noted) -> None:
        """Note a commit that is safe on disk.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        os.pwrite(self._handle, noted.line(), noted.commits % _N_SLOTS * _SLOT_NBYTES)
        _sync(self._handle)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def read_note(run: Path, resumed: Path) -> Noted | None:
    """Return the last note of a run; None if it has no file of notes.

    ``resumed`` is the folder to resume, for the message.

    Raises
    ------
    RunError
        If there is a file, but no note in it that can be read.
    """
    file = run / NOTE_FILE
    try:
        with file.open("rb") as stream:
            data = stream.read(_N_SLOTS * _SLOT_NBYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{file}: could not be read: {error.strerror}.") from error
    slots = [data[i * _SLOT_NBYTES : (i + 1) * _SLOT_NBYTES] for i in range(_N_SLOTS)]
    notes = [noted for noted in map(Noted.from_line, slots) if noted is not None]
    if not notes:
        raise RunError(
            f"{file}: expected a note of how far the run was committed, found none that can be "
            f"read: the file is damaged, and commits may be lost. {_way_on(resumed)}"
        )
    return max(notes, key=lambda noted: noted.commits)


def check_note(
    run: Path, resumed: Path, noted: Noted | None, commits: int | None, iteration: int
) -> None:
    """Check that a ledger has all the commits that were noted.

    Parameters
    ----------
    run : Path
        Its folder.
    resumed : Path
        The folder to resume, for the message.
    noted : Noted or None
        Read before the ledger was: a writer may be at work.
    commits : int or None
        Commits counted in the ledger; None in one made before they were.
    iteration : int
        Where the ledger stands.

    Raises
    ------
    RunError
        If it has fewer.
    """
    way_on = _way_on(resumed)
    if noted is None:
        if commits is not None and not (run / NOTE_FILE).exists():
            raise RunError(
                f"{run / NOTE_FILE}: expected a note of how far the run was committed, found no "
                f"file; the ledger stands at iteration {iteration}, and commits after that may be "
                f"lost. {way_on}"
            )
        return
    if (commits or 0) < noted.commits:
        raise RunError(
            f"{run}: expected a ledger of {noted.commits} commits, up to iteration "
            f"{noted.iteration}, as was noted, found one of {commits or 0}, up to iteration "
            f"{iteration}: its write-ahead file (-wal) was lost or damaged, or an older copy was "
            f"put in its place. {way_on}"
        )


def _way_on(resumed: Path) -> str:
    return (
        "Put the run's folder back from a copy, or go on from what is left with "
        f"`srs-ooc resume {quote(str(resumed))} --accept-loss`."
    )
