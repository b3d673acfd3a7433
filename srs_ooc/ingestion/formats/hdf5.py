"""HDF5, read with h5py: a matrix of numbers, or cells as AnnData keeps them (``.h5ad``).

MATLAB 7.3 files are HDF5, too. The formats are described at https://support.hdfgroup.org and
https://anndata.readthedocs.io/en/stable/fileformat-prose.html.
"""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError
from srs_ooc.base.frames import library
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.ingestion.formats import Table, TextCoder, hash_text
from srs_ooc.ingestion.formats.in_memory import (
    as_float64,
    check_dtype,
    check_shape,
    is_narrow,
    item_blocks,
)
from srs_ooc.ingestion.ingest_memory import LOOK_NBYTES, PIECE_NBYTES, lines_lease
from srs_ooc.ingestion.ingest_options import IngestOptions

_CACHE = 32 * MB
"""Chunks that are unpacked are kept up to so much, as the next lines lie in them, too."""
_TURNED = ".T"
_SHOWN = 12
_LOCK = RLock()  # HDF5 does one thing at a time
_DAMAGE = (OSError, KeyError, IndexError, RuntimeError, ValueError, TypeError, AttributeError,
           OverflowError, MemoryError)  # fmt: skip


@contextlib.contextmanager
def _reading(what: str) -> Iterator[None]:
    """Have HDF5 for oneself; what h5py raises is damage."""
    with _LOCK:
        try:
            yield
        except _DAMAGE as error:
            raise InputError(
                f"{what}: expected HDF5 that can be read, found damage, or a compression that "
                f"h5py does not know: {' '.join(str(error).split())[:200]}. Get the file again, or "
                "write it anew with gzip."
            ) from error


def open_hdf5(path: Path, inner: str, options: IngestOptions) -> Table:
    """Return the matrix of an HDF5 file that ``inner`` names, turned round where that ends in .T.

    Without a name X of AnnData, or the only matrix. MATLAB's are turned round, as it writes them
    so.

    Raises
    ------
    InputError
        If there is no such matrix, or one that cannot be read: damaged, of no numbers, or elsewhere
        than in this file.
    BudgetError
        If the cap cannot hold where the rows of a sparse matrix begin.
    UsageError
        If h5py is not installed.
    """
    what = f"{path}::{inner}" if inner else str(path)
    remedy = "Run `pip install 'srs-ooc[cells]'`, or save the table as CSV or .npy."
    h5py = library("h5py", what, remedy)
    with _reading(what):
        file = h5py.File(path, "r")
        is_cells = {"obs", "var"} <= file.keys()
        name, turned = inner.strip("/"), False
        if name.endswith(_TURNED) and name not in file:
            name, turned = name.removesuffix(_TURNED).rstrip("/"), True
        name = name or ("X" if is_cells else _only_matrix(file, what))
        node = _node(file, name, what)
        turned ^= "MATLAB_class" in node.attrs
        kind = SparseMatrix if _is_sparse(node) else Matrix
        table: Matrix = kind(node, what, options, turned=turned)
        table.format = f"{'h5ad' if is_cells else 'hdf5'} /{name}{', turned' * turned}"
        if is_cells:
            var = name.removesuffix("X") + "var"
            frames = [file["obs"], _node(file, var if var in file else "var", what)]
            rows, columns = reversed(frames) if turned else frames
            table.describe(_frame(rows, what), _frame(columns, what))
        else:
            beside = {key: one for key, one in _members(node.parent) if one != node}
            rows, columns = (_plain(beside, n, what) for n in table.shape)
            alone = [one for one in columns.values() if one.is_text]
            ids = [key for key, one in rows.items() if one.is_text and not _repeated(one)]
            is_square = table.shape[0] == table.shape[1]
            name_of = {"": alone[0]} if len(alone) == 1 and not is_square else {}
            table.describe(
                (rows, ids[0] if len(ids) == 1 and not is_square else None), (name_of, "")
            )
        return table


# The objects of a file.


