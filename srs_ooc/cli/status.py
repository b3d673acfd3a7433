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
        shown = f"{value:.4g}" if "per_iteration" in name and value is not None else value
        click.echo(f"{name.replace('_', ' '):>29}  {'-' if shown is None else shown}")
    if status.planned_seconds_per_iteration and status.seconds_per_iteration:
        ratio = status.seconds_per_iteration / status.planned_seconds_per_iteration
        click.echo(
            f"planned {status.planned_iterations:,} iterations at "
            f"{1000 * status.planned_seconds_per_iteration:.4g} ms; did {status.iterations:,} at "
            f"{1000 * status.seconds_per_iteration:.4g} ms, {ratio:.2f} times the time planned"
        )
