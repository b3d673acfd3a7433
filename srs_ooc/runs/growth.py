"""Whether the sizes of memory in a ledger are of a process, or of its growth."""

from srs_ooc.base.budget import growth_counts
from srs_ooc.runs.ledger import Ledger

_GROWTH = "memory_is_growth"


def is_growth(ledger: Ledger) -> bool:
    """Return whether all sizes that were noted are of growth, as of a run made from Python."""
    return bool(ledger.has_meta(_GROWTH) and ledger.meta(_GROWTH))


def note_growth(ledger: Ledger) -> None:
    """Note what the sizes are that the work to come adds; one whole process makes them mixed."""
    counts = growth_counts() and (ledger.progress().iteration == 0 or is_growth(ledger))
    if counts != is_growth(ledger):
        ledger.set_meta(_GROWTH, counts)
