"""The closing stage: the survivors of a screen held together and dropped, round after round.

Half of them go by what the ranking says, or a share by sensitivity (RFEST).
"""

import numpy as np

from srs_ooc.base.arrays import Floats, Ints, Uints32
from srs_ooc.base.records import Outcome, Saved, State, Subspace
from srs_ooc.base.seeds import Purpose, derive
from srs_ooc.evidence.tally import by_score
from srs_ooc.samplers.base import IMPORTANCE, Sampler
from srs_ooc.samplers.draws import draw_distinct

# The closing stage: the survivors of a screen held together and halved, round after round.
#
# Statistics gathered in a screen understate a feature, which had mostly irrelevant features beside
# it there. In a closing round all features still in are grown together, each tree on a random part
# of them; the lower half then leaves.

SURVIVORS = 1000
"""Features of the screen that enter the first round."""
FINALISTS = 30
"""No round begins with fewer."""
TREES = 1000
"""Trees of a round."""
BATCHES = 10
"""Parts of a round's trees whose rankings are compared."""


LEAF_SHARE = 0.01
"""Least rows of a leaf, as a part of the training rows."""
MIXED = (0.2, 0.2), (0.3, 0.7)
"""Few features that show only beside others are seen late, when trees see most of what is left.
Beside those, trees that see few features, for many faint features, which mask one another."""


