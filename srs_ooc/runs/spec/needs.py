"""What memory a run needs, from published allowances and the shape of its table."""

from dataclasses import dataclass

from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.base.text import MB
from srs_ooc.evidence.decoys import Exchangeability
from srs_ooc.learners.model_learner import LIBRARY_NBYTES
from srs_ooc.learners.models import decoded_nbytes
from srs_ooc.learners.tree_learner import WORK_NBYTES, learner_nbytes, searching_nbytes
from srs_ooc.store.values import MAKING_NBYTES, ROW_NBYTES
from srs_ooc.trees.block import block_nbytes, values_nbytes
from srs_ooc.trees.kernel import record_nbytes, recorded_nbytes, sorted_nbytes
from srs_ooc.trees.response import TrainingRows, TreeLimits

FEATURE_NBYTES = 32
"""Bytes a run may keep in memory for each feature, its first decoy included (law 11)."""
DECOY_NBYTES = 16
"""The same for each further decoy."""
LEDGER_NBYTES = 6 * MB
"""Allowance for the ledger's page cache and a page in transit."""
COLUMN_NBYTES = 192
"""Bytes of drawing, tallying and judging one column of a subspace, per worker."""
BOOTSTRAP_NBYTES = 48
"""Bytes of drawing a row, per worker."""
ASKING_NBYTES = 64
"""Bytes of a row that trees of a closing stage are asked about, per worker."""
PREDICTION_NBYTES = 64
"""Bytes of choosing the rows of a split and walking down them, per worker."""
CONCLUSION_NBYTES = 12 * MB
"""Allowance for ranking, closing and judging, besides the blocks that closing shares."""
STRATUM_ROW_NBYTES = 850
"""A row where single features are tested within strata: at most 820 bytes as measured, of a
regression in strata of 32 rows; 458 to 469 of two classes in strata of 20."""


@dataclass(frozen=True)
class TrainingShape:
    """What of a store, as trained on, bounds a run: rows and features used, classes, code width.

    ``n_classes`` is 1 for targets; ``n_channels`` numbers of a row are summed beside rows.
    Where thresholds are drawn between values, a block keeps ``n_values`` of each column, and the
    store has ``n_stored_rows``. Where it ``has_strata``, rows are compared within them. A model
    that is no tree ``is_decoded`` for: its blocks become numbers.
    """

    n_rows: int
    n_candidates: int
    n_features: int
    n_classes: int
    code_nbytes: int
    n_channels: int = 0
    n_values: int = 0
    n_stored_rows: int = 0
    has_strata: bool = False
    is_decoded: bool = False

    @property
    def is_regression(self) -> bool:
        """Whether trees predict targets."""
        return self.n_classes == 1


def recording_nbytes(
    shape: TrainingShape, limits: TreeLimits, n_trees: int, *, saves_trees: bool
) -> int:
    """Return what a worker needs to keep its subspace's trees; 0 where trees are not kept.

    The last of them while it grows, and the records of the others, there and on their way to disk.
    """
    if not saves_trees:
        return 0
    waiting = 2 * (n_trees - 1) * recorded_nbytes(shape.n_rows, shape.n_classes, limits)
    return record_nbytes(shape.n_rows, shape.n_classes, limits) + waiting


def extra_nbytes(
    shape: TrainingShape,
    limits: TreeLimits,
    n_trees: int,
    *,
    bootstrap: bool,
    saves_trees: bool,
    splits_rows: bool = False,
    by_sensitivity: bool = False,
) -> int:
    """Return what a worker needs for keeping trees, for best splits and for drawing rows.

    ``splits_rows``: trees are recorded to predict the rows that they were not grown on;
    ``by_sensitivity``: closing trees are, to be asked about these with items altered.
    """
    predicting = (PREDICTION_NBYTES + 20 * shape.n_classes) * shape.n_rows if splits_rows else 0
    records = saves_trees or splits_rows or by_sensitivity
    asking = 2 * WORK_NBYTES + (BOOTSTRAP_NBYTES + ASKING_NBYTES) * shape.n_rows
    return (
        recording_nbytes(shape, limits, n_trees, saves_trees=records)
        + predicting
        + (asking if by_sensitivity else 0)
        + searching_nbytes(shape.n_rows, shape.n_classes, shape.n_channels, limits.splitter)
        + (BOOTSTRAP_NBYTES * shape.n_rows if bootstrap else 0)
    )


