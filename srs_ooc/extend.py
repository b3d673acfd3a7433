"""What a package needs to add a part of its own: samplers, scores, learners, formats, executors.

The modules behind these names may move; the names stay here. No module of the core imports this
one; the methods of ``srs_ooc.methods`` import nothing else. ``docs/extending.md`` shows what the
names are for, and :mod:`srs_ooc.testing` checks a part.
"""

from srs_ooc.base.budget import (
    PROCESS_NBYTES as PROCESS_NBYTES,
    Budget as Budget,
    Lease as Lease,
    check_stages as check_stages,
    n_cores as n_cores,
    process_nbytes as process_nbytes,
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
from srs_ooc.base.files import published_file as published_file
from srs_ooc.base.frames import (
    arrow_numbers as arrow_numbers,
    arrow_texts as arrow_texts,
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
    exact_share as exact_share,
    option as option,
)
from srs_ooc.base.records import (
    EBIC as EBIC,
    RIC as RIC,
    Candidates as Candidates,
    Criterion as Criterion,
    Iteration as Iteration,
    Outcome as Outcome,
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
    counted as counted,
    describe_seconds as describe_seconds,
    no_formula as no_formula,
)
from srs_ooc.cli.output import echo_json as echo_json, say as say
from srs_ooc.cli.run_options import option_of as option_of, store_command as store_command
from srs_ooc.evidence.judges import Judge as Judge, ProbeJudge as ProbeJudge
from srs_ooc.evidence.tally import Tally as Tally, mean_importance as mean_importance
from srs_ooc.ingestion.formats import Table as Table, TextCoder as TextCoder
from srs_ooc.learners.tree_learner import (
    PROBE_FEATURE as PROBE_FEATURE,
    Columns as Columns,
    Learner as Learner,
    TreeLearner as TreeLearner,
    settle_max_features as settle_max_features,
)
from srs_ooc.results.live import (
    Progress as Progress,
    RunProgress as RunProgress,
    interruptible as interruptible,
    watched as watched,
)
from srs_ooc.runs.batches import (
    parallel_map as parallel_map,
    threads as threads,
)
from srs_ooc.runs.engine import (
    ColumnSource as ColumnSource,
    Executor as Executor,
    commit_due as commit_due,
    pool_of as pool_of,
    taken as taken,
)
from srs_ooc.runs.inputs import InputFiles as InputFiles, SideFile as SideFile, digest as digest
from srs_ooc.runs.jobs import (
    Batch as Batch,
    Cluster as Cluster,
    Job as Job,
    PartWatch as PartWatch,
    Work as Work,
    WorkerStore as WorkerStore,
)
from srs_ooc.runs.ledger import Ledger as Ledger, damaged_run as damaged_run
from srs_ooc.runs.resources import (
    DEFAULT_WORKER_MEMORY_MB as DEFAULT_WORKER_MEMORY_MB,
    categorical_features as categorical_features,
)
from srs_ooc.runs.run import NETWORK as NETWORK, N_TARGETS as N_TARGETS
from srs_ooc.runs.run_memory import (
    LEDGER_NBYTES as LEDGER_NBYTES,
    ORDERS_NBYTES as ORDERS_NBYTES,
    TrainingShape as TrainingShape,
)
from srs_ooc.runs.settling import (
    DEFAULT_MEMORY_MB as DEFAULT_MEMORY_MB,
    NamesOrFile as NamesOrFile,
    asked_in_python as asked_in_python,
    cluster_given as cluster_given,
)
from srs_ooc.samplers.base import (
    IMPORTANCE as IMPORTANCE,
    LOSS as LOSS,
    PREDICTIONS as PREDICTIONS,
    SENSITIVITY as SENSITIVITY,
    Ensemble as Ensemble,
    Method as Method,
    Sampler as Sampler,
    SamplerContext as SamplerContext,
    method_of as method_of,
    methods as methods,
)
from srs_ooc.samplers.column_scores import (
    BLOCK_CELLS as BLOCK_CELLS,
    BLOCK_COLUMNS as BLOCK_COLUMNS,
    ColumnScore as ColumnScore,
    integer_weights as integer_weights,
)
from srs_ooc.samplers.draws import (
    Drawing as Drawing,
    WeightedDrawing as WeightedDrawing,
    draw_distinct as draw_distinct,
)
from srs_ooc.samplers.held_out import (
    Folds as Folds,
    HeldOutMethod as HeldOutMethod,
    folds_for as folds_for,
    make_folds as make_folds,
)
from srs_ooc.samplers.srs import SequentialRandomSubspace as SequentialRandomSubspace
from srs_ooc.store.manifest import CATEGORICAL as CATEGORICAL, CONSTANT as CONSTANT
from srs_ooc.store.opening import StoreOrPath as StoreOrPath, store_of as store_of
from srs_ooc.store.store import Store as Store
from srs_ooc.store.values import n_values_of as n_values_of
from srs_ooc.trees.block import (
    Block as Block,
    block_nbytes as block_nbytes,
    record_nbytes as record_nbytes,
    rows_nbytes as rows_nbytes,
    scratch_nbytes as scratch_nbytes,
    values_nbytes as values_nbytes,
)
from srs_ooc.trees.kernel import grow_tree as grow_tree
from srs_ooc.trees.response import (
    IMPORTANCE_BITS as IMPORTANCE_BITS,
    THRESHOLDS as THRESHOLDS,
    Response as Response,
    TrainingRows as TrainingRows,
    TreeLimits as TreeLimits,
)

__all__ = sorted(name for name in globals() if name[0] != "_")  # noqa: PLE0605 (each once)
