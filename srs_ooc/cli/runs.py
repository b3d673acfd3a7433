"""``srs-ooc runs``."""

from pathlib import Path

import click

from srs_ooc.cli.output import say, stream_json, stream_table
from srs_ooc.results.standing import list_runs

_COLUMNS = {
    "path": 32, "kind": 7, "state": 14, "done": 18, "n_selected": 10, "n_rows": 8, "n_features": 10,
}  # fmt: skip


@click.command("runs")
@click.argument("folder", type=click.Path(path_type=Path), default=Path())
@click.option("--json", "as_json", is_flag=True, help="A JSON list; keys as below, and store.")
def runs_command(folder: Path, as_json: bool) -> None:
    """List the runs and stores in FOLDER and up to three folders below it.

    \b
    path, kind                where it is from FOLDER; run, network or store
    state                     running, stopped or finished; of a store complete
    done                      iterations of a run, targets of a network, of how many;
                              with --json iterations, iterations_asked, targets_done,
                              n_targets
    n_selected                of a run
    n_rows, n_features        of a store
    """
    found = list_runs(folder)
    if as_json:
        stream_json(found)
    elif found:
        stream_table(_COLUMNS, found)
    else:
        say(f"{folder}: no runs and no stores")
