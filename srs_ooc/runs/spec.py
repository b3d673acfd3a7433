"""What identifies a run (law 4), and what memory it needs.

Memory follows from published allowances and the shape of the table. Beside it stand which options
go with models other than trees, and the blocks that new features are drawn by.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.options import Choice, Params, Text, Whole, exact_share, option
from srs_ooc.base.text import MB
from srs_ooc.evidence.decoys import Exchangeability
from srs_ooc.evidence.judges import (
    EVIDENCE,
    FIRST_EVIDENCE,
    FIRST_STAGES,
    STAGES,
    DecoyParams,
    Judge,
    NoJudgeParams,
    PositiveJudge,
    PositiveParams,
    ProbeJudge,
    ProbeParams,
)
from srs_ooc.learners.model_learner import LIBRARY_NBYTES
from srs_ooc.learners.models import (
    DEFAULT_FOLDS,
    LEADERS,
    PERMUTATION,
    SUBSPACES,
    TREE,
    TREE_MODEL,
    ModelParams,
    check_model_name,
    decoded_nbytes,
)
from srs_ooc.learners.tree_learner import WORK_NBYTES, TreeParams, learner_nbytes, searching_nbytes
from srs_ooc.samplers.base import Fits, Method, method_names, method_of
from srs_ooc.samplers.srs import RandomSubspaceParams
from srs_ooc.store.values import MAKING_NBYTES, ROW_NBYTES
from srs_ooc.trees.block import block_nbytes, values_nbytes
from srs_ooc.trees.kernel import record_nbytes, recorded_nbytes, sorted_nbytes
from srs_ooc.trees.response import TrainingRows, TreeLimits

JUDGES: dict[str, type[Params]] = {
    "probe": ProbeParams,
    "positive": PositiveParams,
    "decoy": DecoyParams,
    "none": NoJudgeParams,
}
"""The options of each judge, by its name."""
INPUTS = ("excluded", "rows", "validation")
"""Options that name files; the identity holds digests of what is in them."""
NOT_GIVEN = {"excluded": "none", "rows": "all", "validation": "none"}


@dataclass(frozen=True, kw_only=True)
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
        Options of the method, of what grows the trees, and of the judge.
    model : ModelParams
        What is fitted on each subspace, and how features are scored by it.
    evidence : int
        Version of how a final verdict is computed; of no meaning without one.
    stages : int
        Version of how its decoys are made and its closing stage is grown; the same.
    """

    store: str
    excluded: str
    rows: str
    run: RunParams
    sampler: Params
    learner: TreeParams
    judging: Params
    evidence: int = EVIDENCE
    stages: int = STAGES
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
        version = {"evidence": self.evidence, "stages": self.stages} if self.concludes else {}
        return own | options | version

    @classmethod
    def from_json(cls, record: Any) -> Self:
        """Return the spec that :meth:`to_json` wrote, now or in an earlier version.

        Raises
        ------
        RunError
            If its fields are not those of a spec.
        UsageError
            If its method is not installed.
        """
        try:
            run = RunParams.restored(record)
            return cls(
                store=record["store"],
                excluded=record["excluded"],
                rows=record["rows"],
                validation=record.get("validation", NOT_GIVEN["validation"]),
                run=run,
                sampler=method_of(run.method).params.restored(record),
                learner=TreeParams.restored(record),
                judging=JUDGES[run.judge].restored(record),
                model=ModelParams.restored(record),
                evidence=int(record.get("evidence", FIRST_EVIDENCE)),
                stages=int(record.get("stages", FIRST_STAGES)),
            )
        except (TypeError, ValueError, KeyError) as error:
            raise RunError(f"the run's identity in its ledger is damaged: {error!r}.") from error

    def with_seed(self, seed: int) -> Self:
        """Return the same with another seed."""
        return replace(self, run=replace(self.run, seed=seed))

    def judged_now(self, run: str) -> Self:
        """Return the same with the version by which a verdict is computed now.

        Raises
        ------
        RunError
            Naming ``run``, if it was begun under a later version.
        """
        if self.evidence > EVIDENCE:
            raise RunError(
                f"{run}: expected a run whose verdict is computed by version {EVIDENCE} of the "
                f"evidence or an earlier one, found version {self.evidence}. Go on with the later "
                "srs-ooc that began it."
            )
        return replace(self, evidence=EVIDENCE)

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
    def method(self) -> Method:
        """The method by which subspaces are chosen."""
        return method_of(self.run.method)

    def state_nbytes(self, n_rows: int, n_features: int) -> int:
        """Return the memory that the method takes for what it learns."""
        return self.method.state_nbytes(self.sampler, n_rows, self.n_items(n_features))

    @property
    def draws_by_weight(self) -> bool:
        """Whether some features are drawn more often than others, by scores of their columns."""
        return self.method.score is not None

    @property
    def min_draws(self) -> int:
        """Draws that the probe asks for to be exceeded, where it judges; else its default."""
        if isinstance(self.judging, ProbeParams):
            return self.judging.probe_min_draws
        return int(ProbeParams.options()["probe_min_draws"].default)

    @property
    def limits(self) -> TreeLimits:
        """How trees are grown."""
        return self.learner.limits

    @property
    def decoy_judge(self) -> DecoyParams | None:
        """The options of the final verdict; None where features are judged on the way."""
        return self.judging if isinstance(self.judging, DecoyParams) else None

    @property
    def concludes(self) -> bool:
        """Whether the verdict comes last, after a closing stage."""
        return self.decoy_judge is not None

    @property
    def decoys(self) -> int:
        """Families of decoys."""
        return 0 if self.decoy_judge is None else self.decoy_judge.decoys

    @property
    def n_copies_apart(self) -> int:
        """Features and their families, where these are drawn apart; else 1."""
        return 1 + self.decoys if self.decoys > 1 and self.stages > FIRST_STAGES else 1

    @property
    def permutations(self) -> int:
        """Permutation runs."""
        return 0 if self.decoy_judge is None else self.decoy_judge.permutations

    @property
    def fdr(self) -> str:
        """Level of the final verdict, as decimal text; only a run that concludes has one."""
        assert self.decoy_judge is not None
        return self.decoy_judge.fdr

    @property
    def keep(self) -> int:
        """Leading items held where no judge says on the way what is kept."""
        if self.decoy_judge is None:
            return 0 if self.model.is_tree else LEADERS
        return self.decoy_judge.keep

    def n_items(self, n_features: int) -> int:
        """Return how many items there are: the features and their decoys."""
        return (1 + self.decoys) * n_features

    @property
    def n_columns(self) -> int:
        """Columns of a block: those of a subspace, and the probe where there is one."""
        return self.subspace_size + isinstance(self.judging, ProbeParams)

    def make_judge(self) -> Judge | None:
        """Return the relevance test by which features enter F; None where it has none."""
        if isinstance(self.judging, ProbeParams):
            return ProbeJudge(self.judging.probe_min_draws, self.judging.probe_min_wins)
        return PositiveJudge() if isinstance(self.judging, PositiveParams) else None


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


