"""The memory of runs: what each stage takes, and what is done under a cap.

Sizes follow from published allowances and the shape of the table; all else asks here. A run's
budget says how many workers it has, and the threads of each: `plan` makes the same.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from srs_ooc.base.budget import PROCESS_NBYTES, Budget, Lease, n_cores, total_nbytes
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.evidence.conditional_tests import held_nbytes
from srs_ooc.evidence.exchangeability import EXCHANGE_NBYTES
from srs_ooc.evidence.judges import NOT_ADJUSTED, pairs_of, scorer_of
from srs_ooc.evidence.pairs import scan_nbytes
from srs_ooc.learners.tree_learner import TREE, UNWEIGHTED, Trial, learner_named
from srs_ooc.runs.spec import RunSpec
from srs_ooc.samplers.base import LOSS, PREDICTIONS
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.values import making_tables_nbytes, n_values_of
from srs_ooc.trees import block

if TYPE_CHECKING:
    from srs_ooc.runs.inputs import Inputs

# What a run holds: its workers, and what is there once.

FEATURE_NBYTES = 32
"""Bytes a run may keep in memory for each feature (law 11)."""
LEDGER_NBYTES = 6 * MB
"""Allowance for the ledger's page cache and a page in transit."""
BOOTSTRAP_NBYTES = 48
"""Bytes of drawing a row, per worker."""
TESTS_NBYTES = 10 * MB
"""Allowance for closing, tests and the verdict, besides the blocks that closing shares and the
features that are tested beside one another."""
TESTED_CELLS = 1 << 20
"""Codes that a thread tests together."""
EVENT_ROW_NBYTES = 200
"""A row where its target is a time: it, scores, places, who is at risk, pairs of rows counted."""
STRATUM_ROW_NBYTES = 850
"""A row where single features are tested within strata: at most 820 bytes as measured, of a
regression in strata of 32 rows; 458 to 469 of two classes in strata of 20."""

BASIS_NBYTES = 8
"""Of a column of covariates and a row; beside it are the whole numbers that are kept, and each
tester has it by row, by column, and as it is multiplied."""
SCORES_NBYTES = 300
"""A row where columns are adjusted: 14 scores, what is left of them, steps, its place."""

LONG_READ_NBYTES = 1 << 16
"""Longer reads gain little: docs/research/benchmarks.md (disks), docs/remote.md (servers)."""
MOST_BLOCK = 64
FEWEST_BLOCKS = 32
"""With fewer blocks in a subspace, features of different ones meet noticeably less often."""


