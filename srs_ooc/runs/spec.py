"""What identifies a run (law 4), and what memory it needs.

Memory follows from published allowances and the shape of the table. Beside it stand which options
go with models other than trees, and the blocks that new features are drawn by.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.options import Choice, Params, Text, Whole, exact_share, option
from srs_ooc.base.text import MB
from srs_ooc.evidence.decoys import Exchangeability
from srs_ooc.evidence.judges import (
    VERSIONS,
    DecoyJudge,
    Judge,
    PositiveJudge,
    ProbeJudge,
    closes_by_sensitivity,
)
from srs_ooc.learners.model_learner import LIBRARY_NBYTES, decoded_nbytes
from srs_ooc.learners.models import (
    DEFAULT_FOLDS,
    PERMUTATION,
    SUBSPACES,
    TREE,
    TREE_MODEL,
    ModelParams,
    check_model_name,
)
from srs_ooc.learners.tree_learner import TreeParams
from srs_ooc.samplers.base import Method, method_names, method_of
from srs_ooc.store.values import MAKING_NBYTES, ROW_NBYTES
from srs_ooc.trees.block import (
    WORK_NBYTES,
    block_nbytes,
    record_nbytes,
    recorded_nbytes,
    rows_nbytes,
    scratch_nbytes,
    searching_nbytes,
    sorted_nbytes,
    values_nbytes,
)
from srs_ooc.trees.response import TreeLimits

JUDGES: dict[str, type[Judge]] = {
    "probe": ProbeJudge,
    "positive": PositiveJudge,
    "decoy": DecoyJudge,
    "none": Judge,
}
"""Each judge by its name."""
INPUTS = ("excluded", "rows", "validation")
"""Options that name files; the identity holds digests of what is in them."""
NOT_GIVEN = {"excluded": "none", "rows": "all", "validation": "none"}


class RunParams(Params):
    """Options that every run has; ``subspace_size`` is q of the paper."""

    method: str = option(Choice(method_names()), "How subspaces are chosen.", default="srs")
    subspace_size: int = option(
        Text(),
        "Features paged in at a time, or 'max' for all the cap holds.",
        default=0,
        default_text="5% of the features, at least 100, within the cap; with --method less twice "
        "their square root; with rase room for all subspaces of a model",
        metavar="Q",
        flags=("--q",),
    )
    judge: str = option(
        Choice(tuple(JUDGES)),
        "Test of relevance: the paper's probe, any positive importance, or decoys with a final "
        "verdict (docs/evidence.md); none for a method that only ranks.",
        default_text="decoy; probe with its own options or --save-trees; none with --method prs "
        "or rase",
    )
    seed: int = option(
        Whole(0, 2**64 - 1), "Everything random follows from it.", default=0, metavar="SEED"
    )
    round_size: int = option(
        Whole(1),
        "Iterations proposed from the same kept features; 1 is the paper's.",
        default=1,
        metavar="N",
    )


@dataclass(frozen=True)
class RunSpec:
    """The identity of a run: two runs with equal specs have equal results.

    Attributes
    ----------
    store : str
        Fingerprint of the store.
    excluded, rows, validation : str
        Digests of the excluded features, of the rows, and of those that are held out.
    run : RunParams
        What every run has.
    sampler, learner, judging : Params
        The method, what grows the trees, and the judge, each with its options.
    model : ModelParams
        What is fitted on each subspace, and how features are scored by it.
    """

    store: str
    excluded: str
    rows: str
    run: RunParams
    sampler: Method
    learner: TreeParams
    judging: Judge
    validation: str = NOT_GIVEN["validation"]
    model: ModelParams = TREE_MODEL

    def to_json(self) -> dict[str, Any]:
        """Return the spec as a ledger keeps it: JSON-ready values, all options side by side."""
        return self._beside(
            {name: v for part in self._parts() for name, v in part.record().items()}
        )

    def facts(self) -> dict[str, Any]:
        """Return the same, options by the names that they have now."""
        return self._beside(self.values())

    def values(self) -> dict[str, Any]:
        """Return every option by name, as settled."""
        return {name: value for part in self._parts() for name, value in part.values().items()}

    def _parts(self) -> tuple[Params, ...]:
        model = () if self.model.is_tree else (self.model,)  # as runs of trees were always written
        return self.run, *model, self.sampler, self.learner, self.judging

    def _beside(self, options: dict[str, Any]) -> dict[str, Any]:
        own = {"store": self.store, "excluded": self.excluded, "rows": self.rows}
        if self.validation != NOT_GIVEN["validation"]:
            own["validation"] = self.validation
        return own | options | (VERSIONS if self.concludes else {})

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Return the spec that :meth:`to_json` wrote.

        Raises
        ------
        RunError
            If its fields are not those of a spec, or its verdict is of another version.
        UsageError
            If its method is not installed.
        """
        try:
            run = RunParams.restored(record)
            spec = cls(
                store=record["store"],
                excluded=record["excluded"],
                rows=record["rows"],
                validation=record.get("validation", NOT_GIVEN["validation"]),
                run=run,
                sampler=method_of(run.method).restored(record),
                learner=TreeParams.restored(record),
                judging=JUDGES[run.judge].restored(record),
                model=ModelParams.restored(record),
            )
        except (TypeError, ValueError, KeyError) as error:
            raise RunError(f"the run's identity in its ledger is damaged: {error!r}.") from error
        for name, version in VERSIONS.items() if spec.concludes else ():
            if record.get(name, 1) != version:
                raise RunError(
                    f"expected a run of version {version} of its {name}, found version "
                    f"{record.get(name, 1)!r}. Use the srs-ooc version that began it, or start "
                    "the run again in another folder."
                )
        return spec

    def with_seed(self, seed: int) -> Self:
        """Return the same with another seed."""
        return replace(self, run=replace(self.run, seed=seed))

    @property
    def subspace_size(self) -> int:
        """The paper's q."""
        return self.run.subspace_size

    @property
    def seed(self) -> int:
        """What everything random follows from."""
        return self.run.seed

    @property
    def round_size(self) -> int:
        """Iterations proposed from one state."""
        return self.run.round_size

    @property
    def judge(self) -> str:
        """Name of the relevance test."""
        return self.run.judge

    @property
    def alpha(self) -> str:
        """Share of the subspace held for kept features; 0 for a method that holds none."""
        return str(getattr(self.sampler, "alpha", "0"))

    @property
    def draw_block(self) -> int:
        """Neighbours on disk that are drawn together; 1 for a method that draws one by one."""
        return int(getattr(self.sampler, "draw_block", 1))

    @property
    def method(self) -> type[Method]:
        """The method by which subspaces are chosen."""
        return type(self.sampler)

    def state_nbytes(self, n_rows: int, n_features: int) -> int:
        """Return the memory that the method takes for what it learns."""
        return self.sampler.state_nbytes(n_rows, self.n_items(n_features))

    @property
    def draws_by_weight(self) -> bool:
        """Whether some features are drawn more often than others, by scores of their columns."""
        return self.method.draws_by_scores

    @property
    def min_draws(self) -> int:
        """Draws that the probe asks for to be exceeded, where it judges; else its default."""
        if isinstance(self.judging, ProbeJudge):
            return self.judging.probe_min_draws
        return int(ProbeJudge.options()["probe_min_draws"].default)

    @property
    def limits(self) -> TreeLimits:
        """How trees are grown."""
        return self.learner.limits

    @property
    def decoy_judge(self) -> DecoyJudge | None:
        """The options of the final verdict; None where features are judged on the way."""
        return self.judging if isinstance(self.judging, DecoyJudge) else None

    @property
    def concludes(self) -> bool:
        """Whether the verdict comes last, after a closing stage."""
        return self.decoy_judge is not None

    @property
    def decoys(self) -> int:
        """Families of decoys."""
        return 0 if self.decoy_judge is None else self.decoy_judge.decoys

    @property
    def permutations(self) -> int:
        """Permutation runs."""
        return 0 if self.decoy_judge is None else self.decoy_judge.permutations

    @property
    def fdr(self) -> str:
        """Level of the final verdict, as decimal text; only a run that concludes has one."""
        assert self.decoy_judge is not None
        return self.decoy_judge.fdr

    def n_items(self, n_features: int) -> int:
        """Return how many items there are: the features and their decoys."""
        return (1 + self.decoys) * n_features

    @property
    def n_columns(self) -> int:
        """Columns of a block: those of a subspace, and the probe where there is one."""
        return self.subspace_size + isinstance(self.judging, ProbeJudge)