def _node(group: Any, path: str, what: str) -> Any:
    """Return an object by its path; one that lies in another file is refused."""
    import h5py

    for name in filter(None, path.split("/")):
        link = group.get(name, getlink=True) if isinstance(group, h5py.Group) else None
        if link is None:
            known = list(group) if isinstance(group, h5py.Group) else []
            raise InputError(
                f"{what}: expected {path} in the file, found no {name}, but "
                f"{', '.join(known[:_SHOWN]) or 'nothing'}{', ...' * (len(known) > _SHOWN)}. Name "
                "one that is there: FILE::/path/to/matrix."
            )
        if not isinstance(link, h5py.HardLink):
            raise InputError(
                f"{what}: expected {path} in the file itself, found a link to {link.path}"
                f"{' of another file' * isinstance(link, h5py.ExternalLink)}. Name what it leads "
                "to, in the file that holds it."
            )
        group = group[name]
    if isinstance(group, h5py.Dataset) and (group.is_virtual or group.external):
        raise InputError(
            f"{what}: expected the cells of {path} in the file itself, found that they lie in "
            "others. Write them into one file."
        )
    return group


def _members(group: Any) -> Iterator[tuple[str, Any]]:
    """Yield what lies in a group itself, by name."""
    import h5py

    for name in group:
        if isinstance(group.get(name, getlink=True), h5py.HardLink):
            yield name, group[name]


def _is_sparse(node: Any) -> bool:
    return not hasattr(node, "shape") and {"data", "indices", "indptr"} <= node.keys()


def _only_matrix(file: Any, what: str) -> str:
    found: list[str] = []

    def look(name: str, node: Any) -> None:
        shape = getattr(node, "shape", None) or ()
        is_numeric = len(shape) == 2 and node.dtype.kind in "biuf" and _length(node) is None
        if (is_numeric and node.attrs.get("MATLAB_class") != b"char") or _is_sparse(node):
            found.append(name)

    file.visititems(look)
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"{what}: expected one matrix of numbers, found "
        f"{', '.join(found[:_SHOWN]) or 'none'}{', ...' * (len(found) > _SHOWN)}. Name "
        f"one after the file: {what}::/{found[0] if found else 'path/to/matrix'}."
    )


# What a file says of rows and columns.


def _length(node: Any) -> int | None:
    """Return how many items a dataset of one dimension has, or a vector of MATLAB's."""
    shape = getattr(node, "shape", None) or ()
    if len(shape) == 2 and min(shape) == 1 and "MATLAB_class" in node.attrs:
        return int(max(shape))
    return int(shape[0]) if len(shape) == 1 else None


class _Items(Sequence[Any]):
    """Numbers or texts of a file, read a block at a time; None where one is missing."""

    def __init__(
        self, node: Any, what: str, levels: Any = None, mask: Any = None, field: str | None = None
    ) -> None:
        self._node, self._what, self._mask = node, f"{what}, {node.name}", mask
        self._levels, self._known = levels, list[Any]()
        self._cells = node if field is None else node.fields(field)
        dtype = (node if levels is None else levels).dtype
        self.is_text = (dtype if field is None else dtype[field]).kind in "SO"

    def __len__(self) -> int:
        return _length(self._node) or 0

    def __getitem__(self, at: Any) -> Any:
        if not isinstance(at, slice):
            return self[at : at + 1][0]
        some = slice(*at.indices(len(self)))
        with _reading(self._what):
            if self._levels is not None and not self._known:
                self._known = _texts(self._levels[()])
            is_row = len(self._node.shape) == 2 and self._node.shape[0] == 1
            items = _texts(np.ravel(self._cells[(0, some) if is_row else some]))
            if self._levels is not None:
                items = [None if code < 0 else self._known[code] for code in items]
            gone = [False] * len(items) if self._mask is None else self._mask[some].tolist()
        return [None if is_gone else item for item, is_gone in zip(items, gone, strict=True)]

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(item_blocks(self))


def _texts(cells: Any) -> list[Any]:
    """Return items, bytes among them as texts."""
    items = cells.tolist()
    return [one.decode(errors="replace") if isinstance(one, bytes) else one for one in items]


def _item_of(node: Any, what: str, categories: Any) -> _Items | None:
    """Return a column of a data frame, as any version of AnnData wrote it; None if it is none."""
    import h5py

    if isinstance(node, h5py.Group):
        parts = dict(_members(node))
        if {"codes", "categories"} <= parts.keys():
            return _Items(parts["codes"], what, levels=parts["categories"])
        return _Items(parts["values"], what, mask=parts.get("mask")) if "values" in parts else None
    if _length(node) is None or not (
        node.dtype.kind in "biufS" or h5py.check_string_dtype(node.dtype)
    ):
        return None
    reference = node.attrs.get("categories")
    if isinstance(reference, h5py.Reference):
        categories = node.file[reference]
    return _Items(node, what, levels=categories)


