"""One tree on one block against scikit-learn and LightGBM, on one core, by instruction set.

Claims, laying out the block included: 80 times scikit-learn's ExtraTreeClassifier at n = 1,000,
q = 2,500, K = q, two classes; 50 times at n = 5,000, q = 500; 30 times at n = 60,000, q = 78, ten
classes; 25 times at n = 4,000, q = 62, 26 classes; 9 times at K = sqrt(q); 40 times
ExtraTreeRegressor at n = 1,000, q = 2,500; best splits 8 times DecisionTreeClassifier, and no
slower than LightGBM's at equal depth.

All get the same codes: ours as columns of bytes in memory, to be laid out; the others as what they
want, already converted, which is not counted. A tenth of the features shift with the target. Trees
are grown until pure, or to the depth given. Medians over trees, of q = 50,000 over few; the parties
take turns.

    python benchmarks/bench_tree.py [--repeats 5] [--only best]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from srs_ooc.base.seeds import key_of
from srs_ooc.learners.tree_learner import wants_tiles
from srs_ooc.native import _native
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import grow_tree, instruction_sets
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits

LARGE = 20_000_000
ALL_ROWS = np.zeros(0, dtype=np.int32)


@dataclass(frozen=True)
class Case:
    """A block and a tree: rows, columns, classes (0: targets), K (0: q), and what else there is."""

    n: int
    q: int
    n_classes: int
    k: int = 0
    splitter: str = "random"
    extra: str = ""
    max_depth: int | None = None

    @property
    def name(self) -> str:
        """The row's head."""
        task = f"{self.n_classes} classes" if self.n_classes else "targets"
        depth = f", depth {self.max_depth}" if self.max_depth else ""
        head = f"{self.splitter}, {self.n}, {self.q}, {task}, K {self.k or self.q}{depth}"
        return f"{head}, {self.extra}" if self.extra else head


CASES = [
    Case(1000, 2500, 2),
    Case(300, 2500, 2),
    Case(1000, 50_000, 2),
    Case(5000, 500, 2),
    Case(20_000, 100, 2),
    Case(60_000, 78, 10),
    Case(4000, 62, 26),
    Case(1000, 2500, 2, 50),
    Case(1000, 2500, 2, 1),
    Case(1000, 2500, 0),
    Case(5000, 500, 0),
    Case(1000, 2500, 2, extra="weighted rows"),
    Case(1000, 2500, 2, extra="5% missing"),
    Case(1000, 2500, 2, extra="categories"),
    Case(1000, 2500, 2, splitter="best"),
    Case(5000, 500, 2, splitter="best"),
    Case(60_000, 78, 10, splitter="best"),
    Case(1000, 2500, 0, splitter="best"),
    Case(1000, 2500, 2, splitter="best", extra="LightGBM", max_depth=5),
    Case(20_000, 500, 2, splitter="best", extra="LightGBM", max_depth=5),
]


