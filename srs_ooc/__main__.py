"""``python -m srs_ooc`` and ``srs-ooc``: the command line, behind what may go wrong as it loads."""

import os
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; an interrupt while modules load is one message, too."""
    try:
        _open_stderr()
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


if __name__ == "__main__":
    main()
