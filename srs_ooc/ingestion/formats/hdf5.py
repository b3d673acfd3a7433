"""HDF5, read with h5py: a matrix of numbers, or cells as AnnData keeps them (``.h5ad``).

The formats are described at https://support.hdfgroup.org/documentation and
https://anndata.readthedocs.io/en/stable/fileformat-prose.html. MATLAB 7.3 files are HDF5, too, as
are those of :data:`LAYOUTS`.
"""

import contextlib
import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress, pairwise
from pathlib import PurePosixPath
from sys import getsizeof
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Indices, Ints, Reals
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import unfit
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.ingestion import formats
from srs_ooc.ingestion.formats import Items, Names, Table, TextCoder, in_memory, repeated
from srs_ooc.ingestion.formats.files import File
from srs_ooc.ingestion.ingest_memory import LOOK_NBYTES, PIECE_NBYTES

_CACHE = 32 * MB
"""Chunks that are unpacked are kept up to so much, as the next lines lie in them, too."""
TOGETHER = 1 << 18
"""Cells of a sparse matrix that are turned together."""
_MOST = np.iinfo(np.uint32).max
_NETCDF = {"DIMENSION_LIST", "_Netcdf4Coordinates"}
"""One of them has a variable of netCDF of two dimensions."""
_LOCK = RLock()  # HDF5 does one thing at a time


@contextlib.contextmanager
def _reading(what: str) -> Iterator[None]:
    """Have HDF5 for oneself; what h5py raises is damage."""
    found = "found damage, or a compression that h5py does not know"
    remedy = "Get the file again, or write it anew with gzip."
    with _LOCK, formats.reading(what, "HDF5 that can be read", remedy, found=found):
        yield


def open_hdf5(at: File) -> Table:
    """Return the matrix of an HDF5 file that is asked for, turned round if that ends in ``.T``.

    Without a name it is AnnData's X, that of a layout, or the only matrix. MATLAB's are turned
    round, as it writes them so, and others whose layout says so. A sparse matrix by rows is turned
    round in ``scratch``.

    Raises
    ------
    InputError
        If there is no such matrix, or one that cannot be read: damaged, of no numbers, or elsewhere
        than in this file.
    BudgetError
        If the cap cannot hold where the lines of a sparse matrix begin.
    StoreError
        If the disk has no room to turn it.
    UsageError
        If h5py is not installed.
    """
    what, h5py = str(at), at.library()
    with _reading(what), contextlib.ExitStack() as opened:
        file = opened.enter_context(h5py.File(at.path, "r", rdcc_nbytes=2 * MB))
        name = at.inner.strip("/")
        is_cells = {"obs", "var"} <= file.keys()
        turned = name.endswith(".T") and name not in file
        name = name[: -2 * turned or None]
        known = None if is_cells else _layout_at(file, "/")
        main = known.matrix.partition("|")[0] if known else "X" * is_cells
        if (name or main) == "X" and "mod" in file and "X" not in file:
            which, remedy = [*file["mod"]], f"Name one: {at.path}::/mod/"
            raise unfit(what, "one matrix", f"MuData's {_listed(which)}", f"{remedy}{which[0]}/X.")
        node = _matrix_in(node_at(file, name or main, what), what)
        known = _layout_at(file, node.name) if known is None and is_sparse(node) else known
        if known and re.fullmatch(known.matrix or ".*", node.name[1:]):
            table = _laid_out(node, at, known, turned=turned and bool(name))
        else:
            turned ^= "MATLAB_class" in node.attrs
            table = (SparseMatrix if is_sparse(node) else Matrix)(node, at, turned=turned)
            table.format = f"{'h5ad' if is_cells else 'hdf5'} {node.name}{', turned' * turned}"
            if is_cells:
                frames = frames_of(file, node.name, what, turned=turned)
            else:
                frames = _beside(node, table.shape, what)
            describe(table, *frames)
        opened.pop_all()
    return table


# Layouts of groups that tools write, known by what is there, not by a file's name.
#
# They are described at https://www.10xgenomics.com/support (HDF5 feature-barcode matrix format),
# https://linnarssonlab.org/loompy/format, https://clue.io/connectopedia/gctx_format and
# https://biom-format.org/documentation/format_versions/biom-2.1.html.


