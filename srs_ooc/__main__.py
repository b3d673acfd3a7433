"""``python -m srs_ooc`` and ``srs-ooc``: the command line, behind what may go wrong as it loads."""

import io
import os
import sys
from contextlib import suppress
from typing import Any, NoReturn


def main() -> NoReturn:
    """Run the command line; an interrupt while modules load is one message, too."""
    try:
        _open_stderr()
        sys.stderr = _lenient_stderr()
        from srs_ooc.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        os.write(2, b"srs-ooc: stopped; nothing was left half-written.\n")
        os._exit(130)  # modules half loaded have nothing to clear up


def _open_stderr() -> None:
    """Keep the number of a closed standard error from a file that is opened later."""
    try:
        os.fstat(2)
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        if null != 2:
            os.dup2(null, 2)
            os.close(null)


class _Lenient(io.FileIO):
    """A file that takes whatever is written to it, whether or not it could be."""

    def write(self, data: Any) -> int:
        """Write what can be written; return the number of bytes given."""
        with suppress(OSError):
            super().write(data)
        return memoryview(data).nbytes


def _lenient_stderr() -> io.TextIOWrapper:
    """Return a standard error on which no work fails.

    A log whose disk is full, or a terminal that has gone, is no reason to end hours of it.
    """
    raw: Any = _Lenient(2, "w", closefd=False)  # as Python itself has it where it is unbuffered
    encoding = getattr(sys.stderr, "encoding", None)  # none where it was closed
    return io.TextIOWrapper(raw, encoding, "backslashreplace", write_through=True)


if __name__ == "__main__":
    main()
