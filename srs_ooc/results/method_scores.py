"""What a run ranks features by, where it is not their importance."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Saved, State
from srs_ooc.evidence.tally import ModelScores
from srs_ooc.learners.models import SUBSPACES
from srs_ooc.results.feature_record import FeatureRecord, ScoredRecord
from srs_ooc.runs.spec import RunSpec

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
