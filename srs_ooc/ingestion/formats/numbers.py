"""Arrays of any numeric dtype as float64 that loses nothing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError

EXACT = 1 << 53
"""Integers up to it are float64 exactly."""


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """Tell whether float32 holds every value of a dtype."""
    return np.can_cast(dtype, np.float32, "safe")


def check_dtype(dtype: np.dtype[Any], what: str) -> None:
    """Refuse dtypes that are no real numbers of at most 64 bits.

    Raises
    ------
    InputError
        Naming ``what`` and the dtype.
    """
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InputError(
            f"{what}: expected numbers (bool, integers, or floats of at most 64 bits), found "
            f"{dtype}. Convert or leave it out."
        )


def as_float64(array: NDArray[Any], what: str) -> NDArray[np.float64]:
    """Return an array as C-contiguous float64.

    Raises
    ------
    InputError
        If it holds no numbers, or an integer beyond 2**53 that float64 does not hold.
    """
    check_dtype(array.dtype, what)
    wide = np.ascontiguousarray(array, dtype=np.float64)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        low, high = int(array.min()), int(array.max())
        if high > EXACT or low < -EXACT:
            found = high if high > EXACT else low
            raise too_large(found, what)
    return wide


def too_large(found: int, what: str) -> InputError:
    """Return the error of an integer beyond :data:`EXACT`."""
    return InputError(
        f"{what}: expected integers of at most 2**53, which float64 holds exactly, found {found}. "
        "Scale it, or leave it out."
    )
