"""Where a table is read from, and its bytes in bounded pieces, decompressed if need be.

A source is a file under its own name, or a scratch copy of standard input.
"""

import bz2
import codecs
import contextlib
import importlib
import lzma
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Bytes
from srs_ooc.base.errors import InputError, UsageError, unfit
from srs_ooc.base.text import MB, describe_nbytes
from srs_ooc.ingestion.arff import Arff
from srs_ooc.ingestion.formats import FORMATS, PACKED, TEXT

# Compressed bytes to text in bounded pieces: gzip, xz, bzip2 and zstd, known by magic bytes.
#
# Each is fed bytes and asked for at most so many back, whatever the bytes expand to.

READ_NBYTES, START_NBYTES = 1 << 18, 4096
"""A file is read in pieces of so many bytes; so much of its beginning is looked at first."""
MAGIC = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zst"}
N_DECODERS = 2
"""At a time: one looks at a file while another waits at its first row."""


class _Gzip:
    """zlib's decompressor with the interface of the others."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(wbits=31)
        self.eof, self.needs_input, self.unused_data = False, True, b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        text = self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)
        self.eof, self.unused_data = self._decoder.eof, self._decoder.unused_data
        self.needs_input = not self._decoder.unconsumed_tail and len(text) < max_length
        return text


def _zstd(window: int) -> "Callable[[], Decoder]":
    log = (max(window, 1 << 10) - 1).bit_length()
    for module in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ImportError):
            library: Any = importlib.import_module(module)
            options = {library.DecompressionParameter.window_log_max: log}
            return lambda: library.ZstdDecompressor(options=options)
    raise UsageError(
        "reading zstd-compressed tables takes Python 3.14 or the package backports.zstd, found "
        "neither. Run `pip install 'srs-ooc[zst]'`, or decompress the table first, or pipe it in: "
        "`zstd -dc TABLE | srs-ooc ingest - STORE`."
    )


Decoder = _Gzip | bz2.BZ2Decompressor | lzma.LZMADecompressor
"""Of one member, stream or frame; zstd's has the same interface."""


