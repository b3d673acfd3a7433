"""What is asked of a run, and what was expected of it."""

from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import flag_given, whole_given
from srs_ooc.base.urls import Place, Url
from srs_ooc.runs.cluster.orders import Cluster
from srs_ooc.runs.spec import Options

DEFAULT_MEMORY_MB = 512
DEFAULT_ITERATIONS = 10_000
UNTIL_STABLE = "until_stable"
"""Record of the ledger that says whether the screen ends once its ranking is stable."""


@dataclass(frozen=True)
class Request:
    """What a user asks of a run: its identity where given, and how to work on it.

    Attributes
    ----------
    options : Options
        Fields of the identity that were given.
    exclude_file, rows_file, validation_file : Path or None
        Files of feature names to leave out, of row ids to train on, and of those held out.
    exclude_missing : bool
        Leave out features with missing values.
    iterations : int or None
        Total to reach; None for what the run was last asked for.
    memory_mb : int or None
        Cap on the whole process in megabytes of 10**6 bytes; None for what it was last.
    threads : int or None
        Workers; None for the cores of this machine.
    until_stable : bool
        End the screen of a run with a verdict once its blind ranking is stable.
    save_trees : bool or None
        Keep every tree; settled when the run is created. None for what it is (at first: no).
    cluster : Cluster or None
        Workers elsewhere on which trees are grown; None for threads of this process.
    """

    options: Options = field(default_factory=Options)
    exclude_file: Path | None = None
    rows_file: Path | None = None
    exclude_missing: bool = False
    iterations: int | None = None
    memory_mb: int | None = None
    threads: int | None = None
    save_trees: bool | None = None
    until_stable: bool = False
    validation_file: Path | None = None
    cluster: Cluster | None = None

    def __post_init__(self) -> None:
        for name, low in (("iterations", 0), ("memory_mb", 1), ("threads", 1)):
            given = whole_given(getattr(self, name), f"--{name.replace('_', '-')}", low)
            object.__setattr__(self, name, given)
        for name in ("exclude_missing", "until_stable", "save_trees"):
            given = getattr(self, name)
            if given is not None or name != "save_trees":
                object.__setattr__(self, name, flag_given(given, f"--{name.replace('_', '-')}"))


@dataclass(frozen=True)
class Planned:
    """What was expected of a run when it was made; kept with it, and no part of its identity.

    Attributes
    ----------
    iterations : int
        T as advised.
    seconds_per_iteration : float
        A quick estimate then.
    reason : str
        Why this T.
    """

    iterations: int
    seconds_per_iteration: float
    reason: str


def fresh_run_path(store: Place) -> Path:
    """Return a folder for another run of ``store``: the default, or with -2, -3, ... if taken."""
    first = default_run_path(store)
    numbered = (first.with_name(f"{first.stem}-{number}.run") for number in count(2))
    return next(path for path in chain([first], numbered) if not path.exists())


def asked_run_path(store: Place, out: Path | None, *, fresh: bool) -> Path:
    """Return the folder of the run of a store that is asked for.

    Raises
    ------
    UsageError
        If a fresh one is asked for in a place that is named.
    """
    if fresh and out is not None:
        raise UsageError("expected --fresh or --out, found both. --out alone is enough.")
    if fresh:
        return fresh_run_path(store)
    return default_run_path(store) if out is None else out


def default_run_path(store: Place) -> Path:
    """Return the folder a run of ``store`` has unless another is given: its stem with ``.run``.

    It is beside the store, or, of one at a URL, in the current folder.
    """
    path = Path(store.name) if isinstance(store, Url) else store
    return path.with_suffix(".run")
