"""Runs: opening or creating one, and working on it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.budget import Budget, Lease
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.options import WordOrFile, path_given
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Url
from srs_ooc.learners.models import TREE
from srs_ooc.learners.tree_learner import RANK, UNWEIGHTED
from srs_ooc.runs.inputs import (
    PLACES,
    WEIGHTS,
    InputFiles,
    Inputs,
    check_store,
    digest,
    inputs_of,
    places_of,
    resolve,
    spec_of,
)
from srs_ooc.runs.item_weights import needs_of, with_weights
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.resources import Resources, RunContext, noting
from srs_ooc.runs.run_memory import ORDERS_NBYTES, check_stages, note_growth, run_leases, shape_of
from srs_ooc.runs.run_trees import VALID, saves_trees
from srs_ooc.runs.run_verdict import conclude, is_concluded
from srs_ooc.runs.screening import Watch, screen_only, tree_writer
from srs_ooc.runs.settling import (
    DEFAULT_ITERATIONS,
    UNTIL_STABLE,
    Request,
    check_same,
    declared,
    settle,
)
from srs_ooc.runs.spec import (
    LEDGER_NBYTES,
    Options,
    RunSpec,
    TrainingShape,
    largest_subspace,
    notes_of,
)
from srs_ooc.runs.task import Task, check_cluster, check_table, folds_of, training_response
from srs_ooc.store.manifest import NO_TARGET
from srs_ooc.store.store import Store


@dataclass(frozen=True)
class RunDraft:
    """A new run, before it is.

    Attributes
    ----------
    spec : RunSpec
        Its identity; ``store`` is empty where there is no store.
    shape : TrainingShape
        Rows, features and classes it is trained on.
    class_counts : tuple of int
        Rows of each class; equal shares where only numbers are known.
    cap_nbytes : int
        Cap on the memory of the whole process.
    threads : int or None
        Workers asked for; None for the cores there are.
    store : Store or None
        The table, if there is one.
    inputs : Inputs
        Features left out and rows trained on.
    """

    spec: RunSpec
    shape: TrainingShape
    class_counts: tuple[int, ...]
    cap_nbytes: int
    threads: int | None = None
    store: Store | None = None
    inputs: Inputs = field(default_factory=Inputs)

    @classmethod
    def of(cls, store: Store, request: Request) -> "RunDraft":
        """Return what a new run of ``store`` would be, checked as creating it would.

        Raises
        ------
        StoreError, UsageError, BudgetError
            If it could not be created.
        """
        inputs, options = _resolved(store, request)
        store.check_files()
        _check_target(store)
        spec, shape, task = _new(store, inputs, options, request)
        _check_rows_split(spec, store)
        check_table(spec, store, inputs)
        if request.cluster is not None:
            check_cluster(spec)
        training_response(task)
        folds_of(spec, task)
        if spec.concludes:
            task.check_exchangeable(spec)
        check_stages(request.cap_nbytes, _stages(store, spec, shape, task, request))
        counts = class_counts_of(store, inputs)
        return cls(spec, shape, counts, request.cap_nbytes, request.threads, store, inputs)

    @property
    def n_items(self) -> int:
        """Features that may be drawn, and their decoys."""
        return self.spec.n_items(self.shape.n_candidates)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the method has to say of such a run before it starts."""
        return notes_of(self.spec, self.shape.n_rows, self.shape.n_candidates)

    @property
    def largest_subspace(self) -> int:
        """The largest q the cap holds (with one worker)."""
        return largest_subspace(self.spec, self.shape, self.cap_nbytes)

    @property
    def codes_nbytes(self) -> int:
        """Bytes of all codes on disk."""
        return self.shape.n_features * self.column_nbytes

    @property
    def reading_nbytes(self) -> int:
        """Memory of requests under way; 0 unless the store is at a URL."""
        return 0 if self.store is None else self.store.reading_nbytes

    @property
    def is_remote(self) -> bool:
        """Whether the store is at a URL."""
        return self.store is not None and isinstance(self.store.place, Url)

    @property
    def column_nbytes(self) -> int:
        """Bytes of one feature's codes on disk."""
        n_rows = self.shape.n_rows if self.store is None else self.store.n_rows
        return n_rows * self.shape.code_nbytes

    @contextmanager
    def resources(self) -> Iterator[Resources]:
        """Yield the resources that the run would have; only where there is a store.

        Raises
        ------
        StoreError, BudgetError
            As :func:`srs_ooc.runs.resources.RunContext.resources`.
        """
        assert self.store is not None
        task = Task.of_run(self.spec, self.store, self.inputs)
        context = RunContext(self.spec, self.store, task, self.cap_nbytes, self.threads)
        with context.resources() as resources:
            yield resources


