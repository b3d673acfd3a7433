"""What identifies a run (law 4), and how options become one."""

import dataclasses
from dataclasses import dataclass
from math import ceil, isqrt
from typing import Any, Self

from srs_ooc.budget import PROCESS_NBYTES
from srs_ooc.errors import RunError, UsageError
from srs_ooc.evidence.judges import Judge, PositiveJudge, ProbeJudge
from srs_ooc.kernel.block import block_nbytes
from srs_ooc.kernel.native import record_nbytes, recorded_nbytes
from srs_ooc.kernel.training import TrainingRows
from srs_ooc.kernel.tree import IMPORTANCE_BITS, IMPURITIES, SPLITTERS, TreeLimits
from srs_ooc.learners.trees import learner_nbytes, searching_nbytes
from srs_ooc.shares import DECIMALS, exact_share, floor_share, share_text
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
BOOTSTRAP_NBYTES = 48
"""Bytes of drawing a row, per worker."""
UNWEIGHTED = "none"
MOST_TREES = 10_000
"""Bound of trees on one subspace."""
JUDGES = ("probe", "positive")
NO_DECREASE = "0"


@dataclass(frozen=True)
class Options:
    """Options as given; None where not given. Names are those of the command line."""

    alpha: str | None = None
    subspace_size: str | None = None
    max_features: str | int | None = None
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
    splitter: str | None = None
    min_impurity_decrease: str | None = None
    bootstrap: bool | None = None
    class_weight: str | None = None
    excluded: str | None = None
    rows: str | None = None


@dataclass(frozen=True)
class RunSpec:
    """The identity of a run: two runs with equal specs have equal results.

    ``subspace_size`` is q, ``max_features`` K, ``probe_min_draws`` L and ``probe_min_wins`` beta of
    the paper; ``alpha`` and ``probe_min_wins`` are kept as decimal text; ``excluded`` and ``rows``
    are digests of the excluded features and the training rows; C is drawn by blocks of
    ``draw_block`` neighbours in stored order, and ``trees_per_subspace`` trees are grown on each
    subspace (both 1 in the paper). ``min_impurity_decrease`` is decimal text, ``class_weight`` as
    :func:`srs_ooc.responses.training_response` takes it.
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
    splitter: str = "random"
    min_impurity_decrease: str = NO_DECREASE
    bootstrap: bool = False
    class_weight: str = UNWEIGHTED

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
        return TreeLimits(
            self.max_features,
            self.max_depth,
            self.min_samples_leaf,
            self.impurity,
            _least_importance(self.min_impurity_decrease),
            self.splitter,
        )

    def make_judge(self) -> Judge:
        """Return the run's relevance test."""
        if self.judge == "positive":
            return PositiveJudge()
        return ProbeJudge(self.probe_min_draws, self.probe_min_wins)


@dataclass(frozen=True)
class Shape:
    """What of a store, as trained on, bounds a run: rows and features used, classes, code width.

    ``n_classes`` is 1 for targets; ``n_channels`` numbers of a row are summed beside rows.
    """

    n_rows: int
    n_candidates: int
    n_features: int
    n_classes: int
    code_nbytes: int
    n_channels: int = 0

    @property
    def is_regression(self) -> bool:
        """Whether trees predict targets."""
        return self.n_classes == 1


def recording_nbytes(shape: Shape, limits: TreeLimits, n_trees: int, *, saves_trees: bool) -> int:
    """Return what a worker needs to keep its subspace's trees; 0 where trees are not kept.

    The last of them while it grows, and the records of the others, there and on their way to disk.
    """
    if not saves_trees:
        return 0
    waiting = 2 * (n_trees - 1) * recorded_nbytes(shape.n_rows, shape.n_classes, limits)
    return record_nbytes(shape.n_rows, shape.n_classes, limits) + waiting


def extra_nbytes(
    shape: Shape, limits: TreeLimits, n_trees: int, *, bootstrap: bool, saves_trees: bool
) -> int:
    """Return what a worker needs for keeping trees, for best splits and for drawing rows."""
    return (
        recording_nbytes(shape, limits, n_trees, saves_trees=saves_trees)
        + searching_nbytes(shape.n_rows, shape.n_classes, shape.n_channels, limits.splitter)
        + (BOOTSTRAP_NBYTES * shape.n_rows if bootstrap else 0)
    )


