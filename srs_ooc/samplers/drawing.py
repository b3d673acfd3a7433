"""How a subspace is drawn from kept features and all others (Algorithm 1, step 2a)."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.options import floor_share
from srs_ooc.base.seeds import Purpose, below, derive
from srs_ooc.base.text import ceil_div
from srs_ooc.samplers.distinct import draw_blocks, draw_distinct


class SubspaceDraw(Protocol):
    """How the subspace of an iteration is drawn."""

    @property
    def subspace_size(self) -> int:
        """The most features a subspace has."""

    @property
    def n_held(self) -> int:
        """Places of a subspace that kept features may take."""

    def draw(self, kept: NDArray[np.uint32], key: int) -> NDArray[np.uint32]:
        """Return the subspace of the iteration with ``key``; uint32, distinct, ascending.

        ``kept`` is F as the iteration's round found it, in the order its members entered.
        """


class Drawing:
    """Q = R u C: R drawn from the kept features F, C from the features of V not in R.

    |R| = min(floor(alpha q), |F|), without replacement; with alpha = 0 this is Random Subspace.
    C is the first q - |R| members, not in R, of a random sequence over V that the iteration's key
    fixes alone, whatever F is; R has a stream of its own. With ``draw_block`` above 1 the sequence
    goes by blocks of neighbours in stored order, so that C is read in fewer and longer pieces; each
    feature not in R is in C with the same probability either way (docs/theory.md).

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
    n_copies : int
        Where V has as many copies of each feature, one copy of all after the other: a subspace
        that holds nothing is of half of one copy at most, each as often, so that features meet
        one another as often as if there were no other copies.
    n_items : int
        Features and copies there are, those not in V included; of no meaning with one copy.
    """

    def __init__(
        self,
        n_candidates: int,
        subspace_size: int,
        alpha: str,
        candidates: NDArray[np.uint32] | None = None,
        draw_block: int = 1,
        n_copies: int = 1,
        n_items: int = 0,
    ) -> None:
        self.n_candidates, self.subspace_size = n_candidates, subspace_size
        self.draw_block = draw_block
        self.n_held = floor_share(alpha, subspace_size)
        self.candidates = candidates
        self._one: Drawing | None = None
        if n_copies > 1:
            count, self._stride = n_candidates // n_copies, n_items // n_copies
            own = None if candidates is None else candidates[:count]
            # Half of them at most: with all of them every tree would be the same.
            size = min(subspace_size, ceil_div(count, 2))
            self._one = Drawing(count, size, "0", own, min(draw_block, size))
            self._n_copies = n_copies

    def draw(self, kept: NDArray[np.uint32], key: int) -> NDArray[np.uint32]:
        """Return the subspace of the iteration with ``key``; uint32 (q,), ascending.

        ``kept`` is F as the iteration's round found it, in the order its members entered.
        """
        if self._one is not None and not len(kept):
            copy = below(derive(key, Purpose.COPY), 0, self._n_copies)
            return self._one.draw(kept, key) + np.uint32(copy * self._stride)
        retained = self._retained(kept, derive(key, Purpose.RETAINED))
        excluded = retained
        if self.candidates is not None:
            excluded = np.searchsorted(self.candidates, retained).astype(np.uint32)
        n_fresh = self.subspace_size - len(retained)
        fresh = self._fresh(derive(key, Purpose.SEQUENCE), excluded, n_fresh)
        if self.candidates is not None:
            fresh = self.candidates[fresh]
        subspace = np.concatenate([retained, fresh])
        subspace.sort()
        return subspace

    def _fresh(self, key: int, excluded: NDArray[np.uint32], count: int) -> NDArray[np.uint32]:
        if self.draw_block == 1:
            return draw_distinct(key, self.n_candidates, excluded, count)
        return draw_blocks(key, self.n_candidates, self.draw_block, excluded, count)

    def _retained(self, kept: NDArray[np.uint32], key: int) -> NDArray[np.uint32]:
        size = min(self.n_held, len(kept))
        if size == len(kept):
            return kept
        return kept[draw_distinct(key, len(kept), None, size)]
