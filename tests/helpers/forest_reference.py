"""The Python reference of saved trees: their bytes, and what they say of a row (law 7).

A tree is its nodes in preorder, left child first. A number is written in groups of seven bits, the
lowest first, the eighth bit set in all but the last. A node is

* a split: its feature's stored position + 1 (``2**32`` for an added column) plus ``2**33`` times
  how it sends rows (:class:`How`); for categories the hash of their bijection; then its threshold;
* a leaf of classes: 0, the number of classes with training rows in it, then class and weight of
  each, ascending (the weight is the number of rows, unless rows are weighted); or
* a leaf of targets: 0, its weight, and the sum of its whole-number targets, each times its weight,
  doubled, a negative one inverted after (so that the lowest bit is its sign).

A row's class shares in a leaf are those of its training rows, its target their mean. A split on an
added column (the probe) has no value in another row; as the probe is independent of everything,
both children count, each weighted by its part of the split's training weight."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from math import floor

import numpy as np

from srs_ooc.trees.saved import CHANGE_BITS, How

PROBE = 0xFFFFFFFF
HOW_SHIFT = 33


@dataclass(frozen=True)
class Leaf:
    """A leaf: (class, training weight) of each class in it, ascending."""

    counts: tuple[tuple[int, int], ...]

    @property
    def n_rows(self):
        """Training weight in it."""
        return sum(count for _, count in self.counts)


@dataclass(frozen=True)
class TargetLeaf:
    """A leaf: its training weight, and the sum of whole-number targets, each times its weight."""

    n_rows: int
    total: int


@dataclass(frozen=True)
class Split:
    """A split: its feature, threshold, children, and how it sends rows."""

    feature: int
    code: int
    left: "Node"
    right: "Node"
    how: int = How.PLAIN
    hash: int = 0

    @property
    def n_rows(self):
        """Training weight at it."""
        return self.left.n_rows + self.right.n_rows

    def sends_left(self, code, missing):
        """Return where a code goes; ``missing`` is that of missing values, None no known category.

        A category not known goes to the side with more training weight, left of equal ones.
        """
        heavier = self.left.n_rows >= self.right.n_rows
        if code is None:
            return heavier
        if self.how == How.MAPPED:
            return int(map_categories(np.array([code]), self.hash, missing)[0]) <= self.code
        if code == missing:
            return heavier if self.how == How.PLAIN else self.how == How.MISSING_LEFT
        return code < self.code if self.how == How.MISSING_LEFT else code <= self.code


Node = Split | Leaf | TargetLeaf


def mix32_array(x):
    """Return the MurmurHash3 32-bit finalizer of each element."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))


