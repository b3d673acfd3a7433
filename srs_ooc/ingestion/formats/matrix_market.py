"""MatrixMarket files of entries (``.mtx``), among them folders of 10x Genomics.

The formats are described at https://math.nist.gov/MatrixMarket/formats.html and
https://www.10xgenomics.com/support (feature-barcode matrices, MEX format).
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Ints, Reals
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError
from srs_ooc.base.text import MB, counted
from srs_ooc.ingestion import formats
from srs_ooc.ingestion.csv import read_ahead
from srs_ooc.ingestion.formats import LONGEST, TO_UTF8, Names, Table, TextCoder, in_memory, repeated
from srs_ooc.ingestion.formats.files import File, lines_in
from srs_ooc.ingestion.formats.hdf5 import TOGETHER, write_by_column
from srs_ooc.ingestion.sources import READ_NBYTES, PieceReader, SourceFile
from srs_ooc.native import _native

_MOST = np.iinfo(np.uint32).max - 1
_MOST_PACKED = 1100  # times smaller than its text no gzip file is
_FIELDS = {"integer": 12, "unsigned-integer": 12, "pattern": 12, "real": 16, "double": 16}
"""Bytes of an entry in scratch, by the kind of its value; more where float32 does not hold it."""
_WIDE = 6
_FAULTS = {
    0: "an entry a line",
    1: "two or three fields, as all have",
    2: "a row of 1 to {0}",
    3: "a column of 1 to {1}",
    4: "a number",
    5: "a whole number below 2**53, as its header says",
}
_TO_GENERAL = (
    "Write it anew: `from scipy import io, sparse; io.mmwrite(NEW, "
    "sparse.coo_array(io.mmread(FILE)), symmetry='general')`."
)


class MtxTable(Table):
    """A matrix of entries in a text, plain or compressed; turned on disk when it is first read.

    With lists of features and barcodes beside it, as 10x Genomics writes it, its lines are features
    and its columns cells; alone it is taken as it lies, and turned round if ``.T`` is asked for.

    Raises
    ------
    InputError
        If its header cannot be read or promises what cannot be, or lists are of other lengths.
    BudgetError
        If the cap cannot hold names and ids, or where the entries of a column begin.
    StoreError
        If the disk has no room to turn it.
    """

    takes = ("names_from", "feature_type")

    def __init__(self, file: File) -> None:
        self._file, self._lock, self._what, path = file, Lock(), str(file), file.path
        if path.is_dir():
            path = next(path / one for one in file.format.holds if (path / one).is_file())
        self._source, self._ends, pieces = SourceFile(path), np.zeros(0, np.int64), _open(path)
        self._field, self._sizes, self._n_head = _header(pieces, self._what)
        lists = _lists_beside(path, needed=file.path.is_dir())
        self._is_turned = bool(lists) or file.inner == ".T"
        n_rows, n_columns, n_entries = self._sizes
        self.shape = (n_columns, n_rows) if self._is_turned else (n_rows, n_columns)
        self.format, self.values_nbytes = f"mtx{pieces.suffix}", pieces.nbytes
        self.scratch_nbytes = 2 * n_entries * _FIELDS[self._field]
        # where entries of a column end, thrice; what came last of it; the chosen
        self.held = (Lease("where columns begin", 48 * max(self.shape)),)
        self.work_nbytes = 12 * MB + pieces.decoder_nbytes + 100 * TOGETHER + 8 * self.shape[0]
        file.check(self)
        self._chosen = np.arange(self.shape[1])
        lines = "features" if self._is_turned else "samples; --orient features turns it"
        self.said = f"MatrixMarket, {path.name}, whose lines are {lines}"
        if lists:
            self._name(*lists)

    def _name(self, features: Path, barcodes: Path) -> None:
        """Take names and ids from the lists of 10x."""
        ids = [one[0] for one in _read(barcodes, self.shape[0], self._what)]
        self.annotations, self.default_ids = {"barcodes": ids}, "barcodes"
        known = [*_read(features, self.shape[1], self._what)]
        options, n_fields = self._file.options, min(map(len, known))
        wanted, kind = (
            options.names_from or ("symbol" if n_fields > 1 else "id"),
            options.feature_type,
        )
        counts = Counter(one[2] for one in known) if n_fields > 2 else Counter[str]()
        listed = ", ".join(f"{name!r} {n}" for name, n in counts.most_common(12)) or "none"
        if (wanted == "symbol" and n_fields < 2) or kind not in (None, *counts):
            expected = f"a {wanted} a line, features of the type {kind!r}"
            found = f"{n_fields} fields, types: {listed}"
            raise _bad(str(features), expected, found, "Name what is there.")
        self._chosen = np.array([i for i, one in enumerate(known) if not kind or one[2] == kind])
        self.shape = (self.shape[0], len(self._chosen))
        names = [one[wanted == "symbol"] for one in known]
        is_distinct = not len(repeated(names)[1])
        names = names if is_distinct else [*Names.numbered(names)]  # of all types, as scanpy does
        self.names = [names[i] for i in self._chosen.tolist()]
        # measured: 75 to 120 bytes a barcode, 270 a feature
        texts = 130 * len(ids) + (300 + Names.NUMBERED * (not is_distinct)) * len(known)
        self.held = (*(self.held or ()), Lease("names and barcodes", texts))
        self.said += f"; row ids: {barcodes.name}; names: {wanted} of {features.name}"
        self.said += "" if is_distinct else ", repeated ones end in -1, -2, ..."
        self.said += f"; feature types: {listed}, {kind or 'all'} taken" if len(counts) > 1 else ""

    def prepare(self) -> None:
        """Turn the matrix, once; it is known then whether float32 holds all cells."""
        with self._lock:
            if len(self._ends):
                return
            if (ends := self._entries("<f4")) is None:
                ends = self._entries("<f8")
            assert ends is not None, "float64 holds all"
            columns = self._file.scratch_file("columns", self._sizes[2] * self._record.itemsize)
            write_by_column(columns, ends, self._record, partial(self._records, "entries"))
            (self._file.scratch / "entries").unlink()
            self._ends = ends

    def read(self, positions: Any, pool: TextCoder) -> Reals:
        """Return columns, each a row of the result."""
        self.prepare()
        out = np.zeros((len(positions), self.shape[0]), np.float32 if self.narrow else np.float64)
        for line, column in zip(out, self._chosen[positions].tolist(), strict=True):
            start, end = self._ends[column : column + 2].tolist()
            for at in range(start, end, TOGETHER):
                cells = self._records("columns", at, min(at + TOGETHER, end))
                if self.narrow:
                    line[cells["item"]] = cells["cell"]
                else:  # cells written twice are summed, as SciPy does
                    np.add.at(line, cells["item"], cells["cell"])
        return in_memory.as_floats(out, self._what)

    def _records(self, name: str, start: int, end: int) -> NDArray[Any]:
        path, at = self._file.scratch / name, start * self._record.itemsize
        return np.fromfile(path, self._record, end - start, offset=at)

    def _entries(self, dtype: str) -> Ints | None:
        """Write entries to scratch as they come; return where those of each column will end.

        None if the dtype does not hold a value.
        """
        self._record = np.dtype([("line", "<u4"), ("item", "<u4"), ("cell", dtype)])
        n_rows, n_columns, n_wanted = self._sizes
        kind = (self._field != "pattern", "integer" in self._field, self._is_turned)
        reader = _native.EntryReader(n_rows, n_columns, *kind)
        n_found, rest, n_head, size = 0, b"", self._n_head, self._record.itemsize
        out = np.empty(((READ_NBYTES + LONGEST) // 4, size), np.uint8)
        with self._file.scratch_file("entries", n_wanted * size).open("wb") as file:
            for piece in chain(read_ahead(_open(self._source.path).pieces(), 4), [b"\n"]):
                text = rest + piece
                while n_head and b"\n" in text:
                    n_head, text = n_head - 1, text.partition(b"\n")[2]
                n_used, n, fault, n_lines, is_distinct = reader.read(b"" if n_head else text, out)
                if fault == _WIDE:
                    return None
                rest, n_found = text[n_used:], n_found + n
                if fault or len(rest) > LONGEST:
                    where = f"{self._source}, line {self._n_head + n_lines + 1}"
                    found = repr(rest[:80].partition(b"\n")[0].decode(errors="replace"))
                    raise _bad(where, _FAULTS[fault].format(n_rows, n_columns), found, "Mend it.")
                if n_found > n_wanted:
                    break
                file.write(out[:n].data)
        if n_found != n_wanted:
            found = "more" if n_found > n_wanted else f"{n_found:,}"
            raise _bad(self._what, f"as many entries as the header says, {n_wanted:,}", found)
        self.narrow = dtype == "<f4" and is_distinct
        return np.cumsum([0, *np.frombuffer(reader.counts(), np.int64)])


def _bad(where: str, expected: str, found: str, remedy: str = "Get the file again.") -> InputError:
    return InputError(f"{where}: expected {expected}, found {found}. {remedy}")


def _open(path: Path) -> PieceReader:
    return PieceReader(SourceFile(path))


def _header(pieces: PieceReader, what: str) -> tuple[str, tuple[int, int, int], int]:
    """Return the kind of values; rows, columns and entries; and the line of these."""
    lines = enumerate(lines_in(pieces), 1)
    first = next(lines)[1].decode(errors="replace").lower().split()
    rest = ((n, line.decode(errors="replace")) for n, line in lines if line[:1] != b"%")
    number, line = next(((n, one) for n, one in rest if one.strip()), (1, "nothing"))
    if (
        first[1:3] != ["matrix", "coordinate"]
        or first[3] not in _FIELDS
        or first[4:] != ["general"]
    ):
        expected = f"matrix coordinate {', '.join(_FIELDS)} general"
        raise _bad(what, expected, " ".join(first[1:])[:80], _TO_GENERAL)
    sizes = [int(one) for one in line.split() if re.fullmatch(r"\d{1,18}", one)]
    if (
        len(line.split()) != 3
        or len(sizes) != 3
        or not 0 < min(sizes[:2]) <= max(sizes[:2]) <= _MOST
    ):
        expected = f"rows and columns of 1 to {_MOST}, and entries"
        raise _bad(f"{what}, line {number}", expected, line[:80])
    most = {"": 1, ".gz": _MOST_PACKED}.get(pieces.suffix, 1 << 40) * pieces.nbytes
    if 4 * sizes[2] > most:
        found = f"{pieces.nbytes:,} bytes, which cannot hold them"
        raise _bad(f"{what}, line {number}", f"{sizes[2]:,} entries", found)
    return first[3], (sizes[0], sizes[1], sizes[2]), number


def _lists_beside(path: Path, *, needed: bool) -> tuple[Path, ...]:
    """Return the lists of features and barcodes beside a matrix; nothing where there are none."""
    named = re.fullmatch(r"(.*)matrix\.mtx(\.gz)?", path.name)
    ends = [f"{one}.tsv{gz}" for one in ("features", "genes", "barcodes") for gz in ("", ".gz")]
    paths = [path.with_name(f"{named[1]}{one}") for one in ends] if named else []
    there = [one for one in paths if one.is_file()]
    kinds = [one for one in there if "barcodes.tsv" not in one.name[-15:]][:1]
    found = (*kinds, *[one for one in there if "barcodes.tsv" in one.name[-15:]][:1])
    if len(found) == 1 or (needed and not found):
        expected = (
            "features.tsv (genes.tsv of version 2) and barcodes.tsv beside it, gzipped or not"
        )
        remedy = "Put all three into one folder, or name the matrix alone in a folder of its own."
        raise _bad(str(path), expected, found[0].name if found else "none of them", remedy)
    return found


def _read(path: Path, n: int, what: str) -> Iterator[list[str]]:
    """Yield the fields of each line of a list, of which there are so many."""
    n_found = 0
    with formats.reading(path, "UTF-8 text", TO_UTF8, UnicodeDecodeError, "found another"):
        for n_found, line in enumerate(filter(None, lines_in(_open(path))), 1):
            if n_found <= n:
                yield line.decode().rstrip("\r").split("\t")
    if n_found != n:
        raise _bad(str(path), f"{counted(n, 'line')}, as {what} says", f"{n_found:,}")
