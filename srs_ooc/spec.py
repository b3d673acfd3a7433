"""What identifies a run (law 4), and how options become one."""

import dataclasses
from dataclasses import dataclass
from math import ceil
from typing import Any, Self

from srs_ooc.budget import PROCESS_NBYTES
from srs_ooc.errors import RunError, UsageError
from srs_ooc.evidence.judges import Judge, PositiveJudge, ProbeJudge
from srs_ooc.kernel.block import block_nbytes
from srs_ooc.kernel.native import record_nbytes, recorded_nbytes
from srs_ooc.kernel.training import TrainingRows
from srs_ooc.kernel.tree import TreeLimits
from srs_ooc.learners.trees import learner_nbytes
from srs_ooc.shares import DECIMALS, share_text
from srs_ooc.sizes import MB

METHOD = "srs"
FEATURE_NBYTES = 32
"""Bytes a run may keep in memory for each feature of the store (law 11)."""
LEDGER_NBYTES = 6 * MB
"""Allowance for the ledger's page cache and a page in transit."""
COLUMN_NBYTES = 192
"""Bytes of drawing, tallying and judging one column of a subspace, per worker."""
DEFAULT_ALPHA = "0.5"
LARGEST = 2**31 - 1
"""Bound of whole-number options, so that no sum of them overflows in the kernel."""
MOST_TREES = 10_000
"""Bound of trees on one subspace."""
JUDGES = ("probe", "positive")
IMPURITIES = ("gini", "entropy")


@dataclass(frozen=True)
class Options:
    """Options as given; None where not given. Names are those of the command line."""

    alpha: str | None = None
    subspace_size: str | None = None
    max_features: int | None = None
    judge: str | None = None
    probe_min_draws: int | None = None
    probe_min_wins: str | None = None
    impurity: str | None = None
    max_depth: int | None = None
    min_samples_leaf: int | None = None
    seed: int | None = None
    round_size: int | None = None
    draw_block: int | None = None
    trees_per_subspace: int | None = None
    excluded: str | None = None
    rows: str | None = None


@dataclass(frozen=True)
class RunSpec:
    """The identity of a run: two runs with equal specs have equal results.

    ``subspace_size`` is q, ``max_features`` K, ``probe_min_draws`` L and ``probe_min_wins`` beta of
    the paper; ``alpha`` and ``probe_min_wins`` are kept as decimal text; ``excluded`` and ``rows``
    are digests of the excluded features and the training rows; C is drawn by blocks of
    ``draw_block`` neighbours in stored order, and ``trees_per_subspace`` trees are grown on each
    subspace (both 1 in the paper).
    """

    store: str
    method: str
    alpha: str
    subspace_size: int
    max_features: int
    judge: str
    probe_min_draws: int
    probe_min_wins: str
    impurity: str
    max_depth: int | None
    min_samples_leaf: int
    seed: int
    round_size: int
    excluded: str
    rows: str
    draw_block: int = 1
    trees_per_subspace: int = 1

    def to_json(self) -> dict[str, Any]:
        """Return the spec as JSON-ready values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Return the spec that :meth:`to_json` wrote.

        Raises
        ------
        RunError
            If its fields are not those of a spec.
        """
        try:
            return cls(**record)
        except TypeError as error:
            raise RunError(f"the run's identity in its ledger is damaged: {error}.") from error

    @property
    def limits(self) -> TreeLimits:
        """How trees are grown."""
        return TreeLimits(self.max_features, self.max_depth, self.min_samples_leaf, self.impurity)

    def make_judge(self) -> Judge:
        """Return the run's relevance test."""
        if self.judge == "positive":
            return PositiveJudge()
        return ProbeJudge(self.probe_min_draws, self.probe_min_wins)


@dataclass(frozen=True)
class Shape:
    """What of a store, as trained on, bounds a run: rows and features used, classes, code width."""

    n_rows: int
    n_candidates: int
    n_features: int
    n_classes: int
    code_nbytes: int


def recording_nbytes(shape: Shape, limits: TreeLimits, n_trees: int, *, saves_trees: bool) -> int:
    """Return what a worker needs to keep its subspace's trees; 0 where trees are not kept.

    The last of them while it grows, and the records of the others, there and on their way to disk.
    """
    if not saves_trees:
        return 0
    waiting = 2 * (n_trees - 1) * recorded_nbytes(shape.n_rows, shape.n_classes, limits)
    return record_nbytes(shape.n_rows, shape.n_classes, limits) + waiting


def work_nbytes(shape: Shape, n_columns: int, recording: int = 0) -> int:
    """Return the bytes one worker needs for a block of ``n_columns`` and its tree.

    The block, the kernel's scratch, one tile of staging to read into, the outcome's arrays, and
    ``recording`` bytes of :func:`recording_nbytes`.
    """
    staging = block_nbytes(1, shape.n_rows, shape.code_nbytes)
    scratch = learner_nbytes(shape.n_rows, n_columns, shape.n_classes, shape.code_nbytes)
    return (
        block_nbytes(n_columns, shape.n_rows, shape.code_nbytes)
        + scratch
        + 2 * staging
        + COLUMN_NBYTES * n_columns
        + recording
    )