def round_sizes(n_survivors: int, fewest: int = FINALISTS) -> list[int]:
    """Return the features that each round begins with, no fewer than ``fewest`` after the first."""
    sizes = [n_survivors]
    while sizes[-1] // 2 >= fewest:
        sizes.append(sizes[-1] // 2)
    return sizes


def joint_scores(importance: Ints, n_drawn: Ints) -> Floats:
    """Return what features are worth to the kind of tree that thinks most of them.

    Parameters
    ----------
    importance, n_drawn : int64 (n_kinds, n)
        Sums over the trees of each kind, and of how many.

    Returns
    -------
    float64 (n,)
        Mean importance per draw of a single kind. Of several, the largest multiple of its kind's
        mean, times the mean of these means: kinds count alike, however much a split is worth there.
    """
    means: Floats = importance / np.maximum(n_drawn, 1)
    if len(means) == 1:
        return means.ravel()
    levels = importance.sum(1) / np.maximum(n_drawn.sum(1), 1)
    multiples = means / np.where(levels > 0, levels, 1)[:, None]
    best: Floats = multiples.max(axis=0) * (sum(levels.tolist()) / len(levels))
    return best


class Elimination(Sampler):
    """A sampler of shrinking rounds: features by rank, and what the round under way has taught.

    Iteration t is tree t % n_each of round t // n_each.

    Features are scored by their importances, or by sensitivity (RFEST): not by how much their
    splits decrease impurity in the rows of a tree, but by how much worse the tree does, on the rows
    that it was not grown on, when the feature is altered. A feature that only fits noise gains
    nothing there, however often it is split on; a score may be below zero. How many features leave
    in a round, and when to stop, is not in RFEST's supplement: a half, either way.

    Parameters
    ----------
    features : uint32 (n,)
        The survivors.
    key : int
        64-bit key that breaks ties.
    shares : tuple of (float, float)
        For each kind of tree, which take turns: the part of the features that it sees in the first
        round and in the last; evenly between.
    most : int
        Features a tree may see at most.
    fewest : int
        Features below which no round begins.
    n_each : int, optional
        Trees of a round; ``TREES`` if not given.

    Attributes
    ----------
    features : uint32 (n,)
        By rank once :attr:`is_over`; before, those still in come first, in ascending order.
    scores : float64 (n,)
        Mean importance in the last round each was in, in units of ``2**-36``
        (:func:`joint_scores`); by sensitivity the mean loss that altering a feature brings,
        likewise: of the probability of the true class, or of R2.
    rounds : uint8 (n,)
        That round, from 0.
    batch_ranks : uint16 (BATCHES, n)
        Rank, from 0, by the trees of each batch alone, in the last round each was in.
    round, tree : int
        Trees of the round that are done.
    """

    name = "closing"
    needs = frozenset({IMPORTANCE})
    _ARRAYS = ("features", "scores", "rounds", "batch_ranks", "importance", "n_drawn")

    def __init__(
        self,
        features: Uints32,
        key: int,
        shares: tuple[tuple[float, float], ...],
        most: int,
        fewest: int = FINALISTS,
        *,
        n_each: int | None = None,
    ) -> None:
        n, self.n_each = len(features), n_each or TREES
        self._key, self._shares, self.capacity = key, shares, most
        self.features = np.sort(features)
        self.scores = np.zeros(n)
        self.rounds = np.zeros(n, np.uint8)
        self.batch_ranks = np.zeros((BATCHES, n), np.uint16)
        self.importance = np.zeros((len(shares) * BATCHES, n), np.int64)
        self.n_drawn = np.zeros_like(self.importance)
        self.round = self.tree = 0
        self.sizes = round_sizes(n, fewest)

    @property
    def n_kept(self) -> int:
        """Features still in."""
        return 0 if self.is_over else self.sizes[self.round]

    @property
    def is_over(self) -> bool:
        """Whether all rounds are done."""
        return self.round == len(self.sizes)

    @property
    def n_trees(self) -> int:
        """Trees of all rounds."""
        return len(self.sizes) * self.n_each

    def propose(self, iteration: int, key: int) -> Subspace:
        """Return what the tree of ``iteration`` is grown on: a random part of those still in."""
        size, last = self.sizes[self.round], max(len(self.sizes) - 1, 1)
        first_share, last_share = self._shares[iteration % len(self._shares)]
        share = first_share + (last_share - first_share) * self.round / last
        n_seen = min(max(round(share * size), min(2, size)), self.capacity)
        drawn = draw_distinct(derive(key, Purpose.SEQUENCE), size, None, n_seen)
        return Subspace(self.features[np.sort(drawn)])

    def version(self, iteration: int) -> int:
        """Return the round under way: those still in change with it."""
        return self.round

    def absorb(self, iteration: int, outcome: Outcome) -> None:
        """Add the next tree of the round; with the last one the lower half leaves."""
        places = np.searchsorted(self.features[: self.sizes[self.round]], outcome.features)
        kind = iteration % len(self._shares)
        batch = kind * BATCHES + self.tree * BATCHES // self.n_each
        self.importance[batch, places] += outcome.importance
        self.n_drawn[batch, places] += 1
        self.tree += 1
        if self.tree == self.n_each:
            self._end_round()

    def done(self, iteration: int) -> bool:
        """Return whether all rounds are over."""
        return self.is_over

    def _end_round(self) -> None:
        n = self.sizes[self.round]
        features = self.features[:n].copy()
        by_kind = (len(self._shares), BATCHES, -1)
        importance = self.importance[:, :n].reshape(by_kind)
        n_drawn = self.n_drawn[:, :n].reshape(by_kind)
        total = joint_scores(importance.sum(1), n_drawn.sum(1))
        tie = derive(self._key, self.round)
        ranks = np.empty((BATCHES, n), np.uint16)
        for batch in range(BATCHES):
            scores = joint_scores(importance[:, batch], n_drawn[:, batch])
            ranks[batch, by_score(scores, features, tie)] = np.arange(n)
        order = by_score(total, features, tie)
        self.features[:n], self.scores[:n] = features[order], total[order]
        self.batch_ranks[:, :n] = ranks[:, order]
        self.rounds[:n] = self.round
        self.importance[:] = 0
        self.n_drawn[:] = 0
        self.round, self.tree = self.round + 1, 0
        if not self.is_over:
            self.features[: self.sizes[self.round]].sort()

    def state(self) -> State:
        """Return where the stage stands."""
        arrays = {name: getattr(self, name) for name in self._ARRAYS}
        return State(arrays=arrays | {"at": np.array([self.round, self.tree], np.int64)})

    def restore(self, saved: Saved) -> None:
        """Take up the stage where it was committed."""
        if not (arrays := saved.arrays):
            return
        for name in self._ARRAYS:
            setattr(self, name, arrays[name].copy())
        self.round, self.tree = (int(i) for i in arrays["at"])
