"""Feature selection for tables too wide for memory.

Sequential Random Subspace (Sutera et al., "Random Subspace with Trees for Feature Selection Under
Memory Constraints") over an on-disk column store, under a memory cap, in runs that can be killed
and resumed.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "compact": "srs_ooc.api",
    "ingest": "srs_ooc.ingestion.ingest",
    "list_runs": "srs_ooc.results.standing",
    "network": "srs_ooc.methods.networks.faces",
    "open_run": "srs_ooc.api",
    "open_store": "srs_ooc.api",
    "open_zarr": "srs_ooc.store.opening",
    "options": "srs_ooc.api",
    "plan": "srs_ooc.api",
    "read": "srs_ooc.api",
    "resume": "srs_ooc.api",
    "run": "srs_ooc.api",
    "scores": "srs_ooc.methods.less.faces",
    "sensitivity": "srs_ooc.methods.rfest.faces",
    "synth": "srs_ooc.api",
    "theory": "srs_ooc.methods.theory.faces",
    "verify": "srs_ooc.api",
    "Result": "srs_ooc.results.result",
    "SRSClassifier": "srs_ooc.estimators",
    "SRSRegressor": "srs_ooc.estimators",
    "SRSSelector": "srs_ooc.estimators",
    "Store": "srs_ooc.store.store",
}
__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604 (a literal would repeat the names)


def __getattr__(name: str) -> Any:
    """Load what is asked for only then: importing the package alone loads no part of it."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    """List what may be asked for, loaded or not."""
    return sorted({*globals(), *_PUBLIC})
