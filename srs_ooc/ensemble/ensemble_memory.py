"""What memory saved trees take: to predict, to be asked about altered rows, and to be compacted."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from srs_ooc.base.budget import Budget, Lease, cap_to_name
from srs_ooc.base.errors import BudgetError
from srs_ooc.base.text import MB
from srs_ooc.runs.inputs import InputFiles, Inputs
from srs_ooc.runs.run_trees import TreeReader
from srs_ooc.runs.spec import RunSpec
from srs_ooc.runs.tree_splits import SplitTable
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.store import Store
from srs_ooc.trees.block import SAVED_PIECE_NBYTES, block_nbytes, effects_nbytes

if TYPE_CHECKING:
    from srs_ooc.ensemble.panels import Panels

# Decoded trees, and what their splits mean.

SPLIT_NBYTES = 6
"""Bytes a split takes at least in the file of trees, its share of leaves included."""
NODE_NBYTES = 160
"""Allowance for a decoded node, its copies and what is looked up for it."""
RECORD_NBYTES_PER_ROW = 18
"""Bytes that the record of one tree takes at most for each row it was grown on."""
SPLIT_NAME_NBYTES = 300
"""Allowance for a feature's name, as thresholds are looked up."""
LOOKING_UP_NBYTES = 24 << 20
"""Allowance for what else that takes."""