def _frame(frame: Any, what: str) -> tuple[dict[str, _Items], str]:
    """Return the columns of a data frame, and the name of its index."""
    fields = getattr(getattr(frame, "dtype", None), "names", None)
    if fields:  # before AnnData 0.7
        return {name: _Items(frame, what, field=name) for name in fields}, fields[0]
    index = frame.attrs.get("_index", "_index")
    members, found = dict(_members(frame)), {}
    levels = dict(_members(members.pop("__categories", {})))
    for name, node in members.items():
        if (column := _item_of(node, what, levels.get(name))) is not None:
            found[name] = column
    return found, index.decode() if isinstance(index, bytes) else str(index)


def _plain(beside: dict[str, Any], length: int, what: str) -> dict[str, _Items]:
    items = {
        key: _item_of(one, what, None) for key, one in beside.items() if _length(one) == length
    }
    return {key: one for key, one in items.items() if one is not None}


def _repeated(items: Collection[str]) -> bool:
    hashes = np.fromiter((hash_text(str(one).encode()) for one in items), np.uint64)
    return len(np.unique(hashes)) < len(hashes)


def _distinct(names: Collection[str]) -> list[str]:
    """Return names of which repeated ones end in -1, -2, ..., as AnnData makes them distinct."""
    known, seen, counts, out = set(names), set[str](), Counter[str](), []
    for name in names:
        own = name
        while own in (seen if own is name else known):
            counts[name] += 1
            own = f"{name}-{counts[name]}"
        seen.add(name)
        known.add(own)
        out.append(own)
    return out


# Matrices.


