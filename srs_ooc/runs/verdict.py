"""Bringing a run to its verdict, and the only reading of what is a decoy."""

import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import peak_resident_nbytes
from srs_ooc.base.options import exact_share
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.rank_tests import p_values_of
from srs_ooc.evidence.verdict import Verdict, certify, count_decoys, passing_level
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.ledger.trees import TreeWriter
from srs_ooc.runs.order import first_by_worth
from srs_ooc.runs.permutation_runs import bests_of_permutation_runs
from srs_ooc.runs.ranked_names import keep_names
from srs_ooc.runs.screening import Books, RunContext, Watch, screen_and_close
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.survey import Survey, survey
from srs_ooc.runs.verdict_record import VerdictRecord
from srs_ooc.samplers.elimination import Elimination

CONCLUSION = "conclusion"
"""Name of the ledger's record about the verdict."""


def is_concluded(ledger: Ledger) -> bool:
    """Return whether the verdict after the iterations done so far is there."""
    record = VerdictRecord.read(ledger)
    return record is not None and record.n_iterations == ledger.progress().iteration


def conclude(
    ledger: Ledger,
    spec: RunSpec,
    context: RunContext,
    until: int,
    trees: TreeWriter | None,
    watch: Watch,
    *,
    until_stable: bool = False,
) -> None:
    """Bring a run to its verdict after ``until`` iterations, or as far as ``watch`` allows.

    ``until_stable`` ends the screen before, once its blind ranking is stable; the iterations asked
    for are then those done. A run begun under an earlier version of the evidence gets a verdict of
    this one, and its identity says so from then on: nothing before the verdict depends on it.

    Raises
    ------
    RunError
        If the run was begun under a later version.
    """
    start = time.monotonic()
    before, begun = ledger.progress(), spec.evidence
    spec = spec.judged_now(str(ledger.run))
    with context.resources(spec, saves=trees is not None) as resources:
        closed = screen_and_close(
            resources,
            Books.of(ledger),
            until,
            watch,
            "screening",
            trees=trees,
            until_stable=until_stable,
        )
        if closed is None:
            return
    state, until = closed
    permuted = None
    if spec.permutations:
        permuted = bests_of_permutation_runs(ledger, spec, context, until, watch)
        if permuted is None:
            return
    with replace(context, cluster=None).resources(spec) as resources:
        key = key_of(spec.seed, Purpose.RANK_TIE, until)
        found = survey(resources, state, key, permuted)
        verdict = judge(spec, state, found)
        selected = found.ranking.items[verdict.is_selected]
        order = first_by_worth(resources, ledger, selected)
    record = _record_of(state, found, verdict, order, until)
    facts = {
        "n_iterations": until,
        "largest_group": found.largest_cluster,
        "n_outstanding": found.ranking.n_outstanding,
        "n_decoys_above": int(np.count_nonzero(found.is_decoy[: verdict.n_above])),
        "marginal_cutoff": found.marginal_cutoff,
        "n_marginal": found.n_marginal,
        "seconds": time.monotonic() - start - (ledger.progress().seconds - before.seconds),
        "peak_nbytes": peak_resident_nbytes(),
        "evidence": spec.evidence,
        "begun_evidence": begun,
    }
    if spec.evidence != begun:
        ledger.set_meta("spec", spec.to_json())
    with context.store.unchanged():
        keep_names(ledger, context.store, order if len(order) else record.features)
    ledger.set_meta("iterations", until)
    ledger.set_meta(CONCLUSION, facts)
    record.write(ledger)


def judge(spec: RunSpec, state: Elimination, found: Survey) -> Verdict:
    """Return the verdict on the pooled ranking."""
    level, ranking = exact_share(spec.fdr), found.ranking
    if found.comparison is not None:
        scores = np.where(state.rounds == state.rounds.max(), state.scores, 0.0)
        in_closing = ranking.closing_places >= 0
        scores = np.where(in_closing, scores[ranking.closing_places], 0.0)
        return certify(found.comparison, scores, found.strengths.astype(np.float64), level)
    return count_decoys(
        found.is_decoy,
        spec.decoys,
        found.largest_cluster,
        float(level),
        found.is_best,
        expected=found.n_tested * ranking.p_values,
        largest_outstanding=found.largest_outstanding_cluster,
        passing_level=float(passing_level(level)),
    )


def _record_of(
    state: Elimination,
    found: Survey,
    verdict: Verdict,
    order: NDArray[np.uint32],
    n_iterations: int,
) -> VerdictRecord:
    keep = ~found.is_decoy
    places = found.ranking.closing_places[keep]
    within = max(verdict.n_above, 1)
    # Of a round with no more items than that, every batch would agree.
    tells = np.array(state.sizes)[state.rounds] > within
    stability = np.where(tells, (state.batch_ranks < within).mean(axis=0), np.nan)
    unknown = places < 0
    return VerdictRecord(
        n_iterations,
        found.ranking.items[keep],
        verdict.is_selected[keep],
        verdict.levels[keep],
        np.where(unknown, np.nan, state.scores[places]),
        (np.arange(len(keep)) < found.ranking.n_outstanding)[keep],
        found.is_best[keep],
        np.where(unknown, np.nan, stability[places]),
        found.cluster_numbers[keep],
        p_values_of(found.strengths[keep]),
        found.contrasts[keep],
        order,
    )
