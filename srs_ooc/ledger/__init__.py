"""What is on disk of a run."""

from srs_ooc.ledger.database import Ledger, Progress, is_held
from srs_ooc.ledger.transient import TransientLedger

__all__ = ["Ledger", "Progress", "TransientLedger", "is_held"]
