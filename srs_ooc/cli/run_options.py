"""Command-line options from what the parts of a run declare, and from a TOML file."""

import tomllib
from collections.abc import Callable, Collection
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from functools import wraps
from pathlib import Path
from typing import Any

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import Choice, Flag, Option, Whole, flag_of
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.cli import output
from srs_ooc.cli.output import FILE, MEMORY_OPTION, SAFE_OPTION, STORE, Brief, with_options
from srs_ooc.learners.tree_learner import learners
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import DEFAULT_WORKER_MEMORY_MB
from srs_ooc.runs.settling import declared, owner_of

# Command-line options from what the parts of a run declare.

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
    click.option("--target", metavar="NAMES",
                 help="Targets that `ingest` or `targets` added to the store, separated by "
                 "commas; rows without one are left out.  [default: the store's own]"),
    click.option("--validation-rows", "validation_file", type=FILE, metavar="FILE",
                 help="With --method prs or rase: row ids to hold out, one a line."),
]  # fmt: skip


def settled_options() -> list[Decorator]:
    """Return an option for each that a run's identity may have, files included."""
    return [option_of(n, option, owner_of(n)) for n, option in declared().items()] + INPUT_OPTIONS


def request_of(given: dict[str, Any]) -> Request:
    """Return what the options of a command ask of a run: how to work on it, and its identity."""
    how = {field.name: given.pop(field.name) for field in fields(Request) if field.name in given}
    return Request(options=given, **how)


def option_of(name: str, option: Option, owner: str = "") -> Decorator:
    """Return the click option of one that is declared; ``owner`` are the choices it goes with."""
    flag = f"--{flag_of(name)}"
    spellings = [f"{flag}/--no-{flag[2:]}"] if isinstance(option.kind, Flag) else [flag]
    whose = f"With {owner}: " if owner else ""
    default, kind = str(option.default), option.kind
    taken: Any = click.INT if isinstance(kind, Whole) else click.STRING
    if isinstance(kind, Flag):
        default, taken = "yes" if option.default else "no", None
    elif isinstance(kind, Choice):
        taken = click.Choice(kind.words)
    said = default if option.default_text is None else option.default_text
    return click.option(
        *spellings,
        *option.flags,
        name,
        type=taken,
        default=None,
        metavar=option.metavar,
        help=f"{whose}{option.help}  [default: {said}]",
    )


# Help in sections: options by what they are of, those of a method under its name.

_SECTIONS: dict[str, Collection[str]] = {
    "Data and size": (),
    "Evidence": ("judge",),
    **dict.fromkeys(("Trees", "Models other than trees"), ()),
    "Cluster": ("dask", "dask_scheduler_file", "worker_memory_mb"),
    "Output": (
        *("shows", "save_trees", "config", "fresh", "only_plan", "out", "run", "top"),
        *("as_json", "safe_csv", "help", "help_all"),
    ),
}