class Side(NamedTuple):
    """Where a layout says what its samples are, or its features.

    Attributes
    ----------
    place : str
        A group; empty for the root.
    ids, symbols : str
        What in it are their ids, and names that people use, which may repeat: the first that is
        there, separated by spaces.
    more : str or None
        The group within it of which all is known of them; empty for itself, None if there is none.
    """

    place: str
    ids: str
    symbols: str = ""
    more: str | None = None

    def paths(self, names: str) -> list[str]:
        """Return where some of it would be."""
        return [f"{self.place}/{name}".lstrip("/") for name in names.split()]

    @property
    def mark(self) -> str:
        """What is always there: the group, or the first kind of ids."""
        return self.paths(self.ids)[0] if self.more != "" else self.place


class Layout(NamedTuple):
    """How a tool lays out a matrix, and what belongs to it.

    Attributes
    ----------
    name : str
        What such files are called.
    matrix : str
        Regular expression of the path of a matrix, the main one before the first bar. It is empty
        where the root is the matrix, a sparse one; else the root is the file.
    samples, features : Side
        What is known of both.
    sparse : {'', 'csr', 'csc'}
        What a sparse matrix is by its shape in the file.
    by_feature : bool
        Whether the first dimension is that of the features.
    missing : tuple of (float or str)
        What stands for a missing value, in all but ids.
    """

    name: str
    matrix: str
    samples: Side
    features: Side
    sparse: str = ""
    by_feature: bool = True
    missing: tuple[float | str, ...] = ()


_CELLS = Side("col_attrs", "CellID Cell obs_names cell_names", more="")
_GENES = Side("row_attrs", "Accession gene_ids", "Gene var_names gene_names", "")
_PERTURBED, _PROBES = Side("0/META/COL", "id", more=""), Side("0/META/ROW", "id", more="")
_SAMPLES, _OTUS = (Side(one, "ids", more="metadata") for one in ("sample", "observation"))
_V3, _V2 = Side("matrix/features", "id", "name", ""), Side("", "genes", "gene_names")

LAYOUTS = (
    Layout("10x", "matrix", Side("matrix", "barcodes filtered_barcodes"), _V3, "csc"),
    Layout("10x v2", "", Side("", "barcodes"), _V2, "csc"),
    Layout("loom", "matrix|layers/.+", _CELLS, _GENES),
    Layout("GCTX", "0/DATA/0/matrix", _PERTURBED, _PROBES, "", False, (-666, "-666", "-666.0")),
    Layout("BIOM", "observation/matrix", _SAMPLES, _OTUS, "csr"),
)
"""What is known of files that do not say it themselves."""


def _layout_at(file: Any, path: str) -> Layout | None:
    """Return the layout whose root is there: the file, or a sparse matrix."""
    for one in LAYOUTS:
        marks = one.samples.mark, one.features.mark, one.matrix.partition("|")[0]
        if bool(one.matrix) == (path == "/") and all(mark in file[path] for mark in marks if mark):
            return one
    return None


def _laid_out(node: Any, at: File, layout: Layout, *, turned: bool) -> Table:
    """Return the matrix of a layout, with what that says of rows and columns.

    One asked to be ``turned`` has features in its lines, even where its layout has samples there.
    """
    what, root = str(at), node.file if layout.matrix else node
    by_column = turned or layout.by_feature
    shape = node.file.attrs.get("shape", ()) if layout.sparse else node.shape  # BIOM: of the file
    if layout.sparse == "csc":  # by cells 10x says it beside them
        shape = node_at(node, "shape", what)[:2]
    form = (layout.sparse, np.ravel(shape).tolist())
    sides = [layout.samples, layout.features][:: -1 if turned > layout.by_feature else 1]
    both = [_known_of(root, side, layout, what) for side in sides]
    kind = SparseMatrix if layout.sparse else Matrix
    table = kind(node, at, turned=by_column, form=form)
    how = "features x samples" if by_column else "samples x features"
    told = f"{layout.name}, {node.name}, {how}"
    name_both(table, at, layout._replace(samples=sides[0], features=sides[1]), both, told)
    table.format = f"hdf5, {layout.name} {node.name}"
    return table