def decoder_of(start: bytes) -> tuple[str, int, Callable[[], Decoder]] | None:
    """Tell from the first bytes of a file how it is compressed; None if it is not.

    Returns
    -------
    kind : str
        ``gz``, ``xz``, ``bz2`` or ``zst``.
    nbytes : int
        Memory a decoder takes at most.
    new_decoder : callable
        Makes a decoder for one member, stream or frame.
    """
    kind = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)
    if kind is None:
        return None
    if kind == "xz":
        nbytes = _xz_nbytes(start)
        return kind, nbytes, lambda: lzma.LZMADecompressor(memlimit=nbytes)
    if kind == "zst":
        window = max(_zst_window(start), 8 << 20)  # later frames may have the usual one
        return kind, window + 10 * MB, _zstd(window)
    return (kind, MB // 10, _Gzip) if kind == "gz" else (kind, 8 * MB, bz2.BZ2Decompressor)


def _xz_nbytes(start: bytes) -> int:
    """Return the memory with which the decoder agrees to begin, 20 MB or more."""
    for power in range(24, 33):
        limit = (1 << power) + (1 << 22)  # a dictionary, and the rest
        try:
            lzma.LZMADecompressor(memlimit=limit).decompress(start, 1)
        except lzma.LZMAError as error:
            if "limit" in str(error).lower():
                continue
        return limit
    return 1 << 33


def _zst_window(start: bytes) -> int:
    """Return the window of the first frame (RFC 8878, section 3.1.1.1)."""
    if len(start) < 6:
        return 1 << 10
    descriptor = start[4]
    if not descriptor & 0x20:
        base = 1 << (10 + (start[5] >> 3))
        return base + base // 8 * (start[5] & 7)
    at = 5 + (0, 1, 2, 4)[descriptor & 3]
    n_bytes = (1, 2, 4, 8)[descriptor >> 6]
    size = int.from_bytes(start[at : at + n_bytes], "little")
    return size + 256 if n_bytes == 2 else size


def decoded(
    new_decoder: Callable[[], Decoder], pieces: Iterator[bytes]
) -> Iterator[tuple[bytes, int]]:
    """Yield the text of compressed pieces, in pieces of at most :data:`READ_NBYTES`.

    With each comes how many bytes of the latest piece are not decoded yet.

    Parameters
    ----------
    new_decoder : callable
        Makes a decoder for a member, of which several may follow one another; zero bytes may follow
        the last.
    pieces : iterator of bytes
        The compressed data.

    Raises
    ------
    EOFError
        If the data end too early; the decoder's own errors if they are damaged.
    """
    decoder = new_decoder()
    for piece in pieces:
        data = piece
        while data or not (decoder.eof or decoder.needs_input):
            if decoder.eof:
                if not (data := data.lstrip(b"\0")):
                    break
                decoder = new_decoder()
            text = decoder.decompress(data, READ_NBYTES)
            data = decoder.unused_data if decoder.eof else b""
            if text:
                yield text, len(data)
    if not decoder.eof:
        raise EOFError("it ends too early")


def beginnings_of(path: Path) -> tuple[str, bytes, bytes]:
    """Return how a file is packed, as a suffix or nothing, its first bytes, and those unpacked.

    Of what cannot be read, or unpacked, there are none: who reads it says why.
    """
    packing, start, text = "", b"", b""
    with contextlib.suppress(Exception), path.open("rb") as file:
        pieces = iter(partial(file.read, READ_NBYTES), b"")
        start = text = next(pieces)
        if decoder := decoder_of(start):
            packing, text = decoder[0], b""
            text = decoder[2]().decompress(start, 64)  # where what follows is damaged
            text, _ = next(decoded(decoder[2], chain([start], pieces)))
    return packing, start, text.removeprefix(codecs.BOM_UTF8)


# Where a table is read from: a file under its own name, or a scratch copy of standard input.


class SourceFile:
    """A file to read, and what to call it in messages and in the manifest.

    Parameters
    ----------
    path : Path
        The file.
    shown : str, optional
        Its name for messages, if not its path.
    name : str, optional
        Its name for the manifest, if not its own.

    Attributes
    ----------
    head : (int, int)
        Bytes and lines before the rows of its text, which are passed over.
    end : bytes
        What stands at the end of its text, if that is whole.
    stamp : tuple of int or None
        What changes when the file is written to, replaced or removed, as it was named.
    """

    head, end = (0, 0), b""

    def __init__(self, path: Path, shown: str = "", name: str = "") -> None:
        self.path, self.name = path, name or path.name
        self._shown, self.stamp = shown or str(path), _stamp_of(path)

    def __str__(self) -> str:
        return self._shown


def place_in(path: Path) -> tuple[Path, str]:
    """Return a file, and what is named within it after ``::``, as in ``cells.h5ad::/raw/X``."""
    file, mark, inner = str(path).partition("::")
    return (Path(file), inner) if mark and not path.exists() else (path, "")


def check_unchanged(source: object) -> None:
    """Refuse a source file that was changed; what else a source is, nobody can look at.

    Raises
    ------
    InputError
        Naming it.
    """
    if isinstance(source, SourceFile) and source.stamp != _stamp_of(source.path):
        raise InputError(
            f"{source}: expected a file that stays as it is while it is read, found that it was "
            "written to, replaced or removed. Ingest it again once it is complete, or a copy."
        )


def settle_source(path: Path, scratch: Path) -> SourceFile:
    """Return ``path`` as a source; of ``-``, a copy of standard input in the folder ``scratch``.

    A table is read more than once (its first megabyte, its rows, and, under a tight cap, all of it
    once more to count the rows), which standard input cannot be.
    """
    if str(path) != "-":
        return SourceFile(path)
    copy = scratch / "standard-input"
    with copy.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, READ_NBYTES)
    return SourceFile(copy, "standard input", "-")


def _stamp_of(path: Path) -> tuple[int, ...] | None:
    """Return what a change of a file changes; None if it cannot be asked."""
    with contextlib.suppress(OSError):  # whoever reads it says what is wrong
        found = path.stat()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
    return None


_LONGEST_END = 128

WHOLE_NBYTES, _END_NBYTES = 64 * MB, 8 * MB
"""A dry run reads all of a text of so many bytes, of a longer one so many at either end."""


