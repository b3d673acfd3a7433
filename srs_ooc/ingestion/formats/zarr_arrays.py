"""Zarr arrays here or at a URL, of formats 2 and 3, with the names that xarray gives; VCF Zarr.

The formats are described at https://zarr-specs.readthedocs.io and at
https://github.com/sgkit-dev/vcf-zarr-spec (0.4 and 0.5).
"""

import base64
import contextlib
import json
import math
import re
import struct
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import repeat
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Indices, Reals
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import unfit
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Url
from srs_ooc.ingestion import formats
from srs_ooc.ingestion.formats import Table, TextCoder, hdf5, in_memory
from srs_ooc.ingestion.formats.files import File
from srs_ooc.store.manifest import ATTRIBUTE
from srs_ooc.store.objects import Objects

_ZARR_NBYTES = 32 * MB  # zarr with its threads and codecs, and metadata; measured 24 to 30
_AT_ONCE = 8 * MB
"""Cells are read in parts of so many bytes, or of one chunk if that is more."""
_OBJECTS_NBYTES = 16 * MB  # obstore, with its threads and what is in flight
_MOST_CELLS = 10**12
_AGAIN = "Get the folder again."
_TEXT_NBYTES, _SHOWN, _AT_A_TIME = 100, 10, 1 << 14
_CODECS = {
    "adler32", "astype", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "delta",
    "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits",
    "pcodec", "quantize", "sharding_indexed", "shuffle", "transpose", "vlen-bytes", "vlen-utf8",
    "zfpy", "zlib", "zstd",
}  # fmt: skip
"""What turns bytes into numbers and texts, and runs no code that stands in the bytes."""
_OF_FEATURES = re.compile(r"(variant|feature|gene|column|snp|site|probe|transcript|var)s?", re.I)
_LOCK = RLock()  # zarr's settings are of the process


@contextlib.contextmanager
def _reading(what: str) -> Iterator[None]:
    """Have zarr read a chunk at a time, without warnings; say what cannot be read."""
    import zarr

    limits = zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1})
    at_url = "Name an array, as URL/ARRAY: a web server does not list them."
    remedy = at_url if "://" in what else _AGAIN
    with _LOCK, warnings.catch_warnings(), limits, formats.reading(what, "arrays of Zarr", remedy):
        warnings.simplefilter("ignore")
        yield


class _Cells:
    """Cells of a Zarr array whose codecs are known; cells that an attribute marks are missing.

    Attributes
    ----------
    shape, chunks : tuple of int
        Of the array, and of what is decoded at once.
    dims : tuple of str or None
        Names of the dimensions; empty if there are none.
    nbytes : int
        What a chunk takes, decoded.
    is_text, is_number : bool
        What it holds; neither for dates, structures and the like.
    """

    def __init__(self, array: Any, what: str) -> None:
        metadata, noted = array.metadata.to_dict(), array.attrs.asdict()
        self._array, self.what, self.dtype = array, what, np.dtype(array.dtype)
        self.shape, self.chunks = tuple(array.shape), tuple(array.chunks)
        self.name, self.attrs, self.ndim = f"/{array.path}", noted, len(array.shape)
        codecs = json.dumps([metadata.get(key) for key in ("filters", "compressor", "codecs")])
        used = set(re.findall(r'"(?:id|name)": "(?:numcodecs\.)?([^"]*)"', codecs))
        if unknown := used - _CODECS:
            which, remedy = ", ".join(unknown), "Write the array again without."
            expected = "codecs of numbers and texts"
            raise unfit(what, expected, f"{which}, which may run code", remedy)
        dims = metadata.get("dimension_names") or noted.get("_ARRAY_DIMENSIONS") or ()
        self.dims = tuple(dims) if len(dims) == len(self.shape) else ()
        kind, size = self.dtype.kind, self.dtype.itemsize
        self.is_number = kind in "biuf" and size <= 8
        self.is_text = kind in "SUT" or (kind == "O" and "vlen-utf8" in used)
        self.nbytes = math.prod(self.chunks) * (size + _TEXT_NBYTES * (kind in "TO"))
        if self.dtype.kind == "f":  # xarray writes them as base64
            for name in {"_FillValue", "missing_value"} & noted.keys():
                if str(one := noted[name]).endswith("="):
                    noted[name] = struct.unpack("<d", base64.standard_b64decode(one))
        # where xarray writes `_FillValue`, if it is none by default
        if metadata["zarr_format"] == 2 and self.dims and array.fill_value:
            noted["_FillValue"] = [*np.ravel(noted.get("_FillValue", ())), array.fill_value]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, part: Any) -> NDArray[Any]:
        """Return some cells as they are stored."""
        with _reading(self.what):
            return np.asarray(self._array[part])