def make_block(n: int, q: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return codes (q, n) and classes, or targets for no classes (n,)."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes or 2, n)
    target = labels if n_classes else labels + 0.5 * rng.standard_normal(n)
    values = rng.standard_normal((q, n))
    values[: max(1, q // 10)] += 0.3 * (labels % 5)
    codes = values.argsort(axis=1).argsort(axis=1) * min(254, n) // n
    return codes.astype(np.uint8), target


def training_rows(case: Case, target: np.ndarray) -> TrainingRows:
    """Return all rows, as the case wants them."""
    weights = None
    if case.extra == "weighted rows":
        weights = np.random.default_rng(1).integers(1, 10, case.n).astype(float)
    if not case.n_classes:
        return TrainingRows.of(Response.targets(target, weights), "variance")
    return TrainingRows.of(Response.classes(target, case.n_classes, weights), "gini")


def our_milliseconds(
    case: Case, codes: np.ndarray, rows: TrainingRows, isa: str, trees: int
) -> float:
    """Return the median milliseconds of laying out the block and growing a tree."""
    n, q, k = case.n, case.q, case.k or case.q
    impurity = "gini" if case.n_classes else "variance"
    limits = TreeLimits(k, case.max_depth, impurity=impurity, splitter=case.splitter)
    block = Block(q, n, 1, tiled=wants_tiles(k, q))
    features = np.arange(q, dtype=np.uint32)
    flags = np.ones(q, dtype=np.bool_) if case.extra == "categories" else None
    address = np.array([codes.ctypes.data], dtype=np.uint64)
    shape = (q, q, n, ALL_ROWS, 1, block.tiled)
    seconds = []
    for tree in range(trees):
        start = time.perf_counter()
        _native.gather_mapped(address, features, *shape, block.codes)
        grow_tree(block, features, rows, key_of(tree), limits, isa, categorical=flags)
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds)


def scikit_learn(case: Case, codes: np.ndarray, target: np.ndarray) -> Callable[[int], object]:
    """Return what fits the peer's tree."""
    values = np.ascontiguousarray(codes.T, dtype=np.float32)
    kinds = {
        ("random", True): ExtraTreeClassifier,
        ("random", False): ExtraTreeRegressor,
        ("best", True): DecisionTreeClassifier,
        ("best", False): DecisionTreeRegressor,
    }
    kind = kinds[case.splitter, case.n_classes > 0]
    numbers = target.astype(np.float64)
    k = case.k or case.q
    return lambda seed: kind(max_features=k, random_state=seed).fit(
        values, numbers, check_input=False
    )


def lightgbm(case: Case, codes: np.ndarray, target: np.ndarray) -> Callable[[int], object]:
    """Return what grows LightGBM's next tree, its data binned before."""
    import lightgbm as lgb

    options = {
        "objective": "binary",
        "num_threads": 1,
        "max_depth": case.max_depth,
        "num_leaves": 1 << (case.max_depth or 5),
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 0.0,
        "verbose": -1,
        "force_col_wise": case.n < 10 * case.q,
    }
    data = lgb.Dataset(codes.T.astype(np.float32), target, params=options).construct()
    booster = lgb.Booster(options, data)
    return lambda _: booster.update()


def peer_milliseconds(fit: Callable[[int], object], trees: int) -> float:
    """Return the median milliseconds of one fit."""
    seconds = []
    for seed in range(trees):
        start = time.perf_counter()
        fit(seed)
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds)


def measure(case: Case, names: list[str], repeats: int) -> str:
    """Return a row of the table."""
    codes, target = make_block(case.n, case.q, case.n_classes)
    peer = lightgbm if case.extra == "LightGBM" else scikit_learn
    fit = peer(case, codes, target)
    if case.extra == "5% missing":
        codes[np.random.default_rng(2).random(codes.shape) < 0.05] = 255
    rows = training_rows(case, target)
    peers: list[float] = []
    ours: dict[str, list[float]] = {name: [] for name in names}
    is_large = case.n * case.q > LARGE  # seconds a tree for the peer
    for _ in range(min(repeats, 2) if is_large else repeats):
        peers.append(peer_milliseconds(fit, 1 if is_large else 2))
        for name in names:
            ours[name].append(our_milliseconds(case, codes, rows, name, 5))
    cells = []
    for name in names:
        ratio = statistics.median(a / b for a, b in zip(peers, ours[name], strict=True))
        cells.append(f"{statistics.median(ours[name]):.2f}, {ratio:.1f}")
    return f"| {case.name} | {statistics.median(peers):.0f} | {' | '.join(cells)} |"


def main() -> None:
    """Measure every case and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    arguments = parser.parse_args()
    names = instruction_sets()
    heads = " | ".join(f"{name}: ms, ratio" for name in names)
    print(f"| splits, n, q, target, K | peer ms | {heads} |")
    print("|---" * (2 + len(names)) + "|")
    for case in CASES:
        if arguments.only in case.name:
            print(measure(case, names, arguments.repeats), flush=True)


if __name__ == "__main__":
    main()
