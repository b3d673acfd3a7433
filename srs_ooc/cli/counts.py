"""Whole numbers as people write them: 10000, 10_000, 1e4."""

from decimal import Decimal, InvalidOperation
from typing import Any

import click

_MOST = 10**18


class Count(click.IntRange):
    """A whole number, also with an exponent or with underscores between digits."""

    name = "whole number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail saying what was expected."""
        if isinstance(value, str):
            try:
                number = Decimal(value)
            except InvalidOperation:
                number = Decimal("nan")
            if not number.is_finite() or abs(number) > _MOST or number != int(number):
                self.fail(f"expected a whole number such as 5000 or 5e3, found {value[:40]!r}.")
            value = int(number)
        return super().convert(value, param, ctx)
