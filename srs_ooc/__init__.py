"""Feature selection for tables too wide for memory.

Sequential Random Subspace (Sutera et al., "Random Subspace with Trees for Feature Selection Under
Memory Constraints") over an on-disk column store, under a memory cap, in runs that can be killed
and resumed.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {"ingest": "srs_ooc.ingestion.api"}


def __getattr__(name: str) -> Any:
    """Load what is asked for only then: importing the package alone loads no part of it."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)
