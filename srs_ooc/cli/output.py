"""Writing records as a table, CSV or JSON, one at a time."""

import csv
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import reduce
from inspect import cleandoc
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import LARGEST, Kind, Whole
from srs_ooc.base.text import cell_text, counted, no_formula, visible
from srs_ooc.base.urls import Place, Url, place_of

FILE = click.Path(path_type=Path)
WITH = "--with "
"""What the spelling of an option begins with that has no flag of its own."""


class Typed(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """What a kind of option takes, as text or as a file of options has it."""

    name = "value"

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, _: Any) -> Any:
        """Return the value; its errors are the program's own."""
        said = "" if param is None else param.opts[0].removeprefix(WITH)
        value = self.kind.of_text(value) if isinstance(value, str) else value
        return self.kind.canonical(said, value)


def whole(low: int, high: int = LARGEST) -> Typed:
    """Return the type of a whole number in a range, also written as 1e4 or 10_000."""
    return Typed(Whole(low, high))


COUNT = whole(1)


def memory_option(said: str, default: int | None = None) -> Callable[[Any], Any]:
    """Return the option of the cap; ``said`` of its default."""
    text = "Cap on the memory of the process. It is the peak resident size, in MB of 10^6 bytes."
    return click.option("--memory-mb", type=COUNT, default=default, metavar="MB",
                        help=f"{text}  [default: {said}]")  # fmt: skip


MEMORY_OPTION = memory_option("512", 512)
SAFE_OPTION = click.option(
    "--safe-csv", is_flag=True,
    help="Put ' before texts in cells that start with = + - @ tab or CR, which a spreadsheet would "
    "take for formulas.",
)  # fmt: skip
THREADS_OPTION = click.option(
    "--threads", type=COUNT, metavar="N",
    help="Workers; results do not depend on it.  [default: the cores there are]",
)  # fmt: skip
TOP_OPTION = click.option(
    "--top", type=COUNT, metavar="N",
    help="Only the N best.  [default: 50 in a table, all in CSV and JSON]",
)  # fmt: skip
CSV_OPTION = click.option("--csv", "as_csv", is_flag=True, help="CSV with a header, every column.")
PROGRESS_OPTIONS = [
    click.option("-v/-q", "--verbose/--quiet", "shows", default=None,
                 help="Show progress as a line every second, with the time, on a terminal too; or "
                 "show none."),
]  # fmt: skip
"""Of commands that show progress: ``shows`` is as :class:`RunProgress` takes it."""


def record_options(json: str) -> list[Callable[[Any], Any]]:
    """Return the options of commands that write records; ``json`` says what --json writes."""
    json_option = click.option("--json", "as_json", is_flag=True, help=json)
    return [TOP_OPTION, CSV_OPTION, json_option, SAFE_OPTION, MEMORY_OPTION]


RECORD_OPTIONS = record_options("A JSON list, every key.")
TABLE_ROWS = 50


# Help of one screen, of commands that have more options than a first session needs.


