"""Drawing features: distinct ones, from those kept and all others, by weights, small subsets."""

from dataclasses import dataclass
from math import ceil

import numpy as np

from srs_ooc.base.arrays import Ints, Ints32, Uints, Uints32
from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import floor_share
from srs_ooc.base.seeds import Purpose, derive, derive_array
from srs_ooc.native import _native

# Drawing features by whole-number weights: exact, and the same on every machine.

GROUP = 64
"""Features whose weights are summed in advance."""
_LOOKED_UP = 1024
"""Places of the line that are looked up together, to bound the memory."""


def uniform_below(key: int, count: int, bound: int) -> Uints:
    """Return ``count`` integers under ``key``, exactly uniform in ``0 .. bound - 1``; uint64.

    Hashes beyond the last whole multiple of ``bound`` are passed over, so that none is favoured.
    """
    last = (1 << 64) // bound * bound - 1
    found = np.zeros(0, np.uint64)
    counter = 0
    while len(found) < count:
        n_more = count - len(found)
        hashes = derive_array(key, np.arange(counter, counter + n_more))
        found = np.concatenate([found, hashes[hashes <= np.uint64(last)]])
        counter += n_more
    return found % np.uint64(bound)


class WeightedDrawing:
    """Subspaces of features drawn by weights; none is held for kept features.

    The features are laid on a line, each as long as its weight, and places on it are drawn.

    Parameters
    ----------
    weights : uint32 (n_features,)
        0 for features that are never drawn. Kept, not copied.
    subspace_size : int
        k of the paper: features drawn for a tree.
    replacement : bool
        Draw with replacement: a subspace then has ``subspace_size`` of them at most.

    Attributes
    ----------
    total : int
        Length of the line.

    Raises
    ------
    UsageError
        If fewer than wanted can be drawn.
    """

    n_held = 0

    def __init__(self, weights: Uints32, subspace_size: int, *, replacement: bool) -> None:
        self.weights, self.subspace_size, self._again = weights, subspace_size, replacement
        starts = np.arange(0, len(weights), GROUP)
        self._ends = np.cumsum(np.add.reduceat(weights, starts, dtype=np.uint64))
        self.total = int(self._ends[-1])
        found = int(np.count_nonzero(weights))
        if found < (1 if replacement else subspace_size):
            raise UsageError(
                f"--subspace-size: expected at most {found}, the features with a score "
                f"above 0, found {subspace_size}. Ask for fewer, or give more of them a score."
            )

    @staticmethod
    def nbytes(n_features: int) -> int:
        """Return the memory of the weights, and of their sums."""
        return ceil((4 + 8 / GROUP) * n_features)

    def draw(self, kept: Uints32, key: int) -> Uints32:
        """Return the subspace of the iteration with ``key``; uint32, distinct, ascending."""
        return np.unique(self.drawn(derive(key, Purpose.WEIGHTED)))

    def drawn(self, key: int) -> Uints32:
        """Return ``subspace_size`` features, each drawn by the weights from all, or those left.

        In order drawn. Without replacement in rounds: as many as are wanted are drawn with
        replacement from what lay on the line when the round began, and of equal ones the first
        counts. To pass over a feature drawn twice is to draw from the others, so the law is that of
        one draw after another.
        """
        count = self.subspace_size
        if self._again:
            return self.find(uniform_below(key, count, self.total))[0]
        drawn, starts = np.zeros(0, np.uint32), np.zeros(0, np.uint64)
        number = 0
        while len(drawn) < count:
            order = np.argsort(starts)
            lengths = self.weights[drawn[order]].astype(np.uint64)
            removed = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
            n_left = self.total - int(removed[-1])
            places = uniform_below(derive(key, number), count - len(drawn), n_left)
            # Where the features drawn would lie if those before them were taken off the line.
            gaps = starts[order] - removed[:-1]
            places += removed[np.searchsorted(gaps, places, side="right")]
            features, begins = self.find(places)
            first = np.sort(np.unique(features, return_index=True)[1])
            drawn = np.concatenate([drawn, features[first]])
            starts = np.concatenate([starts, begins[first]])
            number += 1
        return drawn

    def find(self, places: Uints) -> tuple[Uints32, Uints]:
        """Return the feature at each place, from 0 to ``total - 1``, and where it begins."""
        features = np.empty(len(places), np.uint32)
        starts = np.empty(len(places), np.uint64)
        for first in range(0, len(places), _LOOKED_UP):
            some = slice(first, first + _LOOKED_UP)
            groups = np.searchsorted(self._ends, places[some], side="right")
            members = groups[:, None] * GROUP + np.arange(GROUP)
            lengths = np.take(self.weights, members, mode="clip").astype(np.uint64)
            lengths[members >= len(self.weights)] = 0
            ends = np.cumsum(lengths, axis=1)
            ends += (self._ends[groups] - ends[:, -1])[:, None]
            at = np.arange(len(groups)), (ends <= places[some, None]).sum(axis=1)
            features[some], starts[some] = members[at], ends[at] - lengths[at]
        return features, starts