def work_nbytes(
    shape: TrainingShape, n_columns: int, extra: int = 0, *, judges_candidates: bool = False
) -> int:
    """Return the bytes one worker needs for a block of ``n_columns`` and its tree.

    The block, with the values of its codes where thresholds are drawn between them, the kernel's
    scratch, one tile of staging to read into, the outcome's arrays, and
    ``extra`` bytes of :func:`extra_nbytes`; where it ``judges_candidates``, rows in order too.
    """
    staging = block_nbytes(1, shape.n_rows, shape.code_nbytes)
    scratch = learner_nbytes(
        shape.n_rows, n_columns, shape.n_classes, shape.code_nbytes, shape.n_channels
    )
    return (
        block_nbytes(n_columns, shape.n_rows, shape.code_nbytes)
        + scratch
        + 2 * staging
        + COLUMN_NBYTES * n_columns
        + values_nbytes(n_columns, shape.n_values)
        + (decoded_nbytes(shape.n_rows, n_columns, shape.code_nbytes) if shape.is_decoded else 0)
        + (sorted_nbytes(shape.n_rows, n_columns) if judges_candidates else 0)
        + extra
    )


def fixed_nbytes(
    shape: TrainingShape,
    impurity: str,
    n_families: int = 0,
    *,
    concludes: bool = False,
    state: int = 0,
) -> list[tuple[str, int]]:
    """Return what a run needs besides its workers and its process: (purpose, bytes).

    ``n_families`` families of decoys, a final verdict where it ``concludes`` with one, and
    ``state`` bytes of what its method learns.
    """
    more = DECOY_NBYTES * max(n_families - 1, 0)
    judging = [
        (
            "decoys, closing and verdict",
            CONCLUSION_NBYTES + Exchangeability.nbytes(shape.n_rows, n_families),
        )
    ]
    if shape.has_strata:
        judging += [("tests within strata", STRATUM_ROW_NBYTES * shape.n_rows)]
    making = [("reading the values of codes", MAKING_NBYTES + ROW_NBYTES * shape.n_stored_rows)]
    return [
        (f"tallies of {shape.n_features} features", (FEATURE_NBYTES + more) * shape.n_features),
        (
            f"labels of {shape.n_rows} rows",
            TrainingRows.nbytes(shape.n_rows, impurity, shape.n_channels),
        ),
        ("ledger", LEDGER_NBYTES),
        *(judging if concludes else []),
        *(making if shape.n_values else []),
        *([("scikit-learn and what it loads", LIBRARY_NBYTES)] if shape.is_decoded else []),
        *([("what the method learns", state)] if state else []),
    ]


def largest_subspace(
    shape: TrainingShape,
    cap_nbytes: int,
    impurity: str,
    extra: int = 0,
    n_families: int = 0,
    *,
    concludes: bool = False,
    state: int = 0,
    judges_candidates: bool = False,
) -> int:
    """Return q_max: the largest subspace one worker can hold under the cap (law 2); 0 if none.

    From published constants and the store's shape alone, never from measured memory or threads.
    """
    leases = fixed_nbytes(shape, impurity, n_families, concludes=concludes, state=state)
    fixed = PROCESS_NBYTES + sum(n_bytes for _, n_bytes in leases)
    low, high = 0, shape.n_candidates
    while low < high:
        middle = (low + high + 1) // 2
        work = work_nbytes(shape, middle + 1, extra, judges_candidates=judges_candidates)
        if fixed + work <= cap_nbytes:
            low = middle
        else:
            high = middle - 1
    return low