def class_counts_of(store: Store, inputs: Inputs) -> tuple[int, ...]:
    """Return the training rows of each class that has some; none of a regression."""
    counts = store.manifest.class_counts
    if counts and inputs.rows is not None:
        counts = tuple(np.bincount(store.target()[inputs.rows]).tolist())
    return tuple(count for count in counts if count)


def open_or_create(
    store: Store,
    run: Path,
    request: Request,
    plan: Callable[[RunDraft], dict[str, Any]] | None = None,
) -> Ledger:
    """Open the ledger of ``run`` for writing, creating the run if there is none.

    A new run for which no iterations were asked gets as many as ``plan`` says. What that returns,
    ``iterations`` and more, is kept with the run and no part of its identity.

    Raises
    ------
    StoreError, RunError, UsageError, BudgetError
        If the store or the run cannot be used as asked; nothing is created then.
    """
    if run.exists():
        ledger = Ledger(run, writable=True)
        try:
            check_store(ledger, store)
            memory_mb = request.memory_mb or int(ledger.meta("memory_mb"))
            _, options = _resolved(store, replace(request, memory_mb=memory_mb))
            check_same(options, spec_of(ledger), str(run))
            _check_same_trees(ledger, request)
        except BaseException:
            ledger.close()
            raise
        return ledger
    draft = RunDraft.of(store, request)
    asked = draft.inputs
    _check_until_stable(draft.spec, request)
    planned = None if plan is None else plan(draft)
    default = DEFAULT_ITERATIONS if planned is None else planned["iterations"]
    meta = {
        "planned": planned,
        "spec": draft.spec.to_json(),
        PLACES: places_of(store.place, run),
        "memory_mb": draft.cap_nbytes // MB,
        "iterations": default if request.iterations is None else request.iterations,
        UNTIL_STABLE: request.until_stable,
    }
    meta[VALID] = 0 if request.save_trees else None
    arrays = {
        "excluded": asked.excluded,
        "rows": asked.rows,
        "validation": asked.validation,
        WEIGHTS: asked.weights,
    }
    Ledger.create(run, meta, {name: a for name, a in arrays.items() if a is not None})
    return Ledger(run, writable=True)


def _resolved(store: Store, request: Request) -> tuple[Inputs, Options]:
    """Return the features and rows that a request names, and its options with their digests."""
    files = InputFiles.of(
        store,
        request.exclude_file,
        request.rows_file,
        request.validation_file,
        _scores_file(request.options),
        exclude_missing=request.exclude_missing,
    )
    leases = [*files.leases(store.n_features), ("ledger", LEDGER_NBYTES)]
    reading, budget = [Lease(*lease) for lease in leases], Budget(request.cap_nbytes)
    budget.leases += reading
    if budget.free_nbytes < 0:  # for a cap to name that holds the run, too
        new = _new(store, files.stand_in(), request.options, request)
        check_stages(request.cap_nbytes, [reading, *_stages(store, *new, request)])
    asked = resolve(store, files, budget.free_nbytes)
    digests = {
        "excluded": digest(asked.excluded, "features"),
        "rows": digest(asked.rows, "rows"),
        "validation": digest(asked.validation, "rows"),
    }
    if asked.weights is not None:
        digests["scores"] = digest(asked.weights, WEIGHTS)
    return asked, request.options.also(**digests)


def _scores_file(options: Options) -> Path | None:
    """Return the file of scores that options name, if they name one."""
    kind, given = declared()["scores"].kind, options.get("scores")
    assert isinstance(kind, WordOrFile)
    return None if given is None or given in kind.words else path_given(given, "--scores")


def _new(
    store: Store, asked: Inputs, options: Options, request: Request
) -> tuple[RunSpec, TrainingShape, Task]:
    """Return what a new run would be: its identity, its bounds and what it learns from."""
    saves = bool(request.save_trees)
    class_weight = options.get("class_weight", UNWEIGHTED)
    kinds = options.get("thresholds", RANK), options.get("model", TREE)
    shape = shape_of(store.manifest, asked, class_weight, *kinds)
    spec = settle(options, shape, store.fingerprint, request.cap_nbytes, saves_trees=saves)
    return spec, shape, Task.of_run(spec, store, asked)


def _stages(
    store: Store, spec: RunSpec, shape: TrainingShape, task: Task, request: Request
) -> list[list[Lease]]:
    """Return what the stages of a new run need besides the process."""
    scoring = [Lease(*lease) for lease in needs_of(spec, store, task)]
    orders = 0 if request.cluster is None else ORDERS_NBYTES
    orders += store.reading_nbytes
    saves = bool(request.save_trees)
    running = run_leases(spec, shape, saves=saves, beside_nbytes=orders)
    return [running, scoring] if scoring else [running]