class ZarrTable(in_memory.CopiedTable):
    """An array of two dimensions: features are columns of a scratch file, or rows read as they lie.

    The array is read once, in whole chunks, into the scratch file; rows are read as they lie where
    no chunk holds all of them, and a row of chunks is small.

    Parameters
    ----------
    cells : _Cells
        The array.
    by_feature : bool
        Whether its first dimension is that of the features.
    arrays : mapping of str to _Cells
        It, and those beside it.
    file : File
        Where they were found.

    Raises
    ------
    InputError
        If it is no matrix of numbers, promises too much, or is of another size than its names.
    BudgetError
        If the cap cannot hold a chunk.
    StoreError
        If the disk has no room for the scratch file.
    """

    format = "zarr"
    held: tuple[Lease, ...] = ()

    def __init__(
        self, cells: _Cells, arrays: Mapping[str, _Cells], file: File, *, by_feature: bool
    ) -> None:
        self._cells, self._what, self._by_feature = cells, cells.what, by_feature
        self._check()
        if math.prod(cells.shape) > _MOST_CELLS:
            expected, found = f"at most {_MOST_CELLS:,} cells", f"the shape {cells.shape}"
            raise unfit(self._what, expected, found, "Take a part of it.")
        order = (1, 0) if by_feature else (0, 1)
        n_rows, n_features = (cells.shape[axis] for axis in order)
        self.shape: tuple[int, int] = (n_rows, n_features)
        self._name(arrays, *(cells.dims[axis] if cells.dims else None for axis in order))
        self._share(*(min(cells.chunks[axis], cells.shape[axis]) for axis in order))
        lists = [one.nbytes for one in arrays.values() if len(one.shape) == 1]
        chunk = max(cells.nbytes, *lists, 0)
        self.work_nbytes = 3 * _AT_ONCE + 5 * chunk  # packed, decoded, picked, turned; measured 4.4
        library = Lease("zarr", _ZARR_NBYTES + _OBJECTS_NBYTES * ("://" in self._what))
        self.held = (library, *self.held)
        self.opening = (library, *self.opening)
        in_memory.memory_of(self, file.options).check(self._what)
        self._band: tuple[int, NDArray[Any]] | None = None
        nbytes = 0 if self.by_rows else n_rows * n_features * self._dtype.itemsize
        self.make_room(file.scratch_file("zarr-columns", nbytes), self._dtype, nbytes)
        self.is_copied = self.by_rows

    def _share(self, rows: int, features: int) -> None:
        """Settle by what is read, and in which parts, of chunks of so many rows and features."""
        n_rows, n_features = self.shape
        self.by_rows = rows < n_rows and 8 * rows * n_features <= _AT_ONCE
        self._step = max(1, _AT_ONCE // (8 * rows * n_features)) * rows
        cell_nbytes = self._dtype.itemsize * math.prod(self._cells.shape[2:])
        rows = min(n_rows, max(1, _AT_ONCE // (cell_nbytes * features * rows)) * rows)
        more = max(1, _AT_ONCE // (cell_nbytes * features * rows)) if rows == n_rows else 1
        self._part = rows, more * features

    def _check(self) -> None:
        """Refuse what is no matrix of numbers, and note as what its cells are kept."""
        in_memory.check_shape(self._cells.shape, self._what)
        in_memory.check_dtype(self._cells.dtype, self._what)
        self._dtype = self._cells.dtype.newbyteorder("=")
        with _reading(self._what):
            self._decoder = in_memory.Decoder(self._cells.dtype, self._cells.attrs, self._what)
        self.narrow = in_memory.is_narrow(self._decoder.dtype)

    def _name(self, arrays: Mapping[str, _Cells], rows: str | None, features: str | None) -> None:
        """Take names, row ids and annotations from the arrays along the two dimensions."""
        names = self._along(arrays, features, self.shape[1])
        known = self._along(arrays, rows, self.shape[0])
        if (name := _main(names, features)) is not None:
            self.names = hdf5.NodeItems(names[name], self._what)
        self.default_ids = _main(known, rows)
        self.annotations = {name: hdf5.NodeItems(one, self._what) for name, one in known.items()}

    def _along(self, arrays: Mapping[str, _Cells], dim: str | None, n: int) -> dict[str, _Cells]:
        found = {name: one for name, one in arrays.items() if dim and one.dims == (dim,)}
        found = {name: one for name, one in found.items() if one.is_text or one.is_number}
        for name, one in found.items():
            if one.shape != (n,):
                expected = f"{n} items along {dim!r} in {name!r}"
                raise unfit(self._what, expected, one.shape[0], _AGAIN)
        return found

    def _tile(self, rows: slice, features: slice) -> NDArray[Any]:
        """Return cells as they are kept, (features, rows)."""
        if self._by_feature:
            return self._cells[features, rows]
        return self._cells[rows, features].T

    def copy(self) -> None:
        """Read the array once, and write it feature by feature."""
        (n_rows, n_features), size = self.shape, self._dtype.itemsize
        step_rows, step = self._part
        with self._copy.open("r+b") as file:
            for first in range(0, n_features, step):
                for row in range(0, n_rows, step_rows):
                    tile = self._tile(slice(row, row + step_rows), slice(first, first + step))
                    lines = np.ascontiguousarray(tile, self._dtype)
                    if step_rows == n_rows:
                        file.write(lines.data)
                        continue
                    for at, line in enumerate(lines, first):
                        file.seek((at * n_rows + row) * size)
                        file.write(line.data)

    def _rows(self, first: int) -> NDArray[Any]:
        """Return the band of rows that begins with ``first``."""
        if self._band is None or self._band[0] != first:
            self._band = None
            tile = self._tile(slice(first, first + self._step), slice(None))
            self._band = first, np.ascontiguousarray(tile.T)
        return self._band[1]

    def read(self, positions: Indices, pool: TextCoder) -> Reals:
        """Return rows or columns, as ``by_rows`` says, each a row of the result."""
        if not self.by_rows:
            return self._numbers(self.copied(positions))
        first, stop, step = int(positions[0]), int(positions[-1]) + 1, self._step
        bands = range(first // step * step, stop, step)
        with _LOCK:
            parts = [self._rows(at)[max(0, first - at) : stop - at] for at in bands]
        return self._numbers(np.concatenate(parts))

    def _numbers(self, lines: NDArray[Any]) -> Reals:
        return self._decoder.numbers(lines)


def _main(columns: Mapping[str, _Cells], dim: str | None) -> str | None:
    """Return which of the arrays along a dimension names its items."""
    texts = [name for name, one in columns.items() if one.is_text]
    return dim if dim in columns else (texts[0] if len(texts) == 1 else None)


# AnnData on Zarr: the groups and arrays of .h5ad.


class _Group:
    """A group of Zarr with the face that one of HDF5 has."""

    def __init__(self, group: Any, what: str) -> None:
        self._group, self._what, self.file = group, what, self
        self.name, self.attrs = f"/{group.path}", group.attrs.asdict()

    def members(self) -> dict[str, Any]:
        """Return groups and arrays by name."""
        return {
            name: (_Cells if _is_array(one) else _Group)(one, f"{self._what}, {name}")
            for name, one in self._group.members()
        }

    def keys(self) -> set[str]:
        """Return their names."""
        return {*self._group.keys()}

    def __contains__(self, path: str) -> bool:
        return path in self._group

    def close(self) -> None:
        """Do nothing: nothing is open."""


def _open_cells(root: Any, file: File) -> Table:
    """Return a matrix of AnnData; its name ends in ``.T`` where it is to be turned round."""
    what, name = str(file.path), file.inner
    group, turned = _Group(root, what), name.endswith(".T")
    node = hdf5.node_at(group, name.removesuffix(".T") or "X", what)
    if hdf5.is_sparse(node):
        table: Table = hdf5.SparseMatrix(node, replace(file, inner=""), turned=turned)
    else:
        table = ZarrTable(node, {}, file, by_feature=turned)
    table.format = f"anndata zarr {node.name}{', turned' * turned}"
    hdf5.describe(table, *hdf5.frames_of(group, node.name, what, turned=turned))
    return table


# VCF Zarr: genotypes of variants x samples x ploidy.

_GENOTYPES, _SAMPLES = "call_genotype", "sample_id"
_ALSO = ("variant_allele", "contig_id")
_PARTS = ("variant_contig", "variant_position", *_ALSO)


class VcfZarrTable(ZarrTable):
    """Copies of all alleles but the reference in each genotype: NaN where one is missing.

    A feature is named by its variant's id; by ``contig:position:ref:alt`` where that is "." or
    repeats.

    Raises
    ------
    InputError
        If an array is missing, or of another shape or dtype than the format says.
    """

    format = "vcf zarr, dosages of all alleles but the reference"
    default_ids = _SAMPLES

    def _check(self) -> None:
        cells = self._cells
        if len(cells.shape) != 3 or 0 in cells.shape or cells.dtype.kind != "i":
            found = f"{cells.dtype} of the shape {cells.shape}"
            raise unfit(self._what, "integers of variants x samples x ploidy", found, _AGAIN)
        self._dtype, self.narrow = np.dtype(np.int8), True

    def _name(self, arrays: Mapping[str, _Cells], rows: str | None, features: str | None) -> None:
        super()._name(arrays, rows, features)
        known = self._along(arrays, features, self.shape[1])
        if _SAMPLES not in self.annotations:
            expected = f"{_SAMPLES} along its second dimension, {rows}"
            raise unfit(self._what, expected, "another", _AGAIN)
        known |= {name: arrays[name] for name in _ALSO if name in arrays}
        if known.get("variant_allele", self._cells).shape[0] != self.shape[1]:
            del known["variant_allele"]
        self.default_ids = _SAMPLES
        ids, n = known.get("variant_id"), self.shape[1]
        self.names: Collection[str] = formats.distinct_names(
            lambda: hdf5.NodeItems(ids, self._what) if ids else repeat(".", n),
            lambda: _by_place(known, n, self._what),
        )
        self.opening, self.held = formats.finding_leases(n)

    def _tile(self, rows: slice, features: slice) -> NDArray[Any]:
        alleles = self._cells[features, rows]
        dosages: NDArray[np.int8] = (alleles > 0).sum(axis=2, dtype=np.int8)
        dosages[(alleles == -1).any(axis=2) | (alleles < 0).all(axis=2)] = -1
        return dosages

    def _numbers(self, lines: NDArray[Any]) -> Reals:
        return np.where(lines < 0, np.nan, lines.astype(np.float64))


def _by_place(arrays: Mapping[str, _Cells], n: int, what: str) -> Iterator[str]:
    """Yield what variants are called whose ids are missing or repeat."""
    if gone := [name for name in _PARTS if name not in arrays]:
        which = "by which variants are named whose ids are missing or repeat"
        expected, remedy = f"{', '.join(gone)}, {which}", "Add them, or give --names."
        raise unfit(what, expected, "none", remedy)
    contigs = dict(enumerate(hdf5.NodeItems(arrays["contig_id"], what)))
    for first in range(0, n, _AT_A_TIME):
        part = slice(first, first + _AT_A_TIME)
        contig, position, alleles = (arrays[name][part].tolist() for name in _PARTS[:3])
        for of, at, (ref, *others) in zip(contig, position, alleles, strict=True):
            yield f"{contigs.get(of, of)}:{at}:{ref}:{','.join(filter(None, others))}"


# Which array of a folder is the table.


def open_zarr(file: File) -> Table:
    """Return the table of a folder or URL: the array asked for, or the only one of two dimensions.

    Its name ends in ``.T`` where the array's first dimension is that of the features, and is not
    called so.

    Raises
    ------
    InputError
        If it cannot be read, there are several arrays or none, or it is a store already.
    BudgetError, StoreError
        As of :class:`ZarrTable`.
    """
    import zarr

    path, name = file.path, file.inner
    with _reading(str(path)):
        root = Objects(path).node() if isinstance(path, Url) else zarr.open(str(path), mode="r")
        if ATTRIBUTE in root.attrs:
            store = "a store of srs-ooc, which is ingested already"
            raise unfit(path, "a table", store, f"Search it: srs-ooc run {path}")
        if not _is_array(root) and {"obs", "var"} <= {*root.keys()}:
            return _open_cells(root, file)
        is_turned = name.endswith(".T") and (_is_array(root) or name not in root)
        name, found = _found(root, name.removesuffix(".T") if is_turned else name)
        arrays = {
            key: _Cells(one, f"{path}::{key}" if key else str(path)) for key, one in found.items()
        }
    if not name and {_GENOTYPES, _SAMPLES} <= arrays.keys():
        return VcfZarrTable(arrays[_GENOTYPES], arrays, file, by_feature=True)
    matrices = [key for key, one in arrays.items() if len(one.shape) == 2 and one.is_number]
    if name not in arrays and (name or len(matrices) != 1):
        shown = ", ".join(f"{key} {one.shape}" for key, one in list(arrays.items())[:_SHOWN])
        expected = f"an array {name!r}" if name else "one matrix of numbers"
        raise unfit(path, expected, shown or "no array", f"Name one: {path}::NAME")
    cells = arrays[name if name in arrays else matrices[0]]
    is_named = [bool(_OF_FEATURES.fullmatch(str(dim))) for dim in cells.dims] == [True, False]
    return ZarrTable(cells, arrays, file, by_feature=is_turned or is_named)


def _is_array(node: Any) -> bool:
    return hasattr(node, "shape")


def _found(root: Any, name: str) -> tuple[str, dict[str, Any]]:
    """Return the arrays where one is named, and its name there; no name if a group is named."""
    if _is_array(root):
        return name, {"": root}
    if (node := root.get(name) if name else root) is None:
        return name, dict(root.arrays())
    if not _is_array(node):
        return "", dict(node.arrays())
    folder, _, last = name.rpartition("/")
    beside = root.get(folder) if folder else root
    return last, {last: node} if beside is None else dict(beside.arrays())
