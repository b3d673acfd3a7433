"""Shares of a whole (alpha, beta), exact: a share is what its decimal text says.

As a float 0.29 times 100 is 28.999999999999996, so floor(alpha q) taken on floats loses a place.
"""

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

DECIMALS = 9
"""Places a share may have, so that counts times its denominator fit 64 bits."""
_DECIMAL = re.compile(r"-?[0-9]{0,20}\.?[0-9]{0,20}([eE][+-]?[0-9]{1,2})?", re.ASCII)

Share = str | int | float | Decimal | Fraction


def exact_share(share: Share) -> Fraction:
    """Return the exact number that the decimal text of ``share`` says.

    A float stands for its shortest decimal text; a fraction for itself.

    Raises
    ------
    ValueError
        If it is no number, or outside [0, 1].
    """
    try:
        exact = share if isinstance(share, Fraction) else Fraction(Decimal(str(share)))
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise ValueError(f"expected a number from 0 to 1, found {share!r}") from error
    if not 0 <= exact <= 1:
        raise ValueError(f"expected a number from 0 to 1, found {share}")
    return exact


def floor_share(share: Share, whole: int) -> int:
    """Return floor(share * whole), exactly."""
    return int(exact_share(share) * whole)


def share_text(share: Share) -> str:
    """Return the canonical decimal text of a share: ``0.50`` and ``5e-1`` are both ``0.5``.

    Raises
    ------
    ValueError
        If it is no plain decimal number, outside [0, 1], or of more than nine places.
    """
    text = str(share)
    exact = exact_share(text) if _DECIMAL.fullmatch(text) else None
    if exact is None or (exact * 10**DECIMALS).denominator != 1:
        raise ValueError(f"expected a decimal from 0 to 1 with at most {DECIMALS} places")
    value = Decimal(text)
    return f"{value.normalize():f}" if value else "0"