def name_both(
    table: Table, at: File, layout: Layout, both: Sequence[Mapping[str, Any]], told: str
) -> None:
    """Have a table take ids, names and features from what a layout says of rows and columns.

    What is said of the table begins as is ``told``.
    """
    (rows, columns), wanted, features = both, at.options.names_from, layout.features
    of = {"id": features.ids, "symbol": features.symbols, None: " ".join(features[2:0:-1])}
    ids = _main_of(rows, layout.samples.ids) or _only_of(rows)
    if (names := _main_of(columns, of[wanted])) is None and wanted:
        raise unfit(str(at), f"the {wanted} of each feature", _listed([*columns]), "Leave it out.")
    names, other = names or _only_of(columns), _main_of(columns, of["id"])
    named = ((rows, ids), (columns, names))
    lengths = [len(known[name]) if name else None for known, name in named]
    if any(n not in (None, m) for n, m in zip(lengths, table.shape, strict=True)):
        expected = "{} rows and {} columns, as are named".format(*(n or "some" for n in lengths))
        found = "{} of {} x {}".format(told.split(", ")[1], *table.shape)
        raise unfit(str(at), expected, found)
    columns = {name: one for name, one in columns.items() if len(one) == table.shape[1]}
    said = [f"{told}; row ids: {ids or 'none'}"]
    columns = _choose(table, columns, at, said)
    describe(table, (rows, ids), (columns, names))
    known = table.feature_columns.items()  # Cell Ranger calls symbols so
    table.feature_columns = {{"name": "symbol"}.get(name, name): one for name, one in known}
    repeats = table.names is not columns.get(str(names))
    said.append(f"names: {names or 'none'}{', repeated ones end in -1, -2, ...' * repeats}")
    said.append(f"--names-from id takes {other}" if other not in (None, names) else "")
    table.said, table.takes = "; ".join(filter(None, said)), ("names_from", "feature_type")


def _known_of(root: Any, side: Side, layout: Layout, what: str) -> dict[str, Any]:
    """Return what a layout says of the rows, or the columns, by name; ids before all else."""
    ids, found = side.paths(side.ids), dict[str, NodeItems]()
    paths = [one for one in ids + side.paths(side.symbols) if one in root]
    if side.more is not None and (group := f"{side.place}/{side.more}".strip("/")) in root:
        paths += [f"{group}/{name}" for name in _members(node_at(root, group, what))]
    for path in dict.fromkeys(paths):
        name = path.rpartition("/")[2].replace("@@SLASH@@", "/")  # as BIOM writes it
        if name not in found and (one := _column(node_at(root, path, what), what)):
            one.is_escaped = layout.name == "loom"
            if path not in ids and layout.missing:
                marks = [mark for mark in layout.missing if isinstance(mark, str) == one.is_text]
                one.attrs["missing_value"] = marks
            found[name] = one
    return found


def _main_of(items: Mapping[str, Any], names: str) -> str | None:
    """Return the first of some that is there; numbers are names only if all differ."""
    there = [name for name in names.split() if name in items]
    return next((one for one in there if items[one].is_text or _differ(items[one])), None)


def _only_of(items: Mapping[str, Any]) -> str | None:
    """Return the only one of texts that all differ."""
    found = [name for name, one in items.items() if one.is_text and _differ(one)]
    return found[0] if len(found) == 1 else None


def _differ(items: Iterable[Any]) -> bool:
    return not len(repeated(map(str, items))[1])


