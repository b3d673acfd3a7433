"""Text tables with a feature a row and a sample a column, as expression matrices are published.

The lines are parsed once into a scratch file of float64, a feature after another, which is then
read like any table by columns.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.base.text import MB
from srs_ooc.ingestion.contents import ByteProgress
from srs_ooc.ingestion.forced_kinds import row_cells_of
from srs_ooc.ingestion.formats.csv import CsvStream, check_utf8, fed
from srs_ooc.ingestion.formats.csv_looks import has_row_names
from srs_ooc.ingestion.formats.faults import raise_fault
from srs_ooc.ingestion.formats.npy import read_lines
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.labels import item_blocks
from srs_ooc.ingestion.parse import CATEGORIES, IGNORED, ROW_ID, TEXTS, TableReader
from srs_ooc.ingestion.scratch import ScratchArray, TextSpool
from srs_ooc.ingestion.spool import anonymous_array
from srs_ooc.ingestion.texts import TextCoder

_PANEL_NBYTES = 3 * MB


class SpooledNames:
    """Names in a spool, as a collection."""

    def __init__(self, spool: TextSpool) -> None:
        self._spool = spool

    def __len__(self) -> int:
        return len(self._spool)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._spool.find(name) is not None

    def __iter__(self) -> Iterator[str]:
        for blob, ends in self._spool.blocks():
            start = 0
            for end in ends.tolist():
                yield blob[start:end].decode()
                start = end


class FeatureRows:
    """The features of a text table that holds one a row: a ``Table`` read by columns.

    Parameters
    ----------
    stream : CsvStream
        The file, its header read: what stands over the names, then the sample ids.
    sample_ids : TextSpool
        Its header.
    kept : bool (n_samples,)
        The samples to keep.
    scratch : Path
        Folder for the scratch file.
    names : TextSpool
        Where the names of the features go.
    tell : ByteProgress
        Told of the bytes read.
    max_category_nbytes : int
        Memory that the texts of categories may take.
    kinds : mapping of bytes to int, optional
        Kinds that are forced, by the names of the features.

    Attributes
    ----------
    pool : TextCoder
        The texts of features that hold texts.

    Raises
    ------
    InputError
        If a row is ragged, or a cell is no number.
    """

    by_rows = False
    narrow = False
    work_nbytes = 0

    def __init__(
        self,
        stream: CsvStream,
        sample_ids: TextSpool,
        kept: NDArray[np.bool_],
        scratch: Path,
        names: TextSpool,
        tell: ByteProgress,
        max_category_nbytes: int,
        kinds: Mapping[bytes, int] | None = None,
    ) -> None:
        n_samples, self._path = int(kept.sum()), scratch / "features"
        slots = np.full(len(sample_ids), IGNORED, np.int32)
        slots[0] = ROW_ID
        slots[1:][kept] = np.arange(n_samples, dtype=np.int32)
        reader = TableReader(
            slots,
            stream.dialect,
            place=stream.place,
            by_row=True,
            max_category_nbytes=max_category_nbytes,
            row_kinds=row_cells_of(kinds or {}),
        )
        self._lines = ScratchArray(scratch / "lines", np.int64)
        n_lines = max(1, _PANEL_NBYTES // (8 * n_samples))
        panel = anonymous_array((n_samples, n_lines))
        reader.set_panel(panel)
        is_text: list[NDArray[np.bool_]] = []
        with self._path.open("wb") as file:

            def panel_full() -> None:
                file.write(np.ascontiguousarray(panel[:, : reader.n_panel_rows].T).data)
                reader.set_panel(panel)

            def take_rows() -> None:
                texts = reader.take_texts(ROW_ID)
                check_utf8(texts, f"{stream.source}: the names of the features")
                names.append(texts)
                self._lines.append(reader.take_lines())
                is_text.append(np.isin(reader.take_row_cells(), (TEXTS, CATEGORIES)))

            for _ in fed(stream, reader, ahead=True):
                take_rows()
                if reader.panel_is_full:
                    panel_full()
                tell("reading", stream.pieces.n_used, stream.pieces.nbytes)
            if reader.n_panel_rows:
                panel_full()
        raise_fault(
            stream.source, reader.problem, len(sample_ids), sample_ids.describe, stream.dialect
        )
        if not reader.n_rows:
            raise InputError(f"{stream.source}: expected rows after the header, found none.")
        self.format = f"csv{stream.pieces.suffix}, features as rows"
        self.shape: tuple[int, int] = (n_samples, reader.n_rows)
        self.names = SpooledNames(names)
        self.text_columns: NDArray[np.bool_] | None = np.concatenate(is_text)
        self.pool: TextCoder | None = TextCoder(max_category_nbytes)
        self.pool.code(*reader.categories())

    def line_of(self, position: int) -> int:
        """Return the line of the file that a feature stands on."""
        return int(self._lines[position : position + 1][0])

    def read(self, positions: NDArray[np.intp], _: TextCoder | None) -> NDArray[np.float64]:
        """Return features, each a row of the result."""
        path = self._path
        return read_lines(path, np.dtype(np.float64), 0, self.shape[0], positions, str(path))

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the values of a feature in blocks."""
        values = self.read(np.array([position]), None)
        return item_blocks(values[0])


def reading_nbytes(n_samples: int) -> int:
    """Return the memory of reading, in bytes: a panel, its copy, the slots of the columns."""
    return 2 * max(_PANEL_NBYTES, 8 * n_samples) + 12 * n_samples


def open_stream(source: SourceFile, form: Any, sample_ids: TextSpool) -> CsvStream:
    """Open a file and read its header.

    Raises
    ------
    InputError
        If the header holds no sample ids.
    """
    row_names = has_row_names(source, form)
    stream = CsvStream(source, form, sample_ids.append, row_names=row_names)
    if len(sample_ids) < 2:
        raise InputError(
            f"{source}: expected a header of a first field and sample ids, found "
            f"{len(sample_ids)} field. Name the separator with --separator."
        )
    return stream
