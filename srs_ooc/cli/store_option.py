"""What is kept here of a store at a URL; and the store that is meant where none is named."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.cli.options import with_options
from srs_ooc.store.remote_cache import DEFAULT_CACHE_MB, DIR_VARIABLE, MB_VARIABLE, CacheOptions

_OPTIONS = [
    click.option("--cache-mb", type=click.IntRange(1), metavar="MB",
                 help="Of a store at a URL: disk for what is kept here of it.  "
                 f"[default: ${MB_VARIABLE}, or {DEFAULT_CACHE_MB}]"),
    click.option("--cache-dir", metavar="DIR",
                 help="Of a store at a URL: the folder for that, with one for each store.  "
                 f"[default: ${DIR_VARIABLE}, or srs-ooc in the user's caches]"),
]  # fmt: skip


def with_cache(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which gets ``cache``: a :class:`CacheOptions`."""

    @wraps(command)
    def wrapped(*arguments: Any, cache_mb: int | None, cache_dir: str | None, **others: Any) -> Any:
        return command(*arguments, cache=CacheOptions(cache_dir, cache_mb), **others)

    decorated: Callable[..., Any] = with_options(_OPTIONS)(wrapped)
    return decorated


def only_store() -> Path:
    """Return the only store in the current folder, or say what was found."""
    stores = sorted(path.parent for path in Path().glob("*.zarr/zarr.json"))
    if len(stores) != 1:
        found = "none" if not stores else ", ".join(path.name for path in stores)
        raise UsageError(
            f"expected one store (*.zarr) in the current folder, found {found}. "
            "Name one: `srs-ooc run STORE`."
        )
    return stores[0]
