"""Reading all of a store or a run, to find damage."""

from dataclasses import dataclass
from pathlib import Path

from srs_ooc.base.budget import Budget
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.runs.ledger_pages import FILE
from srs_ooc.runs.verification import verify_compactions, verify_run
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store, Verified, verifying_nbytes

RUN_NBYTES = 8 * MB
"""Pieces of a ledger, of trees and of thresholds; a run is never held whole."""


@dataclass(frozen=True)
class Verification:
    """What was read of a store or a run, all of it as written.

    Attributes
    ----------
    path : Path or Url
        The store or run.
    is_run : bool
        Which of the two it is.
    files : dict of str to int
        What was read, by what it is: files of a store, records of a run.
    nbytes : int
        Bytes read.
    knows_places : bool
        Of a store, False in format 2: two chunks of values that have traded places are not found.
    """

    path: Place
    is_run: bool
    files: dict[str, int]
    nbytes: int
    knows_places: bool = True


def verify(path: Place, memory_nbytes: int = 512 * MB) -> Verification:
    """Read every byte of a store or a run that any command could use, and compare.

    Raises
    ------
    StoreError, RunError
        Naming the first file that is damaged.
    BudgetError
        If the cap cannot hold it.
    """
    if isinstance(path, Path) and (path / FILE).is_file():
        check_cap(memory_nbytes, "reading a run in pieces", RUN_NBYTES)
        checked = [*verify_run(path), *verify_compactions(path)]
        nbytes = sum(part.nbytes for part in checked)
        return Verification(path, True, {part.what: part.count for part in checked}, nbytes)
    found = verified_store(open_store(path), memory_nbytes)
    return Verification(path, False, found.files, found.nbytes, found.knows_places)


def verified_store(store: Store, memory_nbytes: int) -> Verified:
    """Read every byte of a store that is open, if a cap holds what that takes.

    Raises
    ------
    StoreError
        Naming the first file that is damaged.
    BudgetError
        If the cap cannot hold it.
    """
    check_cap(memory_nbytes, "reading a store in pieces", verifying_nbytes(store.manifest))
    return store.verify()


def check_cap(cap_nbytes: int, purpose: str, n_bytes: int) -> None:
    """Refuse a cap that cannot hold so much beside the program.

    Raises
    ------
    BudgetError
        With the smallest that can.
    """
    budget = Budget(cap_nbytes)
    budget.grant(purpose, n_bytes)
    budget.check()
