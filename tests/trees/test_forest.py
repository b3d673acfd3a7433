"""Saved trees: bytes to arrays and rows walked down them, as the Python reference says."""

import numpy as np
import pytest
from examples import examples
from forest_reference import PROBE, Leaf, Split, decode_tree, encode_tree
from forest_reference import add_shares as reference_shares
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.trees.saved import LEAF, PROBE_SPLIT, add_shares, decode_trees

N_CLASSES = 4
leaves = st.lists(
    st.tuples(st.integers(0, N_CLASSES - 1), st.integers(1, 10**6)),
    min_size=1,
    unique_by=lambda pair: pair[0],
).map(lambda pairs: Leaf(tuple(sorted(pairs))))
features = st.sampled_from([0, 1, 126, 127, 128, 5_000_000, PROBE - 1, PROBE])
trees = st.recursive(
    leaves, lambda node: st.builds(Split, features, st.integers(0, 65_534), node, node)
)


def decoded(records):
    data = b"??".join(records)
    stops = np.cumsum([len(record) + 2 for record in records]) - 2
    starts = stops - [len(record) for record in records]
    return decode_trees(data, starts.astype(np.int64), stops.astype(np.int64))


def preorder(node):
    yield node
    if isinstance(node, Split):
        yield from preorder(node.left)
        yield from preorder(node.right)


@examples(80)
@given(st.lists(trees, min_size=1, max_size=4), st.integers(0, 2**32))
def test_native_equals_reference(forest, seed):
    records = [encode_tree(tree) for tree in forest]
    assert [decode_tree(record) for record in records] == forest
    arrays = decoded(records)
    nodes = [node for tree in forest for node in preorder(tree)]
    assert arrays.n_rows.tolist() == [node.n_rows for node in nodes]
    names = [
        LEAF if isinstance(n, Leaf) else PROBE_SPLIT if n.feature == PROBE else n.feature
        for n in nodes
    ]
    assert arrays.feature.tolist() == names
    used = sorted({name for name in names if name >= 0})
    slot = np.array([used.index(name) if name >= 0 else name for name in names])
    thresholds = arrays.code.astype(np.float64)
    panel = np.random.default_rng(seed).integers(0, 65_535, (len(used), 9)).astype(np.float64)
    shares = np.zeros((7, N_CLASSES))
    add_shares(arrays, slot, thresholds, panel, shares)
    for row in range(7):
        expected = [0.0] * N_CLASSES
        for tree in forest:
            reference_shares(
                tree,
                lambda split, row=row: panel[used.index(split.feature), row] <= split.code,
                expected,
            )
        assert shares[row].tolist() == expected


def test_both_sides_of_a_split_on_the_probe_count_by_their_rows():
    tree = Split(PROBE, 3, Leaf(((0, 6),)), Split(0, 1, Leaf(((1, 1),)), Leaf(((0, 1),))))
    arrays = decoded([encode_tree(tree)])
    shares = np.zeros((2, 2))
    slot = np.where(arrays.feature > 0, 0, arrays.feature)
    add_shares(arrays, slot, arrays.code.astype(float), np.array([[1.0, 2.0]]), shares)
    assert shares.tolist() == [[0.75, 0.25], [1.0, 0.0]]


def test_bytes_that_are_no_tree_are_refused():
    whole = encode_tree(Split(300, 2, Leaf(((0, 6),)), Leaf(((1, 500),))))
    for cut in range(len(whole)):
        with pytest.raises(ValueError, match="cut short"):
            decoded([whole[:cut]])
    with pytest.raises(ValueError, match="more bytes"):
        decoded([whole + b"\0"])


def test_a_walk_never_leaves_its_arrays():
    arrays = decoded([encode_tree(Split(0, 2, Leaf(((0, 6),)), Leaf(((9, 5),))))])
    slot, threshold = arrays.feature, np.zeros(3)
    with pytest.raises(ValueError, match="column"):
        add_shares(arrays, slot, threshold, np.zeros((0, 1)), np.zeros((1, 10)))
    with pytest.raises(ValueError, match="class"):
        add_shares(arrays, slot, threshold, np.zeros((1, 1)), np.zeros((1, 2)))
    with pytest.raises(ValueError, match="rows"):
        add_shares(arrays, slot, threshold, np.zeros((1, 1)), np.zeros((2, 10)))
