"""Command-line options from what the parts of a run declare."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from srs_ooc.base.options import Choice, Flag, Kind, Option, Whole
from srs_ooc.cli.output import say
from srs_ooc.runs.settling import declared, owner_of

FILE = click.Path(path_type=Path)
Decorator = Callable[[Any], Any]

TABLE_OPTIONS: list[Decorator] = [
    click.option("--exclude", "exclude_file", type=FILE, metavar="FILE",
                 help="Features to leave out, one name a line."),
    click.option("--exclude-missing", is_flag=True, help="Leave out features with missing values."),
    click.option("--rows", "rows_file", type=FILE, metavar="FILE",
                 help="Row ids to train on, one a line."),
]  # fmt: skip
INPUT_OPTIONS: list[Decorator] = [
    *TABLE_OPTIONS,
    click.option("--validation-rows", "validation_file", type=FILE, metavar="FILE",
                 help="With --method prs or rase: row ids, of those, that are held out."),
]  # fmt: skip


def identity_options() -> list[Decorator]:
    """Return an option for each that a run's identity may have."""
    found = []
    for name, option in declared().items():
        found.append(option_of(name, option, owner_of(name)))
        if option.former:
            found.append(_former(name, option))
    return found


def with_options(options: list[Decorator]) -> Decorator:
    """Return a decorator that adds click options to a command, in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def option_of(name: str, option: Option, owner: str = "") -> Decorator:
    """Return the click option of one that is declared; ``owner`` are the choices it goes with."""
    flag = "--" + name.replace("_", "-")
    spellings = [f"{flag}/--no-{flag[2:]}"] if isinstance(option.kind, Flag) else [flag]
    whose = f"With {owner}: " if owner else ""
    return click.option(
        *spellings,
        *option.flags,
        name,
        type=None if isinstance(option.kind, Flag) else _type(option.kind),
        default=None,
        callback=_given_before if option.former else None,
        metavar=option.metavar,
        help=f"{whose}{option.help}  [default: {_default(option)}]",
    )


def _former(name: str, option: Option) -> Decorator:
    """Return the hidden option of the name before, which says what the name is now."""

    def note(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            say(f"--{option.former} is now --{name}; the old name goes with the next version.",
                err=True)  # fmt: skip
            context.meta[f"{__name__}.{name}"] = value

    return click.option(
        f"--{option.former.replace('_', '-')}",
        f"former_{name}",
        type=_type(option.kind),
        hidden=True,
        is_eager=True,
        expose_value=False,
        callback=note,
    )


def _given_before(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Return the value, or the one that was given by the name before."""
    return context.meta.get(f"{__name__}.{option.name}") if value is None else value


def _default(option: Option) -> str:
    if option.default_text is not None:
        return option.default_text
    if isinstance(option.kind, Flag):
        return "yes" if option.default else "no"
    return str(option.default)


def _type(kind: Kind) -> Any:
    if isinstance(kind, Whole):
        return click.INT
    return click.Choice(kind.words) if isinstance(kind, Choice) else click.STRING