def most_splits(trees: TreeReader, store: Store) -> tuple[int, int]:
    """Return bounds on the different splits of a run's trees and on the features they use.

    A split takes at least 6 bytes of the trees, its share of leaves included; and there are no
    more different ones than codes in the store.
    """
    n_codes = store.array("n_codes")
    n_keys = min(trees.nbytes // SPLIT_NBYTES, int(np.sum(n_codes, dtype=np.int64)))
    return n_keys, min(n_keys, len(n_codes))


def making_nbytes(n_keys: int, n_used: int) -> int:
    """Return the bytes that looking so many splits on so many features up needs."""
    return 6 * 8 * n_keys + SPLIT_NAME_NBYTES * n_used + LOOKING_UP_NBYTES


def ensemble_nbytes(splits: SplitTable) -> int:
    """Return the bytes that trees and thresholds need in memory, however many trees there are."""
    table = 24 * len(splits.keys) + 8 * len(splits.features)
    return NODE_NBYTES * int(splits.facts["largest"]) + table


def most_ensemble_nbytes(trees: TreeReader, n_keys: int, n_used: int, n_training_rows: int) -> int:
    """Return a bound on :func:`ensemble_nbytes` before it is known how many nodes trees have."""
    record = RECORD_NBYTES_PER_ROW * n_training_rows
    n_nodes = 2 * min(trees.nbytes, SAVED_PIECE_NBYTES + record) // SPLIT_NBYTES
    return NODE_NBYTES * n_nodes + 24 * n_keys + 8 * n_used


# Predictions: what trees mean, panels of rows, and what is said of them.

CATEGORY_NBYTES = 8 << 20
"""Memory for the distinct texts of categorical columns."""
TEXT_NBYTES = 300
"""Allowance for a row's id and label, and for a column's name, as Python objects."""
OPEN_NBYTES = 8 << 20
"""Allowance for chunk files that are open, and what is decoded of one."""
PANEL_NBYTES = 32 * MB
"""Memory of a panel of rows that stays in memory: more would not make it faster."""
OUTPUT_NBYTES = 64
"""Memory of a number of a prediction: as an array, twice while joined, and in a frame."""
MOST_PANEL_ROWS = 8192
"""Rows of a panel at most: more would not make it faster."""


def check_looking_up(trees: TreeReader, store: Store, data: Any, cap_nbytes: int) -> None:
    """Check that the cap holds finding out what the splits of trees mean, by their store's values.

    A cap that is named holds what predicting ``data`` takes, too, a row of it included, before its
    columns are looked at.

    Raises
    ------
    BudgetError
        If it cannot.
    """
    manifest, code_nbytes = store.manifest, store.manifest.code_nbytes
    n_keys, n_used = most_splits(trees, store)
    applying = most_ensemble_nbytes(trees, n_keys, n_used, manifest.n_rows)
    applying += 2 * block_nbytes(n_used + 1, 1, code_nbytes) + 9 * n_used + 2 * TEXT_NBYTES
    applying += TEXT_NBYTES * n_used + 24 * len(manifest.classes)
    if isinstance(data, Store):
        applying += 24 * data.n_features + OPEN_NBYTES + data.reading_nbytes
        applying += 2 * block_nbytes(1, data.n_rows, code_nbytes)
    elif not isinstance(data, Path):
        applying += 2 * CATEGORY_NBYTES
    else:
        has_categories = bool(manifest.kind_counts.get("categorical"))
        from srs_ooc.ingestion.csv import CsvStream, TextForm
        from srs_ooc.ingestion.sources import SourceFile

        n_columns = CsvStream(SourceFile.file(data), TextForm()).n_fields
        applying += 16 * n_columns + 2 * CATEGORY_NBYTES * has_categories
    budget = Budget(cap_nbytes, other_nbytes=applying)
    budget.grant("looking thresholds up", making_nbytes(n_keys, n_used))
    budget.check()


def panel_rows(
    panels: "Panels", splits: SplitTable, cap_nbytes: int, reading_nbytes: int = 0
) -> int:
    """Return how many rows at a time the cap holds, where predictions are written as they come."""
    budget = Budget(cap_nbytes)
    if reading_nbytes:
        budget.grant("requests under way", reading_nbytes)
    a_row = panels.row_nbytes + 24 * len(splits.facts["classes"])
    budget.grant("trees and thresholds", ensemble_nbytes(splits))
    budget.grant(f"{len(splits.features)} columns", panels.fixed_nbytes)
    budget.grant("a row", a_row)
    budget.check()
    fitting = budget.free_nbytes // a_row + 1
    return int(min(fitting, MOST_PANEL_ROWS, panels.most_rows or MOST_PANEL_ROWS))


def kept_panel_rows(
    panels: "Panels", splits: SplitTable, trees: TreeReader, cap_nbytes: int | None
) -> tuple[int, Callable[[int], None]]:
    """Return how many rows at a time a cap holds, where predictions stay in memory.

    Also what refuses more predicted rows than there is room for, where it is not known how many
    there will be.

    Raises
    ------
    BudgetError
        If it cannot hold a row, or the predictions of all rows, where their number is known.
    """
    n_outputs = max(1, len(splits.facts["classes"]))
    predicted = TEXT_NBYTES + OUTPUT_NBYTES * (n_outputs + 1)
    panel, rest = PANEL_NBYTES, None
    if cap_nbytes is not None:
        budget = Budget(cap_nbytes)
        budget.grant("trees and thresholds", trees.nbytes + ensemble_nbytes(splits))
        budget.grant(f"{len(splits.features)} columns", panels.fixed_nbytes)
        budget.grant("a row", panels.row_nbytes + 24 * n_outputs + predicted)
        if panels.most_rows is not None:
            budget.grant(f"predictions of {panels.most_rows} rows", predicted * panels.most_rows)
        budget.check()
        panel = min(PANEL_NBYTES, budget.free_nbytes // 2) + panels.row_nbytes
        rest = budget.free_nbytes - panel if panels.most_rows is None else None

    def check(n_rows: int) -> None:
        over = 0 if rest is None else n_rows * predicted - rest
        if cap_nbytes is not None and over > 0:
            raise BudgetError(
                f"a memory cap of {cap_nbytes / MB:g} MB cannot hold the predictions of {n_rows} "
                f"rows and more. Try --memory-mb {cap_to_name(cap_nbytes + 2 * over)}, or write "
                "them to a file with `srs-ooc predict`, which holds no more than some rows at a "
                "time."
            )

    fitting = panel // max(1, panels.row_nbytes)
    return max(1, min(fitting, MOST_PANEL_ROWS, panels.most_rows or MOST_PANEL_ROWS)), check


# Sensitivity: before it is known what trees use, and after.

MOST_REPEATS = 100
"""Permutations at most."""
PIECE = 512
"""Columns that are read together."""
VOTES_NBYTES = 4 * MB
"""Memory for which trees vote on which rows."""
USED_NBYTES = 160
"""Memory of an item that trees use, whatever the rows."""
ROW_NBYTES, DRAW_NBYTES = 160, 64
"""Memory of a row of the store: its target and what is drawn for it, and of a training row while it
is found which rows a tree was grown on."""
WORK_NBYTES = 8 * MB
"""Allowance for what is read of the store beside rows."""


def check_reading(
    trees: TreeReader, store: Store, spec: RunSpec, files: InputFiles, cap_nbytes: int
) -> None:
    """Check that the cap holds what comes before it is known how many features trees use.

    A cap that is named holds the rest too, with the most features that trees may use.
    """
    n_used = min(trees.nbytes // SPLIT_NBYTES, store.n_features)
    nodes = most_ensemble_nbytes(trees, 0, 0, store.n_rows)
    rest = walking_leases(spec, store, n_used, MOST_REPEATS, nodes)
    budget = Budget(cap_nbytes, other_nbytes=sum(lease.n_bytes for lease in rest))
    budget.grant("trees", nodes + 32 * n_used)
    budget.grant(f"labels of {store.n_rows} rows", ROW_NBYTES * store.n_rows + WORK_NBYTES)
    budget.leases += files.leases()
    budget.check()


def walking_leases(
    spec: RunSpec, store: Store, n_features: int, n_repeats: int, trees_nbytes: int
) -> list[Lease]:
    """Return what walking the trees needs besides the process; last of all, a row."""
    manifest = store.manifest
    code_nbytes, n_rows = manifest.code_nbytes, manifest.n_rows
    of_rows = (ROW_NBYTES + DRAW_NBYTES) * n_rows + 2 * VOTES_NBYTES + WORK_NBYTES
    read_together = PIECE * code_nbytes * (4 + n_repeats) + 32 * (1 + n_repeats)
    row = effects_nbytes(n_features, max(1, len(manifest.classes)), code_nbytes)
    row += n_features * code_nbytes * (n_repeats - 1) + read_together
    return [
        Lease("trees", trees_nbytes),
        Lease(f"{n_features} features that trees use", USED_NBYTES * n_features),
        Lease(f"{n_rows} rows", of_rows),
        Lease("a column", 2 * block_nbytes(1, n_rows, code_nbytes)),
        Lease("names and places", 12 * store.n_features),
        Lease("a row of all features that trees use", row),
    ]


# Compaction: what is clustered, what is held together, and rows that are predicted.

CODES_NBYTES = 1 << 25
"""Bytes of codes that correlations are computed from, at most."""
BLOCK_NBYTES = 1 << 25
"""Bytes of codes that are held together, whatever the run's subspace size."""
MOST_HELD_OUT = 1 << 14
"""Rows predicted, at most; evenly spaced ones of more. Accuracy is then known to within 0.004."""


def n_sampled(n: int, n_rows: int, code_nbytes: int) -> int:
    """Return of how many rows the codes of ``n`` candidates are clustered by."""
    from srs_ooc.evidence.correlation import MOST_ROWS  # predictions need none of it

    return min(n_rows, MOST_ROWS, max(1, CODES_NBYTES // (n * code_nbytes)))


def sampled_nbytes(n: int, n_rows: int, code_nbytes: int) -> int:
    """Return the bytes that clustering ``n`` candidates takes."""
    from srs_ooc.evidence.correlation import CELLS

    n_rows = n_sampled(n, n_rows, code_nbytes)
    correlating = n * (n_rows * code_nbytes + 64) + 32 * 8 * CELLS
    return 2 * n * n_rows * code_nbytes + correlating


def held_out_nbytes(n_rows: int, n_columns: int, n_classes: int, code_nbytes: int) -> int:
    """Return the bytes that predicting takes, besides the forest's block and a tree."""
    n_rows = min(n_rows, MOST_HELD_OUT)
    return n_rows * (n_columns * (2 * code_nbytes + 8) + 16 * n_classes)


def room_for(spec: RunSpec, inputs: Inputs, manifest: Manifest) -> int:
    """Return how many features are held together, at most ``HEAD``: q, or a block's worth."""
    from srs_ooc.evidence.correlation import HEAD
    from srs_ooc.runs.run_memory import shape_of

    shape = shape_of(manifest, inputs)
    block = BLOCK_NBYTES // (shape.n_rows * shape.code_nbytes)
    return min(HEAD, max(spec.subspace_size, block), shape.n_candidates)
