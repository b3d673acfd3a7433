"""An order of features by what they are worth together.

Importance alone puts a feature and its copies side by side: each is worth as much as the first by
itself, and nothing once that is known. Here the next feature is always the one with the largest
importance times what of it is new: ``sqrt(1 - r**2)``, the standard deviation that the feature
before it which is most like it leaves unexplained, r being their rank correlation. It is the idea
of mRMR (Ding and Peng 2005) with the trees' importance as relevance.

Noise is new too, and has some importance: what the evidence selects comes before all that it does
not, however redundant.
"""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import derive_array
from srs_ooc.evidence.correlation import RankColumns

HEAD = 400
"""Features, by importance, among which redundancy is looked at; all others keep their order."""


def by_worth(
    importance: NDArray[np.float64],
    columns: RankColumns,
    items: NDArray[np.integer],
    key: int,
    is_selected: NDArray[np.bool_] | None = None,
) -> NDArray[np.intp]:
    """Return the places of some features, ordered by importance less redundancy.

    Parameters
    ----------
    importance : float64 (n,)
        Of each feature; 0 or less counts as nothing.
    columns : RankColumns
        Their codes, n of them.
    items : integers (n,)
        Which features they are; equal ones are ordered by a hash of them.
    key : int
        Of that hash.
    is_selected : bool (n,), optional
        Those that come before all others.

    Returns
    -------
    intp (n,)
        A permutation. Where nothing is left to tell features apart they come by importance.
    """
    by_importance = np.lexsort((derive_array(key, items), -importance))
    relevance = np.maximum(importance[by_importance], 0.0)
    first = np.zeros(len(relevance), np.bool_) if is_selected is None else is_selected
    is_first, n_first = first[by_importance], int(np.count_nonzero(first))
    explained = np.zeros(len(relevance))
    is_left = np.ones(len(relevance), np.bool_)
    order = np.empty(len(relevance), np.intp)
    for rank in range(len(order)):
        # Of equal values the first: the more important one, then as the hash has it.
        may_come = is_left & is_first if rank < n_first else is_left
        worth = relevance * np.sqrt(1.0 - explained)
        place = int(np.argmax(np.where(may_come, worth, -1.0)))
        order[rank], is_left[place] = place, False
        for piece in columns.pieces(len(order)):
            taken = columns.squared(by_importance[[place]], by_importance[piece])[0]
            np.maximum(explained[piece], taken, out=explained[piece])
    return by_importance[order]
