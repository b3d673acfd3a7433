"""Options from a TOML file."""

import tomllib
from pathlib import Path
from typing import Any

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB, describe_nbytes

MOST_CONFIG_NBYTES = MB
_SHOWN = 20


def read_config(context: click.Context, _: click.Parameter, file: Path | None) -> Path | None:
    """Make the file's values the defaults of the other options, so that flags win."""
    if file is None:
        return None
    try:
        with file.open("rb") as stream:
            data = stream.read(MOST_CONFIG_NBYTES + 1)
        if len(data) > MOST_CONFIG_NBYTES:
            raise UsageError(
                f"{file}: expected a TOML file of options of at most "
                f"{describe_nbytes(MOST_CONFIG_NBYTES)}, found a larger one. Name a file of "
                "options."
            )
        values = tomllib.loads(data.decode())
    except OSError as error:
        raise UsageError(f"{file}: could not be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise UsageError(f"{file}: expected a TOML file of options: {reason}.") from error
    by_flag = {
        flag.removeprefix("--").replace("-", "_"): parameter
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        for flag in parameter.opts
    }
    unknown = sorted(set(values) - set(by_flag))
    if unknown:
        raise UsageError(
            f"{file}: expected long option names with underscores, found "
            f"{', '.join(name[:40] for name in unknown[:_SHOWN])}"
            f"{', ...' * (len(unknown) > _SHOWN)}. "
            f"Known: {', '.join(sorted(n for n, o in by_flag.items() if not o.hidden))}."
        )
    for name, value in values.items():
        _check_type(file, name, value, by_flag[name])
    context.default_map = {str(by_flag[name].name): value for name, value in values.items()}
    return file


def _short(value: Any) -> str:
    """Return a value of a file for a message; of what holds values only what it is."""
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    return repr(value)[:80]


def _check_type(file: Path, name: str, value: Any, option: click.Option) -> None:
    """Refuse a value that conversion to the option's type would change."""
    expected: tuple[type, ...] = (str, int, float)
    if option.is_flag:
        expected = (bool,)
    elif isinstance(option.type, click.Path):
        expected = (str,)
    elif isinstance(option.type, click.types.IntParamType):
        expected = (int,)
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        names = {bool: "true or false", int: "a whole number", str: "text"}
        wanted = names[expected[0]] if len(expected) == 1 else "text or a number"
        raise UsageError(f"{file}: {name}: expected {wanted}, found {_short(value)}.")
