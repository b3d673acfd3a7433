"""``srs-ooc network`` and ``srs_ooc.network``: regulators of every target, as ranked edges."""

import sys
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import click

import srs_ooc.extend as core
from srs_ooc.methods.networks import network_run

_HOW = ("regulators", "targets", "rows", "run", "top", "threads", "cluster")
"""Options that are fields of a request."""


_FILE = click.Path(path_type=Path)
_OPTIONS = [
    click.option("--regulators", type=_FILE, metavar="FILE",
                 help="Features that may regulate, one name a line.  [default: all]"),
    click.option("--targets", type=_FILE, metavar="FILE",
                 help="Features to explain, one name a line.  [default: all numeric]"),
    click.option("--rows", type=_FILE, metavar="FILE", help="Row ids to train on, one a line."),
    *(core.option_of(n, o, network_run.owner_of(n))
      for n, o in network_run.network_options().items()),
    click.option("--out", type=_FILE, metavar="EDGES",
                 help="CSV or Parquet file for the edges; required."),
    click.option("--run", type=_FILE, metavar="RUN",
                 help="Folder of what is done.  [default: EDGES with .network]"),
    click.option("--top", type=core.COUNT, metavar="N",
                 help="Only the N heaviest edges.  [default: all above 0]"),
]  # fmt: skip
_FIRST = ("--out", "--regulators", "--targets", "--method", "--top", "--seed", "--memory-mb")


@core.store_command("network", _FIRST, _OPTIONS)
def network_command(
    store: core.StoreOrPath, out: Path | None, memory_mb: int, as_json: bool, **given: Any
) -> None:
    """Weigh the regulators of every target of STORE, and write the edges, heaviest first.

    A target is a feature of STORE: one regression of its values on all regulators but itself.
    STORE's own target is not looked at. The same command again goes on where it was interrupted.

    \b
    regulator, target         names of features
    weight                    genie3, srs: share of the target's variance; prs: probability that a
                              model is given the regulator; edges of weight 0 are left out

    \b
    Examples:
      srs-ooc network genes.zarr --regulators factors.txt --out edges.csv
      srs-ooc network genes.zarr --with ensemble=extra-trees --out edges.csv
      srs-ooc network genes.zarr --method srs --out edges.csv --top 1000
      srs-ooc network genes.zarr --method prs --with joint=0.001 --out edges.csv
    """
    core.process_nbytes()  # of the program alone, before there is work
    how = {name: given.pop(name) for name in _HOW} | {"safe": given.pop("safe_csv")}
    shows = given.pop("shows")
    params = network_run.settle_network(given)
    if out is None:
        raise core.UsageError(
            "--out: expected the name of the file of edges, found none. Give one."
        )
    request = network_run.NetworkRequest(out, params, memory_mb=memory_mb, **how)
    with core.watched(core.RunProgress(memory_mb, shows)) as (watch, received):
        note = partial(core.say, err=True)
        network = network_run.work_on_network(
            core.store_of(store), request, watch, note, network_run.QUICK_SECONDS
        )
    if not network.is_done:
        targets = f"{network.n_done} of {network.n_targets} targets"
        done = core.counted(network.n_epochs, "epoch") if network.n_epochs else targets
        core.say(
            f"stopped after {done}; nothing is lost. The "
            f"same command goes on; what is done is in {quote(network.run)}.",
            err=True,
        )
        sys.exit(128 + sum(received))
    if as_json:
        core.echo_json(vars(network))
        return
    counts = network.n_edges, network.n_regulators, network.n_targets
    edges, regulators, targets = map(core.counted, counts, ("edge", "regulator", "target"))
    constant = f" ({network.n_constant:,} constant, without edges)" * bool(network.n_constant)
    core.say(f"{network.out}: {edges} from {regulators} to {targets}{constant}")
    core.say(
        f"{network.seconds:.1f} s of work; peak memory {network.peak_mb:.0f} MB of {memory_mb} MB. "
        f"What is done is kept in {network.run}."
    )


def network(
    store: core.StoreOrPath,
    out: str | Path,
    *,
    regulators: core.NamesOrFile = None,
    targets: core.NamesOrFile = None,
    rows: core.NamesOrFile = None,
    run: str | Path | None = None,
    top: int | None = None,
    memory_mb: int = core.DEFAULT_MEMORY_MB,
    threads: int | None = None,
    client: Any = None,
    worker_memory_mb: int = core.DEFAULT_WORKER_MEMORY_MB,
    progress: core.Progress = None,
    **options: Any,
) -> network_run.Network:
    """Weigh the regulators of every target of a store, and write the edges, the heaviest first.

    The same as ``srs-ooc network``, to the byte. Ctrl-C keeps the targets that are done; the same
    call goes on.

    Parameters
    ----------
    store : Store or path
        The store. A target is one of its features; its own target is not looked at.
    out : path
        CSV or Parquet file of the edges: ``regulator``, ``target``, ``weight``.
    regulators, targets : path or iterable of str, optional
        Names of features: a file with one a line, or the names. All, if not given.
    rows : path or iterable of str, optional
        Row ids to train on, likewise.
    run : path, optional
        Folder of what is done; ``out`` with ``.network`` if not given.
    top : int, optional
        Only so many edges.
    memory_mb : int
        Cap, as of :func:`run`.
    threads : int, optional
        Workers; the cores there are, if not given. No result depends on it.
    client, worker_memory_mb, progress
        As for :func:`run`; targets are spread over the client's workers.
    **options
        Of the network's identity: ``method`` (genie3, srs, prs) and ``seed``; of genie3
        ``ensemble``, ``max_features`` (or ``k``), ``trees``, ``thresholds``; of srs ``trees``,
        ``subspace_size``, ``alpha`` and the probe's; of prs ``joint``, ``epochs``, ``models``,
        ``folds`` and others: see ``srs-ooc network --help``.

    Returns
    -------
    Network
        What was done.

    Raises
    ------
    UsageError, StoreError, RunError, BudgetError
        As on the command line.
    """
    named = {"regulators": regulators, "targets": targets, "rows": rows}
    with core.asked_in_python(**named) as files:
        known = network_run.network_options()
        found = {"max_features" if name == "k" else name: value for name, value in options.items()}
        unknown = [name for name in found if name not in known]
        if unknown or len(found) < len(options):
            raise core.UsageError(
                f"{(unknown or ['max_features'])[0]}: expected options of a network, each once: "
                f"{', '.join(known)}; found another. `srs-ooc network --help` says what they mean."
            )
        how: dict[str, Any] = {**files, "top": top, "memory_mb": memory_mb, "threads": threads}
        how |= {"run": None if run is None else Path(run)}
        how |= {"cluster": core.cluster_given(client, worker_memory_mb)}
        request = network_run.NetworkRequest(Path(out), network_run.settle_network(found), **how)
        with core.interruptible(progress) as watch:
            return network_run.work_on_network(core.store_of(store), request, watch)
