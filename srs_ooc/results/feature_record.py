"""What a run says of one feature."""

from dataclasses import dataclass


@dataclass(frozen=True)
class FeatureRecord:
    """One feature's line; None where the judge or the draws do not define a value.

    ``importance`` is total MDI / trees grown on subspaces it was in (what ``rank`` follows),
    ``importance_ensemble`` total MDI / all trees (Eq. 1), ``n_drawn`` the subspaces it was in,
    ``p_better`` the share of them in which it beat the probe, over all trees of the subspace,
    ``entered`` the iteration after which it entered F, counted from 1. The rest is of the final
    verdict, for features that reached its closing stage
    (:class:`srs_ooc.results.verdict.Standing`); these rank first, by it. A method that ranks by
    scores of its own gives each feature its ``score``, and ``rank`` follows that.
    """

    name: str
    rank: int
    selected: bool
    kept: bool
    importance: float | None
    importance_ensemble: float | None
    n_drawn: int
    p_better: float | None
    entered: int | None
    q_value: float | None
    score: float | None
    stability: float | None
    cluster: int | None
    p_value: float | None
    differs_in: str | None
    passes_alone: bool | None


@dataclass(frozen=True)
class ScoredRecord(FeatureRecord):
    """One feature's line where base models score it: its ``score`` has a standard error."""

    standard_error: float | None