def work_nbytes(shape: Shape, n_columns: int, extra: int = 0) -> int:
    """Return the bytes one worker needs for a block of ``n_columns`` and its tree.

    The block, the kernel's scratch, one tile of staging to read into, the outcome's arrays, and
    ``extra`` bytes of :func:`extra_nbytes`.
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
        + extra
    )


def fixed_nbytes(shape: Shape, impurity: str) -> list[tuple[str, int]]:
    """Return what a run needs besides its workers and its process: (purpose, bytes)."""
    return [
        (f"tallies of {shape.n_features} features", FEATURE_NBYTES * shape.n_features),
        (
            f"labels of {shape.n_rows} rows",
            TrainingRows.nbytes(shape.n_rows, impurity, shape.n_channels),
        ),
        ("ledger", LEDGER_NBYTES),
    ]


def largest_subspace(shape: Shape, cap_nbytes: int, impurity: str, extra: int = 0) -> int:
    """Return q_max: the largest subspace one worker can hold under the cap (law 2); 0 if none.

    From published constants and the store's shape alone, never from measured memory or threads.
    """
    fixed = PROCESS_NBYTES + sum(n_bytes for _, n_bytes in fixed_nbytes(shape, impurity))
    low, high = 0, shape.n_candidates
    while low < high:
        middle = (low + high + 1) // 2
        if fixed + work_nbytes(shape, middle + 1, extra) <= cap_nbytes:
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
    impurity = _settle_impurity(options.impurity, shape)
    class_weight = options.class_weight or UNWEIGHTED
    max_depth = (
        None
        if options.max_depth is None
        else _in_range("max-depth", options.max_depth, 1, 1, LARGEST)
    )
    min_leaf = _in_range("min-samples-leaf", options.min_samples_leaf, 1, 1, LARGEST)
    splitter = _one_of("splitter", options.splitter or "random", SPLITTERS)
    decrease = _share("min-impurity-decrease", options.min_impurity_decrease or NO_DECREASE)
    limits = TreeLimits(1, max_depth, min_leaf, impurity, splitter=splitter)
    n_trees = _in_range("trees-per-subspace", options.trees_per_subspace, 1, 1, MOST_TREES)
    bootstrap = bool(options.bootstrap)
    extra = extra_nbytes(shape, limits, n_trees, bootstrap=bootstrap, saves_trees=saves_trees)
    largest = largest_subspace(shape, cap_nbytes, impurity, extra)
    subspace_size = _settle_subspace(options.subspace_size, shape, largest)
    return RunSpec(
        store=store,
        method=METHOD,
        alpha=_share("alpha", DEFAULT_ALPHA if options.alpha is None else options.alpha),
        subspace_size=subspace_size,
        max_features=_settle_max_features(options.max_features, subspace_size),
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
        splitter=splitter,
        min_impurity_decrease=decrease,
        bootstrap=bootstrap,
        class_weight=class_weight,
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
        if field.name in ("alpha", "probe_min_wins", "min_impurity_decrease"):
            given = _share(field.name.replace("_", "-"), given)
        if field.name == "max_features":
            given = _settle_max_features(given, spec.subspace_size)
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


def _settle_max_features(given: str | int | None, subspace_size: int) -> int:
    """Return K: a whole number, a share of q with a decimal point, ``sqrt`` or ``log2`` of q."""
    if given is None:
        return subspace_size
    asked = str(given)
    if asked in ("sqrt", "log2"):
        return isqrt(subspace_size) if asked == "sqrt" else max(1, subspace_size.bit_length() - 1)
    if asked.isascii() and asked.isdigit() and len(asked) <= 10:
        return _in_range("max-features", int(asked), 1, 1, subspace_size, " (q)")
    try:
        return max(1, floor_share(share_text(asked), subspace_size))
    except ValueError as error:
        raise UsageError(
            "--max-features: expected a whole number, a share of q such as 0.1, sqrt or log2, "
            f"found {asked[:40]!r}."
        ) from error


def _settle_impurity(asked: str | None, shape: Shape) -> str:
    fitting = IMPURITIES[2:] if shape.is_regression else IMPURITIES[:2]
    impurity = _one_of("impurity", asked or fitting[0], IMPURITIES)
    if impurity not in fitting:
        what = "numbers" if shape.is_regression else "classes"
        raise UsageError(
            f"--impurity: expected {' or '.join(fitting)} for a target of {what}, found {impurity}."
        )
    if impurity == "entropy" and shape.n_channels:
        raise UsageError(
            "--impurity: expected gini where rows or classes are weighted, found entropy. "
            "Leave the weights out, or take gini."
        )
    return impurity


def _least_importance(share: str) -> int:
    """Return the least importance, in units of ``2**-36``, that is no less than a share."""
    return ceil(exact_share(share) * (1 << IMPORTANCE_BITS))


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
