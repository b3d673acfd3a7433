"""What a package needs to add a part of its own: samplers, scores, learners, formats, executors.

The modules behind these names may move; the names stay here. No module of the core imports this
one; the methods of ``srs_ooc.methods`` import nothing else. ``docs/extending.md`` shows what the
names are for, and :mod:`srs_ooc.testing` checks a part.
"""

from srs_ooc.base.budget import (
    Lease as Lease,
    check_stages as check_stages,
    process_nbytes as process_nbytes,
)
from srs_ooc.base.errors import (
    BudgetError as BudgetError,
    InputError as InputError,
    RunError as RunError,
    SrsOocError as SrsOocError,
    StoreError as StoreError,
    UsageError as UsageError,
)
from srs_ooc.base.files import (
    check_free as check_free,
    explained as explained,
    published_file as published_file,
)
from srs_ooc.base.frames import check_kind as check_kind, frame_of as frame_of
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
    option as option,
    whole_given as whole_given,
)
from srs_ooc.base.records import (
    PAGE_ITEMS as PAGE_ITEMS,
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
from srs_ooc.base.text import MB as MB, ceil_div as ceil_div, counted as counted
from srs_ooc.cli.output import (
    FILE as FILE,
    MEMORY_OPTION as MEMORY_OPTION,
    PROGRESS_OPTIONS as PROGRESS_OPTIONS,
    RECORD_OPTIONS as RECORD_OPTIONS,
    STORE as STORE,
    echo_json as echo_json,
    say as say,
    with_options as with_options,
    write_records as write_records,
)
from srs_ooc.cli.run_options import TABLE_OPTIONS as TABLE_OPTIONS, option_of as option_of
from srs_ooc.evidence.judges import Judge as Judge
from srs_ooc.evidence.tally import (
    Tally as Tally,
    largest as largest,
    mean_importance as mean_importance,
)
from srs_ooc.ingestion.formats import Table as Table, TextCoder as TextCoder
from srs_ooc.learners.models import path_of as path_of
from srs_ooc.learners.tree_learner import Columns as Columns, Learner as Learner
from srs_ooc.native import numerics as numerics
from srs_ooc.results.live import (
    Progress as Progress,
    RunProgress as RunProgress,
    interruptible as interruptible,
)
from srs_ooc.runs.engine import Executor as Executor
from srs_ooc.runs.inputs import InputFiles as InputFiles, Inputs as Inputs
from srs_ooc.runs.resources import categorical_features as categorical_features
from srs_ooc.runs.settling import (
    NamesOrFile as NamesOrFile,
    Request as Request,
    asked_in_python as asked_in_python,
)
from srs_ooc.runs.spec import Options as Options
from srs_ooc.runs.weights import Scoring as Scoring
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
    CODES as CODES,
    VALUES as VALUES,
    ColumnScore as ColumnScore,
    ScoredColumns as ScoredColumns,
    block_columns as block_columns,
    integer_weights as integer_weights,
)
from srs_ooc.samplers.draws import (
    Drawing as Drawing,
    WeightedDrawing as WeightedDrawing,
    draw_distinct as draw_distinct,
    draw_subsets as draw_subsets,
)
from srs_ooc.samplers.srs import sampler_by as sampler_by
from srs_ooc.store.opening import StoreOrPath as StoreOrPath, store_of as store_of
from srs_ooc.store.store import Scan as Scan, Store as Store
from srs_ooc.trees.block import Block as Block
from srs_ooc.trees.response import Response as Response

__all__ = sorted(name for name in globals() if name[0] != "_")  # noqa: PLE0605 (each once)
