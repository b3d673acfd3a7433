"""Reading all of a store or a run, to find damage."""

from dataclasses import dataclass
from pathlib import Path

from srs_ooc.base.places import Place
from srs_ooc.compaction.records import verify_compactions
from srs_ooc.runs.ledger.records import FILE
from srs_ooc.runs.ledger.verify import verify_run
from srs_ooc.store.opening import open_store


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


def verify(path: Place) -> Verification:
    """Read every byte of a store or a run that any command could use, and compare.

    Raises
    ------
    StoreError, RunError
        Naming the first file that is damaged.
    """
    if isinstance(path, Path) and (path / FILE).is_file():
        checked = [*verify_run(path), *verify_compactions(path)]
        nbytes = sum(part.nbytes for part in checked)
        return Verification(path, True, {part.what: part.count for part in checked}, nbytes)
    found = open_store(path).verify()
    return Verification(path, False, found.files, found.nbytes, found.knows_places)
