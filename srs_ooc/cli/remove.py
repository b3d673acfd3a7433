"""``srs-ooc remove``."""

import sys
from pathlib import Path

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.cli.output import say
from srs_ooc.results.standing import remove_run
from srs_ooc.runs.ledger_pages import FILE


@click.command("remove")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove_command(run: Path, yes: bool) -> None:
    """Remove RUN with all it has learnt; its store stays.

    Asks first where there is a terminal, and wants --yes where there is none.
    """
    if not yes and (run / FILE).is_file():
        if not sys.stdin.isatty():
            raise UsageError(
                f"{run}: expected --yes, or a terminal to ask at, found neither. Nothing was "
                "removed."
            )
        click.confirm(f"Remove {run} and all it has learnt?", abort=True, err=True)
    remove_run(run)
    say(f"{run}: removed")
