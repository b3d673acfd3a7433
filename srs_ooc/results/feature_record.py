"""What a run says of one feature: its record, what ranks it, its line in the verdict.

The memory that reading them takes stands here, too.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Budget
from srs_ooc.base.options import exact_share
from srs_ooc.base.records import Saved, State
from srs_ooc.base.text import MB, counted
from srs_ooc.evidence.rank_tests import Contrast
from srs_ooc.evidence.tally import ModelScores
from srs_ooc.evidence.verdict import fewest_features
from srs_ooc.learners.models import SUBSPACES
from srs_ooc.runs.inputs import spec_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.run_verdict import CONCLUSION, VerdictRecord
from srs_ooc.runs.spec import LEDGER_NBYTES, RunSpec
from srs_ooc.store.manifest import Manifest
from srs_ooc.trees.response import IMPORTANCE_BITS

# What the final verdict of a run says of the features that reached its closing stage.

MANY = 15
"""Families of decoys that are advised where few features are expected."""
DIFFERENCES: dict[int, str] = {
    Contrast.LOCATION: "location",
    Contrast.SPREAD: "spread",
    Contrast.ABSENCE: "what is missing",
}
"""What a marginal test can show, in words."""


@dataclass(frozen=True)
class Standing:
    """One feature of the pooled ranking.

    Attributes
    ----------
    place : int
        Rank among its features, from 1.
    is_selected : bool
        Whether it is above the cut.
    q_value : float
        Smallest level at which this ranking would be cut below it, as estimated.
    score : float or None
        Mean importance in the last round of the closing stage that it was in; None if in none.
    stability : float or None
        Share of ten batches of that round's trees that put it among as many items as are above the
        cut; None where the round had no more items.
    cluster : int or None
        Cluster of rank-correlated items, from 1 by their best places; None where not looked at.
    p_value : float
        Of the marginal test of this feature alone.
    differs_in : str or None
        What that test saw: location, spread, or what is missing; None where nothing.
    passes_alone : bool
        Whether it passes Benjamini and Hochberg, over all features, at the run's level.
    is_outstanding : bool
        Whether it passes over features and decoys together, and so stands before the others.
    is_best : bool
        Whether none of its decoys stands before it.
    """

    place: int
    is_selected: bool
    q_value: float
    score: float | None
    stability: float | None
    cluster: int | None
    p_value: float
    differs_in: str | None
    passes_alone: bool
    is_outstanding: bool
    is_best: bool


class VerdictReading:
    """The verdict of a concluded run.

    Attributes
    ----------
    features : uint32 (n,)
        Stored positions of the features of the pooled ranking: marginally significant ones first,
        then those that reached the closing stage.
    order : uint32 (m,)
        Stored positions of the features to show first.
    levels : float64 (n,)
        Their q-values.
    is_outstanding : bool (n,)
        Whether they stand before the others by their marginal tests.
    n_selected : int
        How many are selected.
    facts : dict
        The record about the verdict.
    """

    def __init__(self, spec: RunSpec, record: VerdictRecord, facts: dict[str, Any]):
        self.spec, self.facts = spec, facts
        self._record = record
        self.features, self.is_selected = record.features, record.is_selected
        self.levels, self.is_outstanding = record.levels, record.is_outstanding
        self.order = record.order if len(record.order) else record.features
        self.n_selected = int(np.count_nonzero(self.is_selected))
        self._place = {int(feature): i for i, feature in enumerate(self.features)}

    @classmethod
    def of(cls, ledger: Ledger) -> "VerdictReading | None":
        """Return the verdict on the iterations done, or None if there is none (yet)."""
        spec = spec_of(ledger)
        record = VerdictRecord.read(ledger) if spec.concludes else None
        if record is None or record.n_iterations != ledger.progress().iteration:
            return None
        return cls(spec, record, ledger.meta(CONCLUSION))

    def selected(self) -> NDArray[np.uint32]:
        """Return the stored positions of the selected features, in the order to show."""
        return self.order[np.isin(self.order, self.features[self.is_selected])]

    def standing(self, feature: int) -> Standing | None:
        """Return where a stored feature stands; None if it is not in the ranking."""
        i = self._place.get(feature)
        if i is None:
            return None
        a = self._record
        cluster = int(a.groups[i])
        p_value = float(a.p_values[i])
        return Standing(
            place=i + 1,
            is_selected=bool(a.is_selected[i]),
            q_value=float(a.levels[i]),
            score=_or_none(a.scores[i] / (1 << IMPORTANCE_BITS)),
            stability=_or_none(a.stability[i]),
            cluster=cluster + 1 if cluster >= 0 else None,
            p_value=p_value,
            differs_in=DIFFERENCES.get(int(a.contrasts[i])),
            passes_alone=p_value <= self.facts["marginal_cutoff"],
            is_outstanding=bool(a.is_outstanding[i]),
            is_best=bool(a.is_best[i]),
        )

    def members(self, cluster: int) -> list[int]:
        """Return the stored positions of the features of a cluster, best first."""
        return [int(f) for f in self.features[self._record.groups == cluster - 1]]

    @property
    def clusters_selected(self) -> str | None:
        """How many clusters hold a selected feature; None where not all their places were seen."""
        clusters = self._record.groups[self.is_selected]
        if not len(clusters) or np.any(clusters < 0):
            return None
        return counted(len(np.unique(clusters)), "cluster")

    @property
    def n_alone_selected(self) -> int:
        """How many selected features are marginally significant."""
        cutoff = self.facts["marginal_cutoff"]
        return int(np.count_nonzero(self._record.p_values[self.is_selected] <= cutoff))

    @property
    def fewest(self) -> int:
        """The fewest features that counting decoys could select, given how these are correlated."""
        level = float(exact_share(self.spec.fdr))
        return fewest_features(self.spec.decoys, self.facts["largest_group"], level)

    def why_none(self) -> str:
        """Say why nothing is selected."""
        spec = self.spec
        best = float(self._record.levels.min(initial=1.0))
        if spec.permutations:
            return (
                f"No feature reached more than the {spec.permutations} permutation runs: the best "
                f"has level {best:.3g}, {spec.fdr} was asked. More iterations "
                "(`srs-ooc resume RUN --iterations T`) help if a feature is informative only "
                "beside others. Otherwise nothing is there, or too little for so few rows."
            )
        families = "family" if spec.decoys == 1 else "families"
        alone = (
            "The marginally significant features do not hold it either"
            if np.any(self._record.is_outstanding)
            else "No feature is marginally significant"
        )
        more = "" if spec.decoys >= MANY else f", or --decoys {MANY}"
        return (
            f"Wherever the ranking is cut, an estimated {best:.2g} or more of the features above "
            f"are false. {alone}, and "
            f"counting {spec.decoys} {families} of decoys cannot select fewer than {self.fewest} "
            f"features at level {spec.fdr}. If few are expected, use permutation runs "
            f"(--permutations 9){more}. Otherwise more iterations or more rows are needed, or "
            "nothing is there."
        )


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def explain(
    name: str,
    feature: int,
    n_drawn: int,
    verdict: VerdictReading,
    names: list[str],
    *,
    is_excluded: bool,
) -> str:
    """Say in one plain sentence why a feature is in or out.

    Parameters
    ----------
    name : str
        The feature.
    feature : int
        Its stored position.
    n_drawn : int
        Subspaces it was in.
    verdict : VerdictReading
        The verdict.
    names : list of str
        Other features of its cluster.
    is_excluded : bool
        Whether the run leaves the feature out.
    """
    standing = verdict.standing(feature)
    if standing is None:
        if is_excluded:
            return f"{name} is out: the run was told to leave it out (--exclude)."
        if n_drawn == 0:
            return f"{name} is out: it was never drawn; run more iterations."
        return (
            f"{name} is out: drawn {counted(n_drawn, 'time')}, it was neither among the best of "
            "the screen nor among the marginally most significant."
        )
    spec = verdict.spec
    tail = _tail(standing, names)
    if spec.permutations:
        more = "more" if standing.is_selected else "no more"
        verb = "is in" if standing.is_selected else "is out"
        return (
            f"{name} {verb}: place {standing.place}, reaching {more} than the permutation runs do "
            f"(level {standing.q_value:.3g}, {spec.fdr} asked).{tail}"
        )
    if not standing.is_selected:
        reason = (
            f"it is at place {standing.place}, and of the cuts there or further down the best has "
            f"an estimated {standing.q_value:.2g} of the features false ({spec.fdr} asked)"
            if standing.is_best or standing.is_outstanding
            else "one of its own decoys ranks before it"
        )
        return f"{name} is out: {reason}.{tail}"
    return (
        f"{name} is in: place {standing.place}, where an estimated {standing.q_value:.2g} of the "
        f"features are false ({spec.fdr} asked).{tail}"
    )


def _tail(standing: Standing, names: list[str]) -> str:
    """Say what else is known of a feature."""
    alone = "is" if standing.passes_alone else "is not"
    among = ""
    if standing.is_outstanding and not standing.passes_alone:
        alone, among = "is", " among features and decoys together, not among features alone"
    shown = f", it differs in {standing.differs_in}" if alone == "is" else ""
    if standing.score is None:
        agreement = "no batch of trees of the closing stage saw it"
    elif standing.stability is None:
        agreement = "too many are selected for batches of trees to disagree"
    else:
        agreement = f"{standing.stability:.0%} of the batches of trees agree on its place"
    more = f" Rank-correlated with {', '.join(names)}." if names else ""
    return (
        f" It {alone} marginally significant{among} (p = {standing.p_value:.2g}{shown}); "
        f"{agreement}.{more}"
    )


# What a run says of one feature.


@dataclass(frozen=True)
class FeatureRecord:
    """One feature's line; None where the judge or the draws do not define a value.

    ``importance`` is total MDI / trees grown on subspaces it was in (what ``rank`` follows),
    ``importance_ensemble`` total MDI / all trees (Eq. 1), ``n_drawn`` the subspaces it was in,
    ``p_better`` the share of them in which it beat the probe, over all trees of the subspace,
    ``entered`` the iteration after which it entered F, counted from 1. The rest is of the final
    verdict, for features that reached its closing stage (:class:`Standing`); these rank first, by
    it. A method that ranks by scores of its own gives each feature its ``score``, and
    ``rank`` follows that.
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


