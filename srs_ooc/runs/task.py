"""What a run learns from, besides its columns: read once, shared by every stage."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.options import exact_share
from srs_ooc.evidence.decoys import Exchangeability
from srs_ooc.learners.tree_learner import UNWEIGHTED
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.spec import RunSpec
from srs_ooc.store.store import Store

_Item = TypeVar("_Item", bound=np.generic)


@dataclass(frozen=True)
class Task:
    """Training rows, what each says, and the features that may be drawn.

    Attributes
    ----------
    inputs : Inputs
        Features left out and rows trained on.
    n_features : int
        Features of the store.
    classes : tuple of str
        Labels by code; none of a regression.
    class_weight : str
        How classes are weighed; see :func:`srs_ooc.runs.responses.training_response`.
    target : int32 or float64 (n_rows,)
        Class code, or number, of each training row.
    weights : float64 (n_rows,) or None
        Weight of each row, where the store has them.
    strata, groups : int32 (n_rows,) or None
        Where the store has them and they were asked for.
    positions : int (n_features,) or None
        Where each stored feature lies in the table, where the method has to know.
    """

    inputs: Inputs
    n_features: int
    classes: tuple[str, ...]
    class_weight: str
    target: NDArray[np.int32] | NDArray[np.float64]
    weights: NDArray[np.float64] | None = None
    strata: NDArray[np.int32] | None = None
    groups: NDArray[np.int32] | None = None
    positions: NDArray[np.integer[Any]] | None = None

    @classmethod
    def of(
        cls,
        store: Store,
        inputs: Inputs,
        class_weight: str = UNWEIGHTED,
        *,
        exchanges: bool = False,
    ) -> "Task":
        """Read the task from a store.

        Parameters
        ----------
        store : Store
            The store.
        inputs : Inputs
            Features left out and rows trained on.
        class_weight : str
            How classes are weighed.
        exchanges : bool
            Read strata and groups too: rows trade places, or are compared within strata.

        Raises
        ------
        StoreError
            If the store is damaged.
        """
        target, rows = store.target(), inputs.rows
        return cls(
            inputs,
            store.n_features,
            store.manifest.classes,
            class_weight,
            target if rows is None else target[rows],
            _of_rows(store.weights(), rows),
            _of_rows(store.strata(), rows) if exchanges else None,
            _of_rows(store.groups(), rows) if exchanges else None,
        )

    @classmethod
    def of_run(cls, spec: RunSpec, store: Store, inputs: Inputs) -> "Task":
        """Read the task of a run, with what judge or model needs; errors as of :meth:`of`."""
        exchanges = spec.concludes or not spec.model.is_tree
        task = cls.of(store, inputs, spec.learner.class_weight, exchanges=exchanges)
        if not spec.method.needs_positions(spec.sampler):
            return task
        return replace(task, positions=np.asarray(store.array("positions")))

    @property
    def rows(self) -> NDArray[np.int32] | None:
        """Rows of the store trained on, int32 (n_rows,); None for all."""
        return self.inputs.rows

    @property
    def n_rows(self) -> int:
        """Rows trained on."""
        return len(self.target)

    @property
    def is_regression(self) -> bool:
        """Whether the target is numbers."""
        return not self.classes

    def permuted(self, order: NDArray[np.int32]) -> "Task":
        """Return the task in which row i has the target of row ``order[i]``.

        Weights of the store, strata and groups stay with their rows.
        """
        return replace(self, target=self.target[order])

    def exchangeability(self) -> Exchangeability:
        """Return which rows may trade places."""
        return Exchangeability(self.n_rows, self.strata, self.groups)

    def check_exchangeable(self, spec: RunSpec) -> None:
        """Check that decoys and permutation runs differ from what they are compared with.

        Raises
        ------
        UsageError
            If exchanges arrange the target in too few ways for the level, or in one.
        """
        are_free = self.strata is None and self.groups is None
        least = 1.0 if are_free else (1 + spec.decoys) / float(exact_share(spec.fdr))
        self.exchangeability().check(self.target, least)

    def candidates(self, n_families: int) -> NDArray[np.uint32] | None:
        """Return V as items: the features not left out and their decoys; None if none is left out.

        Made anew each time, as there are many.
        """
        candidates = self.inputs.candidates(self.n_features)
        if candidates is None:
            return None
        families = [candidates + np.uint32(m * self.n_features) for m in range(1 + n_families)]
        return np.concatenate(families)


def _of_rows(
    values: NDArray[_Item] | None, rows: NDArray[np.int32] | None
) -> NDArray[_Item] | None:
    """Return the values of ``rows``, or all."""
    return values if values is None or rows is None else values[rows]
