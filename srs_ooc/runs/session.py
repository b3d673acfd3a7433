"""Runs: opening or creating one, and working on it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from srs_ooc.base.budget import process_nbytes
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.records import Step
from srs_ooc.base.sizes import MB
from srs_ooc.learners.params import RANK, UNWEIGHTED
from srs_ooc.runs.inputs import Inputs, digest, resolve
from srs_ooc.runs.ledger import Ledger, TreeWriter, saves_trees
from srs_ooc.runs.ledger.trees import VALID
from srs_ooc.runs.place import PLACES, check_store, places_of, spec_of
from srs_ooc.runs.resources import check_exchangeable, engine_parts, plan_memory, shape_of
from srs_ooc.runs.responses import training_response
from srs_ooc.runs.spec import (
    Options,
    RunSpec,
    Shape,
    check_same,
    settle,
)
from srs_ooc.runs.spec.needs import LEDGER_NBYTES
from srs_ooc.runs.verdict import Setting, Watch, conclude, is_concluded
from srs_ooc.store.check import check_files
from srs_ooc.store.manifest import Manifest, read_manifest

DEFAULT_MEMORY_MB = 512
DEFAULT_ITERATIONS = 10_000
UNTIL_STABLE = "until_stable"
"""Record of the ledger that says whether the screen ends once its ranking is at rest."""


@dataclass(frozen=True)
class Request:
    """What a user asks of a run: its identity where given, and how to work on it.

    Attributes
    ----------
    options : Options
        Fields of the identity that were given.
    exclude_file, rows_file, validation_file : Path or None
        Files of feature names to leave out, of row ids to train on, and of those held out.
    exclude_missing : bool
        Leave out features with missing values.
    iterations : int or None
        Total to reach; None for what the run was last asked for.
    memory_mb : int or None
        Cap on the whole process in megabytes of 10**6 bytes; None for what it was last.
    threads : int or None
        Workers; None for the cores of this machine.
    until_stable : bool
        End the screen of a run with a verdict once its blind ranking is at rest.
    save_trees : bool or None
        Keep every tree; settled when the run is created. None for what it is (at first: no).
    """

    options: Options = field(default_factory=Options)
    exclude_file: Path | None = None
    rows_file: Path | None = None
    exclude_missing: bool = False
    iterations: int | None = None
    memory_mb: int | None = None
    threads: int | None = None
    save_trees: bool | None = None
    until_stable: bool = False
    validation_file: Path | None = None


@dataclass(frozen=True)
class Planned:
    """What was expected of a run when it was made; kept with it, and no part of its identity.

    Attributes
    ----------
    iterations : int
        T as advised.
    seconds_per_iteration : float
        A quick estimate then.
    reason : str
        Why this T.
    """

    iterations: int
    seconds_per_iteration: float
    reason: str


Plan = Callable[[Path, RunSpec, Shape, Inputs, Request], Planned]
"""Expects something of a run that is about to be made."""


def default_run_path(store: Path) -> Path:
    """Return the folder a run of ``store`` has unless another is given: its stem with ``.run``."""
    return store.with_suffix(".run")


def open_or_create(store: Path, run: Path, request: Request, plan: Plan | None = None) -> Ledger:
    """Open the ledger of ``run`` for writing, creating the run if there is none.

    A new run for which no iterations were asked gets as many as ``plan`` says.

    Raises
    ------
    StoreError, RunError, UsageError, BudgetError
        If the store or the run cannot be used as asked; nothing is created then.
    """
    manifest = read_manifest(store)
    asked = resolve(
        store,
        manifest,
        request.exclude_file,
        request.rows_file,
        exclude_missing=request.exclude_missing,
        validation_file=request.validation_file,
        room_nbytes=_room_nbytes(request),
    )
    options = _with_digests(request.options, asked)
    if run.exists():
        ledger = Ledger(run, writable=True)
        try:
            check_store(ledger, manifest, store)
            check_same(options, spec_of(ledger), str(run))
            _check_same_trees(ledger, request)
        except BaseException:
            ledger.close()
            raise
        return ledger
    saves = bool(request.save_trees)
    spec, shape, memory_mb = _settled(store, manifest, asked, options, request.memory_mb, saves)
    _check_until_stable(spec, request)
    planned = None if plan is None else plan(store, spec, shape, asked, request)
    default = DEFAULT_ITERATIONS if planned is None else planned.iterations
    meta = {
        "planned": None if planned is None else vars(planned),
        "spec": spec.to_json(),
        PLACES: places_of(store, run),
        "memory_mb": memory_mb,
        "iterations": default if request.iterations is None else request.iterations,
        UNTIL_STABLE: request.until_stable,
    }
    meta[VALID] = 0 if saves else None
    arrays = {"excluded": asked.excluded, "rows": asked.rows, "validation": asked.validation}
    Ledger.create(run, meta, {name: a for name, a in arrays.items() if a is not None})
    return Ledger(run, writable=True)


def settle_new(store: Path, request: Request) -> tuple[RunSpec, Shape, Inputs, int]:
    """Return what a new run of ``store`` would be, and its cap in MB, as creating it would.

    Raises
    ------
    StoreError, UsageError, BudgetError
        If it could not be created.
    """
    manifest = read_manifest(store)
    asked = resolve(
        store,
        manifest,
        request.exclude_file,
        request.rows_file,
        exclude_missing=request.exclude_missing,
        validation_file=request.validation_file,
        room_nbytes=_room_nbytes(request),
    )
    options = _with_digests(request.options, asked)
    saves = bool(request.save_trees)
    spec, shape, memory_mb = _settled(store, manifest, asked, options, request.memory_mb, saves)
    return spec, shape, asked, memory_mb


def _settled(
    store: Path,
    manifest: Manifest,
    asked: Inputs,
    options: Options,
    memory_mb: int | None,
    saves: bool,
) -> tuple[RunSpec, Shape, int]:
    """Check that a new run can be made; return its identity, its bounds and its cap in MB."""
    check_files(store, manifest)
    memory_mb = DEFAULT_MEMORY_MB if memory_mb is None else memory_mb
    class_weight = options.get("class_weight", UNWEIGHTED)
    shape = shape_of(manifest, asked, class_weight, options.get("thresholds", RANK))
    spec = settle(options, shape, manifest.fingerprint, memory_mb * MB, saves_trees=saves)
    training_response(store, manifest, asked, class_weight)
    if spec.concludes:
        check_exchangeable(store, manifest, asked)
    plan_memory(spec, shape, memory_mb * MB, saves=saves)
    return spec, shape, memory_mb


def _room_nbytes(request: Request) -> int:
    """Return what the cap leaves for reading files of names, before there is other work."""
    cap_mb = DEFAULT_MEMORY_MB if request.memory_mb is None else request.memory_mb
    return cap_mb * MB - process_nbytes() - LEDGER_NBYTES


def _check_same_trees(ledger: Ledger, request: Request) -> None:
    saves = saves_trees(ledger)
    if request.save_trees is None or request.save_trees == saves:
        return
    found, asked = ("save-trees", "no-save-trees") if saves else ("no-save-trees", "save-trees")
    raise RunError(
        f"{ledger.run} is a run with {found} (asked for: {asked}). A run keeps all of its trees or "
        "none: leave the option out to go on with it, or choose another folder with --out."
    )


def work_on(
    ledger: Ledger,
    store: Path,
    request: Request,
    watch: Watch = lambda _: True,
) -> None:
    """Work on a run until its iterations are done, with their verdict, or ``watch`` says no.

    What the request gives of iterations and memory is kept for the next time, as is the place of
    the store.

    Raises
    ------
    RunError, StoreError
        If the store is not the run's, or is replaced while the work goes on; what was committed
        before stays.
    """
    check_store(ledger, read_manifest(store), store)
    places = places_of(store, ledger.run)
    if places != ledger.meta(PLACES):
        ledger.set_meta(PLACES, places)
    for name in ("iterations", "memory_mb"):
        value = getattr(request, name)
        if value is not None and value != ledger.meta(name):
            ledger.set_meta(name, value)
    _note_until_stable(ledger, request)
    until = max(int(ledger.meta("iterations")), ledger.progress().iteration)
    if is_done(ledger, until):
        return
    inputs = Inputs(
        ledger.input("excluded", "<u4"),
        ledger.input("rows", "<i4"),
        ledger.input("validation", "<i4"),
    )
    cap_nbytes = int(ledger.meta("memory_mb")) * MB
    setting = Setting(store, inputs, cap_nbytes, request.threads)
    with _tree_writer(ledger) as trees:
        if spec_of(ledger).concludes:
            stable = bool(ledger.meta(UNTIL_STABLE))
            conclude(ledger, spec_of(ledger), setting, until, trees, watch, until_stable=stable)
        else:
            _screen(ledger, setting, until, trees, watch)


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
    if request.until_stable and spec.replays:
        raise UsageError(
            "--until-stable: expected a run judged by decoys, found --replays: the run and its "
            "replays must end alike. Say how far they go with --iterations."
        )


def is_done(ledger: Ledger, until: int) -> bool:
    """Return whether ``until`` iterations are done and judged."""
    if ledger.progress().iteration < until:
        return False
    return not spec_of(ledger).concludes or is_concluded(ledger)


@contextmanager
def _tree_writer(ledger: Ledger) -> Iterator[TreeWriter | None]:
    if not saves_trees(ledger):
        yield None
        return
    trees = TreeWriter(ledger, spec_of(ledger).learner.trees_per_subspace)
    try:
        yield trees
    finally:
        trees.close()


def _screen(
    ledger: Ledger, setting: Setting, until: int, trees: TreeWriter | None, watch: Watch
) -> None:
    where = (setting.store, setting.inputs, setting.cap_nbytes, setting.threads)
    with engine_parts(spec_of(ledger), *where, saves=trees is not None) as parts:
        engine = parts.search(ledger, trees=trees).engine
        sampler = engine.sampler

        def going() -> bool:
            by_iterations = Step("", engine.iteration, until, sampler.n_kept)
            return watch(sampler.progress() or by_iterations)

        engine.advance(until, going)
        if engine.is_over:
            ledger.set_meta("iterations", engine.iteration)


def _with_digests(options: Options, inputs: Inputs) -> Options:
    return options.also(
        excluded=digest(inputs.excluded, "features"),
        rows=digest(inputs.rows, "rows"),
        validation=digest(inputs.validation, "rows"),
    )
