"""A store on the command line: a folder, or a URL."""

from typing import Any

import click

from srs_ooc.base.errors import UsageError
from srs_ooc.base.urls import Place, Url, place_of


class StoreType(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A store's folder or URL."""

    name = "store"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Place:
        """Return the place; its errors are the program's own."""
        place = place_of(value)
        if isinstance(place, Url) and place.scheme == "memory":
            raise UsageError(
                f"{place}: expected a folder or a URL that other processes can open, found one of "
                "this process's memory. It is for Python: srs_ooc.run('memory://...')."
            )
        return place


STORE = StoreType()
