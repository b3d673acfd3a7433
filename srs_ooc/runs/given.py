"""What a caller from Python gives, as a run's request takes it."""

import warnings
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import path_given
from srs_ooc.runs.cluster.orders import Cluster
from srs_ooc.runs.spec import declared

NamesOrFile = str | Path | Iterable[str] | None


def named_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by their full names, scalars of NumPy as Python's own.

    Raises
    ------
    UsageError
        If one is not known, or given under two names.
    """
    known = declared()
    short = {f.lstrip("-").replace("-", "_"): n for n, o in known.items() for f in o.flags}
    former = {option.former: name for name, option in known.items() if option.former}
    found: dict[str, Any] = {}
    for name, value in given.items():
        full = short.get(name) or former.get(name, name)
        if name in former and value is not None:
            text = f"{name} is now {full}; the old name goes with the next version."
            warnings.warn(text, FutureWarning, stacklevel=4)
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
    return found


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


def cluster_given(client: Any, worker_memory_mb: int) -> Cluster | None:
    """Return the workers of a client; None without one: nothing of Dask is imported then."""
    if client is None:
        return None
    from srs_ooc.runs.cluster.dask_clients import cluster_of

    return cluster_of(client, worker_memory_mb)
