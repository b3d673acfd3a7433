"""What the command line does, as calls that print nothing; ``srs_ooc`` itself exports them.

Here stand ``srs_ooc.run``, ``resume``, ``open_run`` and what they need; the others load later.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import UsageError
from srs_ooc.base.frames import frame_of_columns
from srs_ooc.base.options import checked, path_given, place_given, python_spelling
from srs_ooc.base.urls import Url
from srs_ooc.planning.speed import planned_run
from srs_ooc.results.live import Progress, interruptible
from srs_ooc.results.result import Result
from srs_ooc.runs.python_arguments import (
    NamesOrFile,
    asked_in_python,
    cluster_given,
)
from srs_ooc.runs.request import Request, asked_run_path
from srs_ooc.runs.resources import DEFAULT_WORKER_MEMORY_MB
from srs_ooc.runs.run import Run
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.spec import declared
from srs_ooc.store.opening import StoreOrPath, store_of
from srs_ooc.store.opening import open_store as opened_at
from srs_ooc.store.store import Store

if TYPE_CHECKING:
    from srs_ooc.store.remote_cache import CacheOptions

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""A row id that is a whole number, and the only text for it."""


def open_store(path: str | Path | Url, cache: "CacheOptions | None" = None) -> Store:
    """Open a store: its names, row ids, target and values, each read when asked for.

    Parameters
    ----------
    path : path or URL
        Its folder.
    cache : CacheOptions, optional
        Where and how much is kept on this disk of a store at a URL.

    Raises
    ------
    StoreError
        If there is none, or its manifest is damaged.
    """
    return opened_at(place_given(path, "store"), cache=cache)


def run(
    store: StoreOrPath,
    *,
    out: str | Path | None = None,
    method: str | None = None,
    judge: str | None = None,
    iterations: int | None = None,
    memory_mb: int | None = None,
    threads: int | None = None,
    halves: int | None = None,
    rows: NamesOrFile = None,
    exclude: NamesOrFile = None,
    validation_rows: NamesOrFile = None,
    exclude_missing: bool = False,
    save_trees: bool | None = None,
    fresh: bool = False,
    target: str | None = None,
    client: Any = None,
    worker_memory_mb: int = DEFAULT_WORKER_MEMORY_MB,
    progress: Progress = None,
    **options: Any,
) -> Result:
    """Select features of a store: start a run, or go on with the one that is there.

    The same as ``srs-ooc run``, to the bit. Ctrl-C stops after the iteration under way: its state
    is committed, then ``KeyboardInterrupt`` is raised, and :func:`resume` or the same call goes on.
    A second Ctrl-C stops at once, and costs what was done since the last commit, a second or so.

    Parameters
    ----------
    store : Store, path or URL
        The store.
    out : path, optional
        Folder of the run; the store's stem with ``.run``, beside it, if not given; of a
        store at a URL, in the current folder.
    method : str, optional
        How subspaces are chosen. Default: srs.
    judge : str, optional
        Test of relevance: a final verdict by tests of features alone and beside others
        (docs/evidence.md), the paper's probe, or any positive importance; none for a method that
        only ranks. Default: tests; probe with its own options or save_trees; none with method
        prs or rase.
    iterations : int, optional
        Iterations in total, those already done included. If not given, as last asked for; of a new
        run as ``srs-ooc plan`` advises.
    memory_mb : int, optional
        Cap in MB of 10^6 bytes, as last asked for if not given, 512 for a new run. It is on growth:
        what the process held when the call began does not count. Of the cap, 56 MB are set aside
        for libraries, as on the command line.
    threads : int, optional
        Workers; the cores there are, if not given. Results do not depend on it.
    halves : int, optional
        Then repeat the search on so many random halves of the rows; :attr:`Result.halves` and the
        column ``halves`` of the features say what they select. As last asked for, if not given.
    rows : path or iterable of str, optional
        Row ids to train on: a file with one a line, or the ids.
    exclude : path or iterable of str, optional
        Names of features to leave out, likewise.
    validation_rows : path or iterable of str, optional
        Of a method that holds rows out: their row ids, likewise.
    exclude_missing : bool
        Leave out features with missing values.
    save_trees : bool, optional
        Keep every tree (of ``prs`` and ``rase`` the models of the end), to predict by.
    fresh : bool
        Begin another run beside those there are, in a folder that is free, instead of ``out``.
    target : str, optional
        Name of a target that was added to the store; rows without it are left out, and the run's
        folder has its name. The store's own, if not given.
    client : distributed.Client, optional
        Trees are grown on the workers of this Dask client; results do not depend on it.
    worker_memory_mb : int
        With a client: what each worker process may grow by, in MB of 10^6 bytes.
    progress : bool or callable, optional
        True: a bar. A callable gets each :class:`srs_ooc.base.records.Step`.
    **options
        Any other option of a run's identity, such as ``alpha``, ``subspace_size`` (or ``q``),
        ``max_features`` (or ``k``), ``fdr``, ``seed``: all that ``srs-ooc run --help-all`` lists,
        with underscores. :func:`options` returns them with what they mean.

    Returns
    -------
    Result
        What the run says.

    Raises
    ------
    UsageError, StoreError, RunError, BudgetError
        As on the command line.
    """
    named = {"exclude": exclude, "rows": rows, "validation_rows": validation_rows}
    with asked_in_python(**named) as files:
        opened = store_of(store)
        request = Request(
            options={"method": method, "judge": judge} | options,
            exclude_file=files["exclude"],
            rows_file=files["rows"],
            exclude_missing=exclude_missing,
            iterations=iterations,
            memory_mb=memory_mb,
            threads=threads,
            save_trees=save_trees,
            validation_file=files["validation_rows"],
            cluster=cluster_given(client, worker_memory_mb),
            halves=halves,
            target=target,
        )
        place, is_fresh = checked(out=out, fresh=fresh)
        added = None if target == opened.own_target else target
        folder = asked_run_path(opened.place, place, fresh=is_fresh, target=added)
        ledger = open_or_create(opened, folder, request, planned_run)
        with ledger, interruptible(progress) as watch:
            work_on(ledger, ledger.seen(opened), request, watch)
    return Result(folder)


