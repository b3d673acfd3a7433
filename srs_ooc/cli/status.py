"""``srs-ooc status``, ``runs`` and ``remove``."""

import sys
from pathlib import Path
from shlex import quote
from typing import Any

import click

from srs_ooc.base.budget import Budget, Lease
from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB, counted, describe_nbytes, describe_seconds
from srs_ooc.cli.output import FILE, MEMORY_OPTION, echo_json, say, stream_json, stream_table
from srs_ooc.results import standing
from srs_ooc.results.feature_record import lambda_text
from srs_ooc.results.ranking import READING_NBYTES
from srs_ooc.runs.ledger import FILE as LEDGER_FILE
from srs_ooc.runs.run import Run
from srs_ooc.store.arrays import OWN


@click.command("status")
@click.argument("run", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object; keys as listed below.")
@MEMORY_OPTION
def status_command(run: Path, as_json: bool, memory_mb: int) -> None:
    """Show where RUN stands: whether it is done, what it found, what is left and what to do next.

    RUN may be the folder of a network, too.

    \b
    Keys of --json:
      state                     "running", "stopped" or "finished"
      iterations, iterations_asked
      n_selected                features selected so far
      method, judge, alpha, ...  every option of a run's identity, as `run --help-all`
                                lists them; null where it does not apply. model and what
                                goes with it only where it is not tree
      rows, excluded            "all" and "none", or how many and their digest
      memory_mb, peak_rss_mb    cap and largest resident size, MB of 10^6 bytes
      seconds, seconds_per_iteration
                                of work, over all sittings
      planned_iterations, planned_seconds_per_iteration
                                as expected when the run was made, or null
      store                     where the store is
      lambda, lambda_error      median of z^2 of all features' tests over that of chance,
                                1 is right, and its error; null before a verdict
      n_effective               independent features that would have this error
      trees_nbytes              bytes of the trees kept; null if none are
      memory_is_growth          whether peak_rss_mb is by how much the process grew, as
                                of runs made from Python
      halves                    only of a run with --halves: asked, done; n_selected by
                                each; agreement of the first 20 features of two that
                                share no row (mean share)
      target                    only of a run on an added target: its name and digest
    Of the folder of a network: state, targets, targets_asked, identity,
    peak_rss_mb, seconds.

    \b
    Examples:
      srs-ooc status data.run
      srs-ooc status data.run --json
    """
    Budget(memory_mb * MB, [Lease("the run's record and verdict", READING_NBYTES)]).check()
    with Run(run, writable=False) as ledger:
        if (values := standing.network_values(ledger)) is not None:
            lines = [
                ("state", values["state"]),
                ("targets", f"{values['targets']} of {values['targets_asked']}"),
                ("memory", f"{values['peak_rss_mb']:.0f} MB (peak)"),
                ("time", f"{values['seconds']:.1f} s of work"),
                ("network", _listed(values["identity"])),
            ]
        else:
            status = standing.status_of(ledger)
            values, lines = standing.values_of(status), _lines(status, quote(str(run)))
    if as_json:
        echo_json(values)
        return
    for name, value in lines:
        say(f"{name:<12}{value}")


def _lines(status: standing.Status, run: str) -> list[tuple[str, str]]:
    is_short = status.is_provisional or status.iterations < status.iterations_asked
    halves, inflation = status.halves or {}, lambda_text(status.inflation)
    n, each = status.iterations_asked - status.iterations, status.seconds_per_iteration
    about = f", about {describe_seconds(n * each)} of work" if each and n else ""
    left = f"{counted(n, 'iteration')}{about}{', then the verdict' * status.is_provisional}"
    return [
        ("state", status.state),
        ("selected", _selected(status)),
        *([("lambda", inflation.removeprefix("Lambda "))] if inflation else []),
        ("iterations", f"{status.iterations} of {status.iterations_asked}"),
        *([("left", left)] if is_short else []),
        ("next", _next(status, run)),
        ("memory", status.memory),
        ("time", f"{status.seconds:.1f} s of work"),
        ("store", status.store),
        *([] if status.target == OWN else [("target", status.target)]),
        *((name, _listed(values)) for name, values in status.parts.items()),
        ("saved trees", "none" if status.trees_nbytes is None
                        else describe_nbytes(status.trees_nbytes)),
        ("rows", status.rows),
        ("excluded", status.excluded),
        ("planned", _planned(status)),
        *([("halves", f"{halves['done']} of {halves['asked']} done")] if halves else []),
    ]  # fmt: skip


def _selected(status: standing.Status) -> str:
    if status.is_provisional:
        return "no verdict yet: it comes after the iterations"
    if status.ranks_only:
        return "none: this method ranks features"
    return counted(status.n_selected, "feature")


def _next(status: standing.Status, run: str) -> str:
    if status.state == "running":
        return f"wait; the ranking so far: srs-ooc features {run}"
    is_enough = status.n_selected or status.ranks_only
    more = "" if is_enough else f"; more iterations: srs-ooc resume {run} --iterations T"
    return f"srs-ooc resume {run}" if status.state == "stopped" else f"srs-ooc features {run}{more}"


def _listed(values: dict[str, Any]) -> str:
    """Return options and their values, as the command line spells them."""
    shown = {n.replace("_", "-"): "none" if v is None else v for n, v in values.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items()) or "no options"


def _planned(status: standing.Status) -> str:
    if status.planned_iterations is None or status.planned_seconds_per_iteration is None:
        return "nothing"
    planned = 1000 * status.planned_seconds_per_iteration
    text = f"{status.planned_iterations:,} iterations, estimated at {planned:.3g} ms each"
    if status.seconds_per_iteration is None:
        return text
    actual = 1000 * status.seconds_per_iteration
    return f"{text}; the {status.iterations:,} done took {actual:.3g} ms each"


@click.command("remove")
@click.argument("run", type=FILE)
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove_command(run: Path, yes: bool) -> None:
    """Remove RUN with all it has learnt; its store stays.

    Asks first where there is a terminal, and wants --yes where there is none.

    \b
    Examples:
      srs-ooc remove data.run
      srs-ooc remove data.run --yes
    """
    if not yes and (run / LEDGER_FILE).is_file():
        if not sys.stdin.isatty():
            raise UsageError(
                f"{run}: expected --yes, or a terminal to ask at, found neither. Nothing was "
                "removed."
            )
        click.confirm(f"Remove {run} and all it has learnt?", abort=True, err=True)
    standing.remove_run(run)
    say(f"{run}: removed")


_COLUMNS = {
    "path": 32, "kind": 7, "state": 14, "done": 18, "n_selected": 10, "n_rows": 8, "n_features": 10,
}  # fmt: skip


@click.command("runs")
@click.argument("folder", type=FILE, default=Path())
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

    \b
    Examples:
      srs-ooc runs
      srs-ooc runs results --json
    """
    found = standing.list_runs(folder)
    if as_json:
        stream_json(found)
    elif found:
        stream_table(_COLUMNS, found)
    else:
        say(f"{folder}: no runs and no stores")
