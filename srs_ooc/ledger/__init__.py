"""What is on disk of a run."""

from srs_ooc.ledger.database import Ledger, Progress
from srs_ooc.ledger.lock import is_held
from srs_ooc.ledger.transient import TransientLedger
from srs_ooc.ledger.trees import TreeReader, TreeWriter, saves_trees

__all__ = [
    "Ledger",
    "Progress",
    "TransientLedger",
    "TreeReader",
    "TreeWriter",
    "is_held",
    "saves_trees",
]