def _choose(table: Table, columns: dict[str, Any], at: File, told: list[str]) -> dict[str, Any]:
    """Have a table take features of the type that is asked for; return what is known of these.

    Of several types, none of which is asked for, all are taken, and ``told``.
    """
    wanted, types = at.options.feature_type, columns.get("feature_type", ())
    counts = Counter(map(str, types))
    listed = _listed([f"{name!r} {n}" for name, n in counts.items()])
    if wanted is None:
        more = ", all taken; --feature-type NAME takes one" * isinstance(table, SparseMatrix)
        told.append(f"feature types: {listed}{more}" if len(counts) > 1 else "")
        return columns
    if wanted not in counts or not isinstance(table, SparseMatrix):
        raise unfit(str(at), f"features of the type {wanted!r}", listed, "Name one of these.")
    told.append(f"feature type: {wanted}, of {listed}")
    is_chosen = np.fromiter((str(one) == wanted for one in types), np.bool_, len(types))
    table.choose(np.flatnonzero(is_chosen))
    chosen = partial(Names, counts[wanted])
    return {name: chosen(partial(compress, one, is_chosen)) for name, one in columns.items()}


# The objects of a file.


def node_at(group: Any, path: str, what: str) -> Any:
    """Return an object by its path; links and what lies in other files are refused."""
    for name in filter(None, path.split("/")):
        if name not in (known := _members(group)):
            is_linked = name in getattr(group, "keys", list)()
            found = f"a link or another file for {name}" if is_linked else f"no {name}"
            remedy = "Name one that is there: FILE::/path/to/matrix."
            raise unfit(what, f"{path} in the file", f"{found}, but {_listed([*known])}", remedy)
        group = known[name]
    return group


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:12]) or 'nothing'}{', ...' * (len(names) > 12)}"


def _members(group: Any) -> dict[str, Any]:
    """Return what lies in a group itself, by name; nothing of a dataset."""
    if hasattr(group, "members"):  # of Zarr, which has no links
        return dict(group.members())
    import h5py

    found = {}
    for name in group if isinstance(group, h5py.Group) else ():
        if isinstance(group.get(name, getlink=True), h5py.HardLink):
            node = group[name]
            if not (isinstance(node, h5py.Dataset) and (node.is_virtual or node.external)):
                found[name] = node
    return found


def is_sparse(node: Any) -> bool:
    """Return whether a group is a sparse matrix."""
    return not hasattr(node, "dtype") and {"data", "indices", "indptr"} <= node.keys()


def _matrix_in(group: Any, what: str) -> Any:
    """Return the only matrix of a group; a matrix itself."""
    if hasattr(group, "dtype") or is_sparse(group):
        return group
    found: list[str] = []

    def look(name: str, node: Any) -> None:
        is_text = node.attrs.get("MATLAB_class") == b"char"
        is_dense = len(getattr(node, "shape", None) or ()) == 2 and node.dtype.kind in "biuf"
        if is_sparse(node) or (is_dense and not is_text and _length(node) is None):
            found.append(f"{group.name}/{name}".replace("//", "/"))

    group.visititems(look)
    if len(found) != 1:
        remedy = f"Name one: {group.file.filename}::{found[0] if found else '/path/to/matrix'}."
        raise unfit(what, "one matrix of numbers", _listed(found), remedy)
    return node_at(group.file, found[0], what)


# What a file says of rows and columns.


def _length(node: Any) -> int | None:
    """Return how many items a dataset of one dimension has, or a vector of MATLAB's.

    Of netCDF a text may be a line of characters, of BIOM several, such as a taxonomy.
    """
    shape = getattr(node, "shape", None) or (0, 0, 0)
    is_several = node.dtype.kind == "O" and "/metadata/" in node.name if any(shape) else False
    if len(shape) == 2 and (is_several or (node.dtype == "S1" and _NETCDF & node.attrs.keys())):
        return int(shape[0]) if shape[1] else None
    is_vector = len(shape) == 2 and min(shape) == 1 and "MATLAB_class" in node.attrs
    return int(max(shape)) if len(shape) == 1 or is_vector else None


