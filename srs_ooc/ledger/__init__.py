"""What is on disk of a run."""

from srs_ooc.ledger.database import Ledger, Progress, is_held

__all__ = ["Ledger", "Progress", "is_held"]
