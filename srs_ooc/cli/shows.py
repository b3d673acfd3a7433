"""How work in progress is shown: a bar on a terminal, lines with the time elsewhere, or nothing."""

import sys
import time
from collections.abc import Callable
from typing import Any

import click

NOTHING, LINES = "nothing", "lines"
SECONDS_BETWEEN_LINES = 10.0


def progress_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``-q`` and ``-v``; it is called with ``shows``: what was chosen, or None."""
    quiet = click.option("-q", "--quiet", "shows", flag_value=NOTHING, default=None,
                         help="Show no progress.")  # fmt: skip
    verbose = click.option("-v", "--verbose", "shows", flag_value=LINES, default=None,
                           help="Show progress as a line every second, with the time, on a "
                           "terminal too.")  # fmt: skip
    return verbose(quiet(command))


def is_live(shows: str | None) -> bool:
    """Whether progress is a bar that moves."""
    return shows is None and sys.stderr.isatty()


def seconds_between(shows: str | None) -> float:
    """Return how long one line stands before the next."""
    return 1.0 if shows == LINES else SECONDS_BETWEEN_LINES


def log(line: str) -> None:
    """Write a line to stderr with the time before it."""
    click.echo(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", err=True)