class Options(Mapping[str, Any]):
    """Options as given, by name; None, or absent, where not given."""

    def __init__(self, **given: Any) -> None:
        self._given = {name: value for name, value in given.items() if value is not None}

    def __getitem__(self, name: str) -> Any:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def also(self, **given: Any) -> "Options":
        """Return these and further ones."""
        return Options(**self._given | given)


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
    _check_method(model, name, method)
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
    holds = "alpha" in method.params.options() and exact_share(str(given.get("alpha", "0.5"))) > 0
    importance = model.model_importance or (PERMUTATION if holds else SUBSPACES)
    if holds and importance == SUBSPACES:
        raise UsageError(
            f"--model-importance: expected {PERMUTATION} with --method {name}, found {SUBSPACES}: "
            "features held in every other subspace would share one score. Leave it out, or take "
            "--method rs."
        )
    folds = model.model_folds or DEFAULT_FOLDS
    return replace(model, model_importance=importance, model_folds=folds)


def check_judge(run: RunParams, model: ModelParams) -> None:
    """Refuse a relevance test for models that are no trees.

    Raises
    ------
    UsageError
        If one was asked for.
    """
    if not model.is_tree and run.judge != "none":
        raise UsageError(
            f"--judge: expected none with --model {model.model}, found {run.judge}: closing stages "
            "and probes are of trees. Leave it out: features are ranked, with standard errors."
        )


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


def fits_of(spec: RunSpec, n_candidates: int) -> Fits:
    """Return what an iteration fits, of ``n_candidates`` features that may be drawn."""
    return spec.method.fits(spec.sampler, n_candidates, spec.subspace_size)


def notes_of(spec: RunSpec, n_rows: int, n_candidates: int) -> tuple[str, ...]:
    """Return what is worth saying before a run starts."""
    notes = spec.method.notes(spec.sampler, n_rows, n_candidates, 1 + spec.decoys)
    if spec.model.is_tree or not spec.method.judges_candidates:
        return notes
    ends = spec.method.most_iterations(spec.sampler, n_candidates, spec.subspace_size)
    n_iterations, fits = ends[0] if ends else 1, fits_of(spec, n_candidates)
    fitted = f"{n_iterations * fits.n_models:,.0f} models are fitted, each by a library"
    if fits.n_criteria:
        n_criteria = n_iterations * fits.n_criteria
        return (
            *notes,
            f"--model {spec.model.model}: {spec.method.criterion(spec.sampler)} is computed for "
            f"{n_criteria:,.0f} subspaces, and {fitted}; `srs-ooc plan` says how long that takes.",
        )
    return (
        *notes,
        f"--model {spec.model.model}: up to {fitted}; `srs-ooc plan` tries one and says how long "
        "that takes. Fewer --rounds, --candidates or --models take less.",
    )


def _check_method(model: ModelParams, name: str, method: Method) -> None:
    if not method.any_model:
        able = [other for other in method_names() if method_of(other).any_model]
        raise UsageError(
            f"--model: expected {TREE} with --method {name}, found {model.model}. Leave it out, or "
            f"choose one of the methods {', '.join(able)}."
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
_Sampler = TypeVar("_Sampler", bound=Params)


def block_for(subspace_size: int, column_nbytes: int) -> int:
    """Return the features of a block whose read is long enough, in subspaces of so many.

    The first power of two with reads long enough, or the last with blocks enough.
    """
    size, largest = 1, min(MOST_BLOCK, subspace_size // FEWEST_BLOCKS)
    while 2 * size <= largest and size * column_nbytes < LONG_READ_NBYTES:
        size *= 2
    return size


def with_draw_block(
    sampler: _Sampler, shape: TrainingShape, subspace_size: int, cap_nbytes: int
) -> _Sampler:
    """Return a sampler's options with the block for a store; 1 where the cap holds its codes.

    It depends on the sizes and the cap alone, so that a store has the same wherever it is.
    """
    column_nbytes = max(shape.n_rows, shape.n_stored_rows) * shape.code_nbytes
    if not isinstance(sampler, RandomSubspaceParams):
        return sampler
    if shape.n_features * column_nbytes <= cap_nbytes:
        return sampler
    return replace(sampler, draw_block=block_for(subspace_size, column_nbytes))
