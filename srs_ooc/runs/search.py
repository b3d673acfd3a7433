"""The main loop of a run: its tally, its sampler, and the engine that drives them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Part
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.evidence.tally import ModelScores, RankingHistory, Steadiness, Tally
from srs_ooc.learners.models import SUBSPACES
from srs_ooc.runs.engine import Book, Engine
from srs_ooc.runs.executors import Executor
from srs_ooc.runs.ledger import TreeWriter
from srs_ooc.runs.ledger.trees import VALID
from srs_ooc.runs.spec import RunSpec
from srs_ooc.samplers.base import Ground, method_of
from srs_ooc.trees.response import Response

TALLY, STEADINESS = "tally", "steadiness"
"""Names under which a ledger keeps what was learnt of each item, and whether that is stable."""


class Search:
    """Iterations of one run, from where its book left them.

    Parameters
    ----------
    spec : RunSpec
        The run's identity.
    n_features : int
        Features of the store.
    n_candidates : int
        Items that may be drawn.
    candidates : uint32 (n_candidates,) or None
        Their stored positions, ascending; None where all may be drawn.
    executor : Executor
        Grows subspaces.
    book : Book
        Where it is committed to.
    trees : TreeWriter, optional
        Where trees are kept, if the executor returns them.
    weights : uint32 (n_items,), optional
        How often items are to be drawn, where the method has columns scored.
    response : Response, optional
        What the rows say.
    validation : int32, optional
        Places of the rows held out, where they were given.
    positions : int (n_features,), optional
        Where each stored feature lies in the table, where the method has to know.

    Attributes
    ----------
    tally : Tally
        What was learnt of each item.
    steadiness : Steadiness or None
        Of the ranking, where the verdict comes last.
    engine : Engine
        The loop.
    """

    def __init__(
        self,
        spec: RunSpec,
        n_features: int,
        n_candidates: int,
        candidates: NDArray[np.uint32] | None,
        executor: Executor,
        book: Book,
        trees: TreeWriter | None = None,
        *,
        weights: NDArray[np.uint32] | None = None,
        response: Response | None = None,
        validation: NDArray[np.int32] | None = None,
        positions: NDArray[np.integer[Any]] | None = None,
    ) -> None:
        self.spec = spec
        self.tally = Tally(spec.n_items(n_features), wins=not spec.concludes)
        self.steadiness: Steadiness | None = None
        observers: dict[str, Part] = {TALLY: self.tally}
        if trees is not None:
            observers[VALID] = trees
        if spec.model.scores_features:
            by_subspace = spec.model.model_importance == SUBSPACES
            scores = ModelScores(n_features, by_subspace=by_subspace)
            observers[ModelScores.name] = scores
        judge, tie = spec.make_judge(), key_of(spec.seed, Purpose.RANK_TIE)
        if spec.concludes:
            self.steadiness = observers[STEADINESS] = Steadiness(self.tally, tie)
            observers[RankingHistory.name] = RankingHistory(self.tally, tie)
        ground = Ground(
            spec.n_items(n_features),
            n_candidates,
            candidates,
            spec.subspace_size,
            spec.round_size,
            tie,
            self.tally,
            judge,
            spec.keep,
            spec.n_copies_apart,
            weights,
            response,
            validation,
            positions,
        )
        self.engine = Engine(
            method_of(spec.run.method).make(spec.sampler, ground),
            executor,
            book,
            seed=spec.seed,
            round_size=spec.round_size,
            observers=observers,
            judge=judge,
        )

    @property
    def is_stable(self) -> bool:
        """Whether the ranking was found stable."""
        return self.steadiness is not None and self.steadiness.since is not None