def map_categories(codes, hash_, missing):
    """Return each category's place: a keyed bijection of all codes up to ``missing``.

    Flipping bits and three multiplications by odd numbers, all from ``hash_``, with shifts between
    them: every order of a few categories is about equally likely.
    """
    width = missing.bit_length()
    wide = int(mix32_array(np.array([hash_ ^ 0x9E3779B9], np.uint32))[0])
    more = hash_ >> 16 if width == 8 else wide
    factors = [x & missing | 1 for x in (hash_ >> width, more, more >> width)]
    x = ((codes ^ (hash_ & missing)) * factors[0]) & missing
    x = ((x ^ (x >> width // 2)) * factors[1]) & missing
    return ((x ^ (x >> (3 if width == 8 else 6))) * factors[2]) & missing


def encode_tree(node):
    """Return the bytes of a tree."""
    if isinstance(node, TargetLeaf):
        sign = 1 if node.total < 0 else 0
        doubled = 2 * abs(node.total) - sign
        return b"".join(map(_number, [0, node.n_rows, doubled]))
    if isinstance(node, Leaf):
        pairs = [number for pair in node.counts for number in pair]
        return b"".join(map(_number, [0, len(node.counts), *pairs]))
    own = [node.feature + 1 + (node.how << HOW_SHIFT)]
    own += [node.hash] if node.how == How.MAPPED else []
    children = encode_tree(node.left) + encode_tree(node.right)
    return b"".join(map(_number, [*own, node.code])) + children


def decode_tree(data, *, regression=False):
    """Return the tree that :func:`encode_tree` wrote; ``regression``: its leaves hold targets."""
    return _decode(_numbers(data), regression)


def _decode(numbers, regression):
    tag = next(numbers)
    if tag == 0 and regression:
        n_rows, doubled = next(numbers), next(numbers)
        return TargetLeaf(n_rows, -(doubled + 1) // 2 if doubled & 1 else doubled // 2)
    if tag == 0:
        return Leaf(tuple((next(numbers), next(numbers)) for _ in range(next(numbers))))
    how = How(tag >> HOW_SHIFT)
    hash_ = next(numbers) if how == How.MAPPED else 0
    code = next(numbers)
    left = _decode(numbers, regression)
    feature = (tag & ((1 << HOW_SHIFT) - 1)) - 1
    return Split(feature, code, left, _decode(numbers, regression), how, hash_)


def _number(x):
    groups = []
    while x >= 128:
        groups.append(x & 127 | 128)
        x >>= 7
    return bytes([*groups, x])


def _numbers(data):
    x = shift = 0
    for byte in data:
        x |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield x
            x = shift = 0


def add_shares(node, goes_left, shares, weight=1.0):
    """Add a tree's class shares of one row, or its mean target, to ``shares``."""
    if isinstance(node, TargetLeaf):
        shares[0] += weight * (float(node.total) / float(node.n_rows))
    elif isinstance(node, Leaf):
        for k, count in node.counts:
            shares[k] += weight * (float(count) / float(node.n_rows))
    elif node.feature == PROBE:
        n = float(node.n_rows)
        add_shares(node.left, goes_left, shares, weight * (float(node.left.n_rows) / n))
        add_shares(node.right, goes_left, shares, weight * (float(node.right.n_rows) / n))
    else:
        add_shares(node.left if goes_left(node) else node.right, goes_left, shares, weight)


Codes = Callable[[int], int | None]
"""The code of a feature in the row; None for no known category."""


def says(node, code_of, missing, bits, weight=1.0):
    """Return what a tree says of a row: (output, ...) as a list grown as far as classes go."""
    if isinstance(node, TargetLeaf):
        return [_units(weight, node.total, node.n_rows, bits)]
    if isinstance(node, Leaf):
        said = [0] * (node.counts[-1][0] + 1)
        for k, count in node.counts:
            said[k] = _units(weight, count, node.n_rows, bits)
        return said
    if node.feature == PROBE:
        parts = [weight * (child.n_rows / node.n_rows) for child in (node.left, node.right)]
        return _plus(
            says(node.left, code_of, missing, bits, parts[0]),
            says(node.right, code_of, missing, bits, parts[1]),
        )
    child = node.left if node.sends_left(code_of(node.feature), missing) else node.right
    return says(child, code_of, missing, bits, weight)


def _units(weight, count, n_rows, bits):
    return floor(weight * (float(count) / float(n_rows)) * 2.0**bits + 0.5)


def _plus(first, second):
    n = max(len(first), len(second))
    padded = [one + [0] * (n - len(one)) for one in (first, second)]
    return [a + b for a, b in zip(*padded, strict=True)]


def effects_of(trees, codes, altered, missing, bits, n_outputs):
    """Return what trees say of a row, and what altering each feature adds to it.

    By the definition: each feature is altered by itself, and every tree walked anew.
    """
    base = [0] * n_outputs
    effects: dict[int, list[int]] = defaultdict(lambda: [0] * n_outputs)
    for tree in trees:
        said = says(tree, codes, missing, bits)
        base = _plus(base, said)
        for feature in features_of(tree):
            other = says(tree, _with(codes, altered, feature), missing, bits)
            added = _plus(other, [-x for x in said])
            effects[feature] = _plus(effects[feature], added)
    return base, effects


def features_of(node):
    """Return the features that a tree splits on."""
    if not isinstance(node, Split):
        return set()
    own = set() if node.feature == PROBE else {node.feature}
    return own | features_of(node.left) | features_of(node.right)


def _with(codes, altered, feature):
    return lambda f: altered(f) if f == feature else codes(f)


def class_changes(base, added, n_votes, truth):
    """Return of a row: right before only, right after only, probability of its class lost."""
    after = _plus(base, added)
    right, still = base.index(max(base)) == truth, after.index(max(after)) == truth
    size = abs(added[truth]) // n_votes
    return int(right and not still), int(still and not right), size if added[truth] < 0 else -size


def target_change(base, added, n_votes, truth, unit):
    """Return what altering adds to the squared error of a row."""
    error = float(base) / float(n_votes) * unit - truth
    other = float(base + added) / float(n_votes) * unit - truth
    return floor((other * other - error * error) * 2.0**CHANGE_BITS + 0.5)
