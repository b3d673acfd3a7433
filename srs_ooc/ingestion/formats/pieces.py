"""The bytes of a source file in bounded pieces, decompressed where its magic bytes say so."""

import zlib
from collections.abc import Iterator

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats.decoders import (
    ERRORS,
    PIECE_NBYTES,
    START_NBYTES,
    decoded,
    find_compression,
)
from srs_ooc.ingestion.formats.source import SourceFile

_OTHER_KINDS = {
    b"PK\x03\x04": "a zip archive",
    b"\xd0\xcf\x11\xe0": "an older file of Office",
    b"PAR1": "a Parquet file",
    b"\x93NUMPY": "a NumPy file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}

_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")

N_DECODERS = 2
"""Readers at work at once: one looks at the file while another waits at its first row."""


class PieceReader:
    """Reads a file once, from start to end.

    Parameters
    ----------
    source : SourceFile
        A file, plain or compressed with gzip, xz, bzip2 or zstd.

    Attributes
    ----------
    nbytes : int
        Size of the file.
    n_read : int
        Bytes of the file read so far.
    n_used : int
        Those of them that became text so far.
    n_text : int
        Bytes of text so far.
    crc32 : int
        CRC-32 of the bytes of the file read so far.
    compression : Compression or None
        How it is compressed.

    Raises
    ------
    InputError
        If the file is not there, cannot be read, is empty, or is of another kind.
    """

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.n_read = self.n_used = self.n_text = self.crc32 = 0
        try:
            self.nbytes = source.path.stat().st_size
            with source.path.open("rb") as file:
                start = file.read(START_NBYTES)
        except FileNotFoundError:
            raise InputError(f"{source}: no such file. Check the path.") from None
        except IsADirectoryError:
            raise InputError(
                f"{source}: expected a text table, found a folder. Name the file in it."
            ) from None
        except OSError as error:
            raise InputError(f"{source}: cannot be read: {error.strerror}.") from error
        if not start:
            raise InputError(f"{source}: expected a header and rows, found an empty file.")
        for magic, kind in _OTHER_KINDS.items():
            if start.startswith(magic):
                raise InputError(
                    f"{source}: expected a table as UTF-8 text, plain or compressed with gzip, xz, "
                    f"bzip2 or zstd; found {_kind_of(source, kind)}"
                )
        self.compression = find_compression(start)

    @property
    def suffix(self) -> str:
        """How the file is compressed, as the end of a format's name: ``.gz``, or nothing."""
        return "" if self.compression is None else f".{self.compression.kind}"

    @property
    def decoder_nbytes(self) -> int:
        """Memory that decompressing will take."""
        return 0 if self.compression is None else self.compression.nbytes

    def pieces(self) -> Iterator[bytes]:
        """Yield the text in pieces of at most :data:`PIECE_NBYTES`."""
        for text in self._raw() if self.compression is None else self._decoded():
            self.n_text += len(text)
            yield text

    def _raw(self) -> Iterator[bytes]:
        try:
            with self.source.path.open("rb", buffering=0) as file:
                while data := file.read(PIECE_NBYTES):
                    self.n_read += len(data)
                    self.n_used = self.n_read
                    self.crc32 = zlib.crc32(data, self.crc32)
                    yield data
        except OSError as error:
            raise InputError(
                f"{self.source}: reading failed after {self.n_read} bytes: {error.strerror}."
            ) from error

    def _decoded(self) -> Iterator[bytes]:
        assert self.compression is not None
        texts = decoded(self.compression, self._raw(), self._note_unused)
        while True:
            try:
                text = next(texts, None)
            except ERRORS as error:
                raise self._damaged(str(error)) from error
            if text is None:
                return
            yield text

    def _note_unused(self, n_unused: int) -> None:
        self.n_used = self.n_read - n_unused

    def _damaged(self, reason: str) -> InputError:
        names = {"gz": "gzip", "xz": "xz", "bz2": "bzip2", "zst": "zstd"}
        assert self.compression is not None
        return InputError(
            f"{self.source}: expected {names[self.compression.kind]}-compressed text, found damage "
            f"after {self.n_read} bytes ({reason}). Get the file again."
        )


def _kind_of(source: SourceFile, kind: str) -> str:
    """Return what a file was found to be, and what to do with it."""
    if source.path.suffix.lower() in _WORKBOOKS:
        return "a workbook. Save the sheet that holds the table as CSV (UTF-8) and ingest that."
    return f"{kind}. Convert it first."
