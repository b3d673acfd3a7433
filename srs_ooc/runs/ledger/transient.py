"""A book that keeps nothing: for probes and measurements that must leave no trace on disk."""

from collections.abc import Mapping

from srs_ooc.base.records import State, Stateful
from srs_ooc.runs.ledger.database import Progress


class TransientLedger:
    """Starts every engine at iteration 0 and forgets what it is given."""

    def load(self, parts: Mapping[str, Stateful]) -> Progress:
        """Leave the parts as new."""
        return Progress(0, 0, 0.0, 0)

    def commit(
        self, progress: Progress, states: Mapping[str, State], resident_nbytes: int
    ) -> float:
        """Keep nothing, in no time."""
        return 0.0
