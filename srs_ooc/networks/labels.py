"""Names of genes as edges are written: few are looked up twice."""

from srs_ooc.store.arrays import Names

MOST_KNOWN = 1 << 14
"""Names that are kept, unless more are asked for at once."""


class KnownNames:
    """Names of features, the last ones that were looked up kept.

    Parameters
    ----------
    names : Names
        Of all features of a store.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[int, str] = {}

    def of(self, places: set[int]) -> dict[int, str]:
        """Return the names of at least those features, by their places in source order."""
        missing = places - self._known.keys()
        if len(self._known) + len(missing) > MOST_KNOWN:
            self._known, missing = {}, places
        self._known.update(self._names.several(missing))
        return self._known
