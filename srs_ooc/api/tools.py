"""Calls beside a run: plan, verify, compact, synth."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from srs_ooc.api import folder_of
from srs_ooc.base.budget import growth_counted
from srs_ooc.base.options import checked, megabytes_given, place_given, python_spelling
from srs_ooc.base.text import MB
from srs_ooc.ensemble.compaction import N_FOLDS, N_REPEATS, SmallSet, rows_held_out
from srs_ooc.ensemble.compaction import compact as compacted
from srs_ooc.results.live import Progress, interruptible
from srs_ooc.results.result import Result
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.python_arguments import (
    NamesOrFile,
    asked_in_python,
    cluster_given,
)
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import DEFAULT_WORKER_MEMORY_MB
from srs_ooc.runs.run import Run
from srs_ooc.runs.verification import Verification
from srs_ooc.runs.verification import verify as verified
from srs_ooc.store.opening import StoreOrPath, store_of


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
