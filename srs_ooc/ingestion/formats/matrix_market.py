"""MatrixMarket files of entries (``.mtx``), among them folders of 10x Genomics.

The formats are described at https://math.nist.gov/MatrixMarket/formats.html and
https://www.10xgenomics.com/support (feature-barcode matrices, MEX format).
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain, compress
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
        self._file, self._lock, self._what = file, Lock(), str(file)
        path = file.path
        if path.is_dir():
            path = next(path / one for one in file.format.holds if (path / one).is_file())
        self._source = SourceFile(path, self._what if path == file.path else str(path))
        pieces = PieceReader(self._source)
        self._read_header(pieces)
        lists = _lists_beside(path, needed=file.path.is_dir())
        self._is_turned = bool(lists) or file.inner == ".T"
        shape = self._sizes[:2][:: -1 if self._is_turned else 1]
        self.shape, self._chosen = (shape[0], shape[1]), np.arange(0)
        self._ends: Ints | None = None
        self.scratch_nbytes = 2 * self._sizes[2] * _FIELDS[self._field]
        self.values_nbytes = pieces.nbytes
        # where entries of a column end, thrice; what came last of it; the chosen
        self.held = (Lease("where columns begin", 48 * max(shape)),)
        self.work_nbytes = 12 * MB + pieces.decoder_nbytes + 100 * TOGETHER + 8 * shape[0]
        file.check(self)
        self._chosen, self.format = np.arange(self.shape[1]), f"mtx{pieces.suffix}"
        told = [
            "10x" if lists else "MatrixMarket",
            f"its lines are {'samples' * (not self._is_turned) or 'features'}",
        ]
        if lists:
            told.extend(self._name(*lists))
        else:
            told.append("no names or ids beside it; --orient features takes lines as features")
        self.said = "; ".join(told)

    def _read_header(self, pieces: PieceReader) -> None:
        words, sizes, self._n_head = _header(pieces.pieces())
        where = f"{self._what}, line {self._n_head}"
        if words[1:2] != ["matrix"] or not all(re.fullmatch(r"\d{1,18}", one) for one in sizes):
            expected = "'%%MatrixMarket matrix ...' and a line of rows, columns and entries"
            raise _bad(where, expected, " ".join(words + sizes)[:80] or "none")
        if words[2:3] != ["coordinate"] or words[3] not in _FIELDS or words[4:] != ["general"]:
            expected = f"coordinate {', '.join(_FIELDS)} general"
            raise _bad(where, expected, " ".join(words[2:])[:80], _TO_GENERAL)
        self._field, self._sizes = words[3], tuple(map(int, sizes))
        if len(sizes) != 3 or not 0 < min(self._sizes[:2]) <= max(self._sizes[:2]) <= _MOST:
            expected = f"rows and columns of 1 to {_MOST}, and entries"
            raise _bad(where, expected, " ".join(sizes))
        most = pieces.nbytes * (_MOST_PACKED if pieces.suffix else 1)
        if pieces.suffix in ("", ".gz") and 4 * self._sizes[2] > most:
            expected = f"{self._sizes[2]:,} entries, as the header says"
            raise _bad(where, expected, f"{pieces.nbytes:,} bytes, which cannot hold them")

    def _name(self, features: Path, barcodes: Path) -> Iterator[str]:
        """Take names and ids from the lists of 10x; yield what is to be said of them."""
        ids = [one[0] for one in _read(barcodes, self.shape[0], self._what)]
        self.annotations, self.default_ids = {"barcodes": ids}, "barcodes"
        known = [*_read(features, self.shape[1], self._what)]
        wanted, kind = self._file.options.names_from, self._file.options.feature_type
        n_fields = min(map(len, known))
        if wanted == "symbol" and n_fields < 2:
            raise _bad(str(features), "an id and a symbol a line", "one field", "Leave it out.")
        counts = Counter(one[2] for one in known) if n_fields > 2 else Counter[str]()
        listed = ", ".join(f"{name!r} {n}" for name, n in counts.most_common(12))
        if kind is not None:
            if kind not in counts:
                expected = f"features of the type {kind!r}"
                raise _bad(str(features), expected, listed or "no types", "Name one of these.")
            is_chosen = [one[2] == kind for one in known]
            self._chosen, known = np.flatnonzero(is_chosen), [*compress(known, is_chosen)]
            self.shape = (self.shape[0], len(known))
        column = 0 if wanted == "id" or n_fields < 2 else 1
        names = [one[column] for one in known]
        is_distinct = not len(repeated(names)[1])
        self.names = names if is_distinct else Names(len(names), partial(Names.numbered, names))
        # measured: 75 to 120 bytes a barcode, 270 a feature
        texts = 130 * len(ids) + (300 + Names.NUMBERED * (not is_distinct)) * len(self._chosen)
        self.held = (*(self.held or ()), Lease("names and barcodes", texts))
        yield f"row ids: {barcodes.name}"
        repeats = "" if is_distinct else ", repeated ones end in -1, -2, ..."
        yield f"names: {features.name}, {'symbol' if column else 'id'}{repeats}"
        if len(counts) > 1:
            yield f"feature types: {listed}, {repr(kind) if kind else 'all'} taken; --feature-type"

    def prepare(self) -> None:
        """Turn the matrix, once; it is known then whether float32 holds all cells."""
        with self._lock:
            if self._ends is None:
                self._turn()

    def read(self, positions: Any, pool: TextCoder) -> Reals:
        """Return columns, each a row of the result."""
        self.prepare()
        assert self._ends is not None
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

    def _turn(self) -> None:
        ends = self._entries("<f4")
        ends = self._entries("<f8") if ends is None else ends
        assert ends is not None, "float64 holds all"
        columns = self._file.scratch_file("columns", self._sizes[2] * self._record.itemsize)
        write_by_column(columns, ends, self._record, partial(self._records, "entries"))
        (self._file.scratch / "entries").unlink()
        self._ends = ends

    def _entries(self, dtype: str) -> Ints | None:
        """Write entries to scratch as they come; return where those of each column will end.

        None if the dtype does not hold a value.
        """
        self._record = np.dtype([("line", "<u4"), ("item", "<u4"), ("cell", dtype)])
        n_wanted, size = self._sizes[2], self._record.itemsize
        is_whole, has_value = "integer" in self._field, self._field != "pattern"
        n_rows, n_columns = self._sizes[:2]
        reader = _native.EntryReader(n_rows, n_columns, has_value, is_whole, self._is_turned)
        n_found, rest, n_head = 0, b"", self._n_head
        pieces = read_ahead(PieceReader(self._source).pieces(), 4)
        out = np.empty(((READ_NBYTES + LONGEST) // 4, size), np.uint8)
        with self._file.scratch_file("entries", n_wanted * size).open("wb") as file:
            for piece in chain(pieces, [b"\n"]):
                text = rest + piece
                while n_head and b"\n" in text:
                    n_head, text = n_head - 1, text.partition(b"\n")[2]
                n_used, n, fault = (0, 0, 0) if n_head else reader.read(text, out)
                if fault == _WIDE:
                    return None
                rest, n_found = text[n_used:], n_found + n
                self._check(fault, reader.n_lines, rest, n_found)
                file.write(out[:n].data)
        if n_found < n_wanted:
            expected = f"as many entries as the header says, {n_wanted:,}"
            raise _bad(self._what, expected, f"{n_found:,}")
        self.narrow = dtype == "<f4" and reader.is_distinct
        return np.cumsum([0, *np.frombuffer(reader.counts(), np.int64)])

    def _check(self, fault: int, n_lines: int, rest: bytes, n_found: int) -> None:
        where = f"{self._source}, line {self._n_head + n_lines + 1}"
        if fault:
            found = repr(rest.partition(b"\n")[0][:80].decode(errors="replace"))
            raise _bad(where, _FAULTS[fault].format(*self._sizes), found, "Mend the line.")
        if n_found > self._sizes[2]:
            raise _bad(
                self._what, f"as many entries as the header says, {self._sizes[2]:,}", "more"
            )
        if len(rest) > LONGEST:
            raise _bad(where, "an entry a line", f"a line of more than {LONGEST} characters")


def _bad(where: str, expected: str, found: str, remedy: str = "Get the file again.") -> InputError:
    return InputError(f"{where}: expected {expected}, found {found}. {remedy}")


def _header(pieces: Iterator[bytes]) -> tuple[list[str], list[str], int]:
    """Return the words of the first line, in lower case, the sizes, and the line of these."""
    text = b""
    for piece in chain(pieces, [b"\n"]):
        text += piece
        first, *lines = text.split(b"\n")[:-1] or [b""]
        for number, line in enumerate(lines, 2):
            if line.strip() and not line.startswith(b"%"):
                both = (one.decode(errors="replace").split() for one in (first.lower(), line))
                return next(both), next(both), number
        if len(text) > LONGEST:
            break
    return [], [""], 1


def _lists_beside(path: Path, *, needed: bool) -> tuple[Path, ...]:
    """Return the lists of features and barcodes beside a matrix; nothing where there are none."""
    named = re.fullmatch(r"(.*)matrix\.mtx(\.gz)?", path.name)
    if named is None:
        return ()
    found = []
    for names in (("features", "genes"), ("barcodes",)):
        paths = [
            path.with_name(f"{named[1]}{one}.tsv{end}") for one in names for end in ("", ".gz")
        ]
        found.append(next((one for one in paths if one.is_file()), None))
    there = tuple(one for one in found if one)
    if len(there) == 1 or (needed and not there):
        expected = (
            "features.tsv (genes.tsv of version 2) and barcodes.tsv beside it, gzipped or not"
        )
        remedy = "Put all three into one folder, or name the matrix alone in a folder of its own."
        raise _bad(str(path), expected, there[0].name if there else "none of them", remedy)
    return there


def _read(path: Path, n: int, what: str) -> Iterator[list[str]]:
    """Yield the fields of each line of a list, of which there are so many."""
    n_found = 0
    with formats.reading(path, "UTF-8 text", TO_UTF8, UnicodeDecodeError, "found another"):
        for line in lines_in(PieceReader(SourceFile(path))):
            if line:
                n_found += 1
                if n_found <= n:
                    yield line.decode().rstrip("\r").split("\t")
    if n_found != n:
        raise _bad(str(path), f"{counted(n, 'line')}, as {what} says", f"{n_found:,}")
