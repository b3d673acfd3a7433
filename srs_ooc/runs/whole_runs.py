"""Whole runs on some of the rows of one: done in a folder, here or by workers, each at one."""

import logging
import shutil
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Semaphore
from typing import Any, ClassVar

from srs_ooc.base.budget import PROCESS_NBYTES, growth_counted
from srs_ooc.base.errors import BudgetError, StoppedError
from srs_ooc.base.records import Step, Watch
from srs_ooc.base.text import MB
from srs_ooc.runs.batches import parallel_map
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.jobs import Batch, Cluster, Job, PartWatch, Work
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run
from srs_ooc.runs.screening import is_done, search
from srs_ooc.runs.spec import RunSpec

ALL_AHEAD = 1 << 30
"""Runs are begun however long one of them takes: little is kept of those that are done."""
_log = logging.getLogger("srs_ooc")


@dataclass(frozen=True)
class WholeRunJob(Job):
    """What a worker needs to do whole runs, each on some of the rows of one.

    Attributes
    ----------
    inputs : Inputs
        Features left out, rows, and how often features are drawn where columns were scored.
    n_iterations : int
        Of each run's screen.
    """

    inputs: Inputs
    n_iterations: int
    tells = True
    stage: ClassVar[str]
    """What its parts are called together."""

    @abstractmethod
    def steps(self, plan: Plan, number: int, what: Any, folder: Path) -> Iterator[Any]:
        """Do a run in ``folder``; yield what has come of it, the last time all of it.

        ``plan`` is that of the run on all rows, under the cap that a part has.

        Raises
        ------
        StoppedError
            If it is told to stop; what was yielded before is worth keeping.
        """

    def prepare(self, n_threads: int, stack: ExitStack) -> Work:
        """Prepare for it in a worker, which does as many at once as its memory holds."""
        request, memory_mb = Request(threads=1, iterations=self.n_iterations), self.store.memory_mb
        spec, store = RunSpec.from_json(self.identity), self.store.open()
        plan = Plan.of_spec(spec, store, self.inputs, request)
        needed = plan.whole_nbytes()
        if needed > memory_mb * MB:
            raise BudgetError(
                f"a memory cap of {memory_mb} MB cannot hold a whole run. The smallest cap that "
                f"works is --worker-memory-mb {-(-needed // MB)}."
            )
        n_at_once = max(1, min(n_threads, memory_mb * MB // max(needed, PROCESS_NBYTES)))
        room, plan = Semaphore(n_at_once), plan.asked(memory_mb=memory_mb // n_at_once)

        def work(batch: Batch, tell: PartWatch) -> Batch:
            def wanted(number: int, what: Any) -> Any:
                here = replace(plan, watch=_watch_of(number, tell, self.n_iterations))
                with TemporaryDirectory(prefix="srs-ooc-") as folder:
                    *_, found = self.steps(here, number, what, Path(folder) / f"{self.label}.run")
                return found

            with room, growth_counted():
                return batch.done(wanted)

        return work

    def one_by_one(
        self, plan: Plan, parts: dict[int, Any], folders: list[Path]
    ) -> Iterator[tuple[int, Any]]:
        """Yield (number, outcome) of each part as it is done here, and as more has come of it.

        ``folders`` are those of all parts by number, of which ``parts`` are still to be done. It
        ends early if told to stop.
        """
        with suppress(StoppedError):
            for number, what in parts.items():
                watch = named(f"{self.label} {number + 1} of {len(folders)}", plan.watch)
                here = replace(plan, watch=watch)
                for found in self.steps(here, number, what, folders[number]):
                    yield number, found

    def by_workers(self, plan: Plan, parts: dict[int, Any]) -> Iterator[tuple[int, Any]]:
        """Yield (number, outcome) of each part as the plan's workers are done with it.

        ``parts`` are what each run needs, by its number. It ends early if told to stop: ``watch``
        of the plan is told of the iterations of all of them together.
        """
        cluster, n_all, done = plan.request.cluster, self.n_iterations * len(parts), set[int]()
        assert cluster is not None
        with closing(cluster.line(self)) as line:

            def goes_on() -> bool:
                under_way = sum(n for number, n in dict(line.told).items() if number not in done)
                reached = min(self.n_iterations * len(done) + under_way, n_all)
                return plan.watch(Step(self.stage, reached, n_all))

            for number, outcome in parallel_map(
                line.send, line.n_threads, iter(parts.items()), goes_on, ALL_AHEAD
            ):
                done.add(number)
                yield number, outcome


def select_within(folder: Path, plan: Plan, whole: Run | None = None) -> None:
    """Do a run on some of a store's rows in ``folder``, until its iterations are done.

    What is there of it already is gone on with. ``whole`` is the run that this one is a part of, if
    it lies in that one's folder.

    Raises
    ------
    StoppedError
        If it is told to stop before.
    """
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        plan.begin(folder)
    accepts, part_of = (False, None) if whole is None else (whole.accepts_loss, whole.run)
    with Run(folder, writable=True, accept_loss=accepts, part_of=part_of) as within:
        here = Plan.of_run(within, plan.store, plan.request)
        search(within, replace(here, watch=plan.watch))
        if not is_done(within, plan.n_iterations):
            raise StoppedError("expected a run that is wanted, found one that was given up.")


def _watch_of(number: int, tell: PartWatch, n_iterations: int) -> Watch:
    """Return what tells how far a run is: the iterations of its screen, which comes first."""
    reached = 0

    def watch(step: Step) -> bool:
        nonlocal reached
        if step.unit == "iterations" and step.total == n_iterations:
            reached = max(reached, step.done)
        return tell(number, reached)

    return watch


def fits_workers(cluster: Cluster, plan: Plan, what: str) -> bool:
    """Return whether a worker's memory holds a whole run; where not, log how ``what`` is done."""
    needed = plan.whole_nbytes()
    fits = needed <= cluster.worker_memory_mb * MB
    if not fits:
        _log.warning(
            "%s come one after another, each with its trees grown by all workers: to have whole "
            "runs done side by side, give --worker-memory-mb %d",
            what,
            -(-needed // MB),
        )
    return fits


def remove_part(run: Path) -> None:
    """Remove a run that another needed, under another name first: a kill leaves no part of one."""
    gone = run.with_name(f"{run.name}.removed")
    shutil.rmtree(gone, ignore_errors=True)
    with suppress(OSError):
        run.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def named(what: str, watch: Watch) -> Watch:
    """Return what is told of steps that begin with ``what``."""
    return lambda step: watch(replace(step, stage=f"{what}, {step.stage}".rstrip(", ")))
