"""Folds done by workers, each whole at one of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from srs_ooc.base.text import MB
from srs_ooc.compaction.fold_runs import (
    Fold,
    Site,
    Subject,
    missing_of,
    nest_fold,
    score_sizes,
)
from srs_ooc.compaction.records import FoldRecord, Records
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.jobs import Part, Prepared, Reply, Tell, WorkerStore, digest_of, new_token
from srs_ooc.runs.survey import Slots, done_in_turn, from_workers, needed_nbytes, watch_of


@dataclass(frozen=True)
class FoldJob:
    """What a worker needs to do any fold of a compaction, besides the store.

    Attributes
    ----------
    token : str
        Unlike that of any other job.
    store : WorkerStore
        As of :class:`srs_ooc.runs.resources.Job`.
    subject : Subject
        What is repeated without the rows of each fold.
    sizes : list of int
        Sizes of sets that are scored.
    """

    token: str
    store: WorkerStore
    subject: Subject
    sizes: list[int]
    label = "fold"
    tells = True

    @property
    def run(self) -> str:
        """Folds of one run take each other's place in a worker."""
        return digest_of(self.subject.spec.to_json() | {"folds": True})

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        excluded = self.subject.excluded
        return 0 if excluded is None else excluded.nbytes

    def desk(self, n_threads: int) -> "FoldDesk":
        """Prepare for it in a worker."""
        return FoldDesk(self, n_threads)


class FoldDesk(Prepared[FoldJob]):
    """Does any fold of a job; parameters and errors as of the base class."""

    def _prepare(self, n_threads: int) -> None:
        job = self.job
        self._store = store = job.store.open()
        needed = needed_nbytes(job.subject.spec, store, Inputs(job.subject.excluded))
        self._slots = Slots(job.store.memory_mb, needed, n_threads)

    def work(self, parts: list[Part], tell: Tell) -> Reply:
        """Return the records of folds, with all their scores."""
        job = self.job

        def one(part: Part, cap_nbytes: int) -> FoldRecord | None:
            fold: Fold = part.what[0]
            record: FoldRecord | None = part.what[1]
            watch = watch_of(part.number, tell, job.subject.n_iterations)
            site = Site(self._store, cap_nbytes // MB, 1, watch)
            if record is None:
                with TemporaryDirectory(prefix="srs-ooc-") as folder:
                    record = nest_fold(job.subject, fold, Path(folder) / "fold.run", site)
            if record is None or not score_sizes(job.subject.spec, record, fold, job.sizes, site):
                return None
            return record

        return done_in_turn(self._slots, parts, one)


def folds_from_workers(
    subject: Subject, site: Site, records: Records, folds: list[Fold], sizes: list[int]
) -> list[FoldRecord] | None:
    """Return the records of all folds, done by workers at once and kept here; None if stopped."""
    held = [records.fold(fold.repeat, fold.fold) for fold in folds]
    done = {n: record for n, record in enumerate(held) if _is_whole(record, sizes)}
    parts = [Part(n, (folds[n], held[n])) for n in range(len(folds)) if n not in done]
    for number, record in _from_workers(subject, site, parts, sizes):
        records.keep_fold(record)
        done[number] = record
    ordered = [done.get(number) for number in range(len(folds))]
    whole = [record for record in ordered if record is not None]
    return whole if len(whole) == len(folds) else None


def _is_whole(record: FoldRecord | None, sizes: list[int]) -> bool:
    return record is not None and not missing_of(record, sizes)


def _from_workers(
    subject: Subject, site: Site, parts: list[Part], sizes: list[int]
) -> Iterator[tuple[int, FoldRecord]]:
    assert site.cluster is not None
    if not parts:
        return
    store = WorkerStore.of(site.store, site.cluster.worker_memory_mb)
    job = FoldJob(new_token(), store, subject, sizes)
    yield from from_workers(site.cluster, job, parts, "folds", subject.n_iterations, site.watch)
