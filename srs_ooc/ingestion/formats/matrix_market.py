"""MatrixMarket files of entries (``.mtx``), among them folders of 10x Genomics.

The formats are described at https://math.nist.gov/MatrixMarket/formats.html and
https://www.10xgenomics.com/support (feature-barcode matrices, MEX format).
"""

import re
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Ints
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import unfit
from srs_ooc.base.text import MB, counted
from srs_ooc.ingestion import formats
from srs_ooc.ingestion.csv import read_ahead
from srs_ooc.ingestion.formats import LONGEST, TO_UTF8, Table
from srs_ooc.ingestion.formats.files import File, lines_in
from srs_ooc.ingestion.formats.hdf5 import LAYOUTS, TOGETHER, SparseMatrix, name_both
from srs_ooc.ingestion.sources import READ_NBYTES, PieceReader, SourceFile, beginnings_of
from srs_ooc.native import _native

_MOST = np.iinfo(np.uint32).max - 1
_MOST_PACKED = 1100  # times smaller than its text no gzip file is
_FIELDS = {"integer": 12, "unsigned-integer": 12, "pattern": 12, "real": 16, "double": 16}
"""Bytes of an entry in scratch, by the kind of its value; more where float32 does not hold it."""
_WIDE = 6
_FAULTS = ["an entry a line", "two or three fields, as all have", "a row of 1 to {0}"]
_FAULTS += ["a column of 1 to {1}", "a number", "a whole number below 2**53, as its header says"]
_TO_GENERAL = (
    "Write it anew: `from scipy import io, sparse; io.mmwrite(NEW, "
    "sparse.coo_array(io.mmread(FILE)), symmetry='general')`."
)


class _Texts(tuple[str, ...]):
    is_text = True


