"""Where a run stands."""

from dataclasses import dataclass

from srs_ooc.ledger import Ledger, is_held
from srs_ooc.ledger.trees import VALID
from srs_ooc.report.verdict import VerdictReading
from srs_ooc.run_store import spec_of
from srs_ooc.runs import is_done
from srs_ooc.sizes import megabytes


@dataclass(frozen=True)
class Status:
    """Where a run stands; ``state`` is running, stopped or finished; sizes in MB of 10**6 bytes.

    What was planned when the run was made stands beside what happened; None where there is none.
    """

    state: str
    iterations: int
    iterations_asked: int
    n_selected: int
    alpha: float
    subspace_size: int
    max_features: int
    judge: str
    probe_min_draws: int | None
    probe_min_wins: float | None
    fdr: float | None
    decoys: int | None
    replays: int | None
    keep: int | None
    impurity: str
    max_depth: int | None
    min_samples_leaf: int
    seed: int
    round_size: int
    draw_block: int
    trees_per_subspace: int
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
        alpha=float(spec.alpha),
        subspace_size=spec.subspace_size,
        max_features=spec.max_features,
        judge=spec.judge,
        probe_min_draws=spec.probe_min_draws if spec.judge == "probe" else None,
        probe_min_wins=float(spec.probe_min_wins) if spec.judge == "probe" else None,
        fdr=float(spec.fdr) if spec.concludes else None,
        decoys=spec.decoys if spec.concludes else None,
        replays=spec.replays if spec.concludes else None,
        keep=spec.keep if spec.concludes else None,
        impurity=spec.impurity,
        max_depth=spec.max_depth,
        min_samples_leaf=spec.min_samples_leaf,
        seed=spec.seed,
        round_size=spec.round_size,
        draw_block=spec.draw_block,
        trees_per_subspace=spec.trees_per_subspace,
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
    )
