"""Networks from Python: what ``srs-ooc network`` does, as calls."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from srs_ooc.api.runs import StoreOrPath, store_of
from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import python_spelling
from srs_ooc.networks.network_options import Network, NetworkParams, NetworkRequest
from srs_ooc.networks.network_plan import PLANNED_OUT, make_network_plan, network_plan_values
from srs_ooc.networks.network_run import work_on_network
from srs_ooc.results.live import Progress, interruptible
from srs_ooc.runs.resources import DEFAULT_WORKER_MEMORY_MB
from srs_ooc.runs.settling import DEFAULT_MEMORY_MB, NamesOrFile, cluster_given, names_file
from srs_ooc.store.store import Store


def network(
    store: StoreOrPath,
    out: str | Path,
    *,
    regulators: NamesOrFile = None,
    targets: NamesOrFile = None,
    rows: NamesOrFile = None,
    run: str | Path | None = None,
    top: int | None = None,
    memory_mb: int = DEFAULT_MEMORY_MB,
    threads: int | None = None,
    client: Any = None,
    worker_memory_mb: int = DEFAULT_WORKER_MEMORY_MB,
    progress: Progress = None,
    **options: Any,
) -> Network:
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
    with python_spelling(), growth_counted(), TemporaryDirectory(prefix="srs-ooc-") as scratch:
        request = NetworkRequest(
            Path(out),
            NetworkParams.settle(_options(options), None),
            **_name_files(Path(scratch), regulators=regulators, targets=targets, rows=rows),
            run=None if run is None else Path(run),
            top=top,
            memory_mb=memory_mb,
            threads=threads,
            cluster=cluster_given(client, worker_memory_mb),
        )
        return _work(store_of(store), request, progress)


def plan_network(
    store: StoreOrPath,
    *,
    regulators: NamesOrFile = None,
    targets: NamesOrFile = None,
    rows: NamesOrFile = None,
    top: int | None = None,
    memory_mb: int = DEFAULT_MEMORY_MB,
    threads: int | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Say what a network would need and take, before it is begun. Writes nothing.

    The same as ``srs-ooc network STORE --plan --json``. A few targets are worked on for about a
    second, longer where a tree takes longer; the rest is multiplied.

    Parameters
    ----------
    store, regulators, targets, rows, top, memory_mb, threads, **options
        As for :func:`network`.

    Returns
    -------
    dict
        Sizes in MB of 10^6 bytes, times in seconds; ``measured`` and ``extrapolated`` say where the
        time comes from, ``smallest_memory_mb`` is the smallest cap that works.

    Raises
    ------
    UsageError, StoreError, BudgetError
        As on the command line.
    """
    with python_spelling(), growth_counted(), TemporaryDirectory(prefix="srs-ooc-") as scratch:
        request = NetworkRequest(
            PLANNED_OUT,
            NetworkParams.settle(_options(options), None),
            **_name_files(Path(scratch), regulators=regulators, targets=targets, rows=rows),
            top=top,
            memory_mb=memory_mb,
            threads=threads,
        )
        return network_plan_values(make_network_plan(store_of(store), request))


def _name_files(scratch: Path, **given: NamesOrFile) -> dict[str, Any]:
    """Return the files of names, by option; names that are no file are written to ``scratch``."""
    return {option: names_file(names, scratch / option, option) for option, names in given.items()}


def _work(store: Store, request: NetworkRequest, progress: Progress) -> Network:
    """Work until it is done, interrupted, or a callable of the user's raises.

    Raises
    ------
    KeyboardInterrupt
        Once all that is done is kept, if there was a Ctrl-C.
    """
    with interruptible(progress) as watch:
        return work_on_network(store, request, watch)


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a network by their full names.

    Raises
    ------
    UsageError
        If one is not known.
    """
    known = NetworkParams.options()
    found = {"max_features" if name == "k" else name: value for name, value in given.items()}
    unknown = [name for name in found if name not in known]
    if unknown or len(found) < len(given):
        raise UsageError(
            f"{(unknown or ['max_features'])[0]}: expected options of a network, each once: "
            f"{', '.join(known)}; found another. `srs-ooc network --help` says what they mean."
        )
    return {name: value for name, value in found.items() if value is not None}