class MtxTable(SparseMatrix):
    """A matrix of entries in a text, plain or compressed; turned on disk when it is first read.

    With lists of features and barcodes beside it, as 10x Genomics writes it, its lines are features
    and its columns cells; alone it is taken as it lies, and turned round if ``.T`` is asked for.
    Several of 10x are samples, one after another, named after ``::`` with bars between.

    Raises
    ------
    InputError
        If a header cannot be read or promises what cannot be, or lists are of other lengths, or of
        other features than the first.
    BudgetError
        If the cap cannot hold names and ids, or where the entries of a column begin.
    StoreError
        If the disk has no room to turn it.
    """

    def __init__(self, file: File) -> None:
        self._file, self._what = file, str(file)
        others = [*filter(None, file.inner.removesuffix(".T").split("|"))]
        places = [file.path, *(file.path.parent / one for one in others)]
        self._parts = parts = [_Part(one, needs_lists=bool(others)) for one in places]
        first = parts[0]
        self._by_line = bool(first.lists) or file.inner.endswith(".T")
        self._n_items = first.sizes[not self._by_line]
        self._firsts = [*accumulate((one.sizes[self._by_line] for one in parts), initial=0)]
        self.shape = (n_rows := self._firsts[-1], self._n_items)
        self.format, self._copy = f"mtx{first.pieces.suffix}", file.scratch / "sparse-columns"
        self.values_nbytes = sum(one.pieces.nbytes for one in parts)
        self.scratch_nbytes = 2 * sum(one.sizes[2] * _FIELDS[one.field] for one in parts)
        # where entries of a column end, thrice; what came last of it; the chosen
        self.held = (Lease("where columns begin", 48 * max(self.shape)),)
        self.work_nbytes = 12 * MB + 100 * TOGETHER + 40 * n_rows
        self.work_nbytes += max(one.pieces.decoder_nbytes for one in parts)
        lines = "features" if self._by_line else "samples; --orient features turns it"
        self.said = f"MatrixMarket, {first.source.path.name}, whose lines are {lines}"
        if first.lists:  # measured: 75 to 120 bytes a barcode, 270 a feature
            texts = (130 + 130 * bool(others)) * n_rows + 300 * self._n_items
            self.held = (*self.held, Lease("names and barcodes", texts))
        file.check(self)
        if first.lists:
            self._name()

    def _name(self) -> None:
        """Take names and ids from the lists of 10x."""
        parts, rows, known = self._parts, list[str](), self._parts[0].list_of(0)
        samples = _told_apart([one.source.path for one in parts]) if len(parts) > 1 else [""]
        for one, sample in zip(parts, samples, strict=True):
            if one is not parts[0] and (found := one.list_of(0)) != known:
                pairs = (" ".join(a) for a, b in zip(found, known, strict=False) if a != b)
                said = f"{len(found):,}, among them {next(pairs, 'all of these')}"
                expected = f"the {len(known):,} features of {parts[0].lists[0]}, in this order"
                raise unfit(one.lists[0], expected, said, "Count all samples by one reference.")
            rows += [f"{name}{'-' * bool(sample)}{sample}" for name, *_ in one.list_of(1)]
        beside = {"barcodes": _Texts(rows)}
        if len(parts) > 1:
            self.said += f"; samples: {', '.join(samples[:12])}{', ...' * (len(samples) > 12)}"
            beside["sample"] = _Texts(np.repeat(samples, np.diff(self._firsts)).tolist())
        fields = map(_Texts, zip(*known, strict=False))  # of each line at least
        columns = dict(zip(("id", "name", "feature_type"), fields, strict=False))
        name_both(self, self._file, LAYOUTS[0], (beside, columns), self.said)

    def _count(self) -> Ints:
        """Write entries to scratch as they come; return how many each column has."""
        for dtype in ("<f4", "<f8"):  # float64 holds all
            self._record = np.dtype([("line", "<u4"), ("item", "<u4"), ("cell", dtype)])
            nbytes = sum(one.sizes[2] for one in self._parts) * self._record.itemsize
            with self._file.scratch_file("entries", 2 * nbytes).open("wb") as out:
                how = (out, self._record, self._by_line)
                pairs = zip(self._parts, self._firsts, strict=False)
                if all(part.write(*how, first) for part, first in pairs):
                    break
        self.narrow = dtype == "<f4" and all(one.is_distinct for one in self._parts)
        self._dtype = np.dtype(np.float32 if self.narrow else np.float64)
        counts: Ints = np.sum([one.counts for one in self._parts], axis=0)
        return counts

    def _records(self, start: int, end: int) -> NDArray[Any]:
        at = start * self._record.itemsize
        return np.fromfile(self._file.scratch / "entries", self._record, end - start, offset=at)

    close = Table.close


