"""What a package needs to add a part of its own: samplers, scores, learners, formats, executors.

The modules behind these names may move; the names stay here. No module of the core imports this
one; the methods of ``srs_ooc.methods`` import nothing else. ``docs/extending.md`` shows what the
names are for, and :mod:`srs_ooc.testing` checks a part.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from srs_ooc.base.arrays import (
    Bools as Bools,
    Bytes as Bytes,
    Floats as Floats,
    Floats32 as Floats32,
    Indices as Indices,
    Integers as Integers,
    Ints as Ints,
    Ints32 as Ints32,
    Reals as Reals,
    Uints as Uints,
    Uints32 as Uints32,
)
from srs_ooc.base.budget import (
    Budget as Budget,
    Lease as Lease,
    PROCESS_NBYTES as PROCESS_NBYTES,
    check_stages as check_stages,
    n_cores as n_cores,
    peak_resident_nbytes as peak_resident_nbytes,
    process_nbytes as process_nbytes,
    resident_nbytes as resident_nbytes,
    total_nbytes as total_nbytes,
)
from srs_ooc.base.errors import (
    BudgetError as BudgetError,
    InputError as InputError,
    RunError as RunError,
    SrsOocError as SrsOocError,
    StoppedError as StoppedError,
    StoreError as StoreError,
    UsageError as UsageError,
)
from srs_ooc.base.files import (
    check_free as check_free,
    explained as explained,
    published_file as published_file,
)
from srs_ooc.base.frames import (
    arrow_numbers as arrow_numbers,
    arrow_texts as arrow_texts,
    check_kind as check_kind,
    frame_of as frame_of,
    library as library,
)
from srs_ooc.base.options import (
    Choice as Choice,
    Flag as Flag,
    Number as Number,
    Option as Option,
    Params as Params,
    Share as Share,
    Text as Text,
    Whole as Whole,
    WordOrFile as WordOrFile,
    check_known as check_known,
    exact_share as exact_share,
    flag_of as flag_of,
    option as option,
    part_at as part_at,
    python_spelling as python_spelling,
    whole_given as whole_given,
)
from srs_ooc.base.records import (
    Candidates as Candidates,
    Criterion as Criterion,
    Iteration as Iteration,
    Outcome as Outcome,
    PAGE_ITEMS as PAGE_ITEMS,
    Pages as Pages,
    Probe as Probe,
    RowSplit as RowSplit,
    Saved as Saved,
    State as State,
    Stateful as Stateful,
    Step as Step,
    Subspace as Subspace,
    Watch as Watch,
    n_pages as n_pages,
    touch as touch,
)
from srs_ooc.base.seeds import (
    Purpose as Purpose,
    below as below,
    derive as derive,
    derive_array as derive_array,
    key_of as key_of,
    scale_below as scale_below,
)
from srs_ooc.base.text import (
    LONG_SECONDS as LONG_SECONDS,
    MB as MB,
    ceil_div as ceil_div,
    counted as counted,
    describe_seconds as describe_seconds,
    no_formula as no_formula,
)
from srs_ooc.base.urls import Place as Place
from srs_ooc.cli.output import (
    Brief as Brief,
    COUNT as COUNT,
    FILE as FILE,
    MEMORY_OPTION as MEMORY_OPTION,
    PROGRESS_OPTIONS as PROGRESS_OPTIONS,
    RECORD_OPTIONS as RECORD_OPTIONS,
    RUN_STORE_OPTION as RUN_STORE_OPTION,
    STORE as STORE,
    THREADS_OPTION as THREADS_OPTION,
    echo_json as echo_json,
    record_options as record_options,
    say as say,
    stream_json as stream_json,
    whole as whole,
    with_options as with_options,
    write_records as write_records,
)
from srs_ooc.cli.run_options import (
    TABLE_OPTIONS as TABLE_OPTIONS,
    option_of as option_of,
    store_command as store_command,
)
from srs_ooc.evidence.exchangeability import deal_folds as deal_folds
from srs_ooc.evidence.judges import Judge as Judge, ProbeJudge as ProbeJudge
from srs_ooc.evidence.tally import (
    ModelScores as ModelScores,
    Tally as Tally,
    largest as largest,
    mean_importance as mean_importance,
)
from srs_ooc.ingestion.formats import Table as Table, TextCoder as TextCoder
from srs_ooc.learners.tree_learner import (
    ALIASES as ALIASES,
    Columns as Columns,
    Learner as Learner,
    PROBE_FEATURE as PROBE_FEATURE,
    TREE as TREE,
    TreeLearner as TreeLearner,
    TreeParams as TreeParams,
    Trial as Trial,
    path_of as path_of,
    settle_max_features as settle_max_features,
    tree_key as tree_key,
)
from srs_ooc.native import numerics as numerics
from srs_ooc.results.live import (
    Progress as Progress,
    RunProgress as RunProgress,
    interruptible as interruptible,
    shown as shown,
    watched as watched,
)
from srs_ooc.runs.batches import parallel_map as parallel_map, threads as threads
from srs_ooc.runs.engine import (
    ColumnSource as ColumnSource,
    Executor as Executor,
    commit_due as commit_due,
    pool_of as pool_of,
    taken as taken,
)
from srs_ooc.runs.inputs import (
    InputFiles as InputFiles,
    Inputs as Inputs,
    SideFile as SideFile,
    digest as digest,
)
from srs_ooc.runs.jobs import (
    Batch as Batch,
    Cluster as Cluster,
    Job as Job,
    PartWatch as PartWatch,
    Work as Work,
    WorkerStore as WorkerStore,
)
from srs_ooc.runs.ledger import Ledger as Ledger, damaged_run as damaged_run
from srs_ooc.runs.plan import Plan as Plan
from srs_ooc.runs.request import (
    DEFAULT_MEMORY_MB as DEFAULT_MEMORY_MB,
    NamesOrFile as NamesOrFile,
    Request as Request,
    asked_in_python as asked_in_python,
    cluster_given as cluster_given,
)
from srs_ooc.runs.resources import (
    DEFAULT_WORKER_MEMORY_MB as DEFAULT_WORKER_MEMORY_MB,
    categorical_features as categorical_features,
)
from srs_ooc.runs.run import NETWORK as NETWORK, N_TARGETS as N_TARGETS, Run as Run
from srs_ooc.runs.run_memory import (
    LEDGER_NBYTES as LEDGER_NBYTES,
    ORDERS_NBYTES as ORDERS_NBYTES,
    TrainingShape as TrainingShape,
)
from srs_ooc.runs.training import training_response as training_response
from srs_ooc.runs.weights import Scoring as Scoring
from srs_ooc.samplers.base import (
    Ensemble as Ensemble,
    IMPORTANCE as IMPORTANCE,
    LOSS as LOSS,
    Method as Method,
    PREDICTIONS as PREDICTIONS,
    SENSITIVITY as SENSITIVITY,
    Sampler as Sampler,
    SamplerContext as SamplerContext,
    method_of as method_of,
    methods as methods,
)
from srs_ooc.samplers.column_scores import (
    BLOCK_CELLS as BLOCK_CELLS,
    BLOCK_COLUMNS as BLOCK_COLUMNS,
    CODES as CODES,
    ColumnScore as ColumnScore,
    ScoredColumns as ScoredColumns,
    VALUES as VALUES,
    block_columns as block_columns,
    integer_weights as integer_weights,
)
from srs_ooc.samplers.draws import (
    Drawing as Drawing,
    WeightedDrawing as WeightedDrawing,
    draw_distinct as draw_distinct,
    draw_subsets as draw_subsets,
)
from srs_ooc.samplers.srs import (
    SequentialRandomSubspace as SequentialRandomSubspace,
    sampler_by as sampler_by,
)
from srs_ooc.store.manifest import CATEGORICAL as CATEGORICAL, CONSTANT as CONSTANT
from srs_ooc.store.opening import StoreOrPath as StoreOrPath, store_of as store_of
from srs_ooc.store.store import ColumnStore as ColumnStore, Scan as Scan, Store as Store
from srs_ooc.store.values import n_values_of as n_values_of
from srs_ooc.trees import saved as saved
from srs_ooc.trees.block import (
    Block as Block,
    WORK_NBYTES as WORK_NBYTES,
    block_nbytes as block_nbytes,
    effects_nbytes as effects_nbytes,
    record_nbytes as record_nbytes,
    rows_nbytes as rows_nbytes,
    scratch_nbytes as scratch_nbytes,
    values_nbytes as values_nbytes,
)
from srs_ooc.trees.kernel import grow_tree as grow_tree, judge_in_turn as judge_in_turn
from srs_ooc.trees.response import (
    IMPORTANCE_BITS as IMPORTANCE_BITS,
    Response as Response,
    THRESHOLDS as THRESHOLDS,
    TrainingRows as TrainingRows,
    TreeLimits as TreeLimits,
    times_drawn as times_drawn,
)

_WHEN_ASKED = {
    "NODE_NBYTES": "srs_ooc.ensemble.prediction",
    "READING_MB": "srs_ooc.results.result",
    "Result": "srs_ooc.results.result",
    "SPLIT_NBYTES": "srs_ooc.ensemble.prediction",
    "TreeReader": "srs_ooc.runs.run_trees",
    "folder_of": "srs_ooc.api",
    "most_ensemble_nbytes": "srs_ooc.ensemble.prediction",
}
if TYPE_CHECKING:
    from srs_ooc.api import folder_of as folder_of
    from srs_ooc.ensemble.prediction import (
        NODE_NBYTES as NODE_NBYTES,
        SPLIT_NBYTES as SPLIT_NBYTES,
        most_ensemble_nbytes as most_ensemble_nbytes,
    )
    from srs_ooc.results.result import READING_MB as READING_MB, Result as Result
    from srs_ooc.runs.run_trees import TreeReader as TreeReader
else:

    def __getattr__(name: str) -> Any:
        """Load what reads finished runs when it is asked for: `plan` and `run` do without."""
        if name not in _WHEN_ASKED:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_WHEN_ASKED[name]), name)


_NOT_PARTS = ("Any", "TYPE_CHECKING", "import_module")
__all__ = sorted(  # noqa: PLE0605 (each once)
    {name for name in globals() if name[0] != "_" and name not in _NOT_PARTS} | {*_WHEN_ASKED}
)
