"""Names for the arrays that signatures speak of, by what they hold."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Indices = NDArray[np.intp]
Integers = NDArray[np.integer[Any]]
"""Of any width, with a sign or without."""
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Reals = NDArray[np.floating[Any]]
"""Of any width."""
Uints = NDArray[np.uint64]
Uints32 = NDArray[np.uint32]
