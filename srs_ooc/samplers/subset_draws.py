"""Subsets of uniform size, drawn by weights of which most are equal (RaSE's candidates).

:func:`draw_one` is the twin of the native draw.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import below, derive
from srs_ooc.native import _native

_LOW_BITS = 11
_UNIT = 2.0**-53


@dataclass(frozen=True)
class SubsetWeights:
    """Weights of ``n_candidates`` features: some have their own, the others all the same.

    Attributes
    ----------
    n_candidates : int
        |V|.
    heavy : uint32 (n_heavy,)
        Features with weights of their own, as places in V, ascending.
    counts : int32 (n_heavy,)
        Their weights in units of ``unit``.
    unit, light : float
        Weight of a count, and of each other feature; above 0.
    """

    n_candidates: int
    heavy: NDArray[np.uint32]
    counts: NDArray[np.int32]
    unit: float
    light: float

    def draw(
        self, key: int, first: int, count: int, largest: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Draw subsets ``first`` .. ``first + count - 1`` of the sequence of ``key``.

        Parameters
        ----------
        key : int
            64-bit key.
        first, count : int
            Which of them.
        largest : int
            The size of a subset is uniform from 1 to this.

        Returns
        -------
        members : uint32
            One subset after another, each ascending.
        bounds : int64 (count + 1,)
            Where each begins, and the end.
        """
        bounds = np.empty(count + 1, np.int64)
        members = _native.draw_subsets(
            key,
            first,
            largest,
            self.n_candidates,
            self.heavy,
            self.counts,
            self.unit,
            self.light,
            bounds,
        )
        return np.frombuffer(members, np.uint32), bounds


def draw_one(weights: SubsetWeights, key: int, number: int, largest: int) -> list[int]:
    """Return one subset of the sequence of ``key``, ascending.

    One feature after another is drawn by the weights of those left: first whether a heavy one, then
    which. A light one is drawn uniformly from all of V until it is light and new.
    """
    own = derive(key, number)
    size, counter = 1 + below(own, 0, largest), 1
    left = dict(zip(weights.heavy.tolist(), weights.counts.tolist(), strict=True))
    n_light = weights.n_candidates - len(left)
    drawn: list[int] = []
    while len(drawn) < size:
        total = sum(left.values())
        heavy, light = float(total) * weights.unit, float(n_light) * weights.light
        uniform = float(derive(own, counter) >> _LOW_BITS) * _UNIT
        counter += 1
        if total and (n_light == 0 or uniform * (heavy + light) < heavy):
            place = below(own, counter, total)
            counter += 1
            item = _at(left, place)
            del left[item]
        else:
            is_heavy = set(weights.heavy.tolist())
            item = below(own, counter, weights.n_candidates)
            counter += 1
            while item in is_heavy or item in drawn:
                item = below(own, counter, weights.n_candidates)
                counter += 1
            n_light -= 1
        drawn.append(item)
    return sorted(drawn)


def _at(counts: dict[int, int], place: int) -> int:
    for item, count in counts.items():
        if place < count:
            return item
        place -= count
    raise AssertionError("a place beyond the end")
