"""The plan of a run, as it would be or as it is: what all that works on it asks."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from srs_ooc.base.arrays import Bools
from srs_ooc.base.budget import PROCESS_NBYTES, Budget, Lease, check_stages, total_nbytes
from srs_ooc.base.errors import BudgetError, UsageError
from srs_ooc.base.options import WordOrFile, path_given
from srs_ooc.base.records import Step, Watch
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Url
from srs_ooc.evidence.exchangeability import deal_folds
from srs_ooc.evidence.judges import NOT_ADJUSTED
from srs_ooc.learners.tree_learner import TREE, UNWEIGHTED, learner_named
from srs_ooc.runs import run_memory
from srs_ooc.runs.inputs import InputFiles, Inputs
from srs_ooc.runs.ledger import VALID
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import PLACES, Run, places_of
from srs_ooc.runs.run_memory import TrainingShape, shape_of
from srs_ooc.runs.settling import settle
from srs_ooc.runs.spec import RunSpec, declared
from srs_ooc.runs.task import Task
from srs_ooc.runs.training import adjusted_inputs, fit_of, training_response
from srs_ooc.runs.weights import Scoring
from srs_ooc.samplers import column_scores
from srs_ooc.samplers.base import PREDICTIONS
from srs_ooc.store.manifest import NO_TARGET, max_codes
from srs_ooc.store.store import Store

FEWEST = 2
"""Rows of each class that a half has at least."""
DEALING_NBYTES = 180
"""Memory of a row where rows are dealt into halves: 137 bytes as measured, and what it is of. What
a half takes after that is less than the run."""


@dataclass(frozen=True)
class Plan:
    """A run before it is, or as it is: its identity, sizes, rows and memory, each worked out once.

    What creates, plans, estimates or works on a run, on halves or folds of its rows, has one.

    Attributes
    ----------
    request : Request
        What is asked; of a run that is, with what it was last asked for.
    spec : RunSpec
        The run's identity; ``store`` is empty where there is no store.
    shape : TrainingShape
        Rows, features and classes it is trained on.
    table : Store or None
        The store, if there is one; :attr:`store` where there must be.
    inputs : Inputs
        Features left out and rows trained on.
    fit : Lease or None
        What fitting covariates takes, where that is still to be done.
    watch : callable
        Told where the work stands; says whether to go on.
    """

    request: Request
    spec: RunSpec
    shape: TrainingShape
    table: Store | None = None
    inputs: Inputs = field(default_factory=Inputs)
    fit: Lease | None = None
    watch: Watch = field(default_factory=lambda: lambda _: True)

    def __post_init__(self) -> None:
        if self.request.cluster is not None:
            self.spec.learner.check_elsewhere()

    @classmethod
    def of(cls, store: Store, request: Request) -> Self:
        """Return what a new run of ``store`` would be, checked as creating it would.

        Raises
        ------
        StoreError, UsageError, BudgetError
            If it could not be created.
        """
        store = store.of_target(request.target)
        inputs, request = asked_of(store, request)
        store.check_files()
        if store.manifest.inferred.get("target") == NO_TARGET:
            raise UsageError(
                f"{store.place}: expected a store with a target, found one that was ingested with "
                "--no-target. Run `srs-ooc network` on it, or ingest the table with its --target."
            )
        plan = cls._settled(store, inputs, request)
        if plan.fit is not None:
            check_stages(request.cap_nbytes, plan.stages())
            inputs = adjusted_inputs(store, inputs, request.options["adjust"])
            plan = cls._settled(store, inputs, request)
        plan._check_table()
        plan.check_rows()
        try:
            check_stages(request.cap_nbytes, plan.stages())
            plan.check_halves()
        except BudgetError as error:
            tried = run_memory.trial_of(plan.spec, plan.shape)
            counts_all = not (tried.seconds or plan.beside_nbytes)
            if counts_all or request.options.get("subspace_size") != "max":
                raise
            raise BudgetError(
                f"{error} But --subspace-size max grows with the cap, and leaves no room for "
                "requests, messages or what a model takes: give a number instead."
            ) from error
        return plan

    @classmethod
    def of_run(cls, ledger: Run, store: Store, request: Request | None = None) -> Self:
        """Return the plan of a run that is: what is not asked is as it was last.

        Raises
        ------
        RunError
            If the run was made on another store, or is damaged.
        UsageError
            If a cluster is asked for that cannot work on it.
        """
        ledger.check_store(store)
        request = (request or Request()).of_run(ledger)
        return cls.of_spec(ledger.spec, store, ledger.inputs, request)

    @classmethod
    def of_spec(cls, spec: RunSpec, store: Store, inputs: Inputs, request: Request) -> Self:
        """Return the plan of a run whose identity is known."""
        shape = shape_of(store.manifest, inputs, spec.values())
        return cls(request, spec, shape, store, inputs)

    @classmethod
    def of_numbers(cls, request: Request, n_rows: int, n_features: int, n_classes: int = 2) -> Self:
        """Return a run on a table that is not there: uint8 codes, classes of equal size.

        Raises
        ------
        UsageError
            If an option is outside its range.
        """
        options = request.options
        by_value = learner_named(options.get("model", TREE)).reads_values(options)
        shape = TrainingShape(
            n_rows,
            n_features,
            n_features,
            n_classes,
            code_nbytes=1,
            n_channels=int(options.get("class_weight", UNWEIGHTED) != UNWEIGHTED),
            n_values=min(max_codes("uint8"), n_rows) if by_value else 0,
            n_stored_rows=n_rows,
        )
        return cls(request, settle(request, shape, {}), shape)

    @classmethod
    def _settled(cls, store: Store, inputs: Inputs, request: Request) -> Self:
        shape, fit = shape_of(store.manifest, inputs, request.options), None
        names = request.options.get("adjust", NOT_ADJUSTED)
        if names != NOT_ADJUSTED and inputs.null_model is None:
            n_basis, fit = fit_of(store, inputs, names)
            shape = replace(shape, n_basis=n_basis)
        spec = settle(request, shape, digests_of(store, inputs, request))
        return cls(request, spec, shape, store, inputs, fit)

    def asked(self, **how: Any) -> Self:
        """Return the same run, of which other things are asked."""
        return replace(self, request=replace(self.request, **how))

    def begin(self, run: Path, planned: dict[str, Any] | None = None) -> None:
        """Create the folder of the run, with what was ``planned``; errors as of ``Run.create``."""
        meta = {
            "spec": self.spec.to_json(),
            PLACES: places_of(self.store.place, run),
            "planned": planned,
            "memory_mb": self.request.cap_mb,
            "iterations": self.n_iterations,
            VALID: 0 if self.saves else None,
        }
        Run.create(run, meta, self.inputs.arrays)

    def variant(self, spec: RunSpec, inputs: Inputs, **asked: Any) -> Self:
        """Return the plan of another run on the store, of which other things may be ``asked``."""
        other = self.of_spec(spec, self.store, inputs, replace(self.request, **asked))
        return replace(other, watch=self.watch)

    def half(self, number: int) -> Self:
        """Return the run on a half of the rows, counted from 0, with a seed of its own.

        Errors are those of :meth:`half_inputs`.
        """
        here = self.half_inputs(number)
        seed = key_of(self.spec.run.seed, Purpose.HALVES, number, Purpose.TREE)
        spec = self.spec.with_seed(seed).on_rows(here)
        return self.variant(spec, here, halves=0, save_trees=False)

    def half_inputs(self, number: int) -> Inputs:
        """Return what a run on a half of the rows is trained on.

        Raises
        ------
        UsageError
            If there is one group of rows, or a half gets fewer than two rows of a class.
        """
        seed, inputs, store = self.spec.run.seed, self.inputs, self.store
        with store.unchanged():
            task = Task.of(store, inputs.rows, exchanges=True)
        rows = np.arange(store.n_rows, dtype=np.int32) if inputs.rows is None else inputs.rows
        key, units = key_of(seed, Purpose.HALVES, number // 2), (task.strata, task.groups)
        place = deal_folds(key, 2, task.target, *units, option="--halves")
        for code in np.unique(task.target).tolist() if task.classes else ():
            n_least = np.bincount(place[task.target == code], minlength=2).min()
            if n_least < FEWEST:
                raise UsageError(
                    f"--halves: expected at least {FEWEST} rows of each class in each half of the "
                    f"rows (groups stay whole), found {n_least} of class {task.classes[code]!r}. "
                    "Get more rows of it, or leave it out with --rows."
                )
        return inputs.part(rows, place == number % 2)

    @property
    def store(self) -> Store:
        """The store, of a run that has one."""
        assert self.table is not None, "the run is one of numbers alone"
        return self.table

    @cached_property
    def task(self) -> Task:
        """What it learns from, with what judge or model needs; only where there is a store."""
        spec, store = self.spec, self.store
        exchanges = not spec.judging.admits  # rows, for tests; or they are dealt to folds
        with store.unchanged():
            task = Task.of(store, self.inputs.rows, spec.learner.class_weight, exchanges=exchanges)
        return task.adjusted(self.inputs.null_model)

    @property
    def scoring(self) -> Scoring | None:
        """The passes before its first iteration, where it takes some; where there is a store."""
        spec = self.spec
        matrix = getattr(spec.sampler, "matrix", column_scores.CODES)
        return Scoring.of(spec.sampler.score, matrix, self.store, self.inputs, spec.run.seed)

    @property
    def n_iterations(self) -> int:
        """Iterations to reach in total, of a run that is."""
        assert self.request.iterations is not None, "the run is not yet"
        return self.request.iterations

    @property
    def saves(self) -> bool:
        """Whether its trees are kept."""
        return bool(self.request.save_trees)

    @property
    def beside_nbytes(self) -> int:
        """What is held besides: requests to a server under way, and messages to a cluster."""
        reading = 0 if self.table is None else self.table.reading_nbytes
        return reading + (0 if self.request.cluster is None else run_memory.ORDERS_NBYTES)

    def leases(self, beside_nbytes: int = 0) -> list[Lease]:
        """Return what its main loop needs besides the process; ``beside_nbytes`` is for more.

        That of one worker, the last, is for a block and what is grown on it.

        Raises
        ------
        UsageError
            If the run's model is no tree, and cannot be fitted on a subspace of this shape.
        """
        spec, shape = self.spec, self.shape
        library = run_memory.trial_of(spec, shape).library_nbytes - spec.learner.library_nbytes
        n_bytes = run_memory.worker_nbytes(spec, shape, saves=self.saves)
        return [
            *run_memory.fixed_leases(spec, shape),
            Lease("what the stage looks at besides", self.beside_nbytes + beside_nbytes),
            Lease(f"what {spec.learner.model} loads besides", max(0, library)),
            Lease(f"a block of {spec.n_columns} columns and its {spec.learner.grown}", n_bytes),
        ]

    def worker_leases(self) -> list[Lease]:
        """Return what a worker elsewhere needs besides the process, with one block, the last."""
        spec, shape = self.spec, self.shape
        n_bytes = run_memory.worker_nbytes(spec, shape, saves=self.saves)
        n_bytes += 8 * MB  # an order and its outcomes
        return [
            run_memory.rows_lease(spec, shape),
            shape.values_lease,
            Lease("requests under way", self.store.reading_nbytes),
            Lease(f"a block of {spec.n_columns} columns and its tree", n_bytes),
        ]

    def stages(self) -> list[list[Lease]]:
        """Return what the stages need besides the process; only where there is a store."""
        scoring = self.scoring
        stages = [self.leases(), *([] if scoring is None else [scoring.leases])]
        if self.fit is not None:
            stages.append([self.fit])
        if self.request.halves:
            dealing = Lease("rows dealt into halves", DEALING_NBYTES * self.shape.n_rows)
            stages += [[dealing], run_memory.half_leases(self.spec, self.shape)]
        return stages

    def whole_nbytes(self) -> int:
        """Return what all of it needs on a worker, the process included."""
        arrays = self.inputs.weights, self.inputs.excluded
        given = sum(array.nbytes for array in arrays if array is not None)
        alone = self.asked(cluster=None, save_trees=False)
        return PROCESS_NBYTES + given + total_nbytes(alone.leases())

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth saying of such a run before it starts."""
        spec, n_candidates = self.spec, self.shape.n_candidates
        of_method = spec.sampler.notes(self.shape.n_rows, n_candidates)
        of_learner = spec.learner.notes(spec.sampler, n_candidates, spec.subspace_size)
        few = [] if self.table is None else self.task.few(spec, n_candidates)
        return *of_method, *of_learner, *few

    @property
    def is_remote(self) -> bool:
        """Whether the store is at a URL."""
        return self.table is not None and isinstance(self.table.place, Url)

    @cached_property
    def class_counts(self) -> tuple[int, ...]:
        """The training rows of each class that has some; none of a regression.

        Equal shares where only numbers are known.
        """
        if self.table is None:
            n_rows, n_classes = self.shape.n_rows, self.shape.n_classes
            return tuple(n_rows // n_classes + (i < n_rows % n_classes) for i in range(n_classes))
        counts = self.table.manifest.class_counts
        if counts and self.inputs.rows is not None:
            counts = tuple(np.bincount(self.table.target()[self.inputs.rows]).tolist())
        return tuple(count for count in counts if count)

    def check_rows(self) -> None:
        """Check that a run can be begun on the rows trained on.

        Raises
        ------
        UsageError
            If there is nothing to learn from them, or they are too few for folds or permuted
            targets.
        """
        training_response(self.task)
        self.spec.learner.folds(self.task, self.spec.run.seed)
        if self.spec.concludes:
            self.task.check_exchangeable(self.spec)

    def check_halves(self) -> bool:
        """Check that the search can be done on each half of the rows, until told to stop.

        Returns
        -------
        bool
            Whether all were checked.

        Raises
        ------
        UsageError
            If the run selects nothing or was given what may come from all rows, or a half has too
            few rows.
        """
        n_halves, has_judge = self.request.halves or 0, self.spec.run.judge != "none"
        if n_halves and (not has_judge or self.inputs.weights is not None):
            raise UsageError(
                "--halves: expected a run that selects features by its rows alone, found one with "
                f"{'scores=FILE' if has_judge else '--judge none'}. Leave --halves out, or begin "
                "a run of other options."
            )
        for number in range(n_halves):
            step = Step("halves of the rows, checking", number, n_halves, unit="halves")
            if not self.watch(step):
                return False
            half = self.half(number)
            try:
                half.check_rows()
            except UsageError as error:
                raise UsageError(f"--halves, of half of the rows: {error}") from error
        return True

    def _check_table(self) -> None:
        """Refuse a store that the method cannot search, or the model cannot be fitted on.

        Rows that are dealt to folds one by one must not come in groups.
        """
        spec, manifest, place = self.spec, self.store.manifest, self.store.place
        if PREDICTIONS in spec.method.needs and "groups" in manifest.row_columns:
            raise UsageError(
                f"--method {spec.run.method}: expected a store without groups of rows, found "
                f"{place} with groups. Rows are held out one by one, so others of the same group "
                "would show what is held out. Ingest the table without --groups (one row a group, "
                "or the column under --ignore), or choose another method."
            )
        spec.learner.check_table(self.store, self._count)

    def _count(self, is_bad: Bools) -> int:
        """Return of how many features that may be drawn this holds, bool (n_features,)."""
        candidates = self.inputs.candidates(len(is_bad))
        return int(np.count_nonzero(is_bad if candidates is None else is_bad[candidates]))


# What a request means for a store: features and rows, with the digests that identify them.


def asked_of(store: Store, request: Request) -> tuple[Inputs, Request]:
    """Return the features and rows that a request names, and it with covariates by name.

    Raises
    ------
    StoreError, UsageError, BudgetError
        If a file cannot be read under the cap, or names what is not there.
    """
    given = request.exclude_file, request.rows_file, request.validation_file
    kind, scores = declared()["scores"].kind, request.options.get("scores")
    assert isinstance(kind, WordOrFile)
    scores = None if scores is None or scores in kind.words else path_given(scores, "scores")
    files = InputFiles(store, *given, scores, exclude_missing=request.exclude_missing)
    reading = [*files.leases(), Lease("the run's record", run_memory.LEDGER_NBYTES)]
    spare = Budget(request.cap_nbytes, reading).free_nbytes
    if spare < 0:  # for a cap to name that holds the run, too
        named = _with_covariates(store, request)
        draft = Plan._settled(store, files.stand_in(), named)
        check_stages(request.cap_nbytes, [reading, *draft.stages()])
    return files.resolve(spare).among(store.target_rows()), _with_covariates(store, request)


def digests_of(store: Store, inputs: Inputs, request: Request) -> dict[str, str]:
    """Return what identifies a store, the features and rows of a request, and an added target."""
    found = {"store": store.fingerprint, **inputs.digests}
    if request.target is not None:
        found["target"] = store.of_target(request.target).target_identity
    return found


def _with_covariates(store: Store, request: Request) -> Request:
    """Return a request whose ``adjust`` names covariates of the store, in its order."""
    given = request.options.get("adjust", NOT_ADJUSTED)
    if given == NOT_ADJUSTED:
        return request
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
    return request.also(adjust=",".join(name for name in there if name in wanted))