def part_of(source: SourceFile, text_nbytes: int, n_rows: int, scratch: Path) -> SourceFile:
    """Return of a long text what a dry run reads: the lines at its ends, copied into ``scratch``.

    Where it is compressed, or rows are long, that is the file, to be read so far.
    """
    copy, size = scratch / "part", f"of {describe_nbytes(text_nbytes)}"
    pieces = PieceReader(source)
    if pieces.suffix or pieces.arff or text_nbytes > MB * n_rows:
        return SourceFile(source.path, f"{source}, first {describe_nbytes(WHOLE_NBYTES)} {size}")
    with copy.open("wb") as file:
        _whole_lines(np.fromfile(source.path, np.uint8, _END_NBYTES)).tofile(file)
        end = np.fromfile(source.path, np.uint8, offset=text_nbytes - _END_NBYTES)
        _whole_lines(end[::-1])[::-1].tofile(file)
    return SourceFile(copy, f"{source}, first and last {describe_nbytes(_END_NBYTES)} {size}")


def _whole_lines(text: Bytes) -> Bytes:
    """Return a text up to the last end of a line before which quotes are closed."""
    ends = np.flatnonzero(text == ord("\n"))
    is_closed = np.cumsum(text == ord('"'), dtype=np.uint8)[ends] % 2 == 0
    return text[: ends[is_closed].max(initial=-1) + 1]


# The bytes of a source file in bounded pieces, decompressed where its magic bytes say so.


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
    suffix : str
        How the file is compressed, as the end of a format's name: ``.gz``, or nothing.
    decoder_nbytes : int
        Memory that decompressing will take.
    arff : Arff or None
        What turns the text into CSV, if it is ARFF.

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
            raise unfit(source, "a text table", "a folder", "Name the file in it.") from None
        except OSError as error:
            raise InputError(f"{source}: cannot be read: {error.strerror}.") from error
        if not start:
            raise InputError(f"{source}: expected a header and rows, found an empty file.")
        text = beginnings_of(source.path)[-1]
        fitting = [one for one in FORMATS if one.fits(source.path, start, text)]
        self.arff = Arff(source) if TEXT.reader in (one.reader for one in fitting) else None
        for one in fitting:
            if one.magic or not one.reader:
                raise InputError(
                    f"{source}: expected a table as UTF-8 text, plain or compressed with gzip, xz, "
                    f"bzip2 or zstd; found {one.name}. {one.remedy or 'Convert it first.'}"
                )
        self._decoder = decoder_of(start)
        kind, self.decoder_nbytes, _ = self._decoder or ("", 0, None)
        self.suffix = f".{kind}" if kind else ""

    def pieces(self) -> Iterator[bytes]:
        """Yield the text in pieces of at most :data:`READ_NBYTES`.

        A mark of the byte order at its beginning is left out, and the head of the source.

        Raises
        ------
        InputError
            If the text does not end as the source says.
        """
        mark, (left, _), end = codecs.BOM_UTF8, self.source.head, b""
        texts = self._raw() if self._decoder is None else self._decoded(*self._decoder)
        for text in texts if self.arff is None else self.arff.text(texts):
            self.n_text += len(text)
            rest = text.removeprefix(mark)
            if left < len(rest):
                yield rest[left:]
            left, mark, end = max(0, left - len(rest)), b"", (end + rest)[-_LONGEST_END:]
        if self.source.end not in end:
            expected = f"{self.source.end.decode()} at its end"
            raise unfit(self.source, expected, "the end of the file before")

    def _raw(self) -> Iterator[bytes]:
        try:
            with self.source.path.open("rb", buffering=0) as file:
                while data := file.read(READ_NBYTES):
                    self.n_read += len(data)
                    self.n_used = self.n_read
                    self.crc32 = zlib.crc32(data, self.crc32)
                    yield data
        except OSError as error:
            raise InputError(
                f"{self.source}: reading failed after {self.n_read} bytes: {error.strerror}."
            ) from error

    def _decoded(self, kind: str, nbytes: int, make: Callable[[], Decoder]) -> Iterator[bytes]:
        try:
            for text, n_unused in decoded(make, self._raw()):
                self.n_used = self.n_read - n_unused
                yield text
        except InputError:
            raise
        except Exception as error:  # each decoder has an error of its own
            found = f"damage after {self.n_read} bytes ({error})"
            raise unfit(self.source, f"{PACKED[kind]}-compressed text", found) from error