@dataclass(frozen=True)
class TrainingShape:
    """What of a store, as trained on, bounds a run: rows and features used, classes, code width.

    ``n_classes`` is 1 for targets; ``n_channels`` numbers of a row are summed beside rows.
    Where thresholds are drawn between values, a block keeps ``n_values`` of each column, and the
    store has ``n_stored_rows``. Where it ``has_strata``, rows are compared within them; where it
    ``has_groups``, whole groups are. Features are adjusted for ``n_basis`` columns of covariates. A
    target of times ``has_events``. A store linked to a file of genotypes has ``n_linked_rows``
    there.
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
    has_groups: bool = False
    n_basis: int = 0
    has_events: bool = False
    n_linked_rows: int = 0

    @property
    def is_regression(self) -> bool:
        """Whether trees predict targets."""
        return self.n_classes == 1

    @property
    def column_nbytes(self) -> int:
        """Bytes of one feature's codes on disk, two bits each where they are linked."""
        if self.n_linked_rows:
            return ceil_div(self.n_linked_rows, 4)
        return max(self.n_rows, self.n_stored_rows) * self.code_nbytes

    @property
    def values_lease(self) -> Lease:
        """What reading the values of codes takes, where they are read."""
        making = making_tables_nbytes(self.n_stored_rows) if self.n_values else 0
        return Lease("reading the values of codes", making)

    @property
    def tested_row_nbytes(self) -> int:
        """Bytes of a row while the effect of a feature is looked for; within strata more.

        At most 95 bytes of 200,000 rows as measured, of classes 37; of fewer rows 3 MB more at
        most, as codes of two bytes have so many levels.
        """
        return 110 if self.is_regression else 40

    @property
    def codes_nbytes(self) -> int:
        """Bytes of all codes on disk."""
        return self.n_features * self.column_nbytes

    def draw_block(self, subspace_size: int) -> int:
        """Return the features to draw together, where a store is larger than the cap of its run.

        Their read is long enough, in subspaces of so many: the first power of two with reads long
        enough, or the last with blocks enough.
        """
        size, largest = 1, min(MOST_BLOCK, subspace_size // FEWEST_BLOCKS)
        while 2 * size <= largest and size * self.column_nbytes < LONG_READ_NBYTES:
            size *= 2
        return size


def shape_of(
    manifest: Manifest, inputs: "Inputs", options: Mapping[str, Any] = MappingProxyType({})
) -> TrainingShape:
    """Return what of the store, as trained on, bounds a run with some options."""
    n_excluded = 0 if inputs.excluded is None else len(inputs.excluded)
    by_value = learner_named(options.get("model", TREE)).reads_values(options)
    weighs = options.get("class_weight", UNWEIGHTED) != UNWEIGHTED
    adjusts = inputs.null_model is not None or options.get("adjust", NOT_ADJUSTED) != NOT_ADJUSTED
    weighs |= adjusts and bool(manifest.classes)
    return TrainingShape(
        n_rows=manifest.n_rows if inputs.rows is None else len(inputs.rows),
        n_candidates=manifest.n_features - n_excluded,
        n_features=manifest.n_features,
        n_classes=max(1, len(manifest.classes)),
        code_nbytes=manifest.code_nbytes,
        n_channels=(weighs or "weights" in manifest.row_columns) + (manifest.task == "regression"),
        n_values=n_values_of(manifest) if by_value else 0,
        n_stored_rows=manifest.n_rows,
        has_strata="strata" in manifest.row_columns or adjusts,
        has_groups="groups" in manifest.row_columns,
        n_basis=0 if inputs.null_model is None else inputs.null_model.basis.shape[1],
        has_events="events" in manifest.row_columns,
        n_linked_rows=manifest.n_linked_rows,
    )


def work_nbytes(spec: RunSpec, shape: TrainingShape, n_columns: int, *, saves: bool) -> int:
    """Return the bytes one worker needs for a block of ``n_columns`` and its tree, as published.

    The block, with the values of its codes where thresholds are drawn between them; the kernel's
    scratch, one tile of staging to read into, the outcome's arrays; rows in order where candidates
    are judged. Trees are recorded where the run ``saves`` them, where they predict the rows that
    they were not grown on, and where those of a closing stage are asked about these with items
    altered: a subspace's last while it grows, the others there and on their way to disk.
    """
    n_rows, n_classes, n_channels = shape.n_rows, shape.n_classes, shape.n_channels
    n_rows = spec.learner.n_grown(n_rows)
    width, limits, scorer = shape.code_nbytes, spec.learner.limits, scorer_of(spec.judging)
    judges, splits = (what in spec.method.needs for what in (LOSS, PREDICTIONS))
    records = saves or splits or scorer is not None
    n_waiting = 2 * (spec.learner.trees_per_subspace - 1)
    one_byte = n_rows, 1, n_classes, 1, n_channels
    needs = [
        block.block_nbytes(n_columns, n_rows, width),
        block.values_nbytes(n_columns, shape.n_values),
        block.scratch_nbytes(n_rows, n_columns, n_classes, width, n_channels),
        # what best splits take besides
        block.scratch_nbytes(*one_byte, best=limits.splitter == "best")
        - block.scratch_nbytes(*one_byte),
        2 * block.block_nbytes(1, shape.n_rows, width),  # staging
        192 * n_columns,  # of drawing, tallying and judging
        spec.learner.decoded_nbytes(n_rows, n_columns, width),
        judges * 3 * n_rows * n_columns,  # rows in order, and what is made of it
        records * block.record_nbytes(n_rows, n_classes, limits),
        records * n_waiting * block.recorded_nbytes(n_rows, n_classes, limits),
        splits * (64 + 20 * n_classes) * n_rows,  # chosen, and walking down them
        0 if scorer is None else scorer.nbytes(n_rows),
        spec.learner.bootstrap * BOOTSTRAP_NBYTES * n_rows,
        (spec.learner.row_sample is not None) * (64 * n_rows + 4 * shape.n_rows),
    ]
    return sum(needs)


def worker_nbytes(spec: RunSpec, shape: TrainingShape, *, saves: bool) -> int:
    """Return the bytes of a worker: its block and its model; ``saves``: trees are kept."""
    published = work_nbytes(spec, shape, spec.n_columns, saves=saves)
    decoded = spec.learner.decoded_nbytes(shape.n_rows, spec.n_columns, shape.code_nbytes)
    return published + max(0, trial_of(spec, shape).work_nbytes - decoded)


def trial_of(spec: RunSpec, shape: TrainingShape) -> Trial:
    """Return what a subspace of the run's model takes, as tried once; 0 of trees.

    Raises
    ------
    UsageError
        If there is no such estimator, or it refuses its parameters.
    """
    n_columns = spec.sampler.most_columns(spec.subspace_size)
    return spec.learner.tried(shape, n_columns, spec.sampler.judged_by(shape.n_candidates))


def fixed_leases(spec: RunSpec, shape: TrainingShape) -> list[Lease]:
    """Return what a run needs besides its workers and its process."""
    n_rows, n_features, tests = shape.n_rows, shape.n_features, spec.concludes
    code_nbytes = 2 if shape.has_groups else shape.code_nbytes
    sizes = n_rows, shape.n_candidates, shape.n_classes, code_nbytes
    beside = held_nbytes(*sizes, adjusts=shape.n_basis > 0)
    of_pairs = n_rows, max(n_rows, shape.n_stored_rows), *sizes[1:3]
    pairs = scan_nbytes(pairs_of(spec.judging), *of_pairs, has_strata=shape.has_strata)
    closing = TESTS_NBYTES + max(beside, pairs, shape.tested_row_nbytes * n_rows)
    return [
        Lease(f"counts of {n_features} features", FEATURE_NBYTES * n_features),
        rows_lease(spec, shape),
        Lease("the run's record", LEDGER_NBYTES),
        Lease("last stage, tests and verdict", tests * closing),
        # a second is made while the first is held
        Lease("means of groups", 2 * tests * shape.has_groups * EXCHANGE_NBYTES * n_rows),
        Lease("tests within strata", tests * shape.has_strata * STRATUM_ROW_NBYTES * n_rows),
        Lease("times and events", tests * shape.has_events * EVENT_ROW_NBYTES * n_rows),
        Lease("covariates", tests * adjusting_nbytes(shape, n_rows)),
        shape.values_lease,
        Lease("scikit-learn and what it loads", spec.learner.library_nbytes),
        Lease("what the method learns", spec.sampler.state_nbytes(n_rows, n_features)),
    ]


def half_leases(spec: RunSpec, shape: TrainingShape) -> list[Lease]:
    """Return what tests of half of the rows need besides the process, after stages of other rows.

    Whatever q is. While trees grow, what earlier stages left lies in the allowance for the verdict.
    """
    half = replace(shape, n_rows=ceil_div(shape.n_rows, 2))
    tested = max(0, another_tester_nbytes(half) - TESTS_NBYTES) if spec.concludes else 0
    # pieces of memory that cannot be given back
    left = Lease("what earlier stages left", 10 * MB)
    return [*fixed_leases(spec, half), Lease("columns tested", tested), left]


def rows_lease(spec: RunSpec, shape: TrainingShape) -> Lease:
    """Return what the training rows take, as trees are grown on them."""
    n_bytes = block.rows_nbytes(shape.n_rows, spec.learner.impurity, shape.n_channels)
    return Lease(f"labels of {shape.n_rows} rows", n_bytes)


def largest_subspace(
    spec: RunSpec, shape: TrainingShape, cap_nbytes: int, *, saves: bool = False, n_workers: int = 1
) -> int:
    """Return q_max: the largest subspace a worker can hold under the cap (law 2); 0 if none.

    From published constants and the store's shape alone, never from measured memory or threads.
    ``saves``: trees are kept. ``n_workers``: beside as many others.
    """
    room = cap_nbytes - PROCESS_NBYTES - total_nbytes(fixed_leases(spec, shape))
    n_probes = spec.n_columns - spec.subspace_size
    sizes = range(1, shape.n_candidates + 1)
    needs = partial(work_nbytes, spec, shape, saves=saves)
    return bisect_right(sizes, room, key=lambda size: n_workers * needs(size + n_probes))


# What a cap is spent on.


@dataclass
class RunBudget(Budget):
    """The budget of a stage of a run, with what was done with the rest of its cap.

    What the cap leaves goes first to more workers, then to threads that share a worker's tree where
    there are more cores, then to keeping the store mapped.

    Attributes
    ----------
    n_workers, n_threads : int
        Blocks on which trees are grown at once, and the threads of each.
    n_readers : int
        Threads that read the columns of a block.
    n_testers : int
        Threads that test single features, where nothing is grown.
    mapped : bool
        Whether the whole store stays in memory.
    """

    n_workers: int = 1
    n_threads: int = 1
    n_readers: int = 1
    n_testers: int = 1
    mapped: bool = False

    def spend(
        self,
        spec: RunSpec,
        shape: TrainingShape,
        threads: int | None,
        resident_nbytes: int = 0,
        *,
        grows: bool = True,
    ) -> None:
        """Spend what is left on up to so many ``threads``; the last lease is that of a block.

        Unless something ``grows``, these test single features. Of the rest goes what the process
        has in use already, ``resident_nbytes``, beyond what it takes for itself.
        """
        n_most, each = threads or n_cores(), self.leases[-1].n_bytes
        self.grant("what earlier stages left", max(0, resident_nbytes - self.leases[0].n_bytes))
        if not grows:  # tiles of tall tables take more than the allowance and a block of trees
            more = another_tester_nbytes(shape) - TESTS_NBYTES - each
            self.grant("columns tested", max(0, more))
            # what the first takes is in the allowance for the verdict; groups are compared by one
            each, most = another_tester_nbytes(shape), 0 if shape.has_groups else n_most - 1
            self.n_testers += self.grant_more("another worker", each, most)
            self.mapped = shape.codes_nbytes <= self.free_nbytes
            return
        self.n_workers += self.grant_more("another worker", each, n_most - 1)
        n_workers = self.n_workers
        sizes = shape.n_rows, spec.n_columns, shape.n_classes, shape.code_nbytes, shape.n_channels
        best = spec.learner.splitter == "best"
        two = block.scratch_nbytes(*sizes, best=best, n_threads=2)
        one = n_workers * (two - block.scratch_nbytes(*sizes, best=best))
        more_threads = min(n_most // n_workers, spec.learner.most_threads) - 1
        self.n_threads += self.grant_more("another thread for each tree", one, more_threads)
        self.mapped = shape.codes_nbytes <= self.free_nbytes
        as_codes = 5 if shape.n_linked_rows else 1  # a column as read, and as codes
        tiles = 2 * (self.n_threads - 1) * n_workers * block.padded_columns(1)
        tiles *= as_codes * shape.column_nbytes
        if not self.mapped and tiles <= self.free_nbytes:
            self.n_readers = self.n_threads


def adjusting_nbytes(shape: TrainingShape, n_rows: int) -> int:
    """Return what a tester has of covariates, and what they leave of its columns, by contrast."""
    left = 4 * max(TESTED_CELLS, n_rows) * (shape.n_basis > 0)
    return 3 * BASIS_NBYTES * shape.n_basis * n_rows + left


def another_tester_nbytes(shape: TrainingShape) -> int:
    """Return what a thread takes that tests single features.

    Its columns twice, and three tiles of which they are made; tables and distributions.
    """
    n_rows = max(shape.n_rows, shape.n_stored_rows)
    each_row = shape.tested_row_nbytes + STRATUM_ROW_NBYTES * shape.has_strata
    each_row += EVENT_ROW_NBYTES * shape.has_events
    columns = 2 * shape.code_nbytes * max(TESTED_CELLS, n_rows)
    tiles = 3 * block.block_nbytes(1, n_rows, shape.code_nbytes)
    each_row += (SCORES_NBYTES + 8 * shape.n_classes) * (shape.n_basis > 0)
    return columns + tiles + 6 * MB + each_row * n_rows + adjusting_nbytes(shape, n_rows)


# What is on its way between a run and workers elsewhere.

ORDERS_NBYTES = 64 * MB
"""What Dask and its messages take where the run is, besides its libraries."""
