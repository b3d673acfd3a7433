"""``srs-ooc network``: regulators of every target, as ranked edges."""

import sys
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import click

from srs_ooc.base.budget import process_nbytes
from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import counted
from srs_ooc.base.urls import Place
from srs_ooc.cli.output import (
    FILE,
    MEMORY_OPTION,
    PROGRESS_OPTIONS,
    SAFE_OPTION,
    STORE,
    THREADS_OPTION,
    echo_json,
    say,
    with_options,
)
from srs_ooc.cli.run_options import ByPart, option_of, read_config, with_cluster
from srs_ooc.networks.network_run import (
    QUICK_SECONDS,
    Network,
    NetworkRequest,
    network_options,
    owner_of,
    settle_network,
    work_on_network,
)
from srs_ooc.results.live import RunProgress, watched
from srs_ooc.store.opening import open_store

_HOW = ("regulators", "targets", "rows", "run", "top", "threads", "cluster")
"""Options that are fields of a request."""


@click.command("network", cls=ByPart, first=(
    "--out", "--regulators", "--targets", "--method", "--top", "--seed", "--memory-mb",
))  # fmt: skip
@click.argument("store", type=STORE)
@click.option("--regulators", type=FILE, metavar="FILE",
              help="Features that may regulate, one name a line.  [default: all]")  # fmt: skip
@click.option("--targets", type=FILE, metavar="FILE",
              help="Features to explain, one name a line.  [default: all numeric]")  # fmt: skip
@click.option("--rows", type=FILE, metavar="FILE", help="Row ids to train on, one a line.")
@with_options([option_of(n, o, owner_of(n)) for n, o in network_options().items()])
@click.option("--out", type=FILE, metavar="EDGES",
              help="CSV or Parquet file for the edges; required.")  # fmt: skip
@click.option("--run", type=FILE, metavar="RUN",
              help="Folder of what is done.  [default: EDGES with .network]")  # fmt: skip
@click.option("--top", type=click.IntRange(1), metavar="N",
              help="Only the N heaviest edges.  [default: all above 0]")  # fmt: skip
@THREADS_OPTION
@click.option("--json", "as_json", is_flag=True, help="What was done as JSON.")
@click.option("--config", type=FILE, is_eager=True, expose_value=False, callback=read_config,
              metavar="FILE.toml", help="Options from a TOML file; flags win over it.")  # fmt: skip
@SAFE_OPTION
@MEMORY_OPTION
@with_cluster
@with_options(PROGRESS_OPTIONS)
def network_command(
    store: Place, out: Path | None, memory_mb: int, as_json: bool, **given: Any
) -> None:
    """Weigh the regulators of every target of STORE, and write the edges, heaviest first.

    A target is a feature of STORE: one regression of its values on all regulators but itself.
    STORE's own target is not looked at. The same command again goes on where it was interrupted.

    \b
    regulator, target         names of features
    weight                    genie3, srs: share of the target's variance; prs: probability that a
                              model is given the regulator; edges of weight 0 are left out
    """
    process_nbytes()  # of the program alone, before there is work
    how = {name: given.pop(name) for name in _HOW} | {"safe": given.pop("safe_csv")}
    shows = given.pop("shows")
    params = settle_network({k: v for k, v in given.items() if v is not None})
    if out is None:
        raise UsageError("--out: expected the name of the file of edges, found none. Give one.")
    request = NetworkRequest(out, params, memory_mb=memory_mb, **how)
    with watched(RunProgress(memory_mb, shows)) as (watch, received):
        note = partial(say, err=True)
        network = work_on_network(open_store(store), request, watch, note, QUICK_SECONDS)
    if not network.is_done:
        say(
            f"stopped after {_done(network)}; nothing is lost. The "
            f"same command goes on; what is done is in {quote(network.run)}.",
            err=True,
        )
        sys.exit(128 + sum(received))
    if as_json:
        echo_json(vars(network))
    else:
        _report(network, memory_mb)


def _done(network: Network) -> str:
    if network.n_epochs:
        return counted(network.n_epochs, "epoch")
    return f"{network.n_done} of {network.n_targets} targets"


def _report(network: Network, memory_mb: int) -> None:
    edges, regulators = counted(network.n_edges, "edge"), counted(network.n_regulators, "regulator")
    targets = counted(network.n_targets, "target")
    constant = f" ({network.n_constant:,} constant, without edges)" * bool(network.n_constant)
    say(f"{network.out}: {edges} from {regulators} to {targets}{constant}")
    say(
        f"{network.seconds:.1f} s of work; peak memory {network.peak_mb:.0f} MB of {memory_mb} MB. "
        f"What is done is kept in {network.run}."
    )
