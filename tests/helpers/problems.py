"""Small problems of every kind for the tree kernel, drawn at random."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import grow_tree
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits


@dataclass
class TreeProblem:
    codes: np.ndarray
    categorical: np.ndarray | None
    training: TrainingRows
    features: np.ndarray
    limits: TreeLimits
    key: int
    values: np.ndarray | None = None


def _codes(draw, rng, q, n):
    dtype = draw(st.sampled_from([np.uint8, np.uint16]))
    n_codes = draw(st.sampled_from([1, 2, 3, 20, 254] + ([60_000] if dtype == np.uint16 else [])))
    codes = rng.integers(0, n_codes, (q, n)).astype(dtype)
    if draw(st.booleans()):
        gone = rng.random((q, n)) < draw(st.sampled_from([0.02, 0.5]))
        codes[gone & (rng.random((q, 1)) < 0.7)] = np.iinfo(dtype).max
        codes[rng.integers(q)] = np.iinfo(dtype).max
    return codes


def _response(draw, rng, n, impurity):
    weights = None
    if impurity != "entropy" and draw(st.booleans()):
        weights = rng.integers(1, draw(st.sampled_from([3, 4096])), n).astype(float)
    if impurity != "variance":
        n_classes = draw(st.integers(2, 7))
        return Response.classes(rng.integers(0, n_classes, n), n_classes, weights)
    targets = rng.integers(0, draw(st.sampled_from([2, 5, 10**6])), n).astype(float)
    targets[0] = targets.max() + 1
    return Response.targets(targets, weights)


def _values(draw, rng, codes):
    """A value of each code, ascending: spaced at random, by powers, or with many alike."""
    known = codes[codes != np.iinfo(codes.dtype).max]
    shape = len(codes), int(known.max(initial=0)) + 1
    gaps = {
        "even": np.ones(shape),
        "random": rng.exponential(size=shape),
        "powers": np.exp(rng.normal(0, 8, shape)),
        "alike": (rng.random(shape) < 0.3).astype(float),
    }[draw(st.sampled_from(["even", "random", "powers", "alike"]))]
    values = rng.normal(0, 1e3, (len(codes), 1)) + gaps.cumsum(axis=1)
    return values


@st.composite
def tree_problems(draw, most_rows=90, most_columns=150):
    n, q = draw(st.integers(2, most_rows)), draw(st.integers(1, most_columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = _codes(draw, rng, q, n)
    impurity = draw(st.sampled_from(["gini", "entropy", "variance"]))
    response = _response(draw, rng, n, impurity)
    training = TrainingRows.of(response, impurity)
    if draw(st.booleans()):
        sample = training.resampled(draw(st.integers(0, 2**64 - 1)))
        training = sample if sample.root_scale > 0 else training
    limits = TreeLimits(
        max_features=draw(st.integers(1, q + 1)),
        max_depth=draw(st.sampled_from([None, 1, 3])),
        min_samples_leaf=draw(st.integers(1, 4)),
        impurity=impurity,
        min_decrease=draw(st.sampled_from([0, 1, 1 << 30])),
        splitter=draw(st.sampled_from(["random", "random", "best"])),
    )
    by_value = draw(st.booleans())
    return TreeProblem(
        codes,
        rng.random(q) < 0.4 if draw(st.booleans()) else None,
        training,
        rng.choice(10**8, q, replace=False).astype(np.uint32),
        limits,
        draw(st.integers(0, 2**64 - 1)),
        _values(draw, rng, codes) if by_value else None,
    )


def block_of(codes, *, tiled, values=None):
    """A block that holds `codes` (n_columns, n_rows) of uint8 or uint16, and values of them."""
    n_columns, n_rows = codes.shape
    n_values = 0 if values is None else values.shape[1]
    block = Block(n_columns, n_rows, codes.itemsize, tiled=tiled, n_values=n_values)
    if values is not None:
        block.values[:n_columns] = values
    memory = block.codes.view(codes.dtype)
    memory[:] = np.iinfo(codes.dtype).max  # what lies beyond the columns must not matter
    if not tiled:
        memory[: codes.size] = codes.reshape(-1)
        return block
    tiles = memory.reshape(-1, n_rows, 64)
    for column in range(n_columns):
        tiles[column // 64, :, column % 64] = codes[column]
    return block


def grown(codes, response, limits, key=1, *, tiled=True, features=None, values=None, **how):
    """Grow a tree on a block or codes (n_columns, n_rows); columns are features 0, 1, ..."""
    rows = response
    if isinstance(response, Response):
        rows = TrainingRows.of(response, limits.impurity)
    block = codes if isinstance(codes, Block) else block_of(codes, tiled=tiled, values=values)
    if features is None:
        features = np.arange(block.n_columns, dtype=np.uint32)
    return grow_tree(block, features, rows, key, limits, **how)
