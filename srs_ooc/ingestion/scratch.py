"""Texts, numbers and panels on scratch disk, so that names and columns may be of any length.

Panels of rows are filled in memory and lie column-major in a file.
"""

import contextlib
import math
import mmap
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from srs_ooc.base.arrays import Ints32, Uints, Uints32
from srs_ooc.base.errors import InputError, StoreError
from srs_ooc.base.files import SCRATCH_SUFFIX, Closing
from srs_ooc.base.text import ceil_div, describe_nbytes
from srs_ooc.ingestion.formats import TextCoder, Texts, bounded, hash_text, split_texts
from srs_ooc.ingestion.ingest_memory import StoreForm, many_texts
from srs_ooc.native import _native
from srs_ooc.store import bed
from srs_ooc.store.arrays import SmallFile
from srs_ooc.store.manifest import Shape

ARRAY_BLOCK = 1 << 18
BLOCK = 1 << 14
BLOCK_NBYTES = 1 << 20
"""A block holds at most so many texts and bytes, or one longer text."""


def text_blocks(texts: Iterable[str]) -> Iterator[tuple[bytes, Uints]]:
    """Gather texts into :data:`TextBlocks` of bounded size."""
    return map(joined, bounded(text.encode() for text in texts))


def texts_of(texts: Iterable[str | bytes]) -> Texts:
    """Return texts encoded and hashed, as a reader would hand them over."""
    pieces = [text.encode() if isinstance(text, str) else text for text in texts]
    blob, ends = joined(pieces)
    return Texts(blob, ends, np.array([hash_text(piece) for piece in pieces], np.uint64))


def joined(pieces: list[bytes]) -> tuple[bytes, Uints]:
    """Return texts one after another, and where each ends."""
    lengths = np.fromiter(map(len, pieces), np.uint64, len(pieces))
    return b"".join(pieces), np.cumsum(lengths, dtype=np.uint64)


def numbered(pool: TextCoder, texts: list[bytes], where: Callable[[int], str]) -> Ints32:
    """Return the numbers of texts in a pool; ``where`` says where the text at a place stands.

    Raises
    ------
    BudgetError
        If the memory for them is full.
    """
    numbers = pool.code(*joined(texts))
    if (n := len(numbers)) < len(texts):
        raise many_texts(where(n), texts[n].decode("utf-8", "replace"))
    return numbers


class ScratchArray:
    """A one-dimensional array in a file: appended to, then sliced. Pages of a map would be memory.

    Parameters
    ----------
    path : Path
        The file, made anew.
    dtype : dtype
        Of its items.
    """

    def __init__(self, path: Path, dtype: Any) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._path = path
        self._n = 0
        path.write_bytes(b"")

    def append(self, items: NDArray[Any]) -> None:
        """Append a block of items."""
        with self._path.open("ab") as file:
            file.write(np.ascontiguousarray(items, self.dtype).data)
        self._n += len(items)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, place: slice) -> NDArray[Any]:
        start, stop, _ = place.indices(self._n)
        size = self.dtype.itemsize
        return np.fromfile(self._path, self.dtype, max(0, stop - start), offset=start * size)


