"""Sequential Random Subspace: which features the next tree sees (Algorithm 1, step 2a)."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.kernel.native import draw_distinct
from srs_ooc.seeds import Purpose, derive
from srs_ooc.shares import floor_share


class SequentialRandomSubspace:
    """Q = R u C: R drawn from the kept features F, C from the features of V not in R.

    |R| = min(floor(alpha q), |F|), without replacement; with alpha = 0 this is Random Subspace.
    C is the first q - |R| members, not in R, of a random sequence over V that the iteration's key
    fixes alone, whatever F is; R has a stream of its own.

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
    """

    def __init__(
        self,
        n_candidates: int,
        subspace_size: int,
        alpha: str,
        candidates: NDArray[np.uint32] | None = None,
    ) -> None:
        self.n_candidates, self.subspace_size = n_candidates, subspace_size
        self.n_held = floor_share(alpha, subspace_size)
        self.candidates = candidates

    def propose(self, kept: NDArray[np.uint32], key: int) -> NDArray[np.uint32]:
        """Return the subspace of the iteration with ``key``; uint32 (q,), ascending.

        ``kept`` is F as the iteration's round found it, in the order its members entered.
        """
        retained = self._retained(kept, derive(key, Purpose.RETAINED))
        excluded = retained
        if self.candidates is not None:
            excluded = np.searchsorted(self.candidates, retained).astype(np.uint32)
        n_fresh = self.subspace_size - len(retained)
        fresh = draw_distinct(derive(key, Purpose.SEQUENCE), self.n_candidates, excluded, n_fresh)
        if self.candidates is not None:
            fresh = self.candidates[fresh]
        subspace = np.concatenate([retained, fresh])
        subspace.sort()
        return subspace

    def _retained(self, kept: NDArray[np.uint32], key: int) -> NDArray[np.uint32]:
        size = min(self.n_held, len(kept))
        if size == len(kept):
            return kept
        return kept[draw_distinct(key, len(kept), None, size)]