# What memory a run needs, from published allowances and the shape of its table.

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


def extra_nbytes(spec: RunSpec, shape: TrainingShape, *, saves: bool) -> int:
    """Return what a worker needs for keeping trees, for best splits and for drawing rows.

    Trees are recorded where the run ``saves`` them, where they predict the rows that they were not
    grown on, and where those of a closing stage are asked about these with items altered: the last
    of a subspace's while it grows, and the others, there and on their way to disk.
    """
    limits, n_rows, n_classes = spec.limits, shape.n_rows, shape.n_classes
    splits_rows, asks = spec.method.splits_rows, closes_by_sensitivity(spec.judging)
    extra = searching_nbytes(n_rows, n_classes, shape.n_channels, limits.splitter)
    if saves or splits_rows or asks:
        waiting = 2 * (spec.learner.trees_per_subspace - 1)
        extra += record_nbytes(n_rows, n_classes, limits)
        extra += waiting * recorded_nbytes(n_rows, n_classes, limits)
    if splits_rows:
        extra += (PREDICTION_NBYTES + 20 * n_classes) * n_rows
    if asks:
        extra += 2 * WORK_NBYTES + (BOOTSTRAP_NBYTES + ASKING_NBYTES) * n_rows
    return extra + (BOOTSTRAP_NBYTES * n_rows if spec.learner.bootstrap else 0)


