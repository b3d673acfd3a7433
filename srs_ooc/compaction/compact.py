"""Compacting a run: nested small sets, and what they are worth on rows held out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from shlex import quote

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.compaction.curve import Curve, sizes_up_to
from srs_ooc.compaction.fold_runs import (
    Fold,
    HeldRows,
    Site,
    Subject,
    nest_fold,
    nest_run,
    room_for,
    score_sizes,
)
from srs_ooc.compaction.fold_workers import folds_from_workers
from srs_ooc.compaction.records import FoldRecord, Records, WholeRecord
from srs_ooc.evidence.decoys import deal_folds
from srs_ooc.runs.inputs import Inputs, check_store, inputs_of, spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import noting
from srs_ooc.runs.session import is_done
from srs_ooc.runs.task import Task, check_cluster

N_FOLDS, N_REPEATS = 5, 2


@dataclass(frozen=True)
class Compacted:
    """Nested sets of a run, and their curve.

    Attributes
    ----------
    order : list of int
        Stored positions: the set of k features is the first k.
    stand_ins : list of list of int
        Of each of the order, those that can stand in for it, the most important first.
    n_selected : int
        Features the run selected.
    n_selected_within : list of int
        Features selected without the rows of each fold.
    curve : Curve
        Of scores on the rows of each fold.
    """

    order: list[int]
    stand_ins: list[list[int]]
    n_selected: int
    n_selected_within: list[int]
    curve: Curve

    def chosen(self, max_features: int | None = None) -> int:
        """Return the size of the chosen set: the smallest that is enough, or as many as asked."""
        if max_features is None:
            return self.curve.smallest()
        return min(max_features, len(self.order))


def compact(
    ledger: Ledger,
    site: Site,
    n_folds: int = N_FOLDS,
    n_repeats: int = N_REPEATS,
    max_features: int | None = None,
) -> Compacted | None:
    """Compact a run that is done; None if ``site.watch`` says no, to be gone on with later.

    The whole procedure is repeated without the rows of each fold: selection, closing stage,
    clusters and elimination. So scores are of rows that nothing has seen.

    Parameters
    ----------
    ledger : Ledger
        Of the run, open for writing: its lock is held meanwhile.
    site : Site
        The store, memory, workers, and who watches.
    n_folds, n_repeats : int
        Rows are held out in so many parts, so many times.
    max_features : int, optional
        A size to try besides those of :data:`srs_ooc.compaction.curve.SIZES`.

    Raises
    ------
    RunError
        If the run is not done, or is one on another store.
    UsageError, BudgetError
        If the run was given what cannot be made anew without some rows, rows cannot be dealt into
        folds, or the cap cannot hold the work.
    """
    check_store(ledger, site.store)
    _check_repeatable(ledger)
    if site.cluster is not None:
        check_cluster(spec_of(ledger))
    manifest = site.store.manifest
    n_iterations = ledger.progress().iteration
    if not n_iterations or not is_done(ledger, int(ledger.meta("iterations"))):
        raise RunError(
            f"{ledger.run}: expected a run that is done, found one after {n_iterations} "
            f"iterations. Bring it to its end with `srs-ooc resume {quote(str(ledger.run))}`."
        )
    records = Records(Records.folder_of(ledger.run, n_iterations, n_folds))
    whole = _whole(ledger, site, records)
    if whole is None:
        return None
    room = room_for(spec_of(ledger), inputs_of(ledger), manifest)
    most = min(len(whole.order), room)
    sizes = sizes_up_to(most, *([max_features] if max_features else []))
    folds = list(_splits(ledger, site, n_folds, n_repeats))
    subject = Subject.of(ledger)
    site = replace(site, watch=noting(ledger, site.cluster, site.watch))
    if site.cluster is None:
        done = _here(subject, site, records, folds, sizes)
    else:
        done = folds_from_workers(subject, site, records, folds, sizes)
    return None if done is None else _compacted(whole, done)


def _here(
    subject: Subject, site: Site, records: Records, folds: list[Fold], sizes: list[int]
) -> list[FoldRecord] | None:
    """Return the records of all folds, done one after another; None if stopped."""
    done: list[FoldRecord] = []
    for fold in folds:
        here = site.named(f"fold {len(done) + 1} of {len(folds)}")
        record = records.fold(fold.repeat, fold.fold)
        if record is None:
            record = nest_fold(subject, fold, records.run_of(fold.repeat, fold.fold), here)
            if record is None:
                return None
            records.keep_fold(record)
        finished = score_sizes(subject.spec, record, fold, sizes, here)
        records.keep_fold(record)
        if not finished:
            return None
        done.append(record)
    return done


def _check_repeatable(ledger: Ledger) -> None:
    """Refuse a run whose selection follows from what was made with rows that are to be held out."""
    inputs = inputs_of(ledger)
    given = {"--scores FILE": inputs.weights, "--validation-rows": inputs.validation}
    for option, array in given.items():
        if array is not None:
            raise UsageError(
                f"{ledger.run}: expected a run whose selection can be repeated without the rows "
                f"that are held out, found one with {option}: what the file says may come from "
                "all rows. Compact a run without it."
            )


def _whole(ledger: Ledger, site: Site, records: Records) -> WholeRecord | None:
    found = records.whole()
    if found is not None:
        return found
    nested = nest_run(ledger, site)
    if nested is None:
        return None
    candidates, sets = nested
    order = [int(feature) for feature in sets.order]
    stand_ins = {str(feature): sets.stand_ins(feature) for feature in order}
    record = WholeRecord(candidates.n_selected, order, stand_ins)
    records.keep_whole(record)
    return record


def _splits(ledger: Ledger, site: Site, n_folds: int, n_repeats: int) -> Iterator[Fold]:
    """Yield the folds: what is trained on and what is held out."""
    inputs, seed = inputs_of(ledger), spec_of(ledger).seed
    rows = np.arange(site.store.manifest.n_rows, dtype=np.int32)
    rows = rows if inputs.rows is None else inputs.rows
    task = Task.of(site.store, inputs, exchanges=True)
    target, strata, groups = task.target, task.strata, task.groups
    for repeat in range(n_repeats):
        key = key_of(seed, Purpose.COMPACT, repeat)
        fold_of: NDArray[np.intp] = deal_folds(key, n_folds, target, strata, groups)
        for fold in range(n_folds):
            out = fold_of == fold
            train = Inputs(inputs.excluded, rows[~out])
            yield Fold(repeat, fold, train, HeldRows(rows[out], target[out]))


def _compacted(whole: WholeRecord, done: list[FoldRecord]) -> Compacted:
    """Put the records together; sizes are those that every fold reached."""
    common = set.intersection(*(set(record.scores) for record in done))
    sizes = sorted(int(size) for size in common if int(size) <= len(whole.order))
    scores = np.array([[record.scores[str(size)] for size in sizes] for record in done])
    return Compacted(
        whole.order,
        [whole.stand_ins[str(feature)] for feature in whole.order],
        whole.n_selected,
        [record.n_selected for record in done],
        Curve(sizes, scores),
    )
