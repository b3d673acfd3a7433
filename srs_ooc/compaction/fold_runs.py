"""The steps of the whole procedure on some rows: a run of its own, nested sets, their scores.

Nothing of the rows held out reaches the first two but codes of values, made without the target.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import RunError
from srs_ooc.base.records import Step
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import MB
from srs_ooc.compaction.nested import Nested, nest, sampled_nbytes
from srs_ooc.compaction.records import FoldRecord
from srs_ooc.compaction.scoring import HeldOut
from srs_ooc.evidence.correlation import HEAD
from srs_ooc.evidence.judges import PositiveParams
from srs_ooc.runs.inputs import PLACES, Inputs, digest, inputs_of, places_of, spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import Cluster, Resources, resources_of
from srs_ooc.runs.run_memory import shape_of
from srs_ooc.runs.run_trees import VALID
from srs_ooc.runs.run_verdict import Candidates
from srs_ooc.runs.session import is_done, work_on
from srs_ooc.runs.settling import UNTIL_STABLE, Request
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.store import Store

BLOCK_NBYTES = 1 << 25
"""Bytes of codes that are held together, whatever the run's subspace size."""

Watch = Callable[[Step], bool]
"""Told where the work stands; says whether to go on."""


@dataclass(frozen=True)
class HeldRows:
    """Rows of the store that are held out, int32 (n,), and their target."""

    rows: NDArray[np.int32]
    target: NDArray[np.int32] | NDArray[np.float64]


@dataclass(frozen=True)
class Site:
    """Where the work is done, and with what.

    Attributes
    ----------
    store : Store
        The run's store.
    memory_mb : int
        Cap on the whole process, in MB of 10**6 bytes.
    threads : int or None
        Workers; None for the cores of this machine.
    watch : callable
        Told where the work stands.
    cluster : Cluster or None
        Workers elsewhere that folds are spread over; None for this process alone.
    """

    store: Store
    memory_mb: int
    threads: int | None
    watch: Watch
    cluster: Cluster | None = None

    def named(self, what: str) -> "Site":
        """Return the same, where the steps that are watched begin with ``what``."""
        return replace(
            self, watch=lambda step: self.watch(replace(step, stage=f"{what}, {step.stage}"))
        )


@dataclass(frozen=True)
class Subject:
    """What of a run is repeated on some of its rows.

    Attributes
    ----------
    spec : RunSpec
        Its identity, as judged today.
    excluded : uint32 (n_excluded,) or None
        Features left out.
    n_iterations : int
        That it had.
    """

    spec: RunSpec
    excluded: NDArray[np.uint32] | None
    n_iterations: int

    @classmethod
    def of(cls, ledger: Ledger) -> "Subject":
        """Return what is repeated of the run of a ledger."""
        spec = spec_of(ledger).judged_now(str(ledger.run))
        return cls(spec, ledger.input("excluded", "<u4"), ledger.progress().iteration)


@dataclass(frozen=True)
class Fold:
    """Some rows held out: which of how many times, the rows trained on, and those held out."""

    repeat: int
    fold: int
    train: Inputs
    held: HeldRows


def select_within(subject: Subject, rows: NDArray[np.int32], folder: Path, site: Site) -> bool:
    """Repeat a run on some of its rows, in ``folder``; return whether it is done.

    What is there of it already is gone on with.
    """
    if not folder.exists():
        spec = replace(subject.spec, rows=str(digest(rows, "rows")))
        meta = {
            "spec": spec.to_json(),
            PLACES: places_of(site.store.place, folder),
            "memory_mb": site.memory_mb,
            "iterations": subject.n_iterations,
            UNTIL_STABLE: False,
            VALID: None,
        }
        arrays = {"excluded": subject.excluded, "rows": rows}
        folder.parent.mkdir(parents=True, exist_ok=True)
        Ledger.create(folder, meta, {name: a for name, a in arrays.items() if a is not None})
    within = Ledger(folder, writable=True)
    try:
        request = Request(memory_mb=site.memory_mb, threads=site.threads)
        work_on(within, site.store, request, site.watch)
        return is_done(within, subject.n_iterations)
    finally:
        within.close()


