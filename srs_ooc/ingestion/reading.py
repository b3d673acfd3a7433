"""The seam between formats and the pipeline: one reading of a table, stage by stage."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.ingestion.categories import FeatureKinds
from srs_ooc.ingestion.contents import ByteProgress, StoredColumns
from srs_ooc.ingestion.memory import IngestMemory
from srs_ooc.ingestion.needs import Needs
from srs_ooc.ingestion.options import IngestOptions, SideColumns
from srs_ooc.ingestion.roles import Roles
from srs_ooc.ingestion.row_columns import KeptRows, Wording
from srs_ooc.ingestion.row_facts import RowColumns
from srs_ooc.ingestion.scratch import TextSpool


@dataclass(frozen=True)
class Workplace:
    """Where an ingest works.

    Attributes
    ----------
    folder : Path
        The store that is being made; its folder ``scratch`` is deleted in the end.
    stack : ExitStack
        Closes what is opened there.
    tell : callable
        Told of the bytes read and written.
    """

    folder: Path
    stack: contextlib.ExitStack
    tell: ByteProgress

    @property
    def scratch(self) -> Path:
        """Folder for what is given back at the end."""
        return self.folder / "scratch"


@dataclass(frozen=True)
class Features:
    """The features of a table once they are read.

    Attributes
    ----------
    columns : StoredColumns
        All rows of them.
    fits_float32 : bool
        Whether float32 holds every value.
    kinds : FeatureKinds or None
        What is known of their kinds, if anything is.
    held_nbytes : int
        Memory that is held until they are written.
    """

    columns: StoredColumns
    fits_float32: bool
    kinds: FeatureKinds | None = None
    held_nbytes: int = 0


class Reading(Protocol):
    """A table that is being read, its methods called once each in this order.

    Attributes
    ----------
    source : object
        Its name in messages.
    options : IngestOptions
        As settled by what the table says of itself.
    side : SideColumns
        What stands beside it.
    wording : Wording
        How cells of row columns are read, and where they stand.
    """

    source: Any
    options: IngestOptions
    side: SideColumns
    wording: Wording

    def read_names(self, header: TextSpool) -> dict[str, Any]:
        """Append the names of the columns; return what was inferred, for the manifest."""
        ...

    def needs(self, roles: Roles) -> Needs:
        """Return what all of the ingest takes of memory."""
        ...

    def share_memory(self, roles: Roles, needs: Needs) -> IngestMemory:
        """Refuse a disk without room; else say what may be used of the memory."""
        ...

    def read_rows(
        self, roles: Roles, forced: NDArray[np.uint8], memory: IngestMemory, rows: RowColumns
    ) -> None:
        """Read all row columns, and the features as well where that is one pass."""
        ...

    def features(self, kept: KeptRows) -> Features:
        """Return the features, all read or ready to be."""
        ...

    def origin(self) -> dict[str, Any]:
        """Return where the table came from, for the manifest."""
        ...

    def check_unchanged(self) -> None:
        """Refuse a file that was written to meanwhile."""
        ...
