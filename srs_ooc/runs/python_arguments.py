"""What a caller from Python gives, as a run's request takes it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import path_given, python_spelling
from srs_ooc.runs.jobs import Cluster

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
