"""Parts from other packages, which say by entry points where they are."""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from srs_ooc.base.errors import UsageError


@cache
def places_of(group: str) -> dict[str, str]:
    """Return where the parts of a group are, ``module:attribute`` by name; nothing is imported."""
    return {point.name: point.value for point in entry_points(group=group)}


def part_at(place: str, what: str) -> Any:
    """Import the part at ``module:attribute``; ``what`` names it in messages.

    Raises
    ------
    UsageError
        If it cannot be imported.
    """
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"{what}: expected a part at {place}, could not import it: {error}. Install the "
            "package that provides it again."
        ) from error
