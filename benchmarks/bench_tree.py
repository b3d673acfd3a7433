"""One tree on one block against scikit-learn, on one core, by instruction set.

Claims, laying out the block included: 80 times scikit-learn's ExtraTreeClassifier at n = 1,000,
q = 2,500, K = q, two classes; 50 times at n = 5,000, q = 500; 30 times at n = 60,000, q = 78, ten
classes; 25 times at n = 4,000, q = 62, 26 classes; 9 times at K = sqrt(q).

Both get the same codes: ours as columns of bytes in memory, to be laid out; scikit-learn as the
float32 matrix it wants, already converted, which is not counted. A tenth of the features shift with
the class. Trees are grown until pure. Medians over trees; the two take turns.

    python benchmarks/bench_tree.py [--repeats 5]
"""

import argparse
import statistics
import time

import numpy as np
from sklearn.tree import ExtraTreeClassifier

from srs_ooc.kernel import _native
from srs_ooc.kernel.block import Block
from srs_ooc.kernel.native import grow_tree, instruction_sets
from srs_ooc.kernel.response import Response
from srs_ooc.kernel.training import TrainingRows
from srs_ooc.kernel.tree import TreeLimits
from srs_ooc.learners.trees import wants_tiles
from srs_ooc.seeds import key_of

CASES = [  # rows, columns, classes, candidates (0: all)
    (1000, 2500, 2, 0),
    (300, 2500, 2, 0),
    (5000, 500, 2, 0),
    (20_000, 100, 2, 0),
    (60_000, 78, 10, 0),
    (4000, 62, 26, 0),
    (1000, 2500, 2, 50),
    (1000, 2500, 2, 1),
]
ALL_ROWS = np.zeros(0, dtype=np.int32)


def make_block(n: int, q: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return codes (q, n) and labels (n,)."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n)
    values = rng.standard_normal((q, n))
    values[: max(1, q // 10)] += 0.3 * (labels % 5)
    codes = values.argsort(axis=1).argsort(axis=1) * min(254, n) // n
    return codes.astype(np.uint8), labels


def our_milliseconds(codes: np.ndarray, labels: np.ndarray, k: int, isa: str, trees: int) -> float:
    """Return the median milliseconds of laying out the block and growing a tree."""
    q, n = codes.shape
    rows = TrainingRows.of(Response.classes(labels, int(labels.max()) + 1), "gini")
    block = Block(q, n, 1, tiled=wants_tiles(k, q))
    features = np.arange(q, dtype=np.uint32)
    address = np.array([codes.ctypes.data], dtype=np.uint64)
    seconds = []
    for tree in range(trees):
        start = time.perf_counter()
        shape = (q, ALL_ROWS, q, n, ALL_ROWS)
        _native.gather_mapped(address, features, *shape, 1, block.tiled, block.codes)
        grow_tree(block, features, rows, key_of(tree), TreeLimits(k), isa)
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds)


def peer_milliseconds(values: np.ndarray, labels: np.ndarray, k: int, trees: int) -> float:
    """Return the median milliseconds of one fit."""
    seconds = []
    for seed in range(trees):
        tree = ExtraTreeClassifier(max_features=k, random_state=seed)
        start = time.perf_counter()
        tree.fit(values, labels, check_input=False)
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds)


def main() -> None:
    """Measure every case and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    names = instruction_sets()
    heads = " | ".join(f"{name}: ms, ratio" for name in names)
    print(f"| n, q, classes, K | scikit-learn ms | {heads} |")
    print("|---" * (2 + len(names)) + "|")
    for n, q, n_classes, candidates in CASES:
        codes, labels = make_block(n, q, n_classes)
        values = np.ascontiguousarray(codes.T, dtype=np.float32)
        k = candidates or q
        peers, ours = [], {name: [] for name in names}
        for _ in range(repeats):
            peers.append(peer_milliseconds(values, labels.astype(np.float64), k, 2))
            for name in names:
                ours[name].append(our_milliseconds(codes, labels, k, name, 7))
        theirs = statistics.median(peers)
        cells = []
        for name in names:
            ratio = statistics.median(a / b for a, b in zip(peers, ours[name], strict=True))
            cells.append(f"{statistics.median(ours[name]):.2f}, {ratio:.0f}")
        print(f"| {n}, {q}, {n_classes}, {k} | {theirs:.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
