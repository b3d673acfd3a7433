"""From what altering features did to rows to scores, best first."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import counted
from srs_ooc.ensemble.altered import FLIPPED, done_to
from srs_ooc.ensemble.unseen import Unseen
from srs_ooc.runs.task import Task
from srs_ooc.store.store import Store
from srs_ooc.trees.response import Response
from srs_ooc.trees.saved import CHANGE_BITS, TARGET_BITS, Effects, tally_classes, tally_targets

_UNIT = 2.0**-CHANGE_BITS


class Tally:
    """Sums over rows and repeats, of whole numbers; what the rows say, and what trees said of them.

    Attributes
    ----------
    sums : int64 (n_items, 3)
        As :func:`srs_ooc.trees.saved.tally_classes` has them.
    n_rows : int
        Rows that some tree votes on.
    n_right : int
        Of these, voted right.
    loss : int
        Of a regression: their squared error, in units of ``2**-36``.
    """

    def __init__(self, truth: NDArray[Any], n_items: int, exponent: int | None) -> None:
        self._truth, self._exponent = truth, exponent
        self.sums = np.zeros((n_items, 3), np.int64)
        self.n_rows = self.n_right = self.loss = 0
        self._voted: list[NDArray[np.float64]] = []

    @classmethod
    def of(
        cls, store: Store, task: Task, response: Response, unseen: Unseen, n_items: int
    ) -> "Tally":
        """Return that of no rows yet, of a store's target."""
        target = store.target()[unseen.rows]
        if not response.is_regression:
            return cls(target.astype(np.int64), n_items, None)
        assert response.center is not None
        assert response.scale is not None
        largest = float(np.abs(task.target - response.center).max() * response.scale)
        whole = (target - response.center) * response.scale
        exponent = frexp(max(largest, float(np.abs(whole).max())))[1]
        if not np.isfinite(whole).all():
            raise UsageError(
                "expected targets of the size of those trained on, found some too large to be "
                "compared with them. Name other rows with --rows."
            )
        return cls(np.ldexp(whole, -exponent), n_items, exponent)

    @property
    def is_regression(self) -> bool:
        """Whether targets are numbers."""
        return self._exponent is not None

    def add(self, found: Effects, rows: slice, threads: int, *, counts_rows: bool) -> None:
        """Add what was found of some rows."""
        truth = self._truth[rows]
        if self._exponent is None:
            tally_classes(found, truth, self.sums, threads)
        else:
            tally_targets(found, truth, self._exponent, self.sums, threads)
        if counts_rows:
            self._count(found, truth)

    def _count(self, found: Effects, truth: NDArray[Any]) -> None:
        voted = found.n_votes > 0
        self.n_rows += int(np.count_nonzero(voted))
        if self._exponent is None:
            self.n_right += int(np.count_nonzero(found.base.argmax(axis=1)[voted] == truth[voted]))
            return
        unit = 2.0 ** -(TARGET_BITS + self._exponent)
        said = found.base[voted, 0] / found.n_votes[voted] * unit
        self.loss += int(np.rint((said - truth[voted]) ** 2 / _UNIT).astype(np.int64).sum())
        self._voted.append(truth[voted])

    def spread(self) -> float:
        """Return the sum of squares of the targets about their mean, in the units of the loss."""
        truth = np.concatenate([np.zeros(0), *self._voted])
        return float(((truth - truth.mean()) ** 2).sum()) / _UNIT if len(truth) else 0.0


@dataclass(frozen=True)
class SensitivityRecord:
    """A feature's sensitivity; see :class:`Sensitivities`."""

    rank: int
    name: str
    score: float
    accuracy_lost: float | None
    n_worse: int | None
    n_better: int | None
    altered: str


@dataclass(frozen=True)
class Sensitivities:
    """What altering each feature that trees use does, the largest loss first.

    Attributes
    ----------
    positions : int64 (n,)
        Features by rank, by their columns in the source; equal scores in the order of the source.
    scores : float64 (n,)
        Mean loss: of the probability of the true class, or of R2.
    changes : int64 (n, 2)
        Of classes: rows, counted once a repeat, that were voted right and are wrong when the
        feature is altered, and the other way round.
    altered : tuple of str
        What was done to each: ``flipped``, ``mirrored`` or ``permuted``.
    facts : dict
        Keys of ``srs-ooc sensitivity --json``.
    store : Store
        The run's, for names.
    """

    positions: NDArray[np.int64]
    scores: NDArray[np.float64]
    changes: NDArray[np.int64]
    altered: tuple[str, ...]
    facts: dict[str, Any]
    store: Store

    def records(self) -> Iterator[SensitivityRecord]:
        """Yield the features, the largest loss first."""
        names, n = self.store.names, self.facts["n_rows"] * self.facts["repeats"]
        is_of_classes = self.facts["r2"] is None
        for i, position in enumerate(self.positions.tolist()):
            worse, better = self.changes[i].tolist()
            yield SensitivityRecord(
                i + 1,
                names[position],
                float(self.scores[i]),
                (worse - better) / n if is_of_classes else None,
                worse if is_of_classes else None,
                better if is_of_classes else None,
                self.altered[i],
            )


def scores_of(
    tally: Tally,
    store: Store,
    items: NDArray[np.int64],
    mirrored: NDArray[np.uint16],
    n_repeats: int,
    facts: dict[str, Any],
) -> Sensitivities:
    """Return the scores of features; of decoys only what the largest is.

    Raises
    ------
    UsageError
        If no tree votes on any row, or targets are all equal.
    """
    n = tally.n_rows
    if n == 0:
        raise UsageError(
            "expected rows that some tree did not see, found that each was drawn for every tree. "
            "Take the run further, or name rows with --rows."
        )
    divisor = n_repeats * (tally.spread() if tally.is_regression else n / _UNIT)
    if divisor == 0:
        raise UsageError(
            f"expected rows whose targets differ, found {n} of one target: R2 is not defined. Name "
            "more rows with --rows."
        )
    scores = tally.sums[:, 2] / divisor
    is_decoy = items >= store.n_features
    positions = np.asarray(store.array("positions"), np.int64)[items[~is_decoy]]
    order = np.lexsort((positions, -scores[~is_decoy]))
    own = np.flatnonzero(~is_decoy)[order]
    said = done_to(mirrored[own])
    best = float(scores[is_decoy].max()) if is_decoy.any() else None
    facts = {
        "n_rows": n,
        **facts,
        "n_features": len(own),
        "repeats": n_repeats,
        "accuracy": None if tally.is_regression else tally.n_right / n,
        "r2": 1 - tally.loss / tally.spread() if tally.is_regression else None,
        "n_flipped": said.count(FLIPPED),
        "n_decoys": int(np.count_nonzero(is_decoy)),
        "best_decoy": best,
        "theorem": theorem_of(said),
    }
    return Sensitivities(
        positions[order], scores[own], tally.sums[own, :2], tuple(said), facts, store
    )


def theorem_of(altered: list[str]) -> str:
    """Return what Theorem I.1 says of features altered so."""
    n = altered.count(FLIPPED)
    if n == 0:
        return "Theorem I.1 is about flipping features of two values: none was flipped here"
    others = f", not about the {len(altered) - n} others" if n < len(altered) else ""
    return f"Theorem I.1 is about flipping, here {counted(n, 'feature')}{others}"
