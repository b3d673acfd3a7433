"""What a pin says of arrays, files and JSON: readable shapes, and SHA-256."""

import hashlib
import json

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


def leaves(value, place=""):
    """The leaves of a JSON-ready value by their place, for a comparison within a tolerance."""
    if not isinstance(value, dict | list):
        return {place: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = {f"{place}/({type(value).__name__})": len(value)}
    for key, item in items:
        found |= leaves(item, f"{place}/{key}")
    return found