def _check_target(store: Store) -> None:
    """Refuse a store of a table without a target: the numbers of its rows are none."""
    if store.manifest.inferred.get("target") == NO_TARGET:
        raise UsageError(
            f"{store.place}: expected a store with a target, found one that was ingested with "
            "--no-target. Run `srs-ooc network` on it, or ingest the table with its --target."
        )


def _check_rows_split(spec: RunSpec, store: Store) -> None:
    """Refuse a method that deals rows to folds one by one where rows come in groups."""
    if spec.method.splits_rows and "groups" in store.manifest.row_columns:
        raise UsageError(
            f"--method {spec.run.method}: expected a store without groups of rows, found "
            f"{store.place} with groups. Rows are held out one by one, so others of the same group "
            "would show what is held out. Ingest the table without --groups (one row a group, or "
            "the column under --ignore), or choose another method."
        )


def _check_same_trees(ledger: Ledger, request: Request) -> None:
    saves = saves_trees(ledger)
    if request.save_trees is None or request.save_trees == saves:
        return
    found, asked = ("save-trees", "no-save-trees") if saves else ("no-save-trees", "save-trees")
    raise RunError(
        f"{ledger.run} is a run with {found} (asked for: {asked}). A run keeps all of its trees or "
        "none: leave the option out to go on with it, begin another run with --fresh, or name its "
        "folder with --out."
    )


def work_on(ledger: Ledger, store: Store, request: Request, watch: Watch = lambda _: True) -> None:
    """Work on a run until its iterations are done, with their verdict, or ``watch`` says no.

    What the request gives of iterations and memory is kept for the next time, as is the place of
    the store.

    Raises
    ------
    RunError, StoreError
        If the store is not the run's, or is replaced while the work goes on; what was committed
        before stays.
    """
    check_store(ledger, store)
    _check_iterations(ledger, request)
    watch = noting(ledger, request.cluster, watch)
    places = places_of(store.place, ledger.run)
    if places != ledger.meta(PLACES):
        ledger.set_meta(PLACES, places)
    done, asked = ledger.progress().iteration, request.iterations
    settled = {"iterations": asked and max(asked, done), "memory_mb": request.memory_mb}
    for name, value in settled.items():
        if value is not None and value != ledger.meta(name):
            ledger.set_meta(name, value)
    _note_until_stable(ledger, request)
    note_growth(ledger)
    until = max(int(ledger.meta("iterations")), ledger.progress().iteration)
    if is_done(ledger, until):
        return
    spec, cap_nbytes = spec_of(ledger), int(ledger.meta("memory_mb")) * MB
    with store.unchanged():
        task = Task.of_run(spec, store, inputs_of(ledger))
    weighted = with_weights(ledger, spec, store, task, cap_nbytes, watch)
    if weighted is None:
        return
    context = RunContext(spec, store, weighted, cap_nbytes, request.threads, request.cluster, watch)
    with tree_writer(ledger) as trees:
        if spec.concludes:
            stable = bool(ledger.meta(UNTIL_STABLE))
            conclude(ledger, context, until, trees, until_stable=stable)
        else:
            screen_only(ledger, context, until, trees)


def _check_iterations(ledger: Ledger, request: Request) -> None:
    """Refuse to end a run before where it is; a finished run is read, whatever is asked."""
    done, asked = ledger.progress().iteration, request.iterations
    if asked is None or asked >= done or is_done(ledger, int(ledger.meta("iterations"))):
        return
    raise UsageError(
        f"--iterations: expected the iterations in total, at least the {done} that are done, found "
        f"{asked}. To end the run where it is, give --iterations {done}."
    )


def _note_until_stable(ledger: Ledger, request: Request) -> None:
    """Keep when the screen shall end: as last asked, or at the iterations given since."""
    _check_until_stable(spec_of(ledger), request)
    if request.until_stable or request.iterations is not None:
        ledger.set_meta(UNTIL_STABLE, request.until_stable)


def _check_until_stable(spec: RunSpec, request: Request) -> None:
    if request.until_stable and not spec.concludes:
        raise UsageError(
            f"--until-stable: expected a run with a final verdict, found --judge {spec.judge}. "
            "Say how far it goes with --iterations."
        )
    if request.until_stable and spec.permutations:
        raise UsageError(
            "--until-stable: expected a run judged by decoys, found --permutations: the run and "
            "its permutation runs must end alike. Say how far they go with --iterations."
        )


def is_done(ledger: Ledger, until: int) -> bool:
    """Return whether ``until`` iterations are done and judged."""
    if ledger.progress().iteration < until:
        return False
    return not spec_of(ledger).concludes or is_concluded(ledger)
