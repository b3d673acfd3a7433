"""Where a store is: a folder of this machine, or a URL."""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from srs_ooc.base.errors import UsageError

SCHEMES = ("s3", "gs", "az", "https", "http", "memory")
"""What a URL of a store may begin with; ``memory`` is this process's own."""
WRITABLE = ("s3", "gs", "az", "memory")
_URL = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}(?=[^/])", re.IGNORECASE)


@dataclass(frozen=True)
class Url:
    """The address of a store that is not on a disk of this machine.

    Attributes
    ----------
    text : str
        As ``s3://bucket/folder/table.zarr``; without a slash at the end.
    """

    text: str

    @property
    def scheme(self) -> str:
        """What it begins with, as ``s3``."""
        return urlsplit(self.text).scheme

    @property
    def name(self) -> str:
        """Its last part."""
        return PurePosixPath(urlsplit(self.text).path).name

    def __str__(self) -> str:
        return self.text


Place = Path | Url


def place_of(place: str | Path | Url) -> Place:
    """Return what a text stands for; a URL that was made a path is one again.

    Raises
    ------
    UsageError
        If it is a URL of a kind that is not read, or holds what does not belong in one.
    """
    if isinstance(place, Url):
        return place
    if (found := _URL.match(str(place))) is None:
        return Path(place)
    scheme = found[1].lower()
    url = f"{scheme}://{str(place)[found.end() :].rstrip('/')}"
    if scheme not in SCHEMES:
        raise UsageError(
            f"{url}: expected a folder, or a URL that begins with "
            f"{', '.join(f'{name}://' for name in SCHEMES)}, found {scheme}://. Copy the store to "
            "one of these."
        )
    parts = urlsplit(url)  # without what would put a secret into messages and ledgers
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise UsageError(
            f"{scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}: expected the URL of a "
            "store's folder, found one with a user, a query or a fragment. Signed URLs open one "
            "file, a store has many: give access by the environment (docs/remote.md)."
        )
    if not parts.netloc or not parts.path.strip("/"):
        raise UsageError(
            f"{url}: expected the folder of a store, as {scheme}://BUCKET/table.zarr, found no "
            "path. Name the folder."
        )
    return Url(url)