class TextSpool:
    """Texts appended to files, found again by hash; a collection of texts.

    Parameters
    ----------
    folder : Path
        Scratch folder, which exists.
    name : str
        Stem of the files.
    label : str
        What a column that they are the cells of is called.
    levels : list of str, optional
        The levels of such a column if it is declared categorical, in the order that is declared.

    Attributes
    ----------
    nbytes : int
        Bytes of all texts.
    hashes : ScratchArray
        A hash of each text, uint64 (n_texts,).
    """

    def __init__(
        self, folder: Path, name: str, label: str = "", levels: list[str] | None = None
    ) -> None:
        self.label, self.levels, self.nbytes = label, levels, 0
        self._folder, self._name = folder, name
        self._bytes = ScratchArray(folder / f"{name}.bytes", np.uint8)
        self._ends = ScratchArray(folder / f"{name}.ends", np.uint64)
        self.hashes = ScratchArray(folder / f"{name}.hashes", np.uint64)

    def __len__(self) -> int:
        return len(self._ends)

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and self.find(text) is not None

    def __iter__(self) -> Iterator[str]:
        for blob, ends in self.blocks():
            yield from (text.decode() for text in split_texts(blob, ends))

    def append(self, texts: Texts) -> None:
        """Append some texts."""
        self._ends.append(texts.ends + np.uint64(self.nbytes))
        self._bytes.append(np.frombuffer(texts.blob, np.uint8))
        self.hashes.append(texts.hashes)
        self.nbytes += len(texts.blob)

    def extend(self, texts: Iterable[str | bytes]) -> None:
        """Append texts, some at a time."""
        for block in bounded(texts):
            self.append(texts_of(block))

    def rewrite(self, texts: Iterable[str]) -> None:
        """Put other texts, which may be made of its own, in their place."""
        new = TextSpool(self._folder, f"{self._name}-new", self.label, self.levels)
        new.extend(texts)
        vars(self).update(vars(new))  # others have it

    def get(self, index: int) -> bytes:
        """Return text ``index``."""
        ends = self._ends[max(index - 1, 0) : index + 1].tolist()
        return self._bytes[ends[0] if index else 0 : ends[-1]].tobytes()

    def describe(self, index: int) -> str:
        """Return text ``index`` quoted for a message, at most 60 characters of it."""
        text = self.get(index).decode("utf-8", "replace")
        return repr(text if len(text) <= 60 else text[:57] + "...")

    def find(self, text: str) -> int | None:
        """Return the first position of ``text``, or None."""
        return next((position for position, _ in self.places({text.encode()})), None)

    def places(self, texts: Collection[bytes]) -> Iterator[tuple[int, bytes]]:
        """Yield each position where one of ``texts`` stands, and which.

        Hashes say where to look, texts what is there.
        """
        for position in self._positions_of(np.array([hash_text(t) for t in texts], np.uint64)):
            if (text := self.get(position)) in texts:
                yield position, text

    def _positions_of(self, hashes: Uints) -> Iterator[int]:
        for start in range(0, len(self), BLOCK):
            block = self.hashes[start : start + BLOCK]
            yield from (start + np.flatnonzero(np.isin(block, hashes))).tolist()

    def duplicates(self, limit: int = 3) -> list[tuple[int, int]]:
        """Return up to ``limit`` pairs of positions that hold equal texts.

        Sorts one 64-bit hash per text in place, then compares the bytes of equal hashes.
        """
        hashes = self.hashes[:]
        hashes.sort()
        suspects = np.unique(hashes[1:][hashes[1:] == hashes[:-1]][:100_000])[:1000]
        del hashes
        pairs: list[tuple[int, int]] = []
        first: dict[bytes, int] = {}
        for position in self._positions_of(suspects) if len(suspects) else ():
            text = self.get(position)
            if text in first:
                pairs.append((first[text], position))
            first.setdefault(text, position)
            if len(pairs) == limit or len(first) > 10_000:
                break
        return pairs

    def blocks(self, skip: frozenset[int] = frozenset()) -> Iterator[tuple[bytes, Uints]]:
        """Yield the texts as :data:`TextBlocks`, those at the positions ``skip`` left out."""
        start = previous = 0
        while start < len(self):
            ends = self._ends[start : start + BLOCK] - np.uint64(previous)
            ends = ends[: max(1, int(np.searchsorted(ends, BLOCK_NBYTES, side="right")))]
            blob = self._bytes[previous : previous + int(ends[-1])].tobytes()
            here = range(start, start + len(ends))
            if any(i in here for i in skip):
                texts = zip(here, split_texts(blob, ends), strict=True)
                yield joined([text for i, text in texts if i not in skip])
            else:
                yield blob, ends
            start, previous = here.stop, previous + len(blob)