class NodeItems(Items):
    """Items of a dataset.

    Those with ``levels``, items themselves, are places among them, those with ``field`` part of
    records.
    """

    def __init__(
        self, node: Any, what: str, levels: Any = None, mask: Any = None, field: str | None = None
    ) -> None:
        dtype = node.dtype if field is None else node.dtype[field]
        if node.ndim == 2 and dtype == "S1":  # a text is a line
            dtype = np.dtype(f"S{node.shape[1]}")
        step = max(1, min(1 << 14, formats.BLOCK_NBYTES // dtype.itemsize))
        if dtype.kind in "OT":  # a chunk is unpacked 8 times at most
            step = max(formats.FEW, max(node.chunks or (0,)) // 8)
        super().__init__(_length(node) or 0, self._some, step)
        self.node, self._what, self._mask = node, f"{what}, {node.name}", mask
        self.attrs, self.is_escaped = dict(node.attrs), False
        self._levels, self._known = levels, list[Any]()
        self._cells = node if field is None else node.fields(field)
        self.is_text: bool = dtype.kind in "SOTU" if levels is None else levels.is_text
        self.is_measured = not self.is_text and dtype.kind not in "iu"
        self.noted: Any = {} if levels is None else levels.node.attrs

    @property
    def held_nbytes(self) -> int:
        """Memory of the levels."""
        return sum(8 + getsizeof(one) for one in self._levels or ())

    def declared(self) -> list[str] | None:
        """Return the categories, none if they have no order; None if it has no such."""
        if self._levels is None:
            return None
        self._some(slice(0))
        return [str(in_memory.text_of(one)) for one in self._known if self.noted.get("ordered")]

    def _some(self, some: slice) -> list[Any]:
        with _reading(self._what):
            if self._levels is not None and not self._known:
                self._known = [*self._levels]
            is_row = self.node.ndim == 2 and self.node.shape[0] != len(self)
            cells = self._cells[(0, some) if is_row else some]
            if cells.ndim == 2 and cells.dtype == "S1":
                cells = cells.view(f"S{cells.shape[1]}")
            elif cells.ndim == 2 and cells.dtype.kind == "O":
                cells = np.array([b"; ".join(filter(None, line)) for line in cells], object)
            decoder = in_memory.Decoder(cells.dtype, self.attrs, self._what)
            items = decoder.items(np.ravel(cells))
            if self.is_escaped:
                items = [html.unescape(one) if "&#" in str(one) else one for one in items]
            if self._levels is not None:
                items = [None if code < 0 else self._known[code] for code in items]
            gone = [False] * len(items) if self._mask is None else self._mask[some].tolist()
        return [None if is_gone else item for item, is_gone in zip(items, gone, strict=True)]


_Frame = tuple[Mapping[str, Any], str | None]
"""What is known of rows or columns, and which of it is their ids or names."""


def _column(node: Any, what: str, levels: Any = None) -> NodeItems | None:
    """Return a column of a data frame, as any version of AnnData wrote it; None if it is none."""
    parts = _members(node)
    noted, levels = node.attrs if "codes" in parts else None, parts.get("categories", levels)
    node = parts.get("values", parts.get("codes", node))
    dtype = getattr(node, "dtype", np.dtype("V1"))
    is_known = dtype.kind in "biufTU" or (dtype.kind in "SO" and _is_text(dtype))
    if not is_known or _length(node) is None:
        return None
    if (reference := node.attrs.get("categories")) is not None and not isinstance(reference, str):
        levels = node_at(node.file, node.file[reference].name, what)
    known = None if levels is None else _column(levels, what)
    if levels is not None and known is None:
        return None
    found = NodeItems(node, what, known, parts.get("mask"))
    found.noted = noted or found.noted
    return found


def _is_text(dtype: np.dtype[Any]) -> bool:
    import h5py

    return h5py.check_string_dtype(dtype) is not None


def _frame(frame: Any, what: str) -> _Frame:
    """Return a data frame of AnnData, and its index."""
    members = _members(frame)
    if fields := getattr(getattr(frame, "dtype", None), "names", None):  # before 0.7
        known = _members(_members(frame.file).get("uns"))
        known = {name: known.get(f"{name}_categories") for name in fields}
        levels = {name: None if one is None else _column(one, what) for name, one in known.items()}
        parts = {name: NodeItems(frame, what, levels[name], field=name) for name in fields}
        return parts, fields[0]
    levels = _members(members.pop("__categories", {}))
    columns = {name: _column(one, what, levels.get(name)) for name, one in members.items()}
    return {name: one for name, one in columns.items() if one}, frame.attrs["_index"]


def frames_of(root: Any, matrix: str, what: str, *, turned: bool) -> list[_Frame]:
    """Return what AnnData says of the rows and the columns of a matrix, by its name."""
    groups = [f"{one}/".lstrip("/") for one in PurePosixPath(matrix).parents]  # the nearest first
    names = [next((one + of for one in groups if one + of in root), of) for of in ("obs", "var")]
    both = [_frame(node_at(root, one, what), what) for one in names]
    return both[:: -1 if turned else 1]


def describe(table: Table, rows: _Frame, columns: _Frame) -> None:
    """Have a table take row ids and names from what its file says of rows and columns."""
    n_rows, n_columns = table.shape
    table.annotations = {name: one for name, one in rows[0].items() if len(one) == n_rows}
    table.default_ids = rows[1] if rows[1] in table.annotations else None
    if (names := columns[0].get(str(columns[1]))) is not None and len(names) == n_columns:
        is_distinct = _differ(names)
        table.names = names if is_distinct else Names(n_columns, lambda: Names.numbered(names))
        of_names = Lease("which names repeat", (24 if is_distinct else Names.NUMBERED) * n_columns)
        table.held = (*(table.held or ()), of_names)
    table.feature_columns = {
        name: one
        for name, one in columns[0].items()
        if len(one) == n_columns and one is not table.names and not getattr(one, "is_measured", 0)
    }
    levels = sum(getattr(one, "held_nbytes", 0) for one in table.feature_columns.values())
    table.held = (*(table.held or ()), *[Lease("texts of categories", levels)] * bool(levels))


def _beside(matrix: Any, shape: tuple[int, int], what: str) -> list[_Frame]:
    """Return what lies beside a matrix and is as long as its rows, or columns.

    Their ids or names are the only distinct texts; none where rows and columns are as many.
    """
    known = {name: _column(one, what) for name, one in _members(matrix.parent).items()}
    frames: list[_Frame] = []
    for length in shape:
        items = {name: one for name, one in known.items() if one and len(one) == length}
        frames.append((items, _only_of(items) if shape[0] != shape[1] else None))
    rows, (columns, names) = frames
    return [rows, ({name: columns[name] for name in columns if name == names}, names)]


# Matrices.


class Matrix(Table):
    """A dataset of two dimensions: a ``Table`` by rows or by columns, as its chunks have it.

    Parameters
    ----------
    node : h5py.Dataset
        Of numbers; ``turned`` if its rows are the columns of the table.
    file : File
        Where it was found.
    form : (str, (int, int))
        What a sparse one is, csr or csc, and its shape, where it does not say so itself.

    Raises
    ------
    InputError
        If it holds no numbers, or fewer than it should.
    """

    def __init__(self, node: Any, file: File, *, turned: bool, form: Any = ("", None)) -> None:
        self._node, self._what, self._file, self._turned = node, str(file), file, turned
        self._form = form
        # loaded it takes 12 MB; HDF5 keeps some of the memory that it freed
        self.held = (Lease("h5py", 30 * MB),)
        self._open()
        self._hold(100 * self.shape[0])

    def _open(self) -> None:
        import h5py

        node, what = self._node, self._what
        in_memory.check_shape(node.shape or (), what)
        in_memory.check_dtype(node.dtype, what)
        self._decoder = in_memory.Decoder(node.dtype, node.attrs, what)
        self.narrow = in_memory.is_narrow(self._decoder.dtype)
        self.shape: tuple[int, int] = node.shape[:: -1 if self._turned else 1]
        self.work_nbytes, self.by_rows = 8 * MB, not self._turned
        if node.chunks is None:
            if (stored := node.id.get_storage_size()) < node.nbytes:
                raise unfit(what, f"{node.nbytes:,} bytes for {node.shape}", f"{stored:,}")
            return
        rows, columns = node.chunks[:: -1 if self._turned else 1]
        size = rows * columns * node.dtype.itemsize
        band = ceil_div(self.shape[1], columns) * size
        # By rows, which come in order, a chunk is unpacked so often; by columns once for each.
        times = 1 if band <= _CACHE else min(rows, ceil_div(band, PIECE_NBYTES))
        self.by_rows = times < columns or rows == 1
        cache = min(_CACHE, band) if self.by_rows else 0
        access = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
        access.set_chunk_cache(100_003, cache, 1.0)
        self._node = h5py.Dataset(h5py.h5d.open(node.file.id, node.name.encode(), access))
        self.work_nbytes += MB + cache + 2 * size

    def _hold(self, nbytes: int) -> None:
        self.held = (*(self.held or ()), Lease("what the file says of its lines", nbytes))

    def close(self) -> None:
        """Close the file."""
        with _LOCK:
            self._node.file.close()

    def _lines(self, first: int, stop: int) -> Reals:
        """Return lines first .. stop - 1: rows if ``by_rows``, else columns."""
        with _reading(self._what):
            is_first = self.by_rows != self._turned
            cells = self._node[first:stop] if is_first else self._node[:, first:stop].T
        return self._decoder.numbers(cells)

    def read(self, positions: Indices, pool: TextCoder) -> Reals:
        """Return rows or columns, as ``by_rows`` says, each a row of the result."""
        runs = np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1)
        return np.concatenate([self._lines(int(run[0]), int(run[-1]) + 1) for run in runs])


class SparseMatrix(Matrix, in_memory.CopiedTable):
    """A group with a sparse matrix: some of its columns are made dense at a time.

    One by rows is turned round on disk first, cell by cell, when it is first read.
    """

    _chosen: Indices | None = None

    def _open(self) -> None:
        node, what = self._node, self._what
        word = node.attrs.get("encoding-type", node.attrs.get("h5sparse_format", self._form[0]))
        kind = str(word.decode() if isinstance(word, bytes) else word)[:3]
        shape = node.attrs.get("shape", node.attrs.get("h5sparse_shape", self._form[1]))
        if kind not in ("csr", "csc") or shape is None:
            expected = "a sparse matrix that says whether it is csr or csc, and its shape"
            raise unfit(what, expected, f"{kind!r} and {shape}", "Write it with AnnData.")
        in_memory.check_shape(tuple(map(int, shape)), what)
        n_rows, n_columns = map(int, shape[:: -1 if self._turned else 1])
        self.shape, self.by_rows, self._n_items = (n_rows, n_columns), False, n_columns
        is_by_row = (kind == "csr") != self._turned
        n_lines = self.shape[0 if is_by_row else 1]
        parts = [node_at(node, name, what) for name in ("data", "indices", "indptr")]
        self._data, self._indices, ends = parts
        in_memory.check_dtype(self._data.dtype, what)
        self.narrow = in_memory.is_narrow(self._data.dtype)
        packed = 5 if self._file.format.name == "Zarr" else 2  # 5 as of ZarrTable
        chunks = sum(packed * one.dtype.itemsize * one.chunks[0] for one in parts if one.chunks)
        self.work_nbytes = 12 * MB + chunks + 40 * n_rows
        self._hold(16 * n_lines)
        if 16 * n_lines > LOOK_NBYTES // 2:
            self._file.check(self)
        self._ends = ends[: n_lines + 2].astype(np.int64)
        counts = np.diff(self._ends)
        is_right = len(counts) == n_lines and counts.min() >= 0
        lengths = {int(self._ends[-1]), len(self._data), len(self._indices)}
        if not is_right or self._ends[0] != 0 or len(lengths) > 1:
            raise unfit(what, f"{n_lines:,} lines of cells", "lengths that do not agree")
        self._dtype = self._data.dtype
        self._record = np.dtype([("line", "<u4"), ("item", "<u4"), ("cell", self._dtype)])
        self.is_copied = not is_by_row
        if is_by_row:
            self.scratch_nbytes = lengths.pop() * self._record.itemsize
            self._copy = self._file.scratch_file("sparse-columns", self.scratch_nbytes)
            self.work_nbytes += 80 * TOGETHER
            self._hold(40 * n_columns)

    def read(self, positions: Indices, pool: TextCoder) -> Reals:
        """Return columns, each a row of the result."""
        self.prepare()
        return super().read(positions if self._chosen is None else self._chosen[positions], pool)

    def choose(self, columns: Indices) -> None:
        """Be a table of some of the columns alone."""
        self._chosen, self.shape = columns, (self.shape[0], len(columns))
        self.held = (*(self.held or ()), Lease("which features are chosen", 9 * self._n_items))

    def _lines(self, first: int, stop: int) -> Reals:
        n_rows, ends = self.shape[0], self._ends[first : stop + 1]
        dense = np.zeros((stop - first) * n_rows, self._dtype)
        for start in range(int(ends[0]), int(ends[-1]), TOGETHER):
            end = min(start + TOGETHER, int(ends[-1]))
            if self._copy is None:
                with _reading(self._what):
                    places, found = self._places(start, end, n_rows), self._data[start:end]
            else:
                at = start * self._record.itemsize
                records = np.fromfile(self._copy, self._record, end - start, offset=at)
                places, found = records["item"].astype(np.int64), records["cell"]
            each = np.diff(np.clip(ends, start, end))
            places += np.repeat(np.arange(stop - first) * n_rows, each)
            np.add.at(dense, places, found)  # cells written twice are summed, as SciPy does
        return in_memory.as_floats(dense.reshape(stop - first, n_rows), self._what)

    def _places(self, start: int, end: int, n_items: int) -> Ints:
        """Return where cells start .. end - 1 stand in their lines."""
        with _reading(self._what):
            places: Ints = self._indices[start:end].astype(np.int64)
        if len(places) and not 0 <= int(places.min()) <= int(places.max()) < n_items:
            found = f"{places.min()} to {places.max()}"
            raise unfit(self._what, f"indices below {n_items:,}", found)
        return places

    def copy(self) -> None:
        """Write the cells in the order of columns, those of a column in the order of rows.

        They are counted by column first, and so go where they belong but for the order in a band of
        columns; bands are sorted one by one. A column that is a band of its own, as all long ones
        are, is in order already.
        """
        counts = self._count()
        ends, size = np.zeros(len(counts) + 1, np.int64), self._record.itemsize
        n_cells = int(np.cumsum(counts, out=ends[1:])[-1])
        bands = ends[:-1] // TOGETHER + ends[1:] // TOGETHER
        firsts, band = np.unique(bands, return_index=True, return_inverse=True)[1:]
        band = band.astype(np.min_scalar_type(len(firsts)))  # two bytes are fast to sort
        to = ends[firsts]
        with self._copy.open("w+b") as file:
            for start in range(0, n_cells, TOGETHER):
                cells = self._records(start, min(start + TOGETHER, n_cells))
                bands = band[cells["line"]]
                cells, first = np.take(cells, np.argsort(bands, kind="stable")), 0
                for one, count in enumerate(np.bincount(bands, minlength=len(to)).tolist()):
                    file.seek(int(to[one]) * size)
                    file.write(cells[first : first + count].data)
                    first, to[one] = first + count, to[one] + count
            for start, end in pairwise([*ends[firsts].tolist(), n_cells]):
                if end - start > TOGETHER:
                    continue
                file.seek(start * size)
                cells = np.frombuffer(file.read((end - start) * size), self._record)
                lines = cells["line"] - cells["line"].min(initial=_MOST)
                lines = lines.astype(np.min_scalar_type(lines.max(initial=0)))  # two bytes are fast
                file.seek(start * size)
                file.write(np.take(cells, np.argsort(lines, kind="stable")).data)
        self._ends = ends

    def _count(self) -> Ints:
        """Return how many cells each column has."""
        n_cells, counts = int(self._ends[-1]), np.zeros(self._n_items, np.int64)
        for at in range(0, n_cells, TOGETHER):
            places = self._places(at, min(at + TOGETHER, n_cells), len(counts))
            counts += np.bincount(places, minlength=len(counts))
        return counts

    def _records(self, start: int, end: int) -> NDArray[Any]:
        """Return some cells of a matrix by rows, each with its column and row."""
        first, last = np.searchsorted(self._ends, [start, end - 1], "right").tolist()
        cells = np.empty(end - start, self._record)
        cells["line"] = self._places(start, end, self._n_items)
        each = np.diff(np.clip(self._ends[first - 1 : last + 1], start, end))
        cells["item"] = np.repeat(np.arange(first - 1, last), each)
        with _reading(self._what):
            cells["cell"] = self._data[start:end]
        return cells
