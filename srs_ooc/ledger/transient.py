"""A ledger that keeps nothing: for probes and measurements that must leave no trace on disk."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.tally import Tally
from srs_ooc.ledger.database import Progress
from srs_ooc.samplers.kept import KeptSet


class TransientLedger:
    """Starts every engine at iteration 0 and forgets what it is given."""

    def load(self, tally: Tally, kept: KeptSet) -> Progress:
        """Leave the state empty."""
        return Progress(0, 0, 0.0, 0)

    def commit(
        self,
        progress: Progress,
        tally: Tally,
        pages: NDArray[np.integer],
        kept: KeptSet,
        resident_nbytes: int,
        facts: dict[str, Any] | None = None,
    ) -> float:
        """Keep nothing, in no time."""
        return 0.0
