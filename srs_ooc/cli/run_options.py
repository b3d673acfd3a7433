"""Command-line options from what the parts of a run declare, and from a TOML file."""

import tomllib
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import FLAGS, Flag, Kind, Option, flag_of
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.cli import output
from srs_ooc.cli.output import FILE, WITH, Brief, Typed, record_of, with_options
from srs_ooc.learners.tree_learner import learners
from srs_ooc.runs.jobs import Cluster
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import DEFAULT_WORKER_MEMORY_MB
from srs_ooc.runs.settling import owner_of
from srs_ooc.runs.spec import declared

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
    click.option(f"{WITH}validation_rows", "validation_file", type=FILE, metavar="FILE",
                 help="With --method prs or rase: Row ids to hold out, one a line."),
]  # fmt: skip


def _no_key(_: click.Context, __: click.Parameter, value: str | None) -> None:
    """Refuse what no key was found in: those there are have been read as options of their own."""
    if value is not None:
        raise UsageError(f"--with: expected KEY=VALUE, found {value[:80]!r}.")


WITH_OPTION = click.option(
    WITH.strip(), metavar="KEY=VALUE", expose_value=False, callback=_no_key,
    help="An option without a flag of its own; again for each. Keys stand without dashes in "
    "--help-all, `--method M --help` lists those of a method.",
)  # fmt: skip


def settled_options() -> list[Decorator]:
    """Return an option for each that a run's identity may have, files included."""
    own = [option_of(n, option, owner_of(n)) for n, option in declared().items()]
    return [*own, WITH_OPTION, *INPUT_OPTIONS]


def request_of(given: dict[str, Any]) -> Request:
    """Return what the options of a command ask of a run: how to work on it, and its identity."""
    how = {field.name: given.pop(field.name) for field in fields(Request) if field.name in given}
    return Request(options=given, **how)


def option_of(name: str, option: Option, owner: str = "") -> Decorator:
    """Return the click option of one that is declared; ``owner`` are the choices it goes with."""
    spelling, kind = flag_of(name) if name in FLAGS else WITH + name, option.kind
    default, words = str(option.default), getattr(kind, "words", ())
    is_flag = isinstance(kind, Flag) and name in FLAGS
    if isinstance(kind, Flag):
        default, words = "yes" if option.default else "no", ("yes", "no")
    said = default if option.default_text is None else option.default_text
    whose = f"With {owner}: " if owner else ""
    return click.option(
        f"{spelling}/--no-{spelling[2:]}" if is_flag else spelling,
        *option.flags,
        name,
        type=None if is_flag else Typed(kind),
        default=None,
        is_eager=name == "method",  # of which the help is asked for
        metavar=option.metavar or f"[{'|'.join(words)}]",
        help=f"{whose}{option.help}  [default: {said}]",
    )


# Help in sections: options by what they are of, those of a method under its name.

_SECTIONS: dict[str, Collection[str]] = {
    "Data and size": (),
    "Evidence": ("judge",),
    **dict.fromkeys(("Trees", "Models other than trees"), ()),
    "Cluster": ("cluster", "worker_memory_mb"),
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
            flags, said = record_of(parameter, ctx)
            title, _, rest = said.partition(": ")
            if title.startswith("With --method "):
                said = rest
            else:
                name = str(parameter.name).removeprefix("_click_default_")  # of --help
                among = (part for part, names in sections.items() if name in names)
                title = "Evidence" if "--judge" in title else next(among, "Data and size")
            if isinstance(parameter, click.Option):
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
    by_name = {
        flag.removeprefix(WITH).removeprefix("--").replace("-", "_"): parameter
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        for flag in parameter.opts
        if flag.startswith("--") and flag != WITH.strip()
    }
    unknown = sorted(set(values) - set(by_name))
    if unknown:
        raise UsageError(
            f"{file}: expected long option names with underscores, found "
            f"{', '.join(name[:40] for name in unknown[:_SHOWN])}"
            f"{', ...' * (len(unknown) > _SHOWN)}. "
            f"Known: {', '.join(sorted(n for n, o in by_name.items() if not o.hidden))}."
        )
    context.default_map = {}
    for name, value in values.items():
        option = by_name[name]
        kind = getattr(option.type, "kind", Flag() if option.is_flag else Kind())
        try:  # here and not by click, which changes what is of another type
            context.default_map[str(option.name)] = kind.canonical(name, value)
        except UsageError as error:
            raise UsageError(f"{file}: {error}") from error
    return file


CONFIG_OPTION = click.option(
    "--config", type=FILE, is_eager=True, expose_value=False, callback=read_config,
    metavar="FILE.toml", help="Options from a TOML file; flags win over it.",
)  # fmt: skip

# Options of commands whose work may be done on a Dask cluster.


def _cluster(context: click.Context, _: click.Parameter, address: str | None) -> Cluster | None:
    """Return the workers at an address until the command ends, or None."""
    megabytes = context.params.pop("worker_memory_mb")
    if address is None or context.resilient_parsing:
        if megabytes is not None:
            raise UsageError("--worker-memory-mb: expected with --dask, found alone.")
        return None
    from srs_ooc.runs.dask_cluster import dask_cluster  # Dask is loaded only here

    return context.with_resource(dask_cluster(address, megabytes or DEFAULT_WORKER_MEMORY_MB))


CLUSTER_OPTIONS: list[Decorator] = [
    click.option("--dask", "cluster", metavar="ADDRESS", callback=_cluster,
                 help="Have the work done by the workers of a Dask scheduler, as tcp://HOST:PORT "
                 "or the file that it wrote, or local:N for N processes of this machine; results "
                 "do not depend on it."),
    click.option("--worker-memory-mb", type=output.COUNT, metavar="MB", is_eager=True,
                 help="With --dask: what each worker process may grow by, in MB of 10^6 bytes.  "
                 f"[default: {DEFAULT_WORKER_MEMORY_MB}]"),
]  # fmt: skip
"""Of commands that get ``cluster``: workers, or None."""


def store_command(name: str, first: Collection[str], options: list[Decorator]) -> Decorator:
    """Return what makes the command ``name`` of a function that works on a store for long.

    The function gets what its own ``options`` give, and ``store`` (a path or a URL), ``threads``,
    ``as_json``, ``safe_csv``, ``memory_mb``, ``cluster`` (workers elsewhere, or None) and ``shows``
    (of :class:`srs_ooc.results.live.RunProgress`). ``first`` are the flags of the short help.
    """
    json = click.option("--json", "as_json", is_flag=True, help="What was done as JSON.")
    usual = [WITH_OPTION, output.THREADS_OPTION, json, CONFIG_OPTION, output.SAFE_OPTION]
    every = [*options, *usual, output.MEMORY_OPTION, *CLUSTER_OPTIONS, *output.PROGRESS_OPTIONS]
    of_store = with_options([click.argument("store", type=output.STORE), *every])
    return lambda function: click.command(name, cls=ByPart, first=first)(of_store(function))


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