class Brief(click.Command):
    """A command whose help has only its ``first`` options where there are any, in that order.

    Of texts it has the first two paragraphs of the command's, the first sentence of an option's
    and the first part of its default; ``--help-all`` says all.
    """

    def __init__(self, *arguments: Any, first: Collection[str] = (), **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.first = first

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; a key after ``--with`` is one word with it, the spelling of an option."""
        words = (part for w in args for part in (w.split("=", 1) if w[:7] == "--with=" else [w]))
        joined = [f"{w} {next(words, '')}".strip() if w == WITH.strip() else w for w in words]
        return super().parse_args(ctx, joined)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, ``--help-all`` among them."""
        return super().get_params(ctx) + [_HELP_ALL] * bool(self.first)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the screen."""
        if not self.first:
            super().format_help(ctx, formatter)
            return
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            for paragraph in cleandoc(self.help or "").split("\n\n")[:2]:
                formatter.write_text(paragraph)
        records = [record_of(one, ctx) for one in self.params if isinstance(one, click.Option)]
        of_flag = {flag: each for each in records for flag in re.findall(r"--[\w-]+", each[0])}
        shown = [(of_flag[flag][0], _first_sentence(of_flag[flag][1])) for flag in self.first]
        with formatter.section("Options"):
            formatter.write_dl(shown, col_max=20)
        keys = [record for record in records if not record[0].startswith("-")]
        if method := ctx.params.get("method"):
            owners = [(key, *said.partition(": ")[::2]) for key, said in keys]
            own = [(key, said) for key, owner, said in owners if method in owner.split()]
            with formatter.section(f"Of --method {method}, as {WITH}KEY=VALUE"):
                formatter.write_dl(own)
        self.format_epilog(ctx, formatter)
        n_others = len(records) - len(keys) - len(shown)
        more = f"the other {n_others} options{' and all keys' * bool(keys)}"
        formatter.write_paragraph()
        formatter.write_text(f"`{ctx.command_path} --help-all` lists {more} and says more.")


def record_of(parameter: click.Parameter, ctx: click.Context) -> tuple[str, str]:
    """Return what help says of a parameter: of a key of ``--with`` also what it takes."""
    flags, said = parameter.get_help_record(ctx) or ("", "")
    if not parameter.opts[0].startswith(WITH):
        return flags, said
    takes = getattr(getattr(parameter.type, "kind", None), "expected", "the name of a file")
    text, mark, default = said.partition("  [default")
    key = flags.removeprefix(WITH).replace(" ", "=", 1)
    return key, f"{text} Takes {takes}.{mark}{default}"


def _first_sentence(said: str) -> str:
    sentence = re.split(r"(?<=\.)\s", said.removeprefix("With --judge tests: "))[0]
    default = re.search(r"\[default: [^];]*", said)  # what follows a semicolon are exceptions
    return f"{sentence}  {default[0]}]" if default else sentence


def _show_all(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked and not ctx.resilient_parsing:
        formatter = ctx.make_formatter()
        click.Command.format_help(ctx.command, ctx, formatter)
        click.echo(formatter.getvalue().rstrip("\n"))
        ctx.exit()


_HELP_ALL = click.Option(
    ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all,
    help="Show all options and exit.",
)  # fmt: skip


def with_options(
    options: list[Callable[[Any], Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds click options to a command, in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def say(text: object = "", *, err: bool = False) -> None:
    """Write a line for people, in which no text of others moves a terminal."""
    click.echo(visible(str(text)), err=err)


def describe_counts(counts: Mapping[str, int]) -> str:
    """Return counts by kind for people; kinds of which there are none are left out."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def kind_of(n_levels: int, n_missing: int) -> str:
    """Return what a covariate is for people: numbers, or so many levels; missing cells."""
    kind = counted(n_levels, "level") if n_levels else "numbers"
    return f"({kind}{f', {n_missing} missing' if n_missing else ''})"


def write(text: str) -> None:
    """Write a text for programs as it is; on a terminal, as :func:`say` would."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


def echo_json(value: Any) -> None:
    """Write one JSON value."""
    write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def stream_json(records: Iterable[Any], facts: Mapping[str, Any] | None = None) -> None:
    """Write dataclass records as a JSON list, one a line, never holding them all.

    With ``facts`` it is the last of an object, ``features``, after them.
    """
    begin, end = "[", "]"
    if facts is not None:
        begin = json.dumps(facts, ensure_ascii=False)[:-1] + ', "features": ['
        end = "]}"
    write(begin)
    separator = "\n"
    for record in records:
        write(separator + json.dumps(vars(record), ensure_ascii=False))
        separator = ",\n"
    write(f"\n{end}\n")


def stream_csv(kind: type, records: Iterable[Any], *, safe: bool = False) -> None:
    """Write dataclass records as CSV with a header; None is an empty cell.

    ``safe``: no text is a formula to a spreadsheet.
    """
    output: Any = SimpleNamespace(write=write)
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow([field.name for field in dataclasses.fields(kind)])

    def shown(value: Any) -> Any:
        if safe and isinstance(value, str):
            return no_formula(value)
        return str(value).lower() if isinstance(value, bool) else value

    writer.writerows(map(shown, vars(record).values()) for record in records)


def write_records(
    kind: type,
    records: Iterable[Any],
    columns: dict[str, int],
    top: int | None = None,
    heading: str | None = None,
    n_there: int = 0,
    *,
    facts: Mapping[str, Any] | None = None,
    as_json: bool,
    as_csv: bool,
    safe_csv: bool,
) -> None:
    """Write the first records as was asked; as a table, below a heading, no more than fit.

    Below the table stands how many there are, of ``n_there``, if it does not have them all.
    ``facts`` stand before the records in JSON.
    """
    if as_json:
        stream_json(islice(records, top), facts)
    elif as_csv:
        stream_csv(kind, islice(records, top), safe=safe_csv)
    else:
        if heading is not None:
            say(heading)
        shown = top or TABLE_ROWS
        stream_table(columns, islice(records, shown))
        if shown < n_there:
            more = "more with --top N; all, and every column, with --csv"
            say(f"(the best {shown} of {n_there}; {more})")


def stream_table(columns: dict[str, int], records: Iterable[Any]) -> None:
    """Write some fields of records as columns of given widths; a longer text pushes on."""
    say("  ".join(f"{name:>{width}}" for name, width in columns.items()))
    for record in records:
        cells = (
            f"{cell_text(getattr(record, name), '-'):>{width}}" for name, width in columns.items()
        )
        say("  ".join(cells).replace("\n", "\\n"))


# A store on the command line: a folder, or a URL.


class StoreType(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A store's folder or URL."""

    name = "store"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Place:
        """Return the place; its errors are the program's own."""
        place = place_of(value)
        if isinstance(place, Url) and place.scheme == "memory":
            raise UsageError(
                f"{place}: expected a folder or a URL that other processes can open, found one of "
                "this process's memory. It is for Python: srs_ooc.run('memory://...')."
            )
        return place


STORE = StoreType()
RUN_STORE_OPTION = click.option("--store", type=STORE, help="The run's store, if it was moved.")
