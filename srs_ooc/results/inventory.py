"""Runs and stores of a folder, and removing a run."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from srs_ooc.base.errors import RunError, SrsOocError
from srs_ooc.results.status import status_of
from srs_ooc.runs.inputs import N_TARGETS, NETWORK
from srs_ooc.runs.ledger import Ledger, hold, is_held
from srs_ooc.runs.ledger_pages import FILE
from srs_ooc.store.store import Store

_DEEPEST = 3
"""Folders below the one asked for that are looked into."""


@dataclass(frozen=True)
class Found:
    """A run or a store; what does not apply, or cannot be read, is None.

    Attributes
    ----------
    path : str
        Where it is, from the folder that was asked for.
    kind : str
        ``run``, ``network`` (what is done of one) or ``store``.
    state : str
        Of a run or network: running, stopped or finished; of a store: complete; ``cannot be read``
        of any.
    iterations, iterations_asked, n_selected : int or None
        Of a run; nothing is selected before its verdict.
    store : str or None
        Of a run: the path of its store.
    n_rows, n_features : int or None
        Of a store.
    targets_done, n_targets : int or None
        Of a network; how many there are is not known of one begun by an earlier version.
    """

    path: str
    kind: str
    state: str
    iterations: int | None = None
    n_selected: int | None = None
    store: str | None = None
    n_rows: int | None = None
    n_features: int | None = None
    iterations_asked: int | None = None
    targets_done: int | None = None
    n_targets: int | None = None

    @property
    def done(self) -> str | None:
        """What is done of a run or a network, as text."""
        if self.iterations is not None:
            return f"{self.iterations:,} of {self.iterations_asked:,}"
        if self.targets_done is None:
            return None
        of = "" if self.n_targets is None else f" of {self.n_targets:,}"
        return f"{self.targets_done:,}{of} targets"


def list_runs(folder: str | Path = ".") -> list[Found]:
    """Return the runs and stores at or up to three folders below one; links are not followed.

    Raises
    ------
    RunError
        If there is no such folder.
    """
    top = Path(folder)
    if not top.is_dir():
        raise RunError(f"{folder}: expected a folder with runs and stores, found none.")
    return list(_walked(top))


def _walked(folder: Path) -> Iterator[Found]:
    for parent, children, files in os.walk(folder):
        children.sort()
        path = Path(parent)
        is_run = FILE in files
        is_store = not is_run and "zarr.json" in files and (path / "codes").is_dir()
        if is_run or is_store or len(path.relative_to(folder).parts) >= _DEEPEST:
            children.clear()
        if is_run:
            yield _run(path, str(path.relative_to(folder)))
        elif is_store:
            yield _store(path, str(path.relative_to(folder)))


def _run(path: Path, name: str) -> Found:
    try:
        ledger = Ledger(path, writable=False)
        try:
            if ledger.has_meta(NETWORK):
                return _network(ledger, name)
            status = status_of(ledger)
        finally:
            ledger.close()
    except SrsOocError:
        return Found(name, "run", "cannot be read")
    return Found(
        name,
        "run",
        status.state,
        status.iterations,
        None if status.is_provisional or status.ranks_only else status.n_selected,
        status.store,
        iterations_asked=status.iterations_asked,
    )


def _network(ledger: Ledger, name: str) -> Found:
    done = ledger.progress().iteration
    n_targets = ledger.meta(N_TARGETS) if ledger.has_meta(N_TARGETS) else None
    at_work = "running" if is_held(ledger.run) else "stopped"
    state = "finished" if done == n_targets else at_work
    return Found(name, "network", state, targets_done=done, n_targets=n_targets)


def _store(path: Path, name: str) -> Found:
    try:
        store = Store.open(path)
    except SrsOocError:
        return Found(name, "store", "cannot be read")
    return Found(name, "store", "complete", n_rows=store.n_rows, n_features=store.n_features)


def remove_run(run: Path) -> None:
    """Remove a run that no process is working on; its store stays.

    The folder is renamed before it is emptied: a run is there as it was, or gone.

    Raises
    ------
    RunError
        If there is no run, another process works on it, or it cannot be removed.
    """
    if run.is_symlink() or not (run / FILE).is_file():
        raise RunError(
            f"{run}: expected the folder of a run, found none. Nothing was removed. "
            "`srs-ooc runs` lists the runs of a folder."
        )
    lock = hold(run)
    try:
        going = run.with_name(f".{run.name}.removed-{uuid4().hex[:8]}")
        run.rename(going)
        shutil.rmtree(going)
    except OSError as error:
        raise RunError(
            f"{run}: could not be removed: {error.strerror or error}. Check the permissions of "
            "its folder and of the one it is in."
        ) from error
    finally:
        os.close(lock)
