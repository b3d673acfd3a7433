"""The Python reference of what trees would say of a row if one feature had another value (law 7).

Each leaf's say, times the weight with which a row reaches it (below 1 only beneath splits on an
added column), is rounded to a whole number of units. What altering a feature adds is what the
row's path ends in with the altered code, less what it ends in as it is: 0 where both are the same.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import floor

from forest_reference import PROBE, Leaf, Node, Split, TargetLeaf

from srs_ooc.trees.saved import CHANGE_BITS

Codes = Callable[[int], int | None]
"""The code of a feature in the row; None for no known category."""


def says(node: Node, code_of: Codes, missing: int, bits: int, weight: float = 1.0) -> list[int]:
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


def _units(weight: float, count: int, n_rows: int, bits: int) -> int:
    return floor(weight * (float(count) / float(n_rows)) * 2.0**bits + 0.5)


def _plus(first: list[int], second: list[int]) -> list[int]:
    n = max(len(first), len(second))
    padded = [one + [0] * (n - len(one)) for one in (first, second)]
    return [a + b for a, b in zip(*padded, strict=True)]


def effects_of(
    trees: Sequence[Node], codes: Codes, altered: Codes, missing: int, bits: int, n_outputs: int
) -> tuple[list[int], dict[int, list[int]]]:
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


def features_of(node: Node) -> set[int]:
    """Return the features that a tree splits on."""
    if not isinstance(node, Split):
        return set()
    own = set() if node.feature == PROBE else {node.feature}
    return own | features_of(node.left) | features_of(node.right)


def _with(codes: Codes, altered: Codes, feature: int) -> Codes:
    return lambda f: altered(f) if f == feature else codes(f)


def class_changes(
    base: list[int], added: list[int], n_votes: int, truth: int
) -> tuple[int, int, int]:
    """Return of a row: right before only, right after only, probability of its class lost."""
    after = _plus(base, added)
    right, still = base.index(max(base)) == truth, after.index(max(after)) == truth
    size = abs(added[truth]) // n_votes
    return int(right and not still), int(still and not right), size if added[truth] < 0 else -size


def target_change(base: int, added: int, n_votes: int, truth: float, unit: float) -> int:
    """Return what altering adds to the squared error of a row."""
    error = float(base) / float(n_votes) * unit - truth
    other = float(base + added) / float(n_votes) * unit - truth
    return floor((other * other - error * error) * 2.0**CHANGE_BITS + 0.5)
