"""The trees of a run that predict: all that it keeps, or those that its method says."""

from srs_ooc.base.errors import RunError
from srs_ooc.runs.ledger import Ledger, TreeReader
from srs_ooc.runs.place import spec_of
from srs_ooc.samplers.base import Ensemble


def trees_of(ledger: Ledger) -> TreeReader:
    """Return the trees of a run that predict, as of its last commit.

    Raises
    ------
    RunError
        If the run keeps no trees, has none yet that predict, or its file is damaged.
    """
    return TreeReader(ledger, ensemble_of(ledger))


def ensemble_of(ledger: Ledger) -> Ensemble:
    """Return which of the trees that a run keeps predict, and how.

    Raises
    ------
    RunError
        If its method has not come to any yet.
    """
    spec = spec_of(ledger)
    if spec.method.ensemble is None or not spec.model.is_tree:
        return Ensemble()
    facts = ledger.meta(spec.method.ranks_by) if ledger.has_meta(spec.method.ranks_by) else None
    found = None if facts is None else spec.method.ensemble(spec.sampler, facts)
    if found is None:
        raise RunError(
            f"{ledger.run}: expected trees, found that --method {spec.run.method} has not come to "
            "its ensemble yet. Wait, or go on with the run."
        )
    per_subspace = spec.learner.trees_per_subspace
    count = None if found.count is None else found.count * per_subspace
    return Ensemble(found.first * per_subspace, count, found.votes, found.cutoff)
