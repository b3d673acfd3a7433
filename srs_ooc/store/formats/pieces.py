"""The bytes of a source file in bounded pieces, gunzipped where its magic bytes say so."""

import zlib
from collections.abc import Iterator
from pathlib import Path

from srs_ooc.errors import InputError

PIECE_NBYTES = 1 << 18

_GZIP = b"\x1f\x8b"
_OTHER_KINDS = {
    b"PK\x03\x04": "a zip archive",
    b"\xfd7zXZ\x00": "xz-compressed data",
    b"BZh": "bzip2-compressed data",
    b"\x28\xb5\x2f\xfd": "zstd-compressed data",
    b"PAR1": "a Parquet file",
    b"\x93NUMPY": "a NumPy file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


class PieceReader:
    """Reads a file once, from start to end.

    Parameters
    ----------
    path : Path
        A plain or gzip-compressed file.

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
    is_gzip : bool
        Whether it is compressed.

    Raises
    ------
    InputError
        If the file is not there, cannot be read, is empty, or is of another kind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.n_read = self.n_used = self.n_text = self.crc32 = 0
        try:
            self.nbytes = path.stat().st_size
            with path.open("rb") as file:
                start = file.read(8)
        except FileNotFoundError:
            raise InputError(f"{path}: no such file. Check the path.") from None
        except IsADirectoryError:
            raise InputError(
                f"{path}: expected a CSV file, found a folder. Name the file in it."
            ) from None
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}.") from error
        if not start:
            raise InputError(f"{path}: expected a header and rows, found an empty file.")
        for magic, kind in _OTHER_KINDS.items():
            if start.startswith(magic):
                raise InputError(
                    f"{path}: expected CSV as UTF-8 text, plain or gzip-compressed; found {kind}. "
                    "Convert it first."
                )
        self.is_gzip = start.startswith(_GZIP)

    def pieces(self) -> Iterator[bytes]:
        """Yield the text in pieces of at most :data:`PIECE_NBYTES`."""
        for text in self._gunzipped() if self.is_gzip else self._raw():
            self.n_text += len(text)
            yield text

    def _raw(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb", buffering=0) as file:
                while data := file.read(PIECE_NBYTES):
                    self.n_read += len(data)
                    self.n_used = self.n_read
                    self.crc32 = zlib.crc32(data, self.crc32)
                    yield data
        except OSError as error:
            raise InputError(
                f"{self.path}: reading failed after {self.n_read} bytes: {error.strerror}."
            ) from error

    def _gunzipped(self) -> Iterator[bytes]:
        decoder = zlib.decompressobj(wbits=31)
        try:
            for piece in self._raw():
                data = piece
                while data:
                    if decoder.eof:  # another member, or padding with zeros
                        data = data.lstrip(b"\0")
                        if not data:
                            break
                        decoder = zlib.decompressobj(wbits=31)
                    text = decoder.decompress(data, PIECE_NBYTES)
                    data = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
                    self.n_used = self.n_read - len(data)
                    if text:
                        yield text
            while not decoder.eof and (text := decoder.decompress(b"", PIECE_NBYTES)):
                yield text
        except zlib.error as error:
            raise self._damaged(str(error)) from error
        if not decoder.eof:
            raise self._damaged("it ends too early")

    def _damaged(self, reason: str) -> InputError:
        return InputError(
            f"{self.path}: expected gzip-compressed text, found damage after "
            f"{self.n_read} bytes ({reason}). Get the file again."
        )
