"""The command line. Each command lives in a module of its own and is imported only when called."""

import contextlib
import importlib
import os
import signal
import sys
from difflib import get_close_matches
from inspect import cleandoc
from typing import NoReturn

import click

from srs_ooc import __version__
from srs_ooc.base.errors import SrsOocError
from srs_ooc.base.text import visible

FIRST_SESSION = """\
srs-ooc finds the columns of a wide table that tell something about a target.
A first session, where the last column of data.csv is the target:

  srs-ooc ingest data.csv data.zarr  put the table on disk
  srs-ooc run data.zarr              search it; the same command again goes on
  srs-ooc features data.run          list what was found, the best first
  srs-ooc report data.run            write it as a page with plots: data.html

A table to try them on:
  srs-ooc synth madelon data.csv --rows 500 --features 3000 --relevant 20

`srs-ooc --help` lists all commands, `srs-ooc COMMAND --help` says more of one.
"""
"""What the program says that is called alone."""

COMMANDS = {
    "ingest": ("srs_ooc.cli.ingest", "Turn a table into a store."),
    "formats": ("srs_ooc.cli.formats", "List the kinds of files that ingest knows."),
    "inspect": ("srs_ooc.cli.inspect", "Say what is in a store."),
    "targets": ("srs_ooc.cli.ingest", "Add targets and covariates to a store."),
    "verify": ("srs_ooc.cli.inspect", "Read all of a store or a run; find damage."),
    "scores": ("srs_ooc.methods.less.faces", "Score columns by leverage or norm."),
    "components": ("srs_ooc.methods.less.faces", "Principal components, to adjust for."),
    "plan": ("srs_ooc.cli.plan", "What a run would need, cost and find."),
    "run": ("srs_ooc.cli.run", "Select features of a store; start, or go on."),
    "resume": ("srs_ooc.cli.run", "Go on with a run, or to more iterations."),
    "status": ("srs_ooc.cli.status", "Show where a run stands."),
    "features": ("srs_ooc.cli.results", "Rank the features of a run."),
    "pairs": ("srs_ooc.cli.results", "List what two features show together."),
    "assess": ("srs_ooc.cli.results", "Test what a run selected in another store."),
    "compare": ("srs_ooc.cli.results", "Compare two runs."),
    "report": ("srs_ooc.cli.report", "Write what a run found as a page to look at."),
    "compact": ("srs_ooc.cli.compact", "Find a small set that predicts as well."),
    "export": ("srs_ooc.cli.results", "Write the selected columns to a file."),
    "predict": ("srs_ooc.cli.saved_trees", "Predict by the trees that a run saved."),
    "sensitivity": ("srs_ooc.methods.rfest.faces", "Rank features by what altering them does."),
    "runs": ("srs_ooc.cli.status", "List the runs and stores of a folder."),
    "remove": ("srs_ooc.cli.status", "Remove a run; its store stays."),
    "network": ("srs_ooc.methods.networks.faces", "Rank the regulators of each target as edges."),
    "synth": ("srs_ooc.cli.synth", "Make a table whose relevant features are known."),
    "theory": ("srs_ooc.methods.theory.faces", "Expected iterations, by the paper's theory."),
}
GROUPS = {
    "A first session": "ingest run features report",
    "Before a run": "formats inspect targets verify plan components scores",
    "Runs that there are": "resume status compare runs remove",
    "More of what a run found": "pairs assess compact export predict sensitivity",
    "Other": "network synth theory",
}
"""Commands as the help lists them."""
EXAMPLES = "\b\nExamples:\n"
"""What the last part of the help of a command begins with, in its docstring."""
MOVED = {
    "--dask-scheduler-file": "--dask FILE",
    "--cache-mb": "SRS_OOC_CACHE_MB in the environment",
    "--cache-dir": "SRS_OOC_CACHE_DIR in the environment",
    "--verify": "`srs-ooc verify STORE`",
}
"""Options that left before the first release, and what is there instead."""
MOST_CHARACTERS = 4000
"""A message that quotes a file is no longer than this."""
INTERRUPTED = 128 + signal.SIGINT


class LazyGroup(click.Group):
    """A command group that imports a command's module when the command is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names, in the order of a user's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command ``cmd_name``."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command: click.Command = getattr(module, f"{cmd_name}_command")
        text, mark, examples = cleandoc(command.help or "").partition(EXAMPLES)
        if examples:  # they come last, after the options
            command.help, command.epilog = text.rstrip(), mark + examples
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the ones it may have been meant for."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = get_close_matches(name, COMMANDS, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"expected a command, found {name[:40]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:11}", COMMANDS[name][1]) for name in names.split()])


@click.group(cls=LazyGroup, invoke_without_command=True,
             context_settings={"help_option_names": ["-h", "--help"]})  # fmt: skip
@click.version_option(__version__, prog_name="srs-ooc")
@click.pass_context
def cli(context: click.Context) -> None:
    """Feature selection for tables too wide for memory."""
    if context.invoked_subcommand is None:
        click.echo(FIRST_SESSION, nl=False)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; a known error is one message on stderr and exit status 2."""
    # As for any error it is unwound, so that scratch files are cleared.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        if sys.stdout is None:  # a file that is opened later would take its number
            _fail("standard output is closed. Send it to a file, or to /dev/null.", 2)
        status = cli.main(arguments, prog_name="srs-ooc", standalone_mode=False) or 0
        sys.stdout.flush()  # what cannot be written is an error here, not as the program ends
        sys.exit(status)
    except SrsOocError as error:
        _fail(str(error), 2)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "srs-ooc"
        first = getattr(error.ctx.command, "first", ()) if error.ctx else ()
        if isinstance(error, click.NoSuchOption) and error.ctx:
            old, key = error.option_name, error.option_name.lstrip("-").removeprefix("no-")
            new = f"--with {key.replace('-', '_')}"
            is_key = any(new in one.opts for one in error.ctx.command.params)
            if instead := f"{new}=VALUE" if is_key else MOVED.get(old):
                _fail(f"{old}: expected {instead}, found what that was called before.", 2)
        # Of an option the help is meant that lists them all.
        is_of_all = first and not isinstance(error, click.MissingParameter)
        which = "--help-all" if is_of_all else "--help"
        _fail(f"{error.format_message()} See `{path} {which}`.", 2)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except click.Abort:
        _fail("stopped; nothing was left half-written.", INTERRUPTED)
    except MemoryError:
        _fail("out of memory. Give the machine more, or ask for less with --memory-mb.", 2)
    except BrokenPipeError:
        _let_go()  # its reader has gone
        sys.exit(1)
    except RecursionError:
        _fail("expected files and options without deep nesting, found more than can be read.", 2)
    except OSError as error:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        _let_go()
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}.", 2)


def _fail(message: str, status: int) -> NoReturn:
    if len(message) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        message = f"{message[:half]} [...] {message[-half:]}"
    with contextlib.suppress(OSError):  # closed, or its reader gone: the status says it
        click.echo(f"srs-ooc: {visible(message)}", err=True)
    sys.exit(status)


def _let_go() -> None:
    """Leave nothing in the buffer of standard output that would fail once more at the end."""
    with contextlib.suppress(OSError):  # of a process that may open no more files
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
