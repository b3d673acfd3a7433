"""What every ingest shares: options, words for a disk that refuses."""

import contextlib
import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from srs_ooc.base.atomic import SCRATCH_SUFFIX
from srs_ooc.base.errors import InputError, StoreError
from srs_ooc.base.sizes import MB
from srs_ooc.ingestion.forced_kinds import ForcedKinds
from srs_ooc.ingestion.formats.dialect import TextForm

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class IngestOptions:
    """How to ingest a table.

    Attributes
    ----------
    target : str or None
        Column of the target; the last one if None.
    task : {'auto', 'classification', 'regression'}
        What the target is; found out if auto.
    missing_target : {'drop', 'refuse'}
        What becomes of rows without a target.
    kinds : ForcedKinds
        Kinds of feature that are not to be found out.
    weights, groups : str or None
        Columns of weights and of groups of rows.
    strata : sequence of str
        Columns whose tuples are the strata.
    row_ids : str or None
        Column of row ids; rows are numbered from 1 if None.
    ignore : sequence of str
        Columns to leave out.
    memory_nbytes : int
        Cap on the resident memory of the whole process.
    code_dtype : {'uint8', 'uint16'}
        Dtype of the codes.
    keep_values : bool
        Keep the values, in the narrowest float that loses nothing.
    text : TextForm
        How a text table is written.
    """

    target: str | None = None
    task: str = "auto"
    missing_target: str = "drop"
    kinds: ForcedKinds = field(default_factory=ForcedKinds)
    weights: str | None = None
    strata: Sequence[str] = ()
    groups: str | None = None
    row_ids: str | None = None
    ignore: Sequence[str] = ()
    memory_nbytes: int = 512 * MB
    code_dtype: str = "uint8"
    keep_values: bool = True
    text: TextForm = field(default_factory=TextForm)


def load_libraries() -> None:
    """Load what will be needed, so that the memory it takes is known when the plan is made.

    Large blocks of memory are given back to the system from then on when they are freed.
    """
    import srs_ooc.store.codec
    from srs_ooc.native import _native

    _native.return_large_blocks()
    assert srs_ooc.store.codec


@contextlib.contextmanager
def words_for_the_disk(target_path: Path) -> Iterator[None]:
    """Say in the user's words why the store at ``target_path`` cannot be written."""
    try:
        yield
    except FileExistsError:
        if target_path.exists():
            raise StoreError(
                f"{target_path}: expected a path that is free, found one in use. "
                "Choose another path, or remove it first."
            ) from None
        raise StoreError(
            f"{target_path}: another process is writing this store "
            f"({target_path.name}{SCRATCH_SUFFIX} is held). Wait for it, or choose another path."
        ) from None
    except OSError as error:
        if error.errno in _DISK_FULL:
            raise StoreError(
                f"{target_path}: the disk is full ({error.strerror}); nothing was left of the "
                "store. Free some space, or choose a path on another disk."
            ) from error
        named = Path(str(error.filename or target_path))
        scratch = target_path.with_name(target_path.name + SCRATCH_SUFFIX)
        if named not in (target_path, target_path.parent) and scratch not in (
            named,
            *named.parents,
        ):
            raise InputError(
                f"{error.filename}: reading failed: {error.strerror}. Leave the file in its place, "
                "readable, until the ingest has ended."
            ) from error
        raise StoreError(
            f"{target_path}: cannot be written: {error.strerror or error}. "
            "Choose a path in a folder that exists and can be written."
        ) from error