def resume(
    run: Result | str | Path,
    *,
    store: StoreOrPath | None = None,
    iterations: int | None = None,
    memory_mb: int | None = None,
    threads: int | None = None,
    halves: int | None = None,
    accept_loss: bool = False,
    client: Any = None,
    worker_memory_mb: int = DEFAULT_WORKER_MEMORY_MB,
    progress: Progress = None,
) -> Result:
    """Go on with a run where it was interrupted, or to more iterations.

    Parameters
    ----------
    run : Result or path
        The run.
    store : Store or path, optional
        Its store, if it was moved.
    iterations, memory_mb, threads, halves, client, worker_memory_mb, progress
        As for :func:`run`.
    accept_loss : bool
        Where commits of the run were lost, go on from what is left.

    Returns
    -------
    Result
        What the run says.

    Raises
    ------
    RunError, StoreError, UsageError, BudgetError
        As on the command line.
    """
    folder = folder_of(run)
    with python_spelling(), growth_counted():
        request = Request(
            iterations=iterations,
            memory_mb=memory_mb,
            threads=threads,
            cluster=cluster_given(client, worker_memory_mb),
            halves=halves,
        )
        (accepts,) = checked(accept_loss=accept_loss)
        with Run(folder, writable=True, accept_loss=accepts) as ledger:
            found = ledger.find_store(None if store is None else store_of(store).place)
            with interruptible(progress) as watch:
                work_on(ledger, found, request, watch)
    return Result(folder)


def open_run(path: str | Path, store: StoreOrPath | None = None) -> Result:
    """Open a run for reading; it may be going on.

    Parameters
    ----------
    path : path
        The run's folder.
    store : Store or path, optional
        Its store, if it was moved.

    Raises
    ------
    RunError
        If there is no run, or it is damaged.
    """
    place = store.place if isinstance(store, Store) else store and place_given(store, "store")
    return Result(path_given(path, "run"), place)


def read(store: StoreOrPath, names: Iterable[str], kind: str = "pandas") -> Any:
    """Return the values of some features of a store; only the chunks that hold them are read.

    Parameters
    ----------
    store : Store or path
        The store; it must keep values.
    names : iterable of str
        The features, in the order wanted.
    kind : {'pandas', 'polars', 'records'}
        A DataFrame with a column a feature, or a list of dicts. Categories are texts.

    Returns
    -------
    DataFrame or list of dict
        Rows without a target are not in a store, so each row says which it is: in pandas the index,
        else a first column, ``index`` or what the table calls its row ids. Row ids that are whole
        numbers are integers. A table without row ids has its rows counted from 0, as pandas counts
        them (the store's own row ids are counted from 1): ``frame.iloc[values.index]``.

    Raises
    ------
    UsageError
        If a name is none of the store's.
    StoreError
        If the store is damaged, or keeps no values.
    """
    from srs_ooc.results.exporting import values_of

    with python_spelling(), growth_counted():
        opened, wanted = store_of(store), [names] if isinstance(names, str) else list(names)
        places = opened.names.find(wanted)
        absent = [name for name, place in zip(wanted, places.tolist(), strict=True) if place < 0]
        if absent:
            raise UsageError(
                f"names: expected features of {opened.place}, found {absent[0]!r}, which is none."
            )
        with opened.unchanged():
            values = values_of(opened, places)
        columns = {name: values[:, i].tolist() for i, name in enumerate(wanted)}
        id_name, ids = opened.manifest.row_id_name, list[Any](opened.row_ids)
        if all(map(_WHOLE.fullmatch, ids)):  # without ids rows are counted from 0
            ids = [int(text) - (id_name is None) for text in ids]
        return frame_of_columns(kind, columns, (id_name, ids))


def options() -> Mapping[str, str]:
    """Return what may be given to :func:`run` as further options: help by name."""
    return {name: option.help for name, option in declared().items()}


def folder_of(run: Result | str | Path) -> Path:
    """Return the folder of a run, given as it or as its path."""
    return run.run if isinstance(run, Result) else path_given(run, "run")
