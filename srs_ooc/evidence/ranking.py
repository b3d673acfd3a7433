"""Ranking items by what a tally says of them, blind to what is a feature and what a decoy."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import derive_array
from srs_ooc.evidence.tally import Tally

_PIECE = 1 << 16


def mean_importance(tally: Tally, items: NDArray[np.integer] | slice) -> NDArray[np.float64]:
    """Return total importance over times drawn, in units of ``2**-36``; -1 where never drawn."""
    n_drawn = tally.n_drawn[items]
    out = np.full(len(n_drawn), -1.0)
    np.divide(tally.importance[items], n_drawn, out=out, where=n_drawn > 0)
    return out


def by_score(scores: NDArray[np.float64], items: NDArray[np.integer], key: int) -> NDArray[np.intp]:
    """Return the places of ``items`` by descending score, equal ones in random order."""
    return np.lexsort((derive_array(key, items), -scores))


def best_of_each(features: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return the places where a feature, itself or as a decoy, is met first."""
    out = np.zeros(len(features), np.bool_)
    out[np.unique(features, return_index=True)[1]] = True
    return out


def best_items(tally: Tally, count: int, key: int) -> NDArray[np.uint32]:
    """Return the ``count`` items of the largest mean importance, best first.

    Items never drawn come last; ties are broken by a hash under ``key``.
    """
    return largest(lambda piece: mean_importance(tally, piece), len(tally.n_drawn), count, key)


def largest(
    scores_of: Callable[[slice], NDArray[np.float64]], n_items: int, count: int, key: int
) -> NDArray[np.uint32]:
    """Return the ``count`` items with the largest scores, best first; ties as a hash has it.

    Piece by piece, as ``scores_of`` gives them: memory does not grow with the number of items.
    """
    items, scores = np.zeros(0, np.uint32), np.zeros(0)
    for start in range(0, n_items, _PIECE):
        found = scores_of(slice(start, start + _PIECE))
        places = np.arange(len(found))
        if len(items) == count:
            places = np.flatnonzero(found >= scores[-1])
        items = np.concatenate([items, (start + places).astype(np.uint32)])
        scores = np.concatenate([scores, found[places]])
        order = by_score(scores, items, key)[:count]
        items, scores = items[order], scores[order]
    return items