# Distinct random integers: the face of the native draws.
#
# `tests/helpers/distinct_reference.py` is the twin.

_NO_FEATURES = np.zeros(0, dtype=np.uint32)


def draw_distinct(key: int, bound: int, excluded: Uints32 | None, count: int) -> Uints32:
    """Draw ``count`` distinct integers below ``bound``, none of ``excluded``, in order drawn."""
    out = np.empty(count, dtype=np.uint32)
    _native.draw_distinct(key, bound, _NO_FEATURES if excluded is None else excluded, out)
    return out


def draw_blocks(
    key: int, bound: int, block_size: int, excluded: Uints32 | None, count: int
) -> Uints32:
    """Draw ``count`` distinct integers below ``bound`` by blocks of neighbours.

    None is of ``excluded``; they are in the order drawn. Every integer not excluded is drawn with
    probability ``count / (bound - len(excluded))``; see the reference for how.
    """
    out = np.empty(count, dtype=np.uint32)
    _native.draw_blocks(key, bound, block_size, _NO_FEATURES if excluded is None else excluded, out)
    return out


# How a subspace is drawn from kept features and all others (Algorithm 1, step 2a).


@dataclass(eq=False)
class Drawing:
    """Q = R u C: R drawn from the kept features F, C from the features of V not in R.

    |R| = min(floor(alpha q), |F|), without replacement; with alpha = 0 this is Random Subspace.
    C is the first q - |R| members, not in R, of a random sequence over V that the iteration's key
    fixes alone, whatever F is; R has a stream of its own. With ``draw_block`` above 1 the sequence
    goes by blocks of neighbours in stored order, so that C is read in fewer and longer pieces; each
    feature not in R is in C with the same probability either way (docs/research/theory.md).

    Parameters
    ----------
    n_candidates : int
        |V|: the features that may be drawn.
    subspace_size : int
        q.
    alpha : str
        Share of the subspace held for kept features, as decimal text: floor(alpha q) is exact.
    candidates : uint32 (n_candidates,), optional
        Stored positions of V, ascending, where some features are excluded.
    draw_block : int
        g: how many neighbours in V a block has; 1 is Algorithm 1.
    """

    n_candidates: int
    subspace_size: int
    alpha: str
    candidates: Uints32 | None = None
    draw_block: int = 1

    def __post_init__(self) -> None:
        self.n_held = floor_share(self.alpha, self.subspace_size)

    def draw(self, kept: Uints32, key: int) -> Uints32:
        """Return the subspace of the iteration with ``key``; uint32 (q,), ascending.

        ``kept`` is F as the iteration's round found it, in the order its members entered.
        """
        n_kept, n_retained, retained = len(kept), min(self.n_held, len(kept)), kept
        if n_retained < n_kept:
            retained = kept[draw_distinct(derive(key, Purpose.RETAINED), n_kept, None, n_retained)]
        excluded = retained
        if self.candidates is not None:
            excluded = np.searchsorted(self.candidates, retained).astype(np.uint32)
        n_fresh, sequence = self.subspace_size - n_retained, derive(key, Purpose.SEQUENCE)
        if self.draw_block == 1:
            fresh = draw_distinct(sequence, self.n_candidates, excluded, n_fresh)
        else:
            fresh = draw_blocks(sequence, self.n_candidates, self.draw_block, excluded, n_fresh)
        if self.candidates is not None:
            fresh = self.candidates[fresh]
        subspace = np.concatenate([retained, fresh])
        _native.sort_items(subspace)
        return subspace


# Subsets of uniform size, drawn by weights of which most are equal (RaSE's candidates).


def draw_subsets(
    key: int,
    first: int,
    count: int,
    largest: int,
    n_candidates: int,
    heavy: Uints32,
    counts: Ints32,
    *,
    unit: float,
    light: float,
) -> tuple[Uints32, Ints]:
    """Draw subsets ``first`` .. ``first + count - 1`` of the sequence of ``key``.

    Parameters
    ----------
    key : int
        64-bit key.
    first, count : int
        Which of them.
    largest : int
        The size of a subset is uniform from 1 to this.
    n_candidates : int
        |V|.
    heavy : uint32 (n_heavy,)
        Features with weights of their own, as places in V, ascending.
    counts : int32 (n_heavy,)
        Their weights in units of ``unit``.
    unit, light : float
        Weight of a count, and of each other feature; above 0.

    Returns
    -------
    members : uint32
        One subset after another, each ascending.
    bounds : int64 (count + 1,)
        Where each begins, and the end.
    """
    bounds = np.empty(count + 1, np.int64)
    members = _native.draw_subsets(
        key, first, largest, n_candidates, heavy, counts, unit, light, bounds
    )
    return np.frombuffer(members, np.uint32), bounds