class ByPart(Brief):
    """A command whose whole help has its options in sections, those of methods last."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        sections = _SECTIONS | {kind.title: kind.options() for kind in learners()}
        found: dict[str, list[tuple[str, str]]] = {title: [] for title in sections}
        for parameter in self.get_params(ctx):
            flags, said = parameter.get_help_record(ctx) or ("", "")
            title, _, rest = said.partition(": ")
            if title.startswith("With --method "):
                said = rest
            else:
                name = str(parameter.name).removeprefix("_click_default_")  # of --help
                among = (part for part, names in sections.items() if name in names)
                title = "Evidence" if "--judge" in title else next(among, "Data and size")
            if flags.startswith("-"):
                found.setdefault(title, []).append((flags, said))
        for title in filter(found.get, found):
            with formatter.section(title):
                formatter.write_dl(found[title])


# Options from a TOML file.

_SHOWN = 20


def read_config(context: click.Context, _: click.Parameter, file: Path | None) -> Path | None:
    """Make the file's values the defaults of the other options, so that flags win."""
    if file is None:
        return None
    try:
        with file.open("rb") as stream:
            data = stream.read(MB + 1)
        if len(data) > MB:
            raise UsageError(
                f"{file}: expected a TOML file of options of at most {describe_nbytes(MB)}, found "
                "a larger one. Name a file of options."
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
        held: dict[type, str] = {dict: "a table", list: "a list"}  # whose values are no matter
        found = held.get(type(value), repr(value)[:80])
        raise UsageError(f"{file}: {name}: expected {wanted}, found {found}.")


CONFIG_OPTION = click.option(
    "--config", type=FILE, is_eager=True, expose_value=False, callback=read_config,
    metavar="FILE.toml", help="Options from a TOML file; flags win over it.",
)  # fmt: skip

# Options of commands whose work may be done on a Dask cluster.

_OPTIONS = [
    click.option("--dask", metavar="ADDRESS",
                 help="Have the work done by the workers of a Dask scheduler, as tcp://HOST:PORT, "
                 "or local:N for N processes of this machine; results do not depend on it."),
    click.option("--dask-scheduler-file", type=FILE, metavar="FILE",
                 help="The same, with the scheduler that wrote FILE."),
    click.option("--worker-memory-mb", type=click.IntRange(1), metavar="MB",
                 help="With --dask: what each worker process may grow by, in MB of 10^6 bytes.  "
                 f"[default: {DEFAULT_WORKER_MEMORY_MB}]"),
]  # fmt: skip


def with_cluster(command: Any) -> Any:
    """Add the options to a command, which gets ``cluster``: workers, or None."""

    @wraps(command)
    def wrapped(
        *arguments: Any,
        dask: str | None,
        dask_scheduler_file: Path | None,
        worker_memory_mb: int | None,
        **others: Any,
    ) -> Any:
        if dask is None and dask_scheduler_file is None:
            if worker_memory_mb is not None:
                raise UsageError("--worker-memory-mb: expected with --dask, found alone.")
            return command(*arguments, cluster=None, **others)
        from srs_ooc.runs.dask_cluster import dask_cluster  # Dask is loaded only here

        memory_mb = worker_memory_mb or DEFAULT_WORKER_MEMORY_MB
        with dask_cluster(dask, dask_scheduler_file, memory_mb) as cluster:
            return command(*arguments, cluster=cluster, **others)

    return with_options(_OPTIONS)(wrapped)


def store_command(name: str, first: Collection[str], options: list[Decorator]) -> Decorator:
    """Return what makes the command ``name`` of a function that works on a store for long.

    The function gets what its own ``options`` give, and ``store`` (a path or a URL), ``threads``,
    ``as_json``, ``safe_csv``, ``memory_mb``, ``cluster`` (workers elsewhere, or None) and ``shows``
    (of :class:`srs_ooc.results.live.RunProgress`). ``first`` are the flags of the short help.
    """
    json = click.option("--json", "as_json", is_flag=True, help="What was done as JSON.")
    usual = [output.THREADS_OPTION, json, CONFIG_OPTION, SAFE_OPTION, MEMORY_OPTION, with_cluster]
    every = [click.argument("store", type=STORE), *options, *usual, *output.PROGRESS_OPTIONS]
    as_command = click.command(name, cls=ByPart, first=first)
    return lambda function: as_command(with_options(every)(function))


# The store that is meant where none is named.


def only_store() -> Path:
    """Return the only store in the current folder, or say what was found."""
    stores = sorted(path.parent for path in Path().glob("*.zarr/zarr.json"))
    if len(stores) != 1:
        found = "none" if not stores else ", ".join(path.name for path in stores)
        raise UsageError(
            f"expected one store (*.zarr) in the current folder, found {found}. "
            "Name one: `srs-ooc run STORE`."
        )
    return stores[0]


# Whole numbers as people write them: 10000, 10_000, 1e4.

_MOST = 10**18


class Count(click.IntRange):
    """A whole number, also with an exponent or with underscores between digits."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail saying what was expected."""
        if isinstance(value, str):
            try:
                number = Decimal(value)
            except InvalidOperation:
                number = Decimal("nan")
            if not number.is_finite() or abs(number) > _MOST or number != int(number):
                self.fail(f"expected a whole number such as 5000 or 5e3, found {value[:40]!r}.")
            value = int(number)
        return super().convert(value, param, ctx)
