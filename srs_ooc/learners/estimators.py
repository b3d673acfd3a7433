"""The learner of base models: any estimator of scikit-learn, scored by held-out loss."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Candidates, Iteration, Outcome, RowSplit
from srs_ooc.base.seeds import derive, derive_array
from srs_ooc.learners.base import Columns
from srs_ooc.learners.criteria import judged
from srs_ooc.learners.decoding import DecodedBlock
from srs_ooc.learners.fitted import FittedModel, Target
from srs_ooc.learners.makers import EstimatorMaker
from srs_ooc.learners.model_params import PERMUTATION, ModelParams
from srs_ooc.learners.moments import Sets
from srs_ooc.learners.pinned import pin_worker
from srs_ooc.samplers.base import IMPORTANCE, LOSS, PREDICTIONS
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import judge_in_turn
from srs_ooc.trees.response import IMPORTANCE_BITS

_PERMUTED = 1 << 32
"""Word of the keys by which held-out values are permuted; no fold has it."""


class EstimatorLearner:
    """Fits estimators on the rows outside each fold and scores them on the fold's.

    The importance of a feature is how much less the model of its subspace loses than no model, the
    same for all features of the subspace; or how much more it loses where the feature's held-out
    values are permuted. Where a subspace splits the rows itself, a model is fitted on some of them
    and predicts others, and there is no importance. Where it holds candidates, parts of its
    columns, each is judged by what models of it lose on the rows that they were not fitted on, or
    by an information criterion of the rows that there are to fit on.

    Parameters
    ----------
    params : ModelParams
        The model, and how features are scored by it.
    target : Target
        Of all rows.
    folds : int (n_rows,) or None
        The fold of each row, from 0; None where subspaces split the rows.
    center : float
        What is taken off predicted numbers for a sampler.
    """

    provides: ClassVar[frozenset[str]] = frozenset({IMPORTANCE, LOSS, PREDICTIONS})
    tiled: ClassVar[bool] = False

    def __init__(
        self,
        params: ModelParams,
        target: Target,
        folds: NDArray[np.integer] | None = None,
        center: float = 0.0,
    ) -> None:
        self.params, self.target, self._center = params, target, center
        self._by_permutation = params.model_importance == PERMUTATION
        self._folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
        if folds is not None:
            self._folds = [
                (np.flatnonzero(folds != k), np.flatnonzero(folds == k))
                for k in range(int(folds.max()) + 1)
            ]
        self._baseline = self._loss_of_no_model()

    @cached_property
    def _maker(self) -> EstimatorMaker:
        params, is_regression = self.params, self.target.is_regression
        return EstimatorMaker(params.model, params.parameters, is_regression=is_regression)

    def _loss_of_no_model(self) -> float:
        total = 0.0
        for fitted, held in self._folds:
            said = self.target.constant(fitted, len(held))
            total += float(self.target.losses(said, held).sum())
        return total / len(self.target.values)

    def fit(self, block: Block, columns: Columns, iteration: Iteration) -> Outcome:
        """Fit the models of an iteration on ``columns`` of ``block``.

        Raises
        ------
        UsageError
            If the estimator cannot be fitted on them.
        """
        pin_worker()
        features, split = iteration.features, iteration.subspace.split
        table = DecodedBlock.of(block, len(features))
        if iteration.subspace.candidates is not None:
            return self._judge(table, features, iteration.subspace.candidates, iteration.tree_key)
        if split is not None:
            return self._split(table, features, split, iteration.tree_key)
        loss, rises = self._cross_validated(table, features, iteration.tree_key)
        gains = rises if self._by_permutation else np.full(len(features), self._baseline - loss)
        return Outcome(features, _whole(gains), losses=np.array([loss]))

    def _fitted(
        self,
        table: DecodedBlock,
        fitted: NDArray[np.integer],
        held: NDArray[np.integer],
        key: int,
    ) -> tuple[FittedModel, NDArray[np.float64]]:
        """Return a model fitted on some rows, and the others as it wants them."""
        train, rest = table.standardised(fitted, held)
        return FittedModel(self._maker, self.target, train, fitted, key), rest

    def _split(
        self, table: DecodedBlock, features: NDArray[np.uint32], split: RowSplit, key: int
    ) -> Outcome:
        model, rest = self._fitted(table, split.fitted, split.predicted, key)
        said = model.predict(rest)
        losses = self.target.losses(said, split.predicted)
        loss = float(losses.mean()) if len(losses) > 0 else 0.0
        return Outcome(
            features,
            np.zeros(len(features), np.int64),
            losses=np.array([loss]),
            predictions=(said - self._center)[None].astype(np.float32),
        )

    def _judge(
        self, table: DecodedBlock, features: NDArray[np.uint32], candidates: Candidates, key: int
    ) -> Outcome:
        """Return the mean held-out loss of each candidate, or its criterion.

        All have the same keys.
        """
        if candidates.criterion is not None:
            losses = self._by_criterion(table, candidates)
            return Outcome(features, np.zeros(len(features), np.int64), losses=losses)

        def summed(places: NDArray[np.int32], split: RowSplit, number: int) -> float:
            own = derive(key, number)
            model, rest = self._fitted(table.only(places), split.fitted, split.predicted, own)
            return float(self.target.errors(model.predict(rest), split.predicted).sum())

        losses, _ = judge_in_turn(candidates, summed)
        losses /= sum(len(split.predicted) for split in candidates.splits)
        return Outcome(features, np.zeros(len(features), np.int64), losses=losses)

    def _by_criterion(self, table: DecodedBlock, candidates: Candidates) -> NDArray[np.float64]:
        criterion, split = candidates.criterion, candidates.splits[0]
        assert criterion is not None, "asked for by the caller"
        columns, _ = table.standardised(split.fitted, split.predicted)
        sets = Sets(candidates.places, candidates.bounds)
        model = self.params.model
        return judged(criterion, model, self.target, columns, split.fitted, sets)

    def _cross_validated(
        self, table: DecodedBlock, features: NDArray[np.uint32], key: int
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the mean loss of all rows, and how much it rises where each column is permuted."""
        total, rises = 0.0, np.zeros(len(features))
        for k, (fitted, held) in enumerate(self._folds):
            model, rest = self._fitted(table, fitted, held, derive(key, k))
            loss = float(self.target.losses(model.predict(rest), held).sum())
            total += loss
            if self._by_permutation:
                key_of_fold = derive(derive(key, _PERMUTED), k)
                for j, feature in enumerate(features.tolist()):
                    order = _shuffled(len(held), derive(key_of_fold, feature))
                    rises[j] += self._permuted_loss(model, rest, held, j, order) - loss
        n_rows = len(self.target.values)
        return total / n_rows, rises / n_rows

    def _permuted_loss(
        self,
        model: FittedModel,
        rest: NDArray[np.float64],
        held: NDArray[np.intp],
        column: int,
        order: NDArray[np.intp],
    ) -> float:
        kept = rest[:, column].copy()
        rest[:, column] = kept[order]
        loss = float(self.target.losses(model.predict(rest), held).sum())
        rest[:, column] = kept
        return loss


def _shuffled(n_rows: int, key: int) -> NDArray[np.intp]:
    return np.argsort(derive_array(key, np.arange(n_rows, dtype=np.uint64)), kind="stable")


def _whole(gains: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return gains in the units in which importances are added up."""
    whole: NDArray[np.int64] = np.rint(gains * float(1 << IMPORTANCE_BITS)).astype(np.int64)
    return whole
