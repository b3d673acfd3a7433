"""``python -m srs_ooc`` and ``srs-ooc``: the command line, behind what may go wrong as it loads."""

import io
import os
import sys
from contextlib import suppress
from typing import Any, NoReturn


def main() -> NoReturn:
    """Run the command line; an interrupt while modules load is one message, too."""
    try:
        _open_closed()
        sys.stderr = _lenient_stderr()
        from srs_ooc.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        os.write(2, b"srs-ooc: stopped; nothing was left half-written.\n")
        os._exit(130)  # modules half loaded have nothing to clear up


def _open_closed() -> None:
    """Keep the numbers of a closed standard input or error from files that are opened later."""
    for number, flag in ((0, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, flag)
            if null != number:
                os.dup2(null, number)
                os.close(null)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)))


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
