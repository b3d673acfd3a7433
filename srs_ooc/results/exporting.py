"""Columns of a store as a file, or as a smaller store, and which of them are meant."""

import csv
import errno
import gzip
import io
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import islice, repeat
from pathlib import Path
from shlex import quote
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Floats, Integers, Ints, Reals
from srs_ooc.base.budget import Budget, Lease
from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.base.files import check_free, explained, published_file, published_folder
from srs_ooc.base.frames import arrow_numbers, arrow_texts, library
from srs_ooc.base.text import MB, ceil_div, no_formula
from srs_ooc.ingestion.formats import Names
from srs_ooc.ingestion.formats.genotypes import VARIANT, is_plink
from srs_ooc.ingestion.ingest_memory import StoreForm
from srs_ooc.ingestion.scratch import text_blocks
from srs_ooc.ingestion.shards import MERGED_NBYTES, Merging, merging_leases
from srs_ooc.native import _native
from srs_ooc.results.ranking import Ranking
from srs_ooc.runs.inputs import LOOKING_NBYTES, SideFile, read_lines
from srs_ooc.runs.run import Run
from srs_ooc.store.bed import HEAD
from srs_ooc.store.manifest import Shape
from srs_ooc.store.store import Store

COLUMN_NBYTES, KNOWN_NBYTES = 400, 120
"""Memory of an exported column: its name, its place, what is kept of it until all is written; of a
text that is known of it."""
BLOCK_NBYTES = MB
"""Values of rows on their way to a file."""
USUAL_ID_NBYTES = 64
"""What a row id is longer than counts like values."""

# Some columns of a store: where they lie, and their values one part after another.


def places_of(store: Store, positions: Integers) -> Ints:
    """Return the stored position of each source, in the order of the sources."""
    is_wanted = np.zeros(store.n_features, np.bool_)
    is_wanted[positions] = True
    wanted, which = np.unique(positions, return_inverse=True)
    places = np.empty(len(wanted), np.int64)
    for start, sources in store.pieces("positions"):
        here = np.flatnonzero(is_wanted[sources])
        places[np.searchsorted(wanted, sources[here])] = start + here
    return places[which]


def column_parts(store: Store, positions: Integers) -> Iterator[tuple[int, int, Reals]]:
    """Yield parts of columns: which of ``positions``, the first row, the values from there on."""
    places = places_of(store, positions)
    order = np.argsort(places, kind="stable")
    for i, row, part in store.column_parts(places[order]):
        yield int(order[i]), row, part


def texts_of(codes: Floats, categories: list[str]) -> list[str | None]:
    """Return the texts of codes; None where missing."""
    return [None if np.isnan(code) else categories[int(code)] for code in codes]


def gather_columns(file: BinaryIO, store: Store, positions: Ints) -> None:
    """Write the columns one after another, as float64, to a scratch file."""
    for column, row, part in column_parts(store, positions):
        file.seek(8 * (column * store.n_rows + row))
        file.write(part.astype(np.float64).tobytes())
    file.flush()


def read_values(file: BinaryIO, n: int, first: int) -> Floats:
    """Return so many values of a scratch file, from the ``first`` on."""
    file.seek(8 * first)
    values = np.fromfile(file, np.float64, n)
    if len(values) < n:
        raise OSError(errno.EIO, "the scratch file ended early")
    return values


# Some columns of a store as a smaller store, with all that is known of its rows.


def _export_store(store: Store, positions: Ints, out: Path, room_nbytes: int) -> None:
    """Write columns to a store of their own: values, kinds, categories, and all of its rows."""
    store = store.of_target(None)  # an added target need not be there of all rows
    source: dict[str, Any] = {
        "format": "store",
        "name": store.path.name,
        "fingerprint": store.fingerprint,
        "n_features": store.n_features,
    }
    if is_plink(store.manifest.source):
        source["plink"] = True
    names = text_blocks(store.names[i] for i in positions.tolist())
    with published_folder(out) as folder, store.unchanged():
        merging = Merging([store], places_of(store, positions))
        merging.write(folder, names, room_nbytes, lambda *_: None, source=source)


# The formats of exported columns; every one goes through memory in blocks of rows.


