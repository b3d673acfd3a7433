"""What a package needs to add a part of its own: samplers, scores, learners, formats, executors.

The modules behind these names may move; the names stay here. No module of the core imports this
one; the methods of ``srs_ooc.methods`` import nothing else. ``docs/extending.md`` shows what the
names are for, and :mod:`srs_ooc.testing` checks a part.
"""

from srs_ooc.base.budget import Lease as Lease
from srs_ooc.base.errors import (
    BudgetError as BudgetError,
    InputError as InputError,
    RunError as RunError,
    SrsOocError as SrsOocError,
    StoreError as StoreError,
    UsageError as UsageError,
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
from srs_ooc.evidence.judges import Judge as Judge
from srs_ooc.evidence.tally import Tally as Tally
from srs_ooc.ingestion.formats import Table as Table, TextCoder as TextCoder
from srs_ooc.learners.tree_learner import Columns as Columns, Learner as Learner
from srs_ooc.runs.engine import Executor as Executor
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
from srs_ooc.trees.block import Block as Block
from srs_ooc.trees.response import Response as Response

__all__ = sorted(name for name in globals() if name[0] != "_")  # noqa: PLE0605 (each once)
