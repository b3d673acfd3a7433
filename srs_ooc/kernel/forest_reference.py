"""The Python reference of saved trees: their bytes, and what they say of a row (law 7).

A tree is its nodes in preorder, left child first. A number is written in groups of seven bits, the
lowest first, the eighth bit set in all but the last. A node is

* a split: its feature's stored position + 1 (``2**32`` for an added column), then the largest code
  that goes left; or
* a leaf: 0, the number of classes with training rows in it, then class and rows of each, ascending.

A row's class shares in a leaf are those of its training rows. A split on an added column (the
probe) has no value in another row; as the probe is independent of everything, both children count,
each weighted by its part of the split's training rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

PROBE = 0xFFFFFFFF


@dataclass(frozen=True)
class Leaf:
    """A leaf: (class, training rows) of each class in it, ascending."""

    counts: tuple[tuple[int, int], ...]

    @property
    def n_rows(self) -> int:
        """Training rows in it."""
        return sum(count for _, count in self.counts)


@dataclass(frozen=True)
class Split:
    """A split: its feature, the largest code that goes left, and its children."""

    feature: int
    code: int
    left: "Split | Leaf"
    right: "Split | Leaf"

    @property
    def n_rows(self) -> int:
        """Training rows at it."""
        return self.left.n_rows + self.right.n_rows


def encode_tree(node: Split | Leaf) -> bytes:
    """Return the bytes of a tree."""
    if isinstance(node, Leaf):
        pairs = [number for pair in node.counts for number in pair]
        return b"".join(map(_number, [0, len(node.counts), *pairs]))
    own = _number(node.feature + 1) + _number(node.code)
    return own + encode_tree(node.left) + encode_tree(node.right)


def decode_tree(data: bytes) -> Split | Leaf:
    """Return the tree that :func:`encode_tree` wrote."""
    return _decode(_numbers(data))


def _decode(numbers: Iterator[int]) -> Split | Leaf:
    tag, second = next(numbers), next(numbers)
    if tag == 0:
        return Leaf(tuple((next(numbers), next(numbers)) for _ in range(second)))
    left = _decode(numbers)
    return Split(tag - 1, second, left, _decode(numbers))


def _number(x: int) -> bytes:
    groups = []
    while x >= 128:
        groups.append(x & 127 | 128)
        x >>= 7
    return bytes([*groups, x])


def _numbers(data: bytes) -> Iterator[int]:
    x = shift = 0
    for byte in data:
        x |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield x
            x = shift = 0


def add_shares(
    node: Split | Leaf, goes_left: Callable[[Split], bool], shares: list[float], weight: float = 1.0
) -> None:
    """Add a tree's class shares of one row to ``shares``."""
    if isinstance(node, Leaf):
        for k, count in node.counts:
            shares[k] += weight * (float(count) / float(node.n_rows))
    elif node.feature == PROBE:
        n = float(node.n_rows)
        add_shares(node.left, goes_left, shares, weight * (float(node.left.n_rows) / n))
        add_shares(node.right, goes_left, shares, weight * (float(node.right.n_rows) / n))
    else:
        add_shares(node.left if goes_left(node) else node.right, goes_left, shares, weight)