class Exported:
    """What is exported.

    Parameters
    ----------
    store : Store
        The store.
    wanted : int64 (k,)
        Source positions of the columns.
    columns : file
        Their values, as :func:`gather_columns` writes them.
    safe : bool
        Whether texts that a spreadsheet would take for formulas are marked.

    Attributes
    ----------
    id_name, target_name : str
        Titles of the row ids and of the target.
    classes : tuple of str
        Labels of the target's codes; empty for a regression.
    header : list of str
        Names of the columns.
    categories : list
        Texts of the codes of each column; None where it holds numbers.
    n_rows : int
        Rows of all blocks.
    """

    def __init__(self, store: Store, wanted: Ints, columns: BinaryIO, *, safe: bool) -> None:
        self.store, self.wanted, self._columns, self.safe = store, wanted, columns, safe
        self.target_name, self.classes = store.manifest.target_name, store.manifest.classes
        self.header = [store.names[i] for i in wanted.tolist()]
        self.categories, id_name = _categories(store, wanted), store.manifest.row_id_name
        if id_name is None:
            id_name = "row_id"
            while id_name in self.header or id_name == self.target_name:
                id_name = "_" + id_name
        self.id_name = id_name
        self._rows = store.target_rows()  # of a target that only some have
        self.n_rows = store.n_rows if self._rows is None else len(self._rows)

    def blocks(self) -> Iterator[tuple[list[str], Floats, list[Any]]]:
        """Yield the rows, in their order: ids, values (m, k), and targets.

        Values are NaN where missing; targets are class codes or numbers.
        """
        store, n_rows, n_columns = self.store, self.store.n_rows, len(self.header)
        target, ids = store.target(), iter(store.row_ids)
        long_ids = max(0, store.manifest.lengths["row_ids_bytes"] // n_rows - USUAL_ID_NBYTES)
        step = max(1, BLOCK_NBYTES // (8 * max(1, n_columns) + long_ids))
        for start in range(0, n_rows, step):
            stop = min(start + step, n_rows)
            block = np.empty((stop - start, n_columns))
            for column in range(n_columns):
                first = column * n_rows + start
                block[:, column] = read_values(self._columns, stop - start, first)
            some, here = list(islice(ids, stop - start)), target[start:stop]
            if self._rows is not None:
                there = np.intersect1d(np.arange(start, stop), self._rows) - start
                some, block, here = [some[i] for i in there.tolist()], block[there], here[there]
            yield some, block, here.tolist()

    def require_numbers(self, what: str) -> None:
        """Refuse categories.

        Raises
        ------
        UsageError
            Naming the first column that has some.
        """
        for name, texts in zip(self.header, self.categories, strict=True):
            if texts is not None:
                raise UsageError(
                    f"expected columns of numbers to export as {what}, found categories in "
                    f"{name!r}. Export CSV or Parquet, which hold texts."
                )


def write_csv(file: BinaryIO, table: Exported) -> None:
    """Write CSV; a value is the shortest decimal that reads back as the same float64."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    show = no_formula if table.safe else str
    writer.writerow(map(show, [table.id_name, *table.header, table.target_name]))
    for ids, block, targets in table.blocks():
        for name, row, item in zip(ids, block, targets, strict=True):
            cells = [
                number_text(value) if texts is None or value != value else show(texts[int(value)])  # noqa: PLR0124
                for value, texts in zip(row.tolist(), table.categories, strict=True)
            ]
            label = show(table.classes[item]) if table.classes else number_text(item)
            writer.writerow([show(name), *cells, label])
    text.flush()
    text.detach()


def write_csv_gz(file: BinaryIO, table: Exported) -> None:
    """Write CSV, compressed."""
    with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        write_csv(packed, table)  # type: ignore[arg-type]


def number_text(value: float) -> str:
    """Return the shortest decimal of a number, without ``.0``; nothing for NaN."""
    return "" if value != value else repr(value).removesuffix(".0")  # noqa: PLR0124 (NaN)


def write_npy(file: BinaryIO, table: Exported) -> None:
    """Write the values alone, float64 (n_rows, k), NaN where missing."""
    table.require_numbers(".npy")
    shape = (table.n_rows, len(table.header))
    head = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, head)
    for _, block, _ in table.blocks():
        file.write(np.ascontiguousarray(block, "<f8").tobytes())


def write_svmlight(file: BinaryIO, table: Exported) -> None:
    """Write svmlight: columns from 1, zeros left out, ``nan`` where missing.

    Classes are numbered in the order that the first line, a comment, says.
    """
    table.require_numbers("svmlight")
    if table.classes:
        numbered = ", ".join(f"{i} {label!r}" for i, label in enumerate(table.classes))
        file.write(f"# classes: {numbered}\n".encode())
    for _, block, targets in table.blocks():
        for row, item in zip(block, targets, strict=True):
            there = np.flatnonzero(row != 0)
            cells = [f"{i + 1}:{float(row[i])!r}".removesuffix(".0") for i in there.tolist()]
            file.write(" ".join([number_text(item), *cells]).encode() + b"\n")


def write_names(file: BinaryIO, table: Exported) -> None:
    """Write the names of the columns, one a line, as ``--exclude`` reads them."""
    for name in table.header:
        if "\n" in name or "\r" in name:
            raise UsageError(f"expected names without line ends to list, found {name[:40]!r}.")
    file.write("".join(f"{name}\n" for name in table.header).encode())


def write_parquet(file: BinaryIO, table: Exported) -> None:
    """Write Parquet, a row group a block: float64, texts of categories, null where missing."""
    import pyarrow.parquet as pq

    _write_arrow(table, lambda schema: pq.ParquetWriter(file, schema))


def write_feather(file: BinaryIO, table: Exported) -> None:
    """Write Feather (an Arrow file), a record batch a block; values as in Parquet."""
    import pyarrow as pa

    _write_arrow(table, lambda schema: pa.ipc.new_file(file, schema))


def _write_arrow(table: Exported, opened: Callable[[Any], Any]) -> None:
    import pyarrow as pa

    kinds = [pa.float64() if texts is None else pa.string() for texts in table.categories]
    titles = [table.id_name, *table.header, table.target_name]
    types = [pa.string(), *kinds, pa.string() if table.classes else pa.float64()]
    schema = pa.schema([pa.field(*pair) for pair in zip(titles, types, strict=True)])
    classes = list(table.classes) or None
    with opened(schema) as writer:
        for ids, block, targets in table.blocks():
            values = zip(block.T, table.categories, strict=True)
            columns = [_arrow_column(column, texts) for column, texts in values]
            last = _arrow_column(np.array(targets, np.float64), classes)
            arrays = [arrow_texts(ids), *columns, last]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _arrow_column(values: Floats, texts: list[str] | None) -> Any:
    return arrow_numbers(values) if texts is None else arrow_texts(texts_of(values, texts))


def write_h5ad(file: BinaryIO, table: Exported) -> None:
    """Write AnnData, as anndata 0.12 lays it out: ``obs`` has the target, ``var`` what is known.

    A name there has ``_`` for a slash, by which HDF5 parts groups.
    """
    import h5py

    table.require_numbers(".h5ad")
    text, n_rows, classes = h5py.string_dtype(), table.n_rows, table.classes
    columns, dtype = table.store.manifest.feature_columns, table.store.manifest.float_dtype
    cells = table.store.feature_cells(table.wanted.tolist()) if columns else ()
    known = dict(zip(columns, zip(*cells, strict=True), strict=False))
    names = (table.target_name, *known)
    target, *titles = Names.numbered([re.sub("/|^_index$|^$", "_", name) for name in names])
    of_columns = dict(zip(["_index", *titles], [table.header, *known.values()], strict=True))

    def put(at: Any, name: str, kind: str, version: str = "0.2.0", **given: Any) -> Any:
        made = at.create_dataset(name, **given) if given else at.create_group(name)
        made.attrs.update({"encoding-type": kind, "encoding-version": version})
        return made

    with h5py.File(file, "w") as root:
        root.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        for name in ("layers", "obsm", "obsp", "uns", "varm", "varp"):
            put(root, name, "dict", "0.1.0")
        obs, var = (put(root, name, "dataframe") for name in ("obs", "var"))
        obs.attrs.update({"_index": "_index", "column-order": [target]})
        var.attrs.update({"_index": "_index", "column-order": np.array(titles, text)})
        for name, texts in of_columns.items():
            put(var, name, "string-array", data=texts, dtype=text)
        if classes:
            put(obs, target, "categorical").attrs["ordered"] = False
            put(obs, f"{target}/categories", "string-array", data=classes, dtype=text)
        place, kind = (f"{target}/codes", "i4") if classes else (target, "f8")
        targets = put(obs, place, "array", shape=n_rows, dtype=kind)
        ids = put(obs, "_index", "string-array", shape=n_rows, dtype=text)
        values = put(root, "X", "array", shape=(n_rows, len(table.header)), dtype=dtype)
        first = 0
        for some, block, here in table.blocks():
            rows = slice(first, first := first + len(some))
            ids[rows], values[rows], targets[rows] = some, block, here


Writer = Callable[[BinaryIO, Exported], None]
WRITERS: dict[str, Writer] = {
    ".csv": write_csv,
    ".csv.gz": write_csv_gz,
    ".parquet": write_parquet,
    ".feather": write_feather,
    ".npy": write_npy,
    ".h5ad": write_h5ad,
    ".svmlight": write_svmlight,
    ".svm": write_svmlight,
    ".txt": write_names,
}
"""What writes a file, by how its name ends."""
_ARROW = (write_parquet, write_feather)
_NEEDS: dict[Writer, tuple[str, str]] = dict.fromkeys(_ARROW, ("pyarrow", "arrow"))
_NEEDS[write_h5ad] = "h5py", "cells"
"""What a format takes, and what installs it."""
_OTHERS = (".arrow", ".npz", ".xlsx", ".xls", ".json")
STORE_ENDING, BED_ENDING = ".zarr", ".bed"


def is_store_name(out: Path) -> bool:
    """Return whether a path says that it is to be a store."""
    return out.name.lower().endswith(STORE_ENDING)


def writer_of(out: Path) -> Writer:
    """Return what writes a file by its name; names that promise nothing else get CSV.

    Raises
    ------
    UsageError
        If the name promises a format that is not written, or pyarrow is not installed.
    """
    name = out.name.lower()
    for ending, writer in WRITERS.items():
        if name.endswith(ending):
            if needs := _NEEDS.get(writer):
                remedy = f"Run `pip install 'srs-ooc[{needs[1]}]'`, or export CSV."
                library(needs[0], str(out), remedy)
            return writer
    promised = Path(name.removesuffix(".gz")).suffix
    if str(out) == "-" or promised in (*_OTHERS, *WRITERS):
        known = ", ".join([*WRITERS, BED_ENDING, STORE_ENDING])
        raise UsageError(
            f"{out}: expected the name of a file that ends in {known}, found "
            f"{'-' if str(out) == '-' else promised}. Choose another name."
        )
    return write_csv_gz if name.endswith(".gz") else write_csv


# Columns of a store as a file, or as a smaller store.


def export_columns(
    store: Store,
    positions: Integers,
    out: Path,
    *,
    cap_nbytes: int | None = None,
    safe: bool = False,
) -> None:
    """Write columns of a store to a file, in the format that its name ends in.

    A store of their own if that is ``.zarr``: with values, codes, kinds and categories of the
    columns, and of the rows the target, ids, weights, strata, groups, covariates and events, all as
    they are. CSV unless it says otherwise: the header is the name of the row ids (``row_id`` where
    rows are numbered), the names of the columns, and the name of the target. A value is the
    shortest decimal that reads back as the same float64; a category is its text; a missing one is
    empty. Rows go through memory in bounded blocks. Files of PLINK 1 if it is ``.bed``.

    Parameters
    ----------
    store : Store
        The store.
    positions : int (k,)
        Source positions of the wanted features, in the order wanted.
    out : Path
        The file or store to make; it appears complete or not at all.
    cap_nbytes : int, optional
        Cap on the memory of the whole process.
    safe : bool
        Texts that a spreadsheet would take for formulas are marked, see
        :func:`srs_ooc.base.text.no_formula`.

    Raises
    ------
    BudgetError
        If the cap cannot hold a row and what it takes to read.
    StoreError
        If the store is damaged, replaced meanwhile, or keeps no values, or ``out`` cannot be
        written.
    UsageError
        If ``out`` exists, or a position is outside the table.
    """
    check_free(out)
    wanted = np.asarray(positions, np.int64)
    if len(wanted) and not 0 <= wanted.min() <= wanted.max() < store.n_features:
        raise UsageError(
            f"expected positions in 0 .. {store.n_features - 1}, found "
            f"{int(wanted.min())} .. {int(wanted.max())}. Check that run and store belong "
            "together."
        )
    leases, room_nbytes = export_leases(store, len(wanted), out), MERGED_NBYTES
    if cap_nbytes is not None:
        budget = Budget(cap_nbytes, leases)
        budget.check()
        room_nbytes = budget.free_nbytes
    with explained(out):
        if is_store_name(out):
            _export_store(store, wanted, out, room_nbytes)
        elif out.suffix.lower() == BED_ENDING:
            _export_bed(store, np.sort(wanted), out)
        else:
            with (
                published_file(out) as scratch,
                store.unchanged(),
                tempfile.TemporaryFile(dir=out.parent) as columns,
            ):
                gather_columns(columns, store, wanted)
                table = Exported(store, wanted, columns, safe=safe)
                with scratch.open("w+b") as file:
                    writer_of(out)(file, table)


def export_leases(store: Store, n_columns: int, out: Path) -> list[Lease]:
    """Return what an export of so many columns takes at least, besides the process.

    Raises
    ------
    StoreError
        If the store keeps no values.
    """
    chunk, columns = 3 * store.values().chunk_nbytes, COLUMN_NBYTES * n_columns
    if is_store_name(out):
        per_place = 24 if store.manifest.kind_counts["categorical"] else 1
        form = StoreForm(store.manifest.code_dtype, store.manifest.values_dtype)
        return [
            *merging_leases(Shape(store.n_rows, n_columns), form),
            Lease("a chunk of values", chunk),
            Lease(f"{n_columns} columns of {out.name}", columns),
            Lease(f"places of {store.n_features} features", per_place * store.n_features),
        ]
    arrow = 40 * MB * ((writer := writer_of(out)) in _NEEDS)  # a library, and a batch of it
    if writer is write_h5ad:
        columns += KNOWN_NBYTES * n_columns * len(store.manifest.feature_columns)
    return [
        Lease("a chunk of values", chunk),
        Lease(f"a row of {n_columns} columns", columns),
        Lease(f"{store.n_features} places", store.n_features),
        Lease(f"target of {store.n_rows} rows", 16 * store.n_rows),
        Lease("rows on their way", 3 * BLOCK_NBYTES + arrow),
    ]


_STATUS = {"control": "1", "case": "2"}, {"0": "1", "1": "2"}, {"1": "1", "2": "2"}
"""Classes that a .fam file can hold, and how it does."""


def _export_bed(store: Store, wanted: Ints, out: Path) -> None:
    """Write columns, in the order of the source, and all rows as the three files of PLINK 1."""
    m, names, asked = store.manifest, store.names, wanted.tolist()
    cells = store.feature_cells(asked) if m.feature_columns else repeat(())
    status = next((one for one in _STATUS if one.keys() == {*m.classes}), {})
    labels = [status.get(label, "-9") for label in m.classes]

    def line(fields: Iterable[str], what: str) -> bytes:
        if len((joined := "\t".join(fields)).split()) != len(VARIANT):
            raise UsageError(
                f"{out}: expected 0, 1, 2 copies of an allele, chromosome, position, alleles, and "
                f"ids without spaces, found another, or none, of {what!r}. Ingest the .bed, .pgen, "
                "VCF or .traw file again with this version, or export CSV."
            )
        return f"{joined}\n".encode()

    with ExitStack() as stack, store.unchanged(), tempfile.TemporaryFile(dir=out.parent) as columns:
        paths = [out, out.with_suffix(".bim"), out.with_suffix(".fam")]
        made = [stack.enter_context(published_file(path)) for path in paths]
        bed, bim, fam = (stack.enter_context(path.open("wb")) for path in made)
        for at, some in zip(asked, cells, strict=False):
            said = {"id": names[at], "cM": "0"} | dict(zip(m.feature_columns, some, strict=False))
            bim.write(line((said.get(one, "") for one in VARIANT), names[at]))
        for iid, item in zip(store.row_ids, store.target().tolist(), strict=True):
            told = number_text(item) if not m.classes else labels[item] if item >= 0 else ""
            fam.write(line(("0", iid, "0", "0", "0", told or "-9"), iid))
        gather_columns(columns, store, wanted)
        bed.write(HEAD)
        texts, packed = _categories(store, wanted), np.empty(ceil_div(store.n_rows, 4), np.uint8)
        for i in range(len(asked)):
            values = read_values(columns, store.n_rows, i * store.n_rows)
            if texts[i] is not None or _native.pack_genotypes(values[None], packed) >= 0:
                line((), names[asked[i]])
            bed.write(packed.data)


def _categories(store: Store, positions: Integers) -> list[list[str] | None]:
    """Return the categories of the columns at source positions; None where one has none."""
    if not store.manifest.kind_counts.get("categorical"):
        return [None] * len(positions)
    places, categories = places_of(store, positions), store.categories()
    return [categories.of(feature) for feature in places.tolist()]


# Which features are exported: the selected ones, the first by rank, or those that are named.


def check_asked(top: int | None, names: object, out: Path) -> None:
    """Refuse both ways of saying which features, fewer than one, and a format that is not written.

    Raises
    ------
    UsageError
        If both are given, or ``top`` is below 1, or as :func:`writer_of`.
    """
    if top is not None and names is not None:
        raise UsageError("expected --top or --names, found both. Leave one out.")
    if top is not None and top < 1:
        raise UsageError(f"--top: expected at least 1, found {top}.")
    if not is_store_name(out):
        writer_of(out)


def ranked_positions(ledger: Run, reading: Ranking, top: int | None) -> Ints:
    """Return the source positions of the selected features, or of the ``top`` first, best first.

    Raises
    ------
    RunError
        If there are none.
    """
    stored = reading.selected() if top is None else reading.top(top)
    if len(stored):
        return reading.positions[stored].astype(np.int64)
    run, n = ledger.run, reading.n_iterations
    if reading.ranks_only:
        raise RunError(
            f"{run}: expected selected features to export, found a run that only ranks features. "
            "Export the best of them with --top."
        )
    if reading.is_provisional:
        raise RunError(
            f"{run}: expected a run with its verdict, found one after {n} iterations that has none "
            f"yet. Wait for it, go on with `srs-ooc resume {quote(str(run))}`, or export the best "
            "by rank so far with --top."
        )
    raise RunError(
        f"{run}: expected selected features to export, found none after {n} iterations. Export the "
        "best by rank with --top."
    )


def named_positions(store: Store, file: Path, cap_nbytes: int) -> Ints:
    """Return the source positions of the features that a file names, in its order.

    Raises
    ------
    UsageError
        If a line is no feature, or a name comes twice.
    BudgetError
        If the cap cannot hold the names.
    """
    side = SideFile(file, "feature", store.n_features)
    lease = Lease(f"{side.n_lines} names", COLUMN_NBYTES * side.n_lines + LOOKING_NBYTES)
    Budget(cap_nbytes, [lease]).check()
    names = [line.decode() for line in read_lines(file, "feature")]
    found = store.names.find(names)
    absent = np.flatnonzero(found < 0)
    if len(absent):
        raise UsageError(
            f"{file}: expected every line to be a feature of the store, found {len(absent)} that "
            f"are not (first: {names[int(absent[0])][:80]!r}). `srs-ooc inspect STORE --names` "
            "lists them."
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(
            f"{file}: expected each feature once, found {twice[:80]!r} more often. Leave it there "
            "once."
        )
    return found


# The values of some features of a store, in memory.


def values_of(store: Store, features: Integers) -> NDArray[Any]:
    """Return the values of features, by their positions in the table, as ``export`` writes them.

    Only the chunks that hold them are read.

    Parameters
    ----------
    store : Store
        The store.
    features : int (k,)
        Positions in the table.

    Returns
    -------
    float64 (n_rows, k)
        NaN where missing. Of dtype object where a feature is categorical: its texts, None where
        missing.

    Raises
    ------
    StoreError
        If the store is damaged, or keeps no values.
    """
    out = np.empty((store.n_rows, len(features)))
    for column, row, part in column_parts(store, features):
        out[row : row + len(part), column] = part
    categories = _categories(store, features)
    if all(texts is None for texts in categories):
        return out
    mixed = out.astype(object)
    for column, texts in enumerate(categories):
        if texts is not None:
            mixed[:, column] = texts_of(out[:, column], texts)
    return mixed