# What a run ranks features by, where it is not their importance.

Features = slice | NDArray[np.integer]


class MethodScores:
    """Scores that a method learnt, read from its part of a ledger.

    Parameters
    ----------
    part : str
        Name of that part.
    n_features : int
        Features of the store.

    Attributes
    ----------
    array : float64 (n_features,)
        The scores by stored position; 0 until they are read.
    """

    record_type: type[FeatureRecord] = FeatureRecord

    def __init__(self, part: str, n_features: int) -> None:
        self.part, self.array = part, np.zeros(n_features)

    def state(self) -> State:
        """Return nothing: they are only read."""
        return State()

    def restore(self, saved: Saved) -> None:
        """Take the scores from what was committed."""
        saved.fill("score", self.array)

    def ranked_by(self, n_drawn: NDArray[np.integer], features: Features) -> NDArray[np.float64]:
        """Return what features are ranked by, the largest first."""
        return self.array[features]

    def fields(self, n_drawn: int, stored: int) -> dict[str, Any]:
        """Return what a feature's line says of it."""
        return {"score": float(self.array[stored])}


class BaseModelScores(ModelScores):
    """Scores by base models, as :class:`MethodScores` are read."""

    record_type: type[FeatureRecord] = ScoredRecord
    part = ModelScores.name

    def ranked_by(self, n_drawn: NDArray[np.integer], features: Features) -> NDArray[np.float64]:
        """Return the scores; minus infinity where there is none."""
        found = self.scores(n_drawn, features)[0]
        return np.where(np.isnan(found), -np.inf, found)

    def fields(self, n_drawn: int, stored: int) -> dict[str, Any]:
        """Return the score and its standard error; None where there are too few subspaces."""
        found = self.scores(np.array([n_drawn]), np.array([stored]))
        score, error = (None if np.isnan(value[0]) else float(value[0]) for value in found)
        return {"score": score, "standard_error": error}


def own_scores(spec: RunSpec, n_features: int) -> MethodScores | BaseModelScores | None:
    """Return what reads a run's own scores; None where it ranks by importance."""
    if spec.method.ranks_by:
        return MethodScores(spec.method.ranks_by, n_features)
    if spec.model.scores_features:
        by_subspace = spec.model.model_importance == SUBSPACES
        return BaseModelScores(n_features, by_subspace=by_subspace)
    return None


def own_scores_nbytes(spec: RunSpec, n_features: int) -> int:
    """Return the bytes that reading them takes."""
    by_model = 16 if spec.model.scores_features else 0
    return (8 if spec.method.ranks_by else by_model) * n_features


def record_type_of(scores: MethodScores | BaseModelScores | None) -> type[FeatureRecord]:
    """Return what the line of a feature is."""
    return FeatureRecord if scores is None else scores.record_type


# The memory that reading a ranking takes.

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
