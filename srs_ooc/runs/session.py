"""Runs: opening or creating one, and working on it and on halves of its rows."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.budget import Budget, Lease, check_stages
from srs_ooc.base.errors import BudgetError, RunError, UsageError
from srs_ooc.base.options import WordOrFile, path_given
from srs_ooc.base.records import Watch
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Url
from srs_ooc.evidence.judges import NOT_ADJUSTED
from srs_ooc.learners.models import TREE
from srs_ooc.learners.tree_learner import RANK, UNWEIGHTED
from srs_ooc.runs import halves, run_memory
from srs_ooc.runs.inputs import WEIGHTS, InputFiles, Inputs, digest
from srs_ooc.runs.ledger import VALID
from srs_ooc.runs.resources import Resources, RunContext
from srs_ooc.runs.run import Run
from srs_ooc.runs.run_memory import TrainingShape, run_leases, shape_of
from srs_ooc.runs.screening import is_done, keep, saves_trees, search
from srs_ooc.runs.settling import DEFAULT_ITERATIONS, Request, check_same, declared, settle
from srs_ooc.runs.spec import Options, RunSpec, notes_of
from srs_ooc.runs.task import Task, adjusted_inputs, check_cluster, check_rows, check_table, fit_of
from srs_ooc.runs.weights import scoring_of
from srs_ooc.store.manifest import NO_TARGET, max_codes
from srs_ooc.store.store import Store


@dataclass(frozen=True)
class RunDraft:
    """A new run, before it is: what creating it, planning it and estimating its speed work on.

    Attributes
    ----------
    request : Request
        What is asked.
    spec : RunSpec
        Its identity; ``store`` is empty where there is no store.
    shape : TrainingShape
        Rows, features and classes it is trained on.
    store : Store or None
        The table, if there is one.
    inputs : Inputs
        Features left out and rows trained on.
    fit : Lease or None
        What fitting covariates takes, where that is still to be done.
    """

    request: Request
    spec: RunSpec
    shape: TrainingShape
    store: Store | None = None
    inputs: Inputs = field(default_factory=Inputs)
    fit: Lease | None = None

    @classmethod
    def of(cls, store: Store, request: Request) -> "RunDraft":
        """Return what a new run of ``store`` would be, checked as creating it would.

        Raises
        ------
        StoreError, UsageError, BudgetError
            If it could not be created.
        """
        store = store.of_target(request.target)
        inputs, options = _resolved(store, request)
        store.check_files()
        if store.manifest.inferred.get("target") == NO_TARGET:
            raise UsageError(
                f"{store.place}: expected a store with a target, found one that was ingested with "
                "--no-target. Run `srs-ooc network` on it, or ingest the table with its --target."
            )
        draft = cls._settled(store, inputs, options, request)
        if draft.fit is not None:
            check_stages(request.cap_mb * MB, draft.stages())
            inputs = adjusted_inputs(store, inputs, options["adjust"])
            draft = cls._settled(store, inputs, options, request)
        spec, task = draft.spec, draft.task
        check_table(spec, store, inputs)
        if request.cluster is not None:
            check_cluster(spec)
        check_rows(spec, task)
        try:
            check_stages(request.cap_mb * MB, draft.stages())
            if request.halves:
                halves.check_halves(spec, store, inputs, request, request.halves)
        except BudgetError as error:
            counts_all = spec.model.is_tree and not draft.beside_nbytes
            if counts_all or options.get("subspace_size") != "max":
                raise
            raise BudgetError(
                f"{error} But --subspace-size max grows with the cap, and leaves no room for "
                "requests, messages or what a model takes: give a number instead."
            ) from error
        return draft

    @classmethod
    def of_numbers(
        cls, request: Request, n_rows: int, n_features: int, n_classes: int = 2
    ) -> "RunDraft":
        """Return a run on a table that is not there: uint8 codes, classes of equal size.

        Raises
        ------
        UsageError
            If an option is outside its range.
        """
        options = request.options
        is_decoded = options.get("model", TREE) != TREE
        by_value = is_decoded or options.get("thresholds", RANK) != RANK
        shape = TrainingShape(
            n_rows,
            n_features,
            n_features,
            n_classes,
            code_nbytes=1,
            n_channels=int(options.get("class_weight", UNWEIGHTED) != UNWEIGHTED),
            n_values=min(max_codes("uint8"), n_rows) if by_value else 0,
            n_stored_rows=n_rows,
            is_decoded=is_decoded,
        )
        saves, cap_nbytes = bool(request.save_trees), request.cap_mb * MB
        return cls(request, settle(options, shape, "", cap_nbytes, saves_trees=saves), shape)

    @classmethod
    def _settled(
        cls, store: Store, inputs: Inputs, options: Options, request: Request
    ) -> "RunDraft":
        shape, saves = shape_of(store.manifest, inputs, options), bool(request.save_trees)
        cap_nbytes, fit, names = request.cap_mb * MB, None, options.get("adjust", NOT_ADJUSTED)
        if names != NOT_ADJUSTED and inputs.basis is None:
            n_basis, fit = fit_of(store, inputs, names)
            shape = replace(shape, n_basis=n_basis)
        spec = settle(options, shape, store.fingerprint, cap_nbytes, saves_trees=saves)
        spec = replace(spec, null_model=inputs.null_digest)
        return cls(request, spec, shape, store, inputs, fit)

    @cached_property
    def task(self) -> Task:
        """What it learns from; only where there is a store."""
        assert self.store is not None
        return Task.of_run(self.spec, self.store, self.inputs)

    def stages(self) -> list[list[Lease]]:
        """Return what the stages need besides the process; only where there is a store."""
        assert self.store is not None
        beside = self.beside_nbytes
        running = run_leases(self.spec, self.shape, saves=self.saves, beside_nbytes=beside)
        scoring = scoring_of(self.spec, self.store, self.task.inputs)
        stages = [running] if scoring is None else [running, scoring.leases]
        if self.fit is not None:
            stages.append([self.fit])
        if self.request.halves:
            dealing = Lease("rows dealt into halves", halves.DEALING_NBYTES * self.shape.n_rows)
            stages += [[dealing], run_memory.half_leases(self.spec, self.shape)]
        return stages

    @property
    def saves(self) -> bool:
        """Whether its trees are kept."""
        return bool(self.request.save_trees)

    @property
    def beside_nbytes(self) -> int:
        """What is held besides: requests to a server under way, and messages to a cluster."""
        reading = 0 if self.store is None else self.store.reading_nbytes
        return reading + (0 if self.request.cluster is None else run_memory.ORDERS_NBYTES)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth saying of such a run before it starts."""
        few = [] if self.store is None else self.task.few(self.spec)
        return *notes_of(self.spec, self.shape.n_rows, self.shape.n_candidates), *few

    @property
    def is_remote(self) -> bool:
        """Whether the store is at a URL."""
        return self.store is not None and isinstance(self.store.place, Url)

    @cached_property
    def class_counts(self) -> tuple[int, ...]:
        """The training rows of each class that has some; none of a regression.

        Equal shares where only numbers are known.
        """
        if self.store is None:
            n_rows, n_classes = self.shape.n_rows, self.shape.n_classes
            return tuple(n_rows // n_classes + (i < n_rows % n_classes) for i in range(n_classes))
        counts = self.store.manifest.class_counts
        if counts and self.inputs.rows is not None:
            counts = tuple(np.bincount(self.store.target()[self.inputs.rows]).tolist())
        return tuple(count for count in counts if count)

    def resources(self, *, grows: bool = True) -> AbstractContextManager[Resources]:
        """Return the resources that the run would have, as a context; only where there is a store.

        ``grows``: something is grown; else items are tested.

        Raises
        ------
        StoreError, BudgetError
            As :func:`srs_ooc.runs.resources.RunContext.resources`.
        """
        assert self.store is not None
        cap_nbytes, threads = self.request.cap_mb * MB, self.request.threads
        context = RunContext(self.spec, self.store, self.task, cap_nbytes, threads)
        return context.resources(saves=self.saves and grows, grows=grows)


def open_or_create(
    store: Store,
    run: Path,
    request: Request,
    plan: Callable[[RunDraft], dict[str, Any]] | None = None,
) -> Run:
    """Open the ledger of ``run`` for writing, creating the run if there is none.

    A new run for which no iterations were asked gets as many as ``plan`` says. What that returns,
    ``iterations`` and more, is kept with the run and no part of its identity.

    Raises
    ------
    StoreError, RunError, UsageError, BudgetError
        If the store or the run cannot be used as asked; nothing is created then.
    """
    if run.exists():
        ledger = Run(run, writable=True)
        try:
            store = ledger.seen(store)
            memory_mb = request.memory_mb or int(ledger.meta("memory_mb"))
            _, options = _resolved(store, replace(request, memory_mb=memory_mb))
            if request.rows_file is None:
                options.pop("rows", None)  # those of a target that only some rows have
            check_same(options, ledger.spec, str(run))
            _check_same_trees(ledger, request)
        except BaseException:
            ledger.close()
            raise
        return ledger
    draft = RunDraft.of(store, request)
    planned = None if plan is None else plan(draft)
    default = DEFAULT_ITERATIONS if planned is None else planned["iterations"]
    facts = {
        "planned": planned,
        "memory_mb": request.cap_mb,
        "iterations": default if request.iterations is None else request.iterations,
        VALID: 0 if request.save_trees else None,
    }
    Run.begin(run, store, draft.spec, draft.inputs, facts)
    return Run(run, writable=True)


def _resolved(store: Store, request: Request) -> tuple[Inputs, Options]:
    """Return the features and rows that a request names, and its options with their digests."""
    given = request.exclude_file, request.rows_file, request.validation_file
    kind, scores = declared()["scores"].kind, request.options.get("scores")
    assert isinstance(kind, WordOrFile)
    scores = None if scores is None or scores in kind.words else path_given(scores, "--scores")
    files = InputFiles(store, *given, scores, exclude_missing=request.exclude_missing)
    reading = [*files.leases(), Lease("the run's record", run_memory.LEDGER_NBYTES)]
    cap_nbytes = request.cap_mb * MB
    spare = Budget(cap_nbytes, reading).free_nbytes
    if spare < 0:  # for a cap to name that holds the run, too
        options = _named_covariates(store, request.options)
        draft = RunDraft._settled(store, files.stand_in(), options, request)
        check_stages(cap_nbytes, [reading, *draft.stages()])
    asked, target = files.resolve(spare).among(store.target_rows()), request.target
    digests = {
        "excluded": digest(asked.excluded, "features"),
        "rows": digest(asked.rows, "rows"),
        "validation": digest(asked.validation, "rows"),
        "target": None if target is None else store.of_target(target).target_identity,
    }
    if asked.weights is not None:
        digests["scores"] = digest(asked.weights, WEIGHTS)
    return asked, _named_covariates(store, request.options).also(**digests)


def _named_covariates(store: Store, options: Options) -> Options:
    """Return options whose ``adjust`` names covariates of the store, in its order."""
    given = options.get("adjust", NOT_ADJUSTED)
    if given == NOT_ADJUSTED:
        return options
    there = [one.name for one in store.each_covariate() if one.name != store.manifest.target_name]
    wanted = there if given == "all" else [name.strip() for name in str(given).split(",")]
    absent = [n for n in wanted if n not in there or n in ("all", NOT_ADJUSTED) or "," in n]
    if absent or not wanted:
        found = f"{absent[0]!r}" if absent else "none"
        raise UsageError(
            f"--adjust: expected covariates of {store.place} ({', '.join(there) or 'it has none'}),"
            f" without a comma, not named all or none, found {found}. `srs-ooc ingest --covariates "
            "NAMES` keeps columns as covariates, and so does `srs-ooc targets` later; rename what "
            "cannot be named."
        )
    return options.also(adjust=",".join(name for name in there if name in wanted))


def _check_same_trees(ledger: Run, request: Request) -> None:
    saves, named = saves_trees(ledger), ("no-save-trees", "save-trees")
    if request.save_trees not in (None, saves):
        raise RunError(
            f"{ledger.run} is a run with {named[saves]} (asked for: {named[not saves]}). A run "
            "keeps all of its trees or none: leave the option out to go on with it, begin another "
            "run with --fresh, or name its folder with --out."
        )


def work_on(ledger: Run, store: Store, request: Request, watch: Watch = lambda _: True) -> None:
    """Work on a run until its iterations are done, with their verdict, or ``watch`` says no.

    Then, where halves of the rows were asked for, on these. What the request gives of iterations,
    memory and halves is kept for the next time, as is the place of the store, once a first step is
    done: a request that is refused changes nothing. A run that is done keeps its cap; another one
    only has to hold it.

    Raises
    ------
    RunError, StoreError
        If the store is not the run's, or is replaced while the work goes on; what was committed
        before stays.
    UsageError, BudgetError
        If the rows cannot be halved so often, or the cap cannot hold the work.
    """
    n_halves = halves.halves_asked(ledger) if request.halves is None else request.halves
    if len(halves.halves_done(ledger, n_halves)) < n_halves:
        spec, inputs, saves = ledger.spec, ledger.inputs, saves_trees(ledger)
        asked = replace(request, halves=n_halves, save_trees=saves)
        shape = shape_of(store.manifest, inputs, spec.values())
        cap_mb = request.memory_mb or int(ledger.meta("memory_mb"))
        check_stages(cap_mb * MB, RunDraft(asked, spec, shape, store, inputs).stages())
        if not halves.check_halves(spec, store, inputs, request, n_halves, watch):
            keep(ledger, {halves.HALVES: n_halves})
            return
    settled = {} if request.halves is None else {halves.HALVES: request.halves}
    search(ledger, store, request, watch, settled)
    if n_halves and is_done(ledger, int(ledger.meta("iterations"))):
        halves.select_by_halves(ledger, store, request, n_halves, watch)
