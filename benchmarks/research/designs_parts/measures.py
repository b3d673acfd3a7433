"""Importances of a saved tree that the kernel does not tally: by size of node, or on rows left out.

A measure gives each split a number from the rows that come to it and to its children; a feature's
importance in a tree is the sum over its splits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.trees.saved import Trees

LARGE_SHARE = 0.05
"""Part of the training rows that a large node has at least."""

Counts = NDArray[np.int64]
Real = NDArray[np.float64]
Measure = Callable[[Trees, Counts, Counts], Real]
"""``measure(tree, grown, left_out)``: rows by node and class, of the rows the tree was grown on and
of all others; returns what each node decreases, float64 (n_nodes,), anything at a leaf."""


def rows_by_node(
    tree: Trees, codes: NDArray[Any], place: NDArray[np.intp], rows: NDArray[np.int32],
    labels: NDArray[np.int32], n_classes: int,
) -> Counts:  # fmt: skip
    """Walk rows down one tree, all a level at a time; int64 (n_nodes, n_classes).

    Parameters
    ----------
    tree : Trees
        One tree whose splits are plain: no missing values, no categories.
    codes : integers (n_columns, n_rows)
        The block it was grown on.
    place : intp (n_nodes,)
        Column that each split looks at; anything at a leaf.
    rows : int32 (m,)
        The rows to walk.
    labels : int32 (n_rows,)
        Classes of all rows.
    n_classes : int
        Their number.
    """
    n_nodes = len(tree.feature)
    counts = np.zeros(n_nodes * n_classes, np.int64)
    node, at, is_split = np.zeros(len(rows), np.intp), rows, tree.feature >= 0
    while len(at):
        counts += np.bincount(node * n_classes + labels[at], minlength=len(counts))
        inner = is_split[node]
        node, at = node[inner], at[inner]
        goes_left = codes[place[node], at] <= tree.code[node]
        node = np.where(goes_left, node + 1, tree.right[node])
    return counts.reshape(n_nodes, n_classes)


def _children(tree: Trees) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return each split's children; of a leaf itself."""
    nodes = np.arange(len(tree.feature))
    is_split = tree.feature >= 0
    left = np.where(is_split, nodes + 1, nodes)
    right = np.where(is_split, tree.right, nodes)
    return left, right


def _gini_mass(counts: Counts) -> Real:
    """Return the rows of each node times its Gini impurity."""
    totals = counts.sum(axis=1)
    squares = (counts.astype(np.float64) ** 2).sum(axis=1)
    mass: Real = totals - squares / np.maximum(totals, 1)
    return mass


def _impurity_decrease(tree: Trees, counts: Counts) -> Real:
    left, right = _children(tree)
    mass = _gini_mass(counts)
    lost: Real = (mass - mass[left] - mass[right]) / max(1, counts[0].sum())
    return lost


def of_large_nodes(tree: Trees, grown: Counts, left_out: Counts) -> Real:
    """Return the usual decrease where a node has at least LARGE_SHARE of the rows, else 0."""
    is_large = grown.sum(axis=1) >= LARGE_SHARE * grown[0].sum()
    return np.where(is_large, _impurity_decrease(tree, grown), 0.0)


def of_rows_left_out(tree: Trees, grown: Counts, left_out: Counts) -> Real:
    """Return the decrease of impurity of the rows left out, at the same splits; at least 0."""
    return _impurity_decrease(tree, left_out)


def of_loss_left_out(tree: Trees, grown: Counts, left_out: Counts) -> Real:
    """Return by how much a split lowers the squared loss of the rows left out; it may raise it.

    A node predicts the class shares of the rows grown on; the loss is the squared distance to a
    row's class.
    """
    shares = grown / np.maximum(grown.sum(axis=1, keepdims=True), 1)
    left, right = _children(tree)
    own = _loss(left_out, shares)
    lost: Real = own - own[left] - own[right]
    return lost / max(1, int(left_out[0].sum()))


def _loss(counts: Counts, shares: Real) -> Real:
    """Return the summed loss of rows by class if these shares are predicted."""
    totals = counts.sum(axis=1)
    loss: Real = totals * (1 + (shares**2).sum(axis=1)) - 2 * (counts * shares).sum(axis=1)
    return loss
