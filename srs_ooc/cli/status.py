"""``srs-ooc status``."""

from pathlib import Path

import click

from srs_ooc.cli.output import echo_json
from srs_ooc.ledger import Ledger
from srs_ooc.report.status import status_of


@click.command("status")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status_command(run: Path, as_json: bool) -> None:
    """Show where RUN stands: state, iterations, features selected, memory, time."""
    ledger = Ledger(run, writable=False)
    status = status_of(ledger)
    ledger.close()
    if as_json:
        echo_json(vars(status))
        return
    for name, value in vars(status).items():
        click.echo(f"{name.replace('_', ' '):>18}  {value}")
