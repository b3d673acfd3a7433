"""What is asked of a run, also by a caller from Python, and in which folder it is."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Self

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import checked, path_given, python_spelling
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place, Url
from srs_ooc.runs.jobs import Cluster
from srs_ooc.runs.run import Run
from srs_ooc.runs.spec import declared

DEFAULT_MEMORY_MB = 512
DEFAULT_ITERATIONS = 10_000
MOST_HALVES = 1000
"""Halves of the rows at most: shares of them are then known to within 0.03."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a user asks of a run: its identity where given, and how to work on it.

    Attributes
    ----------
    options : dict
        Options of the identity that were given, by name or by a short one; what is None was not.
        They are checked once, and read-only then.
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
    save_trees : bool or None
        Keep every tree; settled when the run is created. None for what it is (at first: no).
    cluster : Cluster or None
        Workers elsewhere on which trees are grown; None for threads of this process.
    halves : int or None
        Halves of the rows to repeat the search on, for its stability; None for what was asked last.
    target : str or None
        Name of a target that was added to the store; None for its own, or that of the run.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    exclude_file: Path | None = None
    rows_file: Path | None = None
    exclude_missing: bool = False
    iterations: int | None = None
    memory_mb: int | None = None
    threads: int | None = None
    save_trees: bool | None = None
    validation_file: Path | None = None
    cluster: Cluster | None = None
    halves: int | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.options, MappingProxyType):  # else they were looked at
            known = MappingProxyType(named_options(self.options))
            object.__setattr__(self, "options", known)
        names = ("iterations", "memory_mb", "threads", "halves", "exclude_missing", "save_trees")
        found = checked(**{name: getattr(self, name) for name in names})
        for name, value in zip(names, found, strict=True):
            object.__setattr__(self, name, value)
        if (self.halves or 0) % 2 or (self.halves or 0) > MOST_HALVES:
            raise UsageError(
                f"--halves: expected an even number up to {MOST_HALVES}, as halves come in pairs, "
                f"found {self.halves}. Give 20, which tell how stable a selection is."
            )

    @property
    def cap_mb(self) -> int:
        """Cap on the whole process in megabytes, where none was given before."""
        return DEFAULT_MEMORY_MB if self.memory_mb is None else self.memory_mb

    @property
    def cap_nbytes(self) -> int:
        """The same in bytes."""
        return self.cap_mb * MB

    def of_run(self, ledger: Run) -> Self:
        """Return this with what a run was last asked for, where nothing else is given."""
        kept: dict[str, Any] = {n: int(ledger.meta(n)) for n in ("memory_mb", "iterations")}
        kept |= {"halves": ledger.n_halves, "save_trees": ledger.saves_trees}
        return replace(self, **{name: kept[name] for name in kept if getattr(self, name) is None})

    def also(self, **options: Any) -> Self:
        """Return this with further options, or without those that are None."""
        return replace(self, options={**self.options, **options})


def named_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by their full names, scalars of NumPy as Python's own.

    Raises
    ------
    UsageError
        If one is not known, or given under two names, or the method is no name.
    """
    known = declared()
    short = {f.lstrip("-").replace("-", "_"): n for n, o in known.items() for f in o.flags}
    found: dict[str, Any] = {}
    for name, value in given.items():
        full = short.get(name, name)
        if full not in known:
            near = get_close_matches(name, [*known, *short], 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise UsageError(
                f"{name}: expected an option of a run, found another name.{hint} "
                "srs_ooc.options() lists them."
            )
        if value is not None:
            if getattr(value, "size", 1) != 1:
                raise UsageError(
                    f"{name}: expected one value, found {type(value).__name__} of {value.size}."
                )
            if full in found:
                raise UsageError(f"{name}: expected once, found {full} too. Leave one out.")
            found[full] = value.item() if hasattr(value, "item") else value
    if not isinstance(method := found.get("method", ""), str):
        raise UsageError(f"--method: expected a name, found {ascii(method)[:60]}.")
    return found


def asked_run_path(
    store: Place, out: Path | None, *, fresh: bool, target: str | None = None
) -> Path:
    """Return the folder of the run of a store that is asked for: ``out``, if it is given.

    Else the store's stem with ``.run``, beside it, or, of one at a URL, in the current folder; of a
    ``fresh`` run with -2, -3, ... if that is taken; of an added ``target`` with its name before.

    Raises
    ------
    UsageError
        If a fresh one is asked for in a place that is named.
    """
    if fresh and out is not None:
        raise UsageError("expected --fresh or --out, found both. --out alone is enough.")
    path = Path(store.name) if isinstance(store, Url) else store
    first = path.with_suffix(".run")
    if target is not None:
        name = re.sub(r"[^\w.+-]+", "_", target)[:80]
        first = first.with_name(f"{first.stem}-{name}.run")
    numbered = (first.with_name(f"{first.stem}-{number}.run") for number in count(2))
    if fresh:
        return next(path for path in chain([first], numbered) if not path.exists())
    return first if out is None else out


# What a caller from Python gives, as a request takes it.

NamesOrFile = str | Path | Iterable[str] | None


def names_file(given: NamesOrFile, scratch: Path, what: str) -> Path | None:
    """Return a file with a name a line, as the command line reads it.

    Raises
    ------
    UsageError
        If a name is not a text, or one that no line can hold.
    """
    if given is None or isinstance(given, str | Path):
        return None if given is None else path_given(given, what)
    if not isinstance(given, Iterable):
        raise UsageError(
            f"{what}: expected a path or names, found {ascii(given)[:60]}. Give a list of names."
        )
    with scratch.open("w", encoding="utf-8", newline="\n") as file:
        for name in given:
            if not isinstance(name, str) or name != name.strip() or len(name.splitlines()) != 1:
                raise UsageError(
                    f"{what}: expected a path or names, each a text of one line without blanks "
                    f"around it, found {ascii(name)[:80]} ({type(name).__name__})."
                )
            file.write(name + "\n")
    return scratch


@contextmanager
def asked_in_python(**names: NamesOrFile) -> Iterator[dict[str, Path | None]]:
    """Yield files of the names that a call from Python gives, by option, while it works.

    In the block errors spell options as Python does, and caps are on growth.

    Raises
    ------
    UsageError
        As :func:`names_file`.
    """
    with python_spelling(), growth_counted(), TemporaryDirectory(prefix="srs-ooc-") as scratch:
        yield {what: names_file(given, Path(scratch) / what, what) for what, given in names.items()}


def cluster_given(client: Any, worker_memory_mb: int) -> Cluster | None:
    """Return the workers of a client; None without one: nothing of Dask is imported then."""
    if client is None:
        return None
    from srs_ooc.runs.dask_cluster import cluster_of

    return cluster_of(client, worker_memory_mb)