class Matrix(Table):
    """A dataset of two dimensions: a ``Table``, read along its chunks.

    Parameters
    ----------
    node : h5py.Dataset
        Of numbers; ``turned`` if its rows are the columns of the table.
    what : str
        Its name for messages.
    options : IngestOptions
        With the memory cap.

    Raises
    ------
    InputError
        If it holds no numbers, or fewer than it should.
    """

    def __init__(self, node: Any, what: str, options: IngestOptions, *, turned: bool) -> None:
        self._node, self._what, self._options, self._turned = node, what, options, turned
        self._held = 0
        self.annotations, self.default_ids, self.names = {}, None, None
        self._open()
        check_shape(self.shape, what)

    def _open(self) -> None:
        import h5py

        node, what = self._node, self._what
        check_shape(node.shape, what)
        check_dtype(node.dtype, what)
        self.narrow = is_narrow(node.dtype)
        n_rows, n_columns = self.shape = node.shape[:: -1 if self._turned else 1]
        layout = node.id.get_create_plist().get_layout()
        if layout != h5py.h5d.CHUNKED and node.id.get_storage_size() < node.nbytes:
            raise InputError(
                f"{what}: expected {node.nbytes:,} bytes for the shape {node.shape}, found "
                f"{node.id.get_storage_size():,}. Get the file again."
            )
        self.work_nbytes, self.by_rows = 8 * MB, not self._turned
        if node.chunks is None:
            return
        rows, columns = node.chunks[:: -1 if self._turned else 1]
        band = min(rows, n_rows) * ceil_div(n_columns, columns) * columns * node.dtype.itemsize
        # how often a chunk is unpacked by rows, which come in order; by columns as often as it has
        times = 1 if band <= _CACHE else min(rows, ceil_div(band, PIECE_NBYTES))
        self.by_rows = times < columns or rows == 1
        cache = min(_CACHE, band) if self.by_rows else 0
        access = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
        access.set_chunk_cache(100_003, cache, 1.0)
        self._node = h5py.Dataset(h5py.h5d.open(node.file.id, node.name.encode(), access))
        chunk = rows * columns * node.dtype.itemsize
        self.work_nbytes += MB + cache + 2 * chunk

    def describe(
        self, rows: tuple[dict[str, _Items], str | None], columns: tuple[dict[str, _Items], str]
    ) -> None:
        """Take what the file says of rows, which of it are row ids, and of columns, the names."""
        n_rows, n_columns = self.shape
        self.annotations = {key: one for key, one in rows[0].items() if len(one) == n_rows}
        self.default_ids = rows[1] if rows[1] in self.annotations else None
        names = columns[0].get(columns[1])
        if names is not None and len(names) == n_columns:
            self.names: Collection[str] | None = names
            self._held += 24 * n_columns
            if _repeated(names):
                self.names = _distinct(names)
                self._held += 200 * n_columns
        self.held = self._leases()

    def _leases(self) -> tuple[Lease, ...]:
        of_rows = Lease("what the file says of rows and columns", self._held + 64 * self.shape[0])
        return Lease("h5py", 20 * MB), of_rows

    def _lines(self, first: int, stop: int) -> NDArray[np.float64]:
        """Return lines first .. stop - 1: rows if ``by_rows``, else columns."""
        with _reading(self._what):
            if self.by_rows != self._turned:
                cells = self._node[first:stop]
            else:
                cells = self._node[:, first:stop].T
        return as_float64(cells, self._what)

    def read(self, positions: NDArray[np.intp], pool: TextCoder) -> NDArray[np.float64]:
        """Return rows or columns, as ``by_rows`` says, each a row of the result."""
        order = np.argsort(positions, kind="stable")
        ranked = positions[order]
        runs = np.split(np.arange(len(order)), np.flatnonzero(np.diff(ranked) != 1) + 1)
        if len(runs) == 1 and positions[0] == ranked[0]:
            return self._lines(int(ranked[0]), int(ranked[-1]) + 1)
        out = np.empty((len(positions), self.shape[int(self.by_rows)]))
        for run in runs:
            out[order[run]] = self._lines(int(ranked[run[0]]), int(ranked[run[-1]]) + 1)
        return out

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks."""
        if not self.by_rows:
            yield from item_blocks(self._lines(position, position + 1)[0])
            return
        n_rows, n_columns = self.shape
        step = max(1, PIECE_NBYTES // (8 * n_columns))
        for start in range(0, n_rows, step):
            yield self._lines(start, min(start + step, n_rows))[:, position].tolist()


class SparseMatrix(Matrix):
    """A group with a sparse matrix by rows or by columns: some of them are made dense at a time."""

    def _open(self) -> None:
        node, what, attributes = self._node, self._what, dict(self._node.attrs)
        word = attributes.get("encoding-type", attributes.get("h5sparse_format", ""))
        kind = str(word.decode() if isinstance(word, bytes) else word)[:3]
        shape = attributes.get("shape", attributes.get("h5sparse_shape"))
        if kind not in ("csr", "csc") or shape is None or len(shape) != 2:
            raise InputError(
                f"{what}: expected a sparse matrix that says whether it is csr or csc, and its "
                f"shape, found {kind!r} and {shape}. Write it with AnnData."
            )
        self.by_rows = (kind == "csr") != self._turned
        n_rows, n_columns = map(int, shape[:: -1 if self._turned else 1])
        self.shape = (n_rows, n_columns)
        n_lines, self._n_items = self.shape[:: 1 if self.by_rows else -1]
        self._data, self._indices, ends = (
            _node(node, name, what) for name in ("data", "indices", "indptr")
        )
        check_dtype(self._data.dtype, what)
        self.narrow = is_narrow(self._data.dtype)
        parts = (self._data, self._indices)
        chunks = sum(2 * one.dtype.itemsize * one.chunks[0] for one in parts if one.chunks)
        self.work_nbytes = 12 * MB + chunks + 40 * self._n_items
        self._held += 16 * n_lines
        if self._held > LOOK_NBYTES // 2:
            lines = lines_lease(self._n_items, self.work_nbytes)
            held = (*self._leases(), lines)
            self._options.memory(n_columns, n_rows, held).check(what)
        if ends.shape == (n_lines + 1,) and self._data.shape == self._indices.shape:
            self._ends = ends[()].astype(np.int64)
            counts = np.diff(self._ends)
            is_right = self._ends[0] == 0 and self._ends[-1] == self._data.shape[0]
            if is_right and ((counts >= 0) & (counts <= self._n_items)).all():
                return
        raise self._damaged("bounds of lines that do not agree with them")

    def _damaged(self, found: str) -> InputError:
        return InputError(
            f"{self._what}: expected a sparse matrix of {self.shape[0]:,} x {self.shape[1]:,}, "
            f"found {found}. Get the file again."
        )

    def _lines(self, first: int, stop: int) -> NDArray[np.float64]:
        start, end = int(self._ends[first]), int(self._ends[stop])
        with _reading(self._what):
            cells = as_float64(self._data[start:end], self._what)
            places = self._indices[start:end].astype(np.int64)
        if len(places) and not 0 <= int(places.min()) <= int(places.max()) < self._n_items:
            raise self._damaged(f"indices {places.min()} to {places.max()}")
        counts = np.diff(self._ends[first : stop + 1])
        places += np.repeat(np.arange(stop - first) * self._n_items, counts)
        dense = np.bincount(places, cells, (stop - first) * self._n_items)
        return dense.reshape(stop - first, self._n_items)