def blocks_of(array: ScratchArray | SmallFile | NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield an array in slices of at most :data:`ARRAY_BLOCK` items."""
    return (array[start : start + ARRAY_BLOCK] for start in range(0, len(array), ARRAY_BLOCK))


# Rows to columns on disk: panels of rows are filled in memory and lie column-major in a file.
#
# A panel is (n_features, panel rows) in *stored* order, so a batch of stored features is one
# contiguous piece of every panel.

_COPY_NBYTES = 2_000_000
WIDE = 1 << 22
"""Rows of more columns are dealt: put straight into panels, each cell waits for memory. At 5 and 10
million that takes .4 of the time; up to 2.5 million it gained nothing."""


def anonymous_array(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return a zeroed array in a mapping of its own, given back to the system when it dies.

    The C library may keep freed memory of its heap, which would count against the cap.
    """
    nbytes = max(math.prod(shape) * np.dtype(dtype).itemsize, 1)
    # private: shared memory gets no huge pages
    memory = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # filling a panel row by row touches every page of it
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.ndarray(shape, dtype, memory)


class Panels(Closing):
    """A table on its way from rows to columns; once sealed, a ``StoredColumns``.

    Parameters
    ----------
    path : Path
        Scratch file to create.
    n_features : int
        Features, in stored order.
    n_rows_held : int
        Rows there is memory for: those of one panel, or of two, one of which is written to the file
        while the other is filled.
    dtype : dtype-like
        float64, or float32.

    Attributes
    ----------
    panel : float array (n_features, panel_rows)
        The panel being filled.
    """

    def __init__(
        self, path: Path, n_features: int, n_rows_held: int, dtype: DTypeLike = np.float64
    ) -> None:
        self.n_features, self.n_rows, self._dtype = n_features, 0, np.dtype(dtype)
        self._panel_rows = panel_rows = max(1, n_rows_held // 2)
        self.panel = anonymous_array((n_features, panel_rows), dtype)
        self._dealer: _native.RowDealer | None = None
        self._path = path
        path.write_bytes(b"")
        self._pool = ThreadPoolExecutor(1)
        self._writing: Future[Any] = self._pool.submit(int)
        self._other = anonymous_array((n_features, panel_rows), dtype) if n_rows_held > 1 else None

    def put(
        self, rows: NDArray[Any], columns: Uints32, first: int, n_threads: int = 1
    ) -> tuple[int, bool]:
        """Put rows (m, width) into the panel, the first as its row ``first``.

        ``columns`` are those of the features, in stored order. Wide rows become columns where the
        panel is written. Returns the place of the first infinite cell, or -1; and whether all fit
        float32.
        """
        if rows.shape[1] <= WIDE:
            return _native.put_rows(rows, columns, self.panel, first, n_threads)
        if self._dealer is None:
            self._block = min(1 << 16, self._step(2 * self._panel_rows))
            self._dealer = _native.RowDealer(columns, rows.shape[1], self._block, n_threads)
        return self._dealer.deal(rows, self.panel.reshape(-1, self.n_features), first)

    def flush(self, n_filled: int) -> None:
        """Append ``n_filled`` rows of the panel to the file; ``panel`` is another then."""
        self.n_rows += n_filled
        self._writing.result()
        self._writing = self._pool.submit(self._write, self.panel, n_filled)
        if self._other is None:
            self._writing.result()
        else:
            self.panel, self._other = self._other, self.panel

    def _write(self, panel: NDArray[Any], n_filled: int) -> None:
        with self._path.open("ab") as file:
            file.writelines(piece.data for piece in self._pieces(panel, n_filled))

    def _pieces(self, panel: NDArray[Any], n_filled: int) -> Iterator[NDArray[Any]]:
        """Yield the columns of a panel."""
        if (dealer := self._dealer) is None:
            step = self.n_features if n_filled == self._panel_rows else self._step(n_filled)
            for start in range(0, self.n_features, step):
                yield np.ascontiguousarray(panel[start : start + step, :n_filled])
            return
        for block, start in enumerate(range(0, self.n_features, self._block)):
            lines = np.empty((min(self._block, self.n_features - start), n_filled), self._dtype)
            dealer.lines(panel.reshape(-1, self.n_features), block, lines)
            yield lines

    def _step(self, n_rows: int) -> int:
        """Return of how many features so many rows are copied at a time."""
        return max(1, _COPY_NBYTES // (n_rows * self._dtype.itemsize))

    def seal(self) -> None:
        """End filling; give the memory of panels that are in the file back."""
        self._writing.result()
        self._pool.shutdown()
        self._other = self._dealer = None
        del self.panel

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        out = anonymous_array((stop - start, self.n_rows), self._dtype)
        with self._path.open("rb") as file:
            for first in range(0, self.n_rows, self._panel_rows):
                lines = out[:, first : min(first + self._panel_rows, self.n_rows)]
                n_rows = lines.shape[1]
                file.seek((first * self.n_features + start * n_rows) * self._dtype.itemsize)
                step = self._step(n_rows)
                for row in range(0, len(lines), step):
                    part = lines[row : row + step]
                    piece = np.fromfile(file, self._dtype, part.size)
                    if len(piece) < part.size:
                        raise OSError(
                            f"the scratch file ended at byte {file.tell()}: something truncated it"
                        )
                    part[...] = piece.reshape(part.shape)
        return out

    def close(self) -> None:
        """Delete the file."""
        self._pool.shutdown()
        self._path.unlink(missing_ok=True)


# The disk of an ingest: room for it, and its errors in the user's terms.


def disk_of(
    shape: Shape,
    form: StoreForm,
    *,
    by_rows: bool,
    text_nbytes: int | None = None,
    cell_nbytes: int = 8,
) -> tuple[int, int]:
    """Return the bytes of scratch and, at most about, of the store that ingesting a table takes.

    Parameters
    ----------
    shape : Shape
        Rows and features.
    form : StoreForm
        How the store keeps them.
    by_rows : bool
        Whether the source is read by rows, which are turned into columns in scratch.
    text_nbytes : int, optional
        Bytes of text of a source that is text: values take no more.
    cell_nbytes : int
        Bytes of a cell on its way, and as it is kept.
    """
    n_cells = shape.n_rows * shape.n_features
    values = 0 if form.values_dtype is None else cell_nbytes * n_cells
    if text_nbytes is not None:
        values = min(values, text_nbytes)
    ranges = 16 * form.n_ranges(shape) * shape.n_features
    codes = form.code_nbytes * n_cells
    if form.is_packed:
        codes, values = ceil_div(n_cells, 4), 0
    return cell_nbytes * n_cells * by_rows, codes + values + ranges + 40 * shape.n_features


def check_disk(folder: Path, scratch_nbytes: int, store_nbytes: int) -> None:
    """Refuse a disk without room for scratch and a store in ``folder``, both in bytes.

    Raises
    ------
    StoreError
        With what is needed and what is free.
    """
    needed, free = scratch_nbytes + store_nbytes, shutil.disk_usage(folder).free
    if free < needed:
        raise StoreError(
            f"{folder.parent}: expected about {describe_nbytes(needed)} of free disk "
            f"({describe_nbytes(scratch_nbytes)} of scratch, given back at the end, and "
            f"{describe_nbytes(store_nbytes)} for the store), found {describe_nbytes(free)}. Free "
            "some space, or put the store on another disk."
        )


def is_store(path: Path) -> bool:
    """Whether there is a folder with the files of a store."""
    return (path / "zarr.json").is_file() and ((path / "codes").is_dir() or bed.is_there(path))


@contextlib.contextmanager
def disk_errors(target_path: Path, *, replaces: bool = False) -> Iterator[None]:
    """Turn errors of the disk into why the store at ``target_path`` cannot be written.

    Raises
    ------
    StoreError
        Saying that; with ``replaces`` also if there is something that is not a folder with the
        files of a store.
    """
    is_link = target_path.is_symlink()
    if replaces and (is_link or (target_path.exists() and not is_store(target_path))):
        found = "a link" if is_link else "something else"
        raise StoreError(
            f"{target_path}: expected a store to overwrite, found {found}. Choose another path, or "
            "remove it yourself."
        )
    try:
        yield
    except FileExistsError:
        if target_path.exists():
            raise StoreError(
                f"{target_path}: expected a path that is free, found one in use. "
                "Choose another path, remove it first, or replace a store with --overwrite."
            ) from None
        raise StoreError(
            f"{target_path}: another process is writing this store "
            f"({target_path.name}{SCRATCH_SUFFIX} is held). Wait for it, or choose another path."
        ) from None
    except OSError as error:
        named = Path(str(error.filename or target_path))
        scratch = target_path.with_name(target_path.name + SCRATCH_SUFFIX)
        if named != target_path.parent and not {target_path, scratch} & {named, *named.parents}:
            raise InputError(
                f"{error.filename}: reading failed: {error.strerror}. Leave the file in its place, "
                "readable, until the ingest has ended."
            ) from error
        raise StoreError(
            f"{target_path}: cannot be written: {error.strerror or error}. "
            "Choose a path in a folder that exists, can be written, and has room."
        ) from error