class _Part:
    """A file of entries, and the lists beside it: features, barcodes."""

    def __init__(self, place: Path, *, needs_lists: bool) -> None:
        there = [one for one in (place / "matrix.mtx", place / "matrix.mtx.gz") if one.is_file()]
        self.source = SourceFile(next(iter(there), place))
        self.pieces = PieceReader(self.source)
        text, kinds = beginnings_of(self.source.path)[2], "|".join(_FIELDS)
        first = rf"(?i)%%MatrixMarket\s+matrix\s+coordinate\s+({kinds})\s+general\s*?\n"
        if not (known := re.match(f"{first}(?:[ \t\r]*\n|%.*\n)*".encode(), text)):
            found = text.split(b"\n")[0][14:94].decode(errors="replace").strip()
            raise unfit(self.source, f"matrix coordinate {kinds} general", found, _TO_GENERAL)
        counts = re.match(rb"[ \t]*(\d{1,18})" * 3 + rb"[ \t\r]*(?:\n|$)", text[known.end() :])
        self.sizes = tuple(map(int, counts.groups())) if counts else (0, 0, 0)
        if counts is None or not 0 < min(self.sizes[:2]) <= max(self.sizes[:2]) <= _MOST:
            found = repr(text[known.end() :][:80].split(b"\n")[0].decode(errors="replace"))
            raise unfit(self.source, f"rows and columns of 1 to {_MOST}, and entries", found)
        start, self.field = known.end() + counts.end(), known[1].decode().lower()
        self.source.head = (start, text.count(b"\n", 0, start))
        factor = {"": 1, ".gz": _MOST_PACKED}.get(self.pieces.suffix, 1 << 40)
        if 4 * self.sizes[2] > factor * self.pieces.nbytes:
            found = f"{self.pieces.nbytes:,} bytes, which cannot hold them"
            raise unfit(self.source, f"{self.sizes[2]:,} entries", found)
        self.lists = _lists_beside(self.source.path, needed=needs_lists or bool(there))

    def list_of(self, which: int) -> list[list[str]]:
        """Return the fields of each feature (0), or cell (1), one for each line of the matrix."""
        path, n = self.lists[which], self.sizes[which]
        with formats.reading(path, "UTF-8 text", TO_UTF8, UnicodeDecodeError, "found another"):
            lines = islice(filter(None, lines_in(PieceReader(SourceFile(path)))), n + 1)
            known = [line.decode().rstrip("\r").split("\t") for line in lines]
        if len(known) != n:
            found = "more" if len(known) > n else f"{len(known):,}"
            raise unfit(path, f"{counted(n, 'line')}, as {self.source} says", found)
        return known

    def write(self, out: Any, record: np.dtype[Any], by_line: bool, first: int) -> bool:
        """Write entries, rows from ``first`` on, and count them; false if a record is too small."""
        n_rows, n_columns, n_wanted = self.sizes
        kind = (self.field != "pattern", "integer" in self.field, by_line)
        reader, n_found, rest = _native.EntryReader(n_rows, n_columns, *kind), 0, b""
        cells = np.empty(((READ_NBYTES + LONGEST) // 4, record.itemsize), np.uint8)
        for piece in chain(read_ahead(PieceReader(self.source).pieces(), 4), [b"\n"]):
            text = rest + piece
            n_used, n, fault, n_lines, self.is_distinct = reader.read(text, cells)
            if fault == _WIDE:
                return False
            rest, n_found = text[n_used:], n_found + n
            if fault or len(rest) > LONGEST:
                where = f"{self.source}, line {self.source.head[1] + n_lines + 1}"
                found = repr(rest[:80].partition(b"\n")[0].decode(errors="replace"))
                raise unfit(where, _FAULTS[fault].format(n_rows, n_columns), found, "Mend it.")
            if n_found > n_wanted:
                break
            if first:
                cells[:n].view(record)["item"] += np.uint32(first)
            out.write(cells[:n].data)
        if n_found != n_wanted:
            found = "more" if n_found > n_wanted else f"{n_found:,}"
            raise unfit(self.source, f"as many entries as the header says, {n_wanted:,}", found)
        self.counts: Ints = np.frombuffer(reader.counts(), np.int64)
        return True


def _lists_beside(path: Path, *, needed: bool) -> list[Path]:
    """Return the lists of features and barcodes beside a matrix; nothing where there are none."""
    named, found = re.fullmatch(r"(.*)matrix\.mtx(\.gz)?", path.name), list[Path]()
    for kinds in ("features", "genes"), ("barcodes",):
        names = [f"{named[1]}{kind}.tsv{gz}" for kind in kinds for gz in ("", ".gz") if named]
        found += [one for name in names if (one := path.with_name(name)).is_file()][:1]
    if len(found) == 1 or (needed and not found):
        expected = "features.tsv or genes.tsv, and barcodes.tsv, beside it, gzipped or not"
        remedy = "Put all three into one folder, or name the matrix alone in a folder of its own."
        raise unfit(path, expected, "".join(one.name for one in found) or "none of them", remedy)
    return found


def _told_apart(paths: list[Path]) -> list[str]:
    """Return what differs in some paths: ``a`` and ``b`` of ``a/outs/x`` and ``b/outs/x``."""
    ending = re.compile(r"[._-]?matrix\.mtx(\.gz)?$")
    parts = [ending.sub("", str(one.parent.resolve() / one.name)).split("/") for one in paths]
    for end in (0, -1):
        while min(map(len, parts)) > 1 and len({one[end] for one in parts}) == 1:
            parts = [one[1:] if end == 0 else one[:-1] for one in parts]
    return ["/".join(one) for one in parts]