def nest_fold(subject: Subject, fold: Fold, folder: Path, site: Site) -> FoldRecord | None:
    """Repeat a run without the rows of a fold; return the sets it comes to, None if stopped.

    They have no scores yet. ``folder`` is where it is done; it is removed once it is.
    """
    assert fold.train.rows is not None
    if not select_within(subject, fold.train.rows, folder, site):
        return None
    within = Ledger(folder, writable=False)
    try:
        nested = nest_run(within, site)
    finally:
        within.close()
    if nested is None:
        return None
    candidates, sets = nested
    shutil.rmtree(folder, ignore_errors=True)
    order = [int(feature) for feature in sets.order]
    return FoldRecord(fold.repeat, fold.fold, candidates.n_selected, order)


def nest_run(ledger: Ledger, site: Site) -> tuple[Candidates, Nested] | None:
    """Return the candidates and the nested sets of a run that is done; None if stopped."""
    manifest, inputs = site.store.manifest, inputs_of(ledger)
    candidates = Candidates.of_run(ledger, manifest.n_features)
    if not len(candidates.features):
        raise RunError(
            f"{ledger.run}: expected a run with features to choose from, found none of any "
            f"importance. Go on to more iterations with `srs-ooc resume {ledger.run} --iterations "
            "N`, or begin a run of other options."
        )
    n_rows = manifest.n_rows if inputs.rows is None else len(inputs.rows)
    extra = sampled_nbytes(len(candidates.features), n_rows, manifest.code_nbytes)
    spec = spec_of(ledger)
    key = key_of(spec.seed, Purpose.COMPACT)
    with small_parts(spec, inputs, site, extra) as parts:

        def keep_going(done: int, total: int) -> bool:
            return site.watch(Step("nesting", done, total, unit="trees"))

        nested = nest(parts, candidates, key, keep_going)
    return None if nested is None else (candidates, nested)


def score_sizes(
    spec: RunSpec, record: FoldRecord, fold: Fold, sizes: list[int], site: Site
) -> bool:
    """Score those of the sizes that a record lacks; return whether it lacks none now."""
    train, held = fold.train, fold.held
    sizes = [size for size in sizes if size <= len(record.order)]
    missing = missing_of(record, sizes)
    if not missing:
        return True
    manifest = site.store.manifest
    n_classes = max(1, len(manifest.classes))
    most = max(missing)
    extra = HeldOut.nbytes(len(held.rows), most, n_classes, manifest.code_nbytes)
    with small_parts(spec, train, site, extra, saves=True) as parts:
        held_out = HeldOut(parts, held.rows, held.target)
        for size in missing:
            features = np.array(record.order[:size], np.uint32)
            key = key_of(spec.seed, Purpose.COMPACT, record.repeat, record.fold, size)
            record.scores[str(size)] = held_out.score(features, key)
            if not site.watch(Step("scoring", sizes.index(size) + 1, len(sizes), unit="sizes")):
                return False
    return True


def missing_of(record: FoldRecord, sizes: list[int]) -> list[int]:
    """Return those of the sizes that a record has sets for, and no scores."""
    fitting = [size for size in sizes if size <= len(record.order)]
    return [size for size in fitting if str(size) not in record.scores]


def room_for(spec: RunSpec, inputs: Inputs, manifest: Manifest) -> int:
    """Return how many features are held together, at most ``HEAD``: q, or a block's worth."""
    shape = shape_of(manifest, inputs)
    block = BLOCK_NBYTES // (shape.n_rows * shape.code_nbytes)
    return min(HEAD, max(spec.subspace_size, block), shape.n_candidates)


@contextmanager
def small_parts(
    spec: RunSpec, inputs: Inputs, site: Site, extra_nbytes: int, *, saves: bool = False
) -> Iterator[Resources]:
    """Yield the resources of a run with room for :func:`room_for` features, none for decoys."""
    q = room_for(spec, inputs, site.store.manifest)
    small = replace(
        spec,
        run=replace(spec.run, subspace_size=q, judge="positive"),
        learner=replace(spec.learner, max_features=q, trees_per_subspace=1),
        judging=PositiveParams(),
    )
    task = Task.of_run(small, site.store, inputs)
    where = (site.store, task, site.memory_mb * MB, site.threads)
    with resources_of(small, *where, saves=saves, beside_nbytes=extra_nbytes) as parts:
        yield parts
