"""The command line. Each command lives in a module of its own and is imported only when called."""

import importlib
import sys
from typing import Any

import click

from srs_ooc import __version__
from srs_ooc.errors import SrsOocError

COMMANDS = {
    "ingest": "srs_ooc.cli.ingest",
    "inspect": "srs_ooc.cli.inspect",
    "plan": "srs_ooc.cli.plan",
    "run": "srs_ooc.cli.run",
    "resume": "srs_ooc.cli.run",
    "status": "srs_ooc.cli.status",
    "features": "srs_ooc.cli.features",
    "export": "srs_ooc.cli.export",
    "synth": "srs_ooc.cli.synth",
    "theory": "srs_ooc.cli.theory",
}


class LazyGroup(click.Group):
    """A command group that imports a command's module when the command is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names, in the order of a user's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command ``cmd_name``."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = getattr(importlib.import_module(module), f"{cmd_name}_command")
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="srs-ooc")
def cli() -> None:
    """Feature selection for tables too wide for memory."""


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; a known error is one message on stderr and exit status 2."""
    try:
        return cli.main(arguments, prog_name="srs-ooc")
    except SrsOocError as error:
        click.echo(f"srs-ooc: {error}", err=True)
        sys.exit(2)
