"""What a pin says of arrays, files and JSON: readable shapes, and SHA-256."""

import hashlib
import json
import math

import numpy as np

DIGITS = 9
"""Significant digits of a float that count: the last ones depend on the machine's libm."""


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def digest_of_array(array):
    """Dtype, shape and SHA-256; floats by their text of nine significant digits."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind == "f":
        data = "\n".join(f"{value + 0.0:.{DIGITS}g}" for value in array.ravel()).encode()
    else:
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return f"{array.dtype.name} {array.shape} {sha256(data)}"


def rounded(value):
    """A JSON-ready value with its floats rounded to nine significant digits."""
    if isinstance(value, float):
        return float(f"{value + 0.0:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def digest_of_json(value):
    return sha256(json.dumps(rounded(value), sort_keys=True).encode())


def differences(pinned, found, place="", *, close=0.0):
    """Yield (place, pinned, found) of each leaf that differs; floats by more than ``close``."""
    if isinstance(pinned, dict) and isinstance(found, dict):
        for key in dict.fromkeys([*pinned, *found]):
            sides = (side.get(key, "(none)") for side in (pinned, found))
            yield from differences(*sides, f"{place}/{key}", close=close)
    elif isinstance(pinned, list) and isinstance(found, list) and len(pinned) == len(found):
        for i, sides in enumerate(zip(pinned, found, strict=True)):
            yield from differences(*sides, f"{place}/{i}", close=close)
    elif isinstance(pinned, float) and isinstance(found, float):
        if not math.isclose(pinned, found, rel_tol=close):
            yield place, pinned, found
    elif pinned != found:
        yield place, pinned, found
