"""The verdict of a run as the ledger keeps it: packed and unpacked here, and nowhere else."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.rank_tests import Contrast
from srs_ooc.runs.ledger import Ledger

VERDICT = "verdict"
"""Name of the ledger's arrays with the verdict."""


@dataclass(frozen=True)
class VerdictRecord:
    """What is known of each feature of the pooled ranking, by place, and the order to show.

    Attributes
    ----------
    n_iterations : int
        Iterations of the screen that the verdict follows.
    features : uint32 (n,)
        Stored positions; marginally significant ones first, then those of the closing stage.
    is_selected : bool (n,)
        Whether the feature is above the cut.
    levels : float64 (n,)
        q-values.
    scores : float64 (n,)
        Mean importance in the last round of the closing stage, in units of ``2**-36``; NaN if none.
    is_outstanding : bool (n,)
        Whether it is there by its marginal test.
    is_best : bool (n,)
        Whether no decoy of it is above.
    stability : float64 (n,)
        Share of batches of trees that agree; NaN where not defined.
    groups : int32 (n,)
        Cluster of rank-correlated items; -1 where not looked at.
    p_values : float64 (n,)
        Of the marginal tests.
    contrasts : uint8 (n,)
        What these saw (:class:`srs_ooc.evidence.rank_tests.Contrast`); location in records made
        when they saw nothing else.
    order : uint32 (m,)
        Stored positions of the features to show first; empty in records made before there was one.
    """

    n_iterations: int
    features: NDArray[np.uint32]
    is_selected: NDArray[np.bool_]
    levels: NDArray[np.float64]
    scores: NDArray[np.float64]
    is_outstanding: NDArray[np.bool_]
    is_best: NDArray[np.bool_]
    stability: NDArray[np.float64]
    groups: NDArray[np.int32]
    p_values: NDArray[np.float64]
    contrasts: NDArray[np.uint8]
    order: NDArray[np.uint32]

    def write(self, ledger: Ledger) -> None:
        """Keep the record in one transaction."""
        arrays = {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}
        ledger.write_arrays(VERDICT, arrays)

    @classmethod
    def read(cls, ledger: Ledger) -> Self | None:
        """Return the record, or None if there is none."""
        arrays = ledger.read_arrays(VERDICT)
        if arrays is None:
            return None
        known: dict[str, Any] = _of_before(arrays)
        known["n_iterations"] = int(known["n_iterations"])
        return cls(**{field.name: known[field.name] for field in fields(cls)})


def _of_before(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the arrays with what records of earlier versions lack."""
    known: dict[str, Any] = dict(arrays)
    if "is_selected" not in known:
        known["is_selected"] = known["tiers"] > 0
    known.setdefault("contrasts", np.full(len(known["features"]), Contrast.LOCATION, np.uint8))
    known.setdefault("order", np.zeros(0, np.uint32))
    return known
