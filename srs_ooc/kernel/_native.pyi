"""Types of the native module; the sources are in ``src/``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

TILE: int
IMPORTANCE_BITS: int
ENTROPY_BITS: int

def isas() -> list[str]: ...
def grow(
    codes: NDArray[np.uint8],
    code_nbytes: int,
    tiled: bool,
    n_rows: int,
    features: NDArray[np.uint32],
    rows: NDArray[np.int32],
    class_counts: NDArray[np.int64],
    tree_key: int,
    max_features: int,
    max_depth: int,
    min_samples_leaf: int,
    impurity: int,
    xlogx: NDArray[np.int64],
    importance: NDArray[np.int64],
    isa: str,
) -> tuple[int, int, int]: ...
def scratch_nbytes(n_root_rows: int, n_columns: int, n_classes: int, code_nbytes: int) -> int: ...
def draw_distinct(
    key: int, bound: int, excluded: NDArray[np.uint32], out: NDArray[np.uint32]
) -> None: ...
def derive(key: int, word: int) -> int: ...
def mix32(x: int) -> int: ...
def gather_mapped(
    addresses: NDArray[np.uint64],
    features: NDArray[np.uint32],
    chunk_features: int,
    n_rows: int,
    rows: NDArray[np.int32],
    code_nbytes: int,
    tiled: bool,
    out: NDArray[np.uint8],
) -> None: ...
def gather_files(
    descriptors: NDArray[np.int32],
    features: NDArray[np.uint32],
    chunk_features: int,
    n_rows: int,
    rows: NDArray[np.int32],
    code_nbytes: int,
    tiled: bool,
    out: NDArray[np.uint8],
) -> None: ...
def copy_shuffled(
    block: NDArray[np.uint8],
    n_columns: int,
    n_rows: int,
    code_nbytes: int,
    tiled: bool,
    source: int,
    target: int,
    key: int,
) -> None: ...
def __getattr__(name: str) -> Any: ...
