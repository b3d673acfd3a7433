"""Options as Python spells them, in messages that the command line shares."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from srs_ooc.base.errors import SrsOocError

_COMMAND = re.compile("(`[^`]*`)")
_SCRATCH = re.compile(r"\S*/srs-ooc-\w{8}/(\w+)")
"""A file that names given as a list were written to: called as their argument is."""
_FLAG = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z]|[a-z])(?: (?=[0-9]))?")


def spelled(message: str) -> str:
    """Return a message with options spelt as keyword arguments, but for commands it quotes."""
    parts = _COMMAND.split(_SCRATCH.sub(r"\1", message))
    return "".join(part if part.startswith("`") else _FLAG.sub(_keyword, part) for part in parts)


def _keyword(match: "re.Match[str]") -> str:
    return match[1].replace("-", "_") + ("=" if match[0].endswith(" ") else "")


@contextmanager
def python_spelling() -> Iterator[None]:
    """Spell options as keyword arguments in the message of an error that the block raises."""
    try:
        yield
    except SrsOocError as error:
        if len(error.args) == 1:
            error.args = (spelled(str(error.args[0])),)
        raise
