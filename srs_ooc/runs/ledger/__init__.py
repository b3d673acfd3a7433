"""What is on disk of a run."""

from srs_ooc.runs.ledger.database import Ledger, Progress
from srs_ooc.runs.ledger.lock import is_held
from srs_ooc.runs.ledger.stages import StageBook
from srs_ooc.runs.ledger.transient import TransientLedger
from srs_ooc.runs.ledger.trees import TreeReader, TreeWriter, saves_trees

__all__ = [
    "Ledger",
    "Progress",
    "StageBook",
    "TransientLedger",
    "TreeReader",
    "TreeWriter",
    "is_held",
    "saves_trees",
]