def work_nbytes(
    shape: TrainingShape, n_columns: int, extra: int = 0, *, judges_candidates: bool = False
) -> int:
    """Return the bytes one worker needs for a block of ``n_columns`` and its tree.

    The block, with the values of its codes where thresholds are drawn between them, the kernel's
    scratch, one tile of staging to read into, the outcome's arrays, and
    ``extra`` bytes of :func:`extra_nbytes`; where it ``judges_candidates``, rows in order too.
    """
    staging = block_nbytes(1, shape.n_rows, shape.code_nbytes)
    scratch = scratch_nbytes(
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


def fixed_nbytes(spec: RunSpec, shape: TrainingShape) -> list[tuple[str, int]]:
    """Return what a run needs besides its workers and its process: (purpose, bytes)."""
    n_families, state = spec.decoys, spec.state_nbytes(shape.n_rows, shape.n_features)
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
            rows_nbytes(shape.n_rows, spec.learner.impurity, shape.n_channels),
        ),
        ("ledger", LEDGER_NBYTES),
        *(judging if spec.concludes else []),
        *(making if shape.n_values else []),
        *([("scikit-learn and what it loads", LIBRARY_NBYTES)] if shape.is_decoded else []),
        *([("what the method learns", state)] if state else []),
    ]


def largest_subspace(
    spec: RunSpec, shape: TrainingShape, cap_nbytes: int, *, saves: bool = False
) -> int:
    """Return q_max: the largest subspace one worker can hold under the cap (law 2); 0 if none.

    From published constants and the store's shape alone, never from measured memory or threads.
    There is room for a probe, whether there is one or not; ``saves``: trees are kept.
    """
    room = cap_nbytes - PROCESS_NBYTES - sum(n_bytes for _, n_bytes in fixed_nbytes(spec, shape))
    extra, judges = extra_nbytes(spec, shape, saves=saves), spec.method.judges_candidates
    low, high = 0, shape.n_candidates
    while low < high:
        middle = (low + high + 1) // 2
        if work_nbytes(shape, middle + 1, extra, judges_candidates=judges) <= room:
            low = middle
        else:
            high = middle - 1
    return low


class Options(dict[str, Any]):
    """Options as given, by name; None, or absent, where not given."""

    def __init__(self, **given: Any) -> None:
        super().__init__({name: value for name, value in given.items() if value is not None})

    def also(self, **given: Any) -> "Options":
        """Return these and further ones."""
        return Options(**self | given)


# Which options go with models other than trees.


