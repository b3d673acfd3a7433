"""What the command line does, as calls that print nothing; ``srs_ooc`` itself exports them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import UsageError
from srs_ooc.base.frames import frame_of_columns
from srs_ooc.base.options import (
    checked,
    megabytes_given,
    path_given,
    place_given,
    python_spelling,
)
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Url
from srs_ooc.ensemble.compaction import N_FOLDS, N_REPEATS, SmallSet, rows_held_out
from srs_ooc.ensemble.compaction import compact as compacted
from srs_ooc.planning.speed import planned_run
from srs_ooc.results.live import Progress, interruptible
from srs_ooc.results.result import Result
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import (
    NamesOrFile,
    Request,
    asked_in_python,
    asked_run_path,
    cluster_given,
)
from srs_ooc.runs.resources import DEFAULT_WORKER_MEMORY_MB
from srs_ooc.runs.run import Run
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.spec import declared
from srs_ooc.runs.verification import Verification
from srs_ooc.runs.verification import verify as verified
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


def plan(
    store: StoreOrPath | None = None,
    *,
    n_rows: int | None = None,
    n_features: int | None = None,
    n_classes: int | None = None,
    memory_mb: int | None = None,
    threads: int | None = None,
    rows: NamesOrFile = None,
    exclude: NamesOrFile = None,
    validation_rows: NamesOrFile = None,
    exclude_missing: bool = False,
    save_trees: bool = False,
    halves: int | None = None,
    target: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Say what a run would need, cost and could find, before it is started. Writes nothing.

    Parameters
    ----------
    store : Store or path, optional
        The store; the time of an iteration is measured by a few real ones.
    n_rows, n_features, n_classes : int, optional
        Without a store: a table known only by its numbers.
    memory_mb, threads, rows, exclude, validation_rows, exclude_missing, save_trees, halves, target
        As for :func:`srs_ooc.run`.
    **options
        Likewise.

    Returns
    -------
    dict
        With the keys of ``srs-ooc plan --json``; sizes in MB of 10^6 bytes, times in seconds.

    Raises
    ------
    UsageError, StoreError, BudgetError
        As on the command line.
    """
    from srs_ooc.planning.run_plan import plan_asked, plan_values

    named = {"exclude": exclude, "rows": rows, "validation_rows": validation_rows}
    with asked_in_python(**named) as files:
        request = Request(
            options=options,
            exclude_file=files["exclude"],
            rows_file=files["rows"],
            exclude_missing=exclude_missing,
            memory_mb=memory_mb,
            threads=threads,
            save_trees=save_trees,
            validation_file=files["validation_rows"],
            halves=halves,
            target=target,
        )
        place = None if store is None else (lambda: store_of(store))
        numbers = checked(n_rows=n_rows, n_features=n_features, n_classes=n_classes)
        return plan_values(plan_asked(place, request, *numbers))


def verify(path: str | Path, *, memory_mb: int = 512) -> Verification:
    """Read every byte of a store or a run that any call could use, and compare.

    Parameters
    ----------
    path : path
        The store's or the run's folder.
    memory_mb : int
        Cap on the growth of the process, in MB of 10^6 bytes.

    Raises
    ------
    StoreError, RunError
        Naming the first file that is damaged.
    BudgetError
        If the cap cannot hold it; the smallest that can is named.
    """
    with python_spelling(), growth_counted():
        return verified(place_given(path, "path"), int(megabytes_given(memory_mb) * MB))


def compact(
    run: Result | str | Path,
    *,
    store: StoreOrPath | None = None,
    max_features: int | None = None,
    folds: int = N_FOLDS,
    repeats: int = N_REPEATS,
    held_out_rows: str | Path | None = None,
    time_split: str | None = None,
    memory_mb: int | None = None,
    threads: int | None = None,
    client: Any = None,
    worker_memory_mb: int = DEFAULT_WORKER_MEMORY_MB,
    progress: Progress = None,
) -> SmallSet:
    """Find a small set of features that predicts about as well as any.

    The whole selection is repeated without the rows that each fold holds out. Folds that are done
    are kept in the run's folder: after Ctrl-C, the same call goes on.

    Parameters
    ----------
    run : Result or path
        The run; it must have its verdict.
    store : Store or path, optional
        Its store, if it was moved.
    max_features : int, optional
        Size of the set; the smallest within one standard error of the best, if not given.
    folds, repeats : int
        Parts of the rows, each held out once; how often the rows are parted anew.
    held_out_rows : path, optional
        In place of folds: a file of row ids, one a line, of the rows that are held out.
    time_split : str, optional
        The same of the fifth of the rows with the largest numbers in this covariate.
    memory_mb : int, optional
        Cap on growth; the run's, if not given.
    threads, client, worker_memory_mb, progress
        As for :func:`srs_ooc.run`; folds are spread over the client's workers.

    Raises
    ------
    RunError, StoreError, UsageError, BudgetError
        As on the command line.
    KeyboardInterrupt
        Once all that is done is kept, if there was a Ctrl-C.
    """
    folds, repeats, most = checked(folds=folds, repeats=repeats, max_features=max_features)
    (file,) = checked(held_out_rows=held_out_rows)
    with python_spelling(), growth_counted(), Run(folder_of(run), writable=True) as ledger:
        place = ledger.find_store(None if store is None else store_of(store).place)
        cluster = cluster_given(client, worker_memory_mb)
        held_out = rows_held_out(ledger, place, file, time_split)
        with interruptible(progress) as watch:
            asked = Request(memory_mb=memory_mb, threads=threads, cluster=cluster)
            whole = replace(Plan.of_run(ledger, place, asked), watch=watch)
            found = compacted(ledger, whole, folds, repeats, most, held_out)
        assert found is not None, "it was not stopped"
        return found


def synth(
    problem: str,
    out: str | Path,
    *,
    rows: int,
    features: int,
    relevant: int | None = None,
    seed: int = 0,
    **parameters: Any,
) -> dict[str, Any]:
    """Write a table whose relevant features are known, as ``srs-ooc synth`` does.

    Parameters
    ----------
    problem : str
        ``madelon``, ``chain``, ``blocks`` or ``noise``; ``srs-ooc synth --help`` says what they
        are.
    out : path
        A table that ends in ``.csv`` or ``.csv.gz``, or a store that ends in ``.zarr``; the truth
        is written beside it.
    rows, features : int
        Its size.
    relevant : int, optional
        Relevant features, of the problems that take a number.
    seed : int
        The same seed makes the same table.
    **parameters
        Further options of the problem, such as ``block_size`` or ``exact``.

    Returns
    -------
    dict
        The truth: ``problem``, ``parameters``, ``target``, ``relevant`` (names), ``roles``.

    Raises
    ------
    UsageError
        If the problem, a parameter or the path cannot be used.
    """
    from srs_ooc.synthetic import problem_of
    from srs_ooc.synthetic.problems import describe
    from srs_ooc.synthetic.table_files import write_table

    given = {"rows": rows, "features": features, "relevant": relevant, "seed": seed} | parameters
    with python_spelling(), growth_counted():
        made = problem_of(problem, {name: v for name, v in given.items() if v is not None})
        write_table(made, Path(out))
        return describe(made)
