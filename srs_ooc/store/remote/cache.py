"""Where and how much is kept on a local disk of stores at a URL."""

import os
from dataclasses import dataclass
from pathlib import Path

from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB

DEFAULT_CACHE_MB = 2048
DIR_VARIABLE, MB_VARIABLE = "SRS_OOC_CACHE_DIR", "SRS_OOC_CACHE_MB"


@dataclass(frozen=True)
class CacheOptions:
    """A cache's folder and its bound.

    Attributes
    ----------
    folder : str or None
        Holds a folder for each store; None for what the environment says.
    megabytes : int or None
        MB of 10**6 bytes of each store, at most; None for what the environment says.
    """

    folder: str | None = None
    megabytes: int | None = None

    @property
    def path(self) -> Path:
        """The folder: as given, or ``SRS_OOC_CACHE_DIR``, or srs-ooc in the user's caches."""
        given = self.folder or os.environ.get(DIR_VARIABLE)
        if given:
            return Path(given).absolute()
        caches = os.environ.get("XDG_CACHE_HOME")
        return (Path(caches) if caches else Path.home() / ".cache") / "srs-ooc"

    @property
    def nbytes(self) -> int:
        """The bound in bytes: as given, or ``SRS_OOC_CACHE_MB``, or 2048 MB.

        Raises
        ------
        UsageError
            If the environment holds no number.
        """
        if self.megabytes is not None:
            return self.megabytes * MB
        text = os.environ.get(MB_VARIABLE, str(DEFAULT_CACHE_MB))
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
            raise UsageError(f"{MB_VARIABLE}: expected MB as a whole number, found {text!r}.")
        return int(text) * MB
