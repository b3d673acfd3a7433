"""Before and after a run: ``srs_ooc.plan``, ``verify``, ``compact``, ``sensitivity``."""

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from srs_ooc.api.runs import StoreOrPath, store_of
from srs_ooc.base.budget import growth_counted
from srs_ooc.base.options import (
    megabytes_given,
    path_given,
    place_given,
    python_spelling,
    whole_given,
)
from srs_ooc.base.text import MB
from srs_ooc.ensemble.compaction import N_FOLDS, N_REPEATS, SmallSet, small_set
from srs_ooc.ensemble.compaction import compact as compacted
from srs_ooc.ensemble.feature_sensitivity import AUTO, REPEATS
from srs_ooc.ensemble.fold_runs import Site
from srs_ooc.planning.iterations import Numbers, subject_asked
from srs_ooc.planning.run_plan import make_plan, plan_values
from srs_ooc.results.live import Progress, interruptible
from srs_ooc.results.result import READING_MB, RunResult, Sensitivity
from srs_ooc.runs.inputs import find_store
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import DEFAULT_WORKER_MEMORY_MB
from srs_ooc.runs.settling import NamesOrFile, Request, cluster_given, named_options, names_file
from srs_ooc.runs.spec import Options
from srs_ooc.runs.verification import Verification
from srs_ooc.runs.verification import verify as verified


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
    **options: Any,
) -> dict[str, Any]:
    """Say what a run would need, cost and could find, before it is started. Writes nothing.

    Parameters
    ----------
    store : Store or path, optional
        The store; the time of an iteration is measured by a few real ones.
    n_rows, n_features, n_classes : int, optional
        Without a store: a table known only by its numbers.
    memory_mb, threads, rows, exclude, validation_rows, exclude_missing, **options
        As for :func:`srs_ooc.run`.

    Returns
    -------
    dict
        With the keys of ``srs-ooc plan --json``; sizes in MB of 10^6 bytes, times in seconds.

    Raises
    ------
    UsageError, StoreError, BudgetError
        As on the command line.
    """
    with python_spelling(), growth_counted(), TemporaryDirectory(prefix="srs-ooc-") as scratch:
        request = Request(
            Options(**named_options(options)),
            names_file(exclude, Path(scratch) / "exclude", "exclude"),
            names_file(rows, Path(scratch) / "rows", "rows"),
            exclude_missing,
            memory_mb=memory_mb,
            threads=threads,
            validation_file=names_file(
                validation_rows, Path(scratch) / "validation_rows", "validation_rows"
            ),
        )
        place = None if store is None else (lambda: store_of(store))
        given = {"n-rows": n_rows, "n-features": n_features, "n-classes": n_classes}
        numbers = Numbers(*(whole_given(n, f"--{name}") for name, n in given.items()))
        return plan_values(make_plan(subject_asked(place, numbers, request), request.options))


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
        cap = int(megabytes_given(memory_mb) * MB)
        return verified(place_given(path, "path"), cap)


def compact(
    run: RunResult | str | Path,
    *,
    store: StoreOrPath | None = None,
    max_features: int | None = None,
    folds: int = N_FOLDS,
    repeats: int = N_REPEATS,
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
    folder = _folder(run)
    with python_spelling(), growth_counted(), closing(Ledger(folder, writable=True)) as ledger:
        place = find_store(ledger, None if store is None else store_of(store).place)
        megabytes = whole_given(memory_mb, "--memory-mb") or int(ledger.meta("memory_mb"))
        folds, repeats = whole_given(folds, "--folds") or 0, whole_given(repeats, "--repeats") or 0
        max_features = whole_given(max_features, "--max-features")
        threads = whole_given(threads, "--threads")
        cluster = cluster_given(client, worker_memory_mb)
        with interruptible(progress) as watch:
            site = Site(place, megabytes, threads, watch, cluster)
            found = compacted(ledger, site, folds, repeats, max_features)
        assert found is not None, "it was not stopped"
        return small_set(found, place, max_features)


def sensitivity(
    run: RunResult | str | Path,
    *,
    rows: NamesOrFile = None,
    flip: str = AUTO,
    repeats: int = REPEATS,
    store: StoreOrPath | None = None,
    memory_mb: int = READING_MB,
    threads: int | None = None,
    progress: Progress = None,
) -> Sensitivity:
    """Rank features by what altering them does to what a run's trees say (RFEST).

    All features that the trees use are scored in one pass over rows and trees, on rows that trees
    were not grown on.

    Parameters
    ----------
    run : Result or path
        The run, made with ``save_trees``, and with ``bootstrap`` or rows held out by ``rows``.
    rows : path or iterable of str, optional
        Ids of the rows to ask about; those out of bag, if not given.
    flip : {'auto', 'mirror', 'permute'}
        How a feature is altered; ``auto`` flips those of two values and permutes all others.
    repeats : int
        Permutations, of which the mean is taken.
    store : Store or path, optional
        Its store, if it was moved.
    memory_mb : int
        Cap on growth, in MB of 10^6 bytes.
    threads, progress
        As for :func:`srs_ooc.run`.

    Returns
    -------
    Sensitivity
        ``features()`` is a frame with the columns of ``srs-ooc sensitivity --csv``; ``facts`` has
        the further keys of its ``--json``.

    Raises
    ------
    RunError, StoreError
        If the run keeps no trees, or the store is another.
    UsageError
        If rows are unknown or were trained on, or a feature cannot be altered so.
    BudgetError
        If the cap is too small.
    """
    place = None if store is None else store_of(store).path
    result = run if isinstance(run, RunResult) and place is None else RunResult(_folder(run), place)
    return result.sensitivity(
        rows=rows,
        flip=flip,
        repeats=repeats,
        memory_mb=memory_mb,
        threads=threads,
        progress=progress,
    )


def _folder(run: RunResult | str | Path) -> Path:
    return run.run if isinstance(run, RunResult) else path_given(run, "run")
