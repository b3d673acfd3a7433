"""Where a run stands."""

from dataclasses import dataclass
from typing import Any

from srs_ooc.base.options import Params, Share
from srs_ooc.base.text import megabytes
from srs_ooc.learners.models import ModelParams
from srs_ooc.results.verdict import VerdictReading
from srs_ooc.runs.inputs import spec_of
from srs_ooc.runs.ledger import Ledger, is_held
from srs_ooc.runs.resources import ClusterNote
from srs_ooc.runs.run_memory import is_growth
from srs_ooc.runs.run_trees import VALID
from srs_ooc.runs.session import is_done
from srs_ooc.runs.settling import declared, is_of_a_method
from srs_ooc.runs.spec import RunSpec


@dataclass(frozen=True)
class Status:
    """Where a run stands; ``state`` is running, stopped or finished; sizes in MB of 10**6 bytes.

    ``peak_rss_mb`` is of the process; with ``memory_is_growth``, of a run made from Python, by how
    much the process grew.

    ``parts`` has the options of the run's identity as each part settled them: ``run``, ``method``,
    ``judge``, ``trees``. What was planned when the run was made stands beside what happened; None
    where there is none. ``cluster`` is how a cluster stood when the run was last at work on it, as
    the process that holds the run noted; None if it never was.
    """

    state: str
    iterations: int
    iterations_asked: int
    n_selected: int
    parts: dict[str, dict[str, Any]]
    rows: str
    excluded: str
    memory_mb: int
    peak_rss_mb: float
    seconds: float
    seconds_per_iteration: float | None
    planned_iterations: int | None
    planned_seconds_per_iteration: float | None
    store: str
    trees_nbytes: int | None
    memory_is_growth: bool
    cluster: ClusterNote | None = None

    @property
    def is_provisional(self) -> bool:
        """Whether a verdict is still to come."""
        return "fdr" in self.parts["judge"] and self.state != "finished"

    @property
    def ranks_only(self) -> bool:
        """Whether the run ranks features and selects none (``--judge none``)."""
        return bool(self.parts["run"]["judge"] == "none")

    @property
    def memory(self) -> str:
        """The largest size and the cap, as text."""
        peak = f"{self.peak_rss_mb:.0f}" if self.peak_rss_mb >= 1 else "under 1"
        of = "growth of the program that ran it" if self.memory_is_growth else "peak"
        return f"{peak} of {self.memory_mb} MB ({of})"


def status_of(ledger: Ledger) -> Status:
    """Return where the run of an open ledger stands, as of its last commit."""
    progress, spec = ledger.progress(), spec_of(ledger)
    asked = int(ledger.meta("iterations"))
    planned = ledger.meta("planned") or {}
    verdict = VerdictReading.of(ledger)
    facts = {} if verdict is None else verdict.facts
    at_work = "running" if is_held(ledger.run) else "stopped"
    return Status(
        state="finished" if is_done(ledger, asked) else at_work,
        iterations=progress.iteration,
        iterations_asked=asked,
        n_selected=progress.n_kept if verdict is None else verdict.n_selected,
        parts=_parts_of(spec),
        rows=spec.rows,
        excluded=spec.excluded,
        memory_mb=int(ledger.meta("memory_mb")),
        peak_rss_mb=megabytes(max(progress.peak_nbytes, facts.get("peak_nbytes", 0))),
        seconds=round(progress.seconds + facts.get("seconds", 0.0), 3),
        seconds_per_iteration=(
            progress.seconds / progress.iteration if progress.iteration else None
        ),
        planned_iterations=planned.get("iterations"),
        planned_seconds_per_iteration=planned.get("seconds_per_iteration"),
        store=str(ledger.meta("store")[0]),
        trees_nbytes=ledger.meta(VALID),
        memory_is_growth=is_growth(ledger),
        cluster=ClusterNote.of(ledger),
    )


def _parts_of(spec: RunSpec) -> dict[str, dict[str, Any]]:
    parts: dict[str, Params] = {"run": spec.run, "method": spec.sampler, "judge": spec.judging}
    parts |= {"trees": spec.learner} if spec.model.is_tree else {"model": spec.model}
    return {name: _numbers(params) for name, params in parts.items()}


def _numbers(params: Params) -> dict[str, Any]:
    """Return settled options by name; shares, which are exact as text, as numbers."""
    options = params.options()
    return {
        name: float(value) if isinstance(options[name].kind, Share) else value
        for name, value in params.values().items()
    }


def values_of(status: Status) -> dict[str, Any]:
    """Return a status as JSON-ready values.

    Every option that runs of its method may have is there, null where it does not; options of other
    methods are left out, those of models from a run of trees, and ``cluster`` from a run that never
    was on one.
    """
    values = {name: v for name, v in vars(status).items() if name not in ("parts", "cluster")}
    if status.cluster is not None:
        values["cluster"] = vars(status.cluster)
    held = {name: value for part in status.parts.values() for name, value in part.items()}
    others = ModelParams.options()  # of a run whose model is no tree, and of no other
    names = [n for n in declared() if n in held or not (n in others or is_of_a_method(n))]
    return values | {name: held.get(name) for name in names}
