"""The formats of exported columns; every one goes through memory in blocks of rows."""

import csv
import gzip
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.frames import arrow_numbers, arrow_texts
from srs_ooc.base.text import no_formula

Block = tuple[list[str], NDArray[np.float64], list[Any]]
"""Row ids, values (m, k) with NaN where missing, and targets: class codes, or numbers."""


@dataclass(frozen=True)
class Exported:
    """What is exported.

    Attributes
    ----------
    id_name, target_name : str
        Titles of the row ids and of the target.
    header : list of str
        Names of the columns.
    categories : list
        Texts of the codes of each column; None where it holds numbers.
    classes : tuple of str
        Labels of the target's codes; empty for a regression.
    n_rows : int
        Rows of all blocks.
    blocks : iterator of Block
        The rows, in their order.
    safe : bool
        Whether texts that a spreadsheet would take for formulas are marked.
    """

    id_name: str
    target_name: str
    header: list[str]
    categories: list[list[str] | None]
    classes: tuple[str, ...]
    n_rows: int
    blocks: Iterator[Block]
    safe: bool

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
    _write_csv(text, table)
    text.flush()
    text.detach()


def write_csv_gz(file: BinaryIO, table: Exported) -> None:
    """Write CSV, compressed."""
    with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        write_csv(packed, table)  # type: ignore[arg-type]


def _write_csv(file: TextIO, table: Exported) -> None:
    writer = csv.writer(file, lineterminator="\n")
    show = no_formula if table.safe else str
    writer.writerow(map(show, [table.id_name, *table.header, table.target_name]))
    for ids, block, targets in table.blocks:
        for name, row, item in zip(ids, block, targets, strict=True):
            cells = [
                number_text(value) if texts is None or value != value else show(texts[int(value)])  # noqa: PLR0124
                for value, texts in zip(row.tolist(), table.categories, strict=True)
            ]
            label = show(table.classes[item]) if table.classes else number_text(item)
            writer.writerow([show(name), *cells, label])


def number_text(value: float) -> str:
    """Return the shortest decimal of a number, without ``.0``; nothing for NaN."""
    return "" if value != value else repr(value).removesuffix(".0")  # noqa: PLR0124 (NaN)


def write_npy(file: BinaryIO, table: Exported) -> None:
    """Write the values alone, float64 (n_rows, k), NaN where missing."""
    table.require_numbers(".npy")
    shape = (table.n_rows, len(table.header))
    head = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, head)
    for _, block, _ in table.blocks:
        file.write(np.ascontiguousarray(block, "<f8").tobytes())


def write_svmlight(file: BinaryIO, table: Exported) -> None:
    """Write svmlight: columns from 1, zeros left out, ``nan`` where missing.

    Classes are numbered in the order that the first line, a comment, says.
    """
    table.require_numbers("svmlight")
    if table.classes:
        numbered = ", ".join(f"{i} {label!r}" for i, label in enumerate(table.classes))
        file.write(f"# classes: {numbered}\n".encode())
    for _, block, targets in table.blocks:
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
    target = pa.string() if table.classes else pa.float64()
    titles = [table.id_name, *table.header, table.target_name]
    types = [pa.string(), *kinds, target]
    schema = pa.schema([pa.field(*pair) for pair in zip(titles, types, strict=True)])
    with opened(schema) as writer:
        for ids, block, targets in table.blocks:
            labels = [table.classes[item] for item in targets] if table.classes else None
            columns = [
                _arrow_column(values, texts)
                for values, texts in zip(block.T, table.categories, strict=True)
            ]
            last = (
                arrow_numbers(np.array(targets, np.float64))
                if labels is None
                else arrow_texts(labels)
            )
            arrays = [arrow_texts(ids), *columns, last]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _arrow_column(values: NDArray[np.float64], texts: list[str] | None) -> Any:
    if texts is None:
        return arrow_numbers(values)
    return arrow_texts([None if np.isnan(v) else texts[int(v)] for v in values])


Writer = Callable[[BinaryIO, Exported], None]
WRITERS: dict[str, Writer] = {
    ".csv": write_csv,
    ".csv.gz": write_csv_gz,
    ".parquet": write_parquet,
    ".feather": write_feather,
    ".npy": write_npy,
    ".svmlight": write_svmlight,
    ".svm": write_svmlight,
    ".txt": write_names,
}
"""What writes a file, by how its name ends."""
_ARROW_NBYTES = 40_000_000
"""Allowance for loading pyarrow, and for a batch of it."""
_OTHERS = (".arrow", ".npz", ".xlsx", ".xls", ".json")
STORE_ENDING = ".zarr"


def is_store_name(out: Path) -> bool:
    """Return whether a path says that it is to be a store."""
    return out.name.lower().endswith(STORE_ENDING)


def check_name(out: Path) -> None:
    """Refuse a name that promises a format that is not written, before anything is read.

    Raises
    ------
    UsageError
        As :func:`writer_of`.
    """
    if not is_store_name(out):
        writer_of(out)


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
            if writer in (write_parquet, write_feather):
                _require_arrow(out)
            return writer
    promised = Path(name.removesuffix(".gz")).suffix
    if str(out) == "-" or promised in (*_OTHERS, *WRITERS):
        known = ", ".join([*WRITERS, STORE_ENDING])
        raise UsageError(
            f"{out}: expected the name of a file that ends in {known}, found "
            f"{'-' if str(out) == '-' else promised}. Choose another name."
        )
    return write_csv_gz if name.endswith(".gz") else write_csv


def extra_nbytes(writer: Writer) -> int:
    """Return what a format takes besides the rows on their way."""
    return _ARROW_NBYTES if writer in (write_parquet, write_feather) else 0


def _require_arrow(out: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"{out}: expected pyarrow to be installed, could not import it: {error}. Run `pip "
            "install 'srs-ooc[arrow]'`, or export CSV."
        ) from error
