"""What ledgers of format 1 left unsaid; format 2 says it itself."""

from typing import Any

_COLUMNS = {
    "tally.importance": 0,
    "tally.n_drawn": 1,
    "tally.n_better": 2,
    "kept.features": 3,
    "kept.entered": 4,
}
_KEPT = ("kept.features", "kept.entered")


def layout_of(record: dict[str, Any]) -> dict[str, list[int]]:
    """Return where the large arrays of a commit lie: [column, length] by name.

    ``record`` is the state record of the commit. Of format 1 the lengths of the tallies are not
    known: they are those of the arrays to fill, and 0 here.
    """
    if "layout" in record:
        return dict(record["layout"])
    n_kept = int(record["n_kept"])
    return {name: [column, n_kept if name in _KEPT else 0] for name, column in _COLUMNS.items()}
