"""What a package needs to add a part of its own: samplers, scores, learners, formats, executors.

The modules behind these names may move; the names stay here. Each is loaded when it is first asked
for, and no module of the package imports this one. ``docs/extending.md`` shows what they are for,
and :mod:`srs_ooc.testing` checks a part.
"""

from importlib import import_module
from typing import Any

_PUBLIC = {
    "Lease": "srs_ooc.base.budget",
    "BudgetError": "srs_ooc.base.errors",
    "InputError": "srs_ooc.base.errors",
    "RunError": "srs_ooc.base.errors",
    "SrsOocError": "srs_ooc.base.errors",
    "StoreError": "srs_ooc.base.errors",
    "UsageError": "srs_ooc.base.errors",
    "Choice": "srs_ooc.base.options",
    "Flag": "srs_ooc.base.options",
    "Number": "srs_ooc.base.options",
    "Option": "srs_ooc.base.options",
    "Params": "srs_ooc.base.options",
    "Share": "srs_ooc.base.options",
    "Text": "srs_ooc.base.options",
    "Whole": "srs_ooc.base.options",
    "option": "srs_ooc.base.options",
    "Candidates": "srs_ooc.base.records",
    "Criterion": "srs_ooc.base.records",
    "EBIC": "srs_ooc.base.records",
    "RIC": "srs_ooc.base.records",
    "Iteration": "srs_ooc.base.records",
    "Outcome": "srs_ooc.base.records",
    "Pages": "srs_ooc.base.records",
    "Probe": "srs_ooc.base.records",
    "RowSplit": "srs_ooc.base.records",
    "Saved": "srs_ooc.base.records",
    "State": "srs_ooc.base.records",
    "Stateful": "srs_ooc.base.records",
    "Step": "srs_ooc.base.records",
    "Subspace": "srs_ooc.base.records",
    "n_pages": "srs_ooc.base.records",
    "touch": "srs_ooc.base.records",
    "Purpose": "srs_ooc.base.seeds",
    "below": "srs_ooc.base.seeds",
    "derive": "srs_ooc.base.seeds",
    "derive_array": "srs_ooc.base.seeds",
    "key_of": "srs_ooc.base.seeds",
    "scale_below": "srs_ooc.base.seeds",
    "Block": "srs_ooc.trees.block",
    "Response": "srs_ooc.trees.response",
    "Judge": "srs_ooc.evidence.judges",
    "Tally": "srs_ooc.evidence.tally",
    "IMPORTANCE": "srs_ooc.samplers.base",
    "LOSS": "srs_ooc.samplers.base",
    "PREDICTIONS": "srs_ooc.samplers.base",
    "SENSITIVITY": "srs_ooc.samplers.base",
    "Ensemble": "srs_ooc.samplers.base",
    "Method": "srs_ooc.samplers.base",
    "Sampler": "srs_ooc.samplers.base",
    "SamplerContext": "srs_ooc.samplers.base",
    "method_of": "srs_ooc.samplers.base",
    "methods": "srs_ooc.samplers.base",
    "BLOCK_CELLS": "srs_ooc.samplers.column_scores",
    "BLOCK_COLUMNS": "srs_ooc.samplers.column_scores",
    "ColumnScore": "srs_ooc.samplers.column_scores",
    "integer_weights": "srs_ooc.samplers.column_scores",
    "Drawing": "srs_ooc.samplers.draws",
    "WeightedDrawing": "srs_ooc.samplers.draws",
    "draw_distinct": "srs_ooc.samplers.draws",
    "Folds": "srs_ooc.samplers.held_out",
    "HeldOutMethod": "srs_ooc.samplers.held_out",
    "folds_for": "srs_ooc.samplers.held_out",
    "make_folds": "srs_ooc.samplers.held_out",
    "Columns": "srs_ooc.learners.tree_learner",
    "Learner": "srs_ooc.learners.tree_learner",
    "Table": "srs_ooc.ingestion.formats",
    "TextCoder": "srs_ooc.ingestion.formats",
    "Executor": "srs_ooc.runs.engine",
}
__all__ = sorted(_PUBLIC)  # noqa: PLE0605 (a literal would repeat the names)


def __getattr__(name: str) -> Any:
    """Load what is asked for only then."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    """List what may be asked for, loaded or not."""
    return sorted({*globals(), *_PUBLIC})