def settle_model(
    given: Mapping[str, Any], shape: TrainingShape, *, saves_trees: bool
) -> ModelParams:
    """Return the model of a new run as settled from the options given, method included.

    Raises
    ------
    UsageError
        If the options do not go together.
    """
    model = ModelParams.settle(given, shape)
    name = given["method"]
    if model.is_tree or name not in method_names():
        return model
    check_model_name(model.model)
    method = method_of(name)
    if not method.any_model:
        able = [other for other in method_names() if method_of(other).any_model]
        raise UsageError(
            f"--model: expected {TREE} with --method {name}, found {model.model}. Leave it out, or "
            f"choose one of the methods {', '.join(able)}."
        )
    _check_no_trees(model, given, saves_trees=saves_trees)
    if method.splits_rows:
        for flag in ("model_importance", "model_folds"):
            if flag in given:
                raise UsageError(
                    f"--{flag.replace('_', '-')}: expected with a method that scores features by "
                    f"their models, found --method {name}, which has scores and folds of its own. "
                    "Leave it out."
                )
        return model
    holds = "alpha" in method.options() and exact_share(str(given.get("alpha", "0.5"))) > 0
    importance = model.model_importance or (PERMUTATION if holds else SUBSPACES)
    if holds and importance == SUBSPACES:
        raise UsageError(
            f"--model-importance: expected {PERMUTATION} with --method {name}, found {SUBSPACES}: "
            "features held in every other subspace would share one score. Leave it out, or take "
            "--method rs."
        )
    folds = model.model_folds or DEFAULT_FOLDS
    return replace(model, model_importance=importance, model_folds=folds)


def check_subspaces(model: ModelParams, n_candidates: int, subspace_size: int) -> None:
    """Refuse subspaces that cannot differ where their losses are compared.

    Raises
    ------
    UsageError
        If every subspace would hold all features.
    """
    if model.model_importance == SUBSPACES and subspace_size >= n_candidates:
        raise UsageError(
            f"--subspace-size: expected fewer than the {n_candidates} features there are with "
            f"--model-importance {SUBSPACES}, found {subspace_size}: no subspace would lack one. "
            f"Take fewer, or --model-importance {PERMUTATION}."
        )


def notes_of(spec: RunSpec, n_rows: int, n_candidates: int) -> tuple[str, ...]:
    """Return what is worth saying before a run starts."""
    notes = spec.sampler.notes(n_rows, n_candidates, 1 + spec.decoys)
    if spec.model.is_tree or not spec.method.judges_candidates:
        return notes
    sizes = n_candidates, spec.subspace_size
    ends = spec.sampler.most_iterations(*sizes)
    n_iterations, n_criteria = ends[0] if ends else 1, spec.sampler.criteria_each(*sizes)
    n_models = n_iterations * spec.sampler.models_each(*sizes)
    fitted = f"{n_models:,.0f} models are fitted, each by a library"
    if n_criteria:
        n_criteria *= n_iterations
        return (
            *notes,
            f"--model {spec.model.model}: {spec.sampler.judged_by} is computed for "
            f"{n_criteria:,.0f} subspaces, and {fitted}; `srs-ooc plan` says how long that takes.",
        )
    return (
        *notes,
        f"--model {spec.model.model}: up to {fitted}; `srs-ooc plan` tries one and says how long "
        "that takes. Fewer --rounds, --candidates or --models take less.",
    )


def _check_no_trees(model: ModelParams, given: Mapping[str, Any], *, saves_trees: bool) -> None:
    """Refuse options of trees."""
    for flag in TreeParams.options():
        if flag in given:
            raise UsageError(
                f"--{flag.replace('_', '-')}: expected with --model {TREE} only, found --model "
                f"{model.model}. Leave it out, or give what is the estimator's by --model-params."
            )
    if saves_trees:
        raise UsageError(
            f"--save-trees: expected with --model {TREE} only, found --model {model.model}, whose "
            "fitted models are not kept: they could be read back only by running what a file "
            "says. Leave it out."
        )


# Blocks that new features are drawn by, where a store is larger than the cap of its run.

LONG_READ_NBYTES = 1 << 16
"""Longer reads gain little: docs/research/benchmarks.md (disks), docs/remote.md (servers)."""
MOST_BLOCK = 64
FEWEST_BLOCKS = 32
"""With fewer blocks in a subspace, features of different ones meet noticeably less often."""


def block_for(subspace_size: int, column_nbytes: int) -> int:
    """Return the features of a block whose read is long enough, in subspaces of so many.

    The first power of two with reads long enough, or the last with blocks enough.
    """
    size, largest = 1, min(MOST_BLOCK, subspace_size // FEWEST_BLOCKS)
    while 2 * size <= largest and size * column_nbytes < LONG_READ_NBYTES:
        size *= 2
    return size