def fixed_nbytes(shape: Shape, impurity: str) -> list[tuple[str, int]]:
    """Return what a run needs besides its workers and its process: (purpose, bytes)."""
    return [
        (f"tallies of {shape.n_features} features", FEATURE_NBYTES * shape.n_features),
        (f"labels of {shape.n_rows} rows", TrainingRows.nbytes(shape.n_rows, impurity)),
        ("ledger", LEDGER_NBYTES),
    ]


def largest_subspace(shape: Shape, cap_nbytes: int, impurity: str, recording: int = 0) -> int:
    """Return q_max: the largest subspace one worker can hold under the cap (law 2); 0 if none.

    From published constants and the store's shape alone, never from measured memory or threads.
    """
    fixed = PROCESS_NBYTES + sum(n_bytes for _, n_bytes in fixed_nbytes(shape, impurity))
    low, high = 0, shape.n_candidates
    while low < high:
        middle = (low + high + 1) // 2
        if fixed + work_nbytes(shape, middle + 1, recording) <= cap_nbytes:
            low = middle
        else:
            high = middle - 1
    return low


def settle(
    options: Options, shape: Shape, store: str, cap_nbytes: int, *, saves_trees: bool = False
) -> RunSpec:
    """Turn options into the identity of a new run, with defaults where nothing was given.

    Raises
    ------
    UsageError
        If an option is outside its range.
    """
    impurity = _one_of("impurity", options.impurity or "gini", IMPURITIES)
    max_depth = (
        None
        if options.max_depth is None
        else _in_range("max-depth", options.max_depth, 1, 1, LARGEST)
    )
    min_leaf = _in_range("min-samples-leaf", options.min_samples_leaf, 1, 1, LARGEST)
    limits = TreeLimits(1, max_depth, min_leaf, impurity)
    n_trees = _in_range("trees-per-subspace", options.trees_per_subspace, 1, 1, MOST_TREES)
    recording = recording_nbytes(shape, limits, n_trees, saves_trees=saves_trees)
    largest = largest_subspace(shape, cap_nbytes, impurity, recording)
    subspace_size = _settle_subspace(options.subspace_size, shape, largest)
    return RunSpec(
        store=store,
        method=METHOD,
        alpha=_share("alpha", DEFAULT_ALPHA if options.alpha is None else options.alpha),
        subspace_size=subspace_size,
        max_features=_in_range(
            "max-features", options.max_features, subspace_size, 1, subspace_size
        ),
        judge=_one_of("judge", options.judge or "probe", JUDGES),
        probe_min_draws=_in_range("probe-min-draws", options.probe_min_draws, 10, 0, LARGEST),
        probe_min_wins=_share("probe-min-wins", options.probe_min_wins or "0.95"),
        impurity=impurity,
        max_depth=max_depth,
        min_samples_leaf=min_leaf,
        seed=_in_range("seed", options.seed, 0, 0, 2**64 - 1),
        round_size=_in_range("round-size", options.round_size, 1, 1, LARGEST),
        excluded=options.excluded or "none",
        rows=options.rows or "all",
        draw_block=_in_range(
            "draw-block", options.draw_block, 1, 1, subspace_size, " (the features of a subspace)"
        ),
        trees_per_subspace=n_trees,
    )


def check_same(options: Options, spec: RunSpec, run: str) -> None:
    """Check that the options given agree with an existing run's identity.

    Raises
    ------
    RunError
        Naming every field that differs.
    """
    differences = []
    for field in dataclasses.fields(options):
        given, held = getattr(options, field.name), getattr(spec, field.name)
        if given is None or given == "max":
            continue
        if field.name in ("alpha", "probe_min_wins"):
            given = _share(field.name.replace("_", "-"), given)
        if str(given) != str(held):
            differences.append(f"{field.name.replace('_', '-')} {held} (asked for: {given})")
    if differences:
        raise RunError(
            f"{run} is a run with {', '.join(differences)}. A run's identity cannot change: "
            "leave the option out to go on with it, or choose another folder with --out."
        )


def _settle_subspace(asked: str | None, shape: Shape, largest: int) -> int:
    p = shape.n_candidates
    if asked is None:
        # With a cap too small for anything the budget refuses, with its numbers.
        return max(1, min(max(ceil(p / 20), min(100, p)), largest))
    if asked == "max":
        return max(1, largest)
    if not (asked.isascii() and asked.isdigit() and len(asked) <= 10):
        raise UsageError(f"--subspace-size: expected a whole number or 'max', found {asked!r}.")
    return _in_range("subspace-size", int(asked), 1, 1, p, " (the features there are)")


def _in_range(
    name: str, value: int | None, default: int, low: int, high: int | None, why: str = ""
) -> int:
    if value is None:
        return default
    if value < low or (high is not None and value > high):
        bound = f"from {low} to {high}{why}" if high is not None else f"of at least {low}"
        raise UsageError(f"--{name}: expected a whole number {bound}, found {value}.")
    return value


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise UsageError(f"--{name}: expected one of {', '.join(choices)}, found {value!r}.")
    return value


def _share(name: str, text: str) -> str:
    """Check a decimal from 0 to 1 and return its canonical text."""
    try:
        return share_text(text)
    except ValueError as error:
        raise UsageError(
            f"--{name}: expected a decimal number from 0 to 1 with at most "
            f"{DECIMALS} places, found {text[:40]!r}."
        ) from error
