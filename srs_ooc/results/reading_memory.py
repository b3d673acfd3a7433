"""The memory that reading a ranking takes."""

from srs_ooc.base.budget import Budget
from srs_ooc.base.text import MB
from srs_ooc.results.method_scores import own_scores_nbytes
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.spec import LEDGER_NBYTES, RunSpec
from srs_ooc.store.manifest import Manifest

LEAST_BATCH, MOST_BATCH = 1 << 14, 1 << 20
"""Features that are ordered at a time."""
READING_NBYTES = 6 * MB
"""Allowance for the verdict and the lines on their way."""
PLACE_NBYTES = 2 * 64
"""Memory of a feature of a batch: twice as many, with scores, are sorted at a time."""
_KEPT_NBYTES = 32


def room_for_order(
    ledger: Ledger,
    spec: RunSpec,
    manifest: Manifest,
    cap_nbytes: int,
    beside_nbytes: int,
    later_nbytes: int = 0,
) -> int:
    """Return what the cap leaves for ordering features, having checked that it holds the rest.

    A cap that is named holds ``later_nbytes``, too, which follow once the ranking is given back.

    Raises
    ------
    BudgetError
        If it does not.
    """
    n, n_kept = manifest.n_features, ledger.progress().n_kept
    budget = Budget(cap_nbytes, other_nbytes=later_nbytes)
    tally = (12 if spec.concludes else 16) * spec.n_items(n)
    scores = own_scores_nbytes(spec, n)
    budget.grant(f"tallies of {n} features", tally + scores + 6 * n + _KEPT_NBYTES * n_kept)
    budget.grant("ledger", LEDGER_NBYTES)
    if beside_nbytes:
        budget.grant("what is made of it", beside_nbytes)
    verdict = READING_NBYTES if spec.concludes else 0
    budget.grant("verdict and order", verdict + LEAST_BATCH * PLACE_NBYTES)
    budget.check()
    return budget.free_nbytes
