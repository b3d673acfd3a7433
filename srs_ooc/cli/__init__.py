"""The command line. Each command lives in a module of its own and is imported only when called."""

import importlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

from srs_ooc import __version__
from srs_ooc.errors import SrsOocError

COMMANDS = {
    "ingest": ("srs_ooc.cli.ingest", "Turn a table into a store."),
    "inspect": ("srs_ooc.cli.inspect", "Say what is in a store."),
    "plan": ("srs_ooc.cli.plan", "What a run would need, cost and find."),
    "run": ("srs_ooc.cli.run", "Select features of a store; start, or go on."),
    "resume": ("srs_ooc.cli.run", "Go on with a run, or to more iterations."),
    "status": ("srs_ooc.cli.status", "Show where a run stands."),
    "features": ("srs_ooc.cli.features", "Rank the features of a run."),
    "compact": ("srs_ooc.cli.compact", "Find a small set that predicts as well."),
    "export": ("srs_ooc.cli.export", "Write the selected columns to a CSV file."),
    "predict": ("srs_ooc.cli.predict", "Predict by the trees that a run saved."),
    "synth": ("srs_ooc.cli.synth", "Make a table whose relevant features are known."),
    "theory": ("srs_ooc.cli.theory", "Expected iterations, by the paper's theory."),
}
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
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="srs-ooc")
def cli() -> None:
    """Feature selection for tables too wide for memory."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; a known error is one message on stderr and exit status 2."""
    signal.signal(signal.SIGTERM, _leave)
    try:
        sys.exit(cli.main(arguments, prog_name="srs-ooc", standalone_mode=False) or 0)
    except SrsOocError as error:
        _fail(str(error), 2)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "srs-ooc"
        _fail(f"{error.format_message()} See `{command} --help`.", 2)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except click.Abort:
        _fail("stopped; nothing was left half-written.", INTERRUPTED)
    except MemoryError:
        _fail("out of memory. Give the machine more, or ask for less with --memory-mb.", 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # its reader has gone; nothing to flush to
        sys.exit(1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}.", 2)


def _fail(message: str, status: int) -> NoReturn:
    click.echo(f"srs-ooc: {message}", err=True)
    sys.exit(status)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    """On SIGTERM, unwind as for any error, so that scratch files are cleared."""
    sys.exit(128 + number)
