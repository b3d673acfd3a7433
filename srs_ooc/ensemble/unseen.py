"""Rows that trees are asked about and did not see: out of bag, or never trained on."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, derive, key_of
from srs_ooc.learners.tree_learner import tree_key
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.task import Task
from srs_ooc.store.store import Store
from srs_ooc.trees.response import TrainingRows, times_drawn
from srs_ooc.trees.saved import NO_VOTES

DRAW_NBYTES = 64
"""Memory of a training row while it is found which rows a tree was grown on."""


@dataclass(frozen=True)
class Unseen:
    """Rows that trees are asked about.

    Attributes
    ----------
    rows : int32 (n,)
        Rows of the store, ascending.
    places : int64 (n,)
        Their places among the training rows; -1 for a row no tree was grown on.
    """

    rows: NDArray[np.int32]
    places: NDArray[np.int64]

    @property
    def are_out_of_bag(self) -> bool:
        """Whether all are training rows, each asked of the trees that did not draw it."""
        return bool((self.places >= 0).all())


def unseen_rows(
    run: Path, spec: RunSpec, store: Store, task: Task, asked: NDArray[np.int32] | None
) -> Unseen:
    """Return the rows to ask about: those ``asked`` for, or the training rows out of bag.

    Raises
    ------
    UsageError
        If all trees were grown on one of them.
    """
    trained = np.arange(store.n_rows, dtype=np.int32) if task.rows is None else task.rows
    bootstrap = spec.learner.bootstrap
    if asked is None and not bootstrap:
        some = "all rows of the store" if task.rows is None else f"{task.n_rows} rows"
        raise UsageError(
            f"{run}: expected rows that training did not see, found trees all grown on {some}. "
            + (
                "Name other rows with --rows."
                if task.rows is not None and task.n_rows < store.n_rows
                else "Begin a run with --bootstrap, or with --rows to hold rows out, and ask that."
            )
        )
    rows = trained if asked is None else asked
    places = np.searchsorted(trained, rows)
    is_there = trained[np.minimum(places, len(trained) - 1)] == rows
    places = np.where(is_there, places, -1).astype(np.int64)
    if not bootstrap and is_there.any():
        first = store.row_ids[int(rows[is_there.argmax()])]
        n_seen = int(np.count_nonzero(is_there))
        raise UsageError(
            f"--rows: expected rows that training did not see, found {n_seen} of {len(rows)} that "
            f"all trees were grown on (first: {first!r}). Name other rows; or begin a run with "
            "--bootstrap, whose trees each leave rows out."
        )
    return Unseen(rows, places)


class Votes:
    """Which trees vote on which rows: those that were not grown on them."""

    def __init__(self, spec: RunSpec, training: TrainingRows, unseen: Unseen) -> None:
        self._spec, self._order = spec, training.order
        self._places = unseen.places

    def of(self, trees: range, rows: slice) -> NDArray[np.uint8]:
        """Return 1 where a tree votes on a row, uint8 (n_trees, n_rows); (0, 0) where all do.

        Parameters
        ----------
        trees : range
            Numbers of the trees, in the order of iterations.
        rows : slice
            Of the rows that are asked about.
        """
        if not self._spec.learner.bootstrap:
            return NO_VOTES
        places, n = self._places[rows], len(self._order)
        votes = np.ones((len(trees), len(places)), np.uint8)
        drawn = np.empty(n + 1, np.uint8)
        for i, number in enumerate(trees):
            drawn[self._order] = times_drawn(self._key(number), n) == 0
            drawn[n] = 1  # where a place is -1
            votes[i] = drawn[places]
        return votes

    def _key(self, number: int) -> int:
        """Return the key of a tree, as the loop and the learner make it."""
        iteration, among = divmod(number, self._spec.learner.trees_per_subspace)
        round_, slot = divmod(iteration, self._spec.round_size)
        first = derive(key_of(self._spec.seed, round_, slot), Purpose.TREE)
        return tree_key(first, among)
