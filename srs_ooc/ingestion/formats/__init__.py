"""What a table is that an ingest can read, what files are, and texts numbered as one is read.

Text tables are parsed straight into panels. Every other format is a :class:`Table` of numbers,
read by columns or by rows, whichever its layout makes cheap, and a row of :data:`FORMATS`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from sys import getsizeof
from types import MappingProxyType
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Bools, Indices, Ints32, Reals, Uints
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError, SrsOocError, unfit
from srs_ooc.ingestion.ingest_memory import CATEGORY_NBYTES, line_pieces
from srs_ooc.native import _native
from srs_ooc.store.bed import MAGIC, BedFile

NAMED = 10
"""Columns that an error names besides the first."""
TO_DAYS = "turn such columns into numbers, such as days since a date"
TO_UTF8 = (
    "Convert the file to UTF-8; of Latin-1, as older programs write it: `iconv -f latin1 -t utf-8 "
    "FILE > NEW`."
)
"""What to do with a text that is not UTF-8."""


@dataclass(frozen=True)
class Texts:
    """Some UTF-8 texts, one after another.

    Attributes
    ----------
    blob : bytes
        The texts without separators.
    ends : uint64 (n,)
        Where each text ends in ``blob``.
    hashes : uint64 (n,)
        A hash of each text, equal for equal texts.
    """

    blob: bytes
    ends: Uints
    hashes: Uints

    def __iter__(self) -> Iterator[bytes]:
        return split_texts(self.blob, self.ends)


class TextCoder:
    """Numbers distinct texts in the order of their first appearance.

    Parameters
    ----------
    max_nbytes : int
        Memory that the distinct texts may take.
    counts : bool
        Texts beyond that memory are counted, not kept, and get the number of another.
    """

    def __init__(self, max_nbytes: int, *, counts: bool = False) -> None:
        self._native = _native.TextCoder(max_nbytes, counts)

    def __len__(self) -> int:
        return self._native.size

    @property
    def cost(self) -> int:
        """Memory that the texts count as, in bytes."""
        return text_cost(0) * len(self) + text_cost(self._native.nbytes) - text_cost(0)

    @property
    def needed_nbytes(self) -> int:
        """The same of all texts, those included that are not kept."""
        return self._native.needed

    def code(self, blob: bytes, ends: Uints) -> Ints32:
        """Return the number of each text; of fewer, where memory ended."""
        return np.frombuffer(self._native.code(blob, ends), np.int32)

    def texts(self) -> list[bytes]:
        """Return the distinct texts, by number."""
        blob, ends = self._native.texts()
        return list(split_texts(blob, np.frombuffer(ends, np.uint64)))


def text_cost(nbytes: int) -> int:
    """Return what a distinct text of so many bytes counts as: kept, hashed, and sorted here."""
    return 4 * nbytes + 128


def split_texts(blob: bytes, ends: Uints) -> Iterator[bytes]:
    """Yield the texts that lie one after another in ``blob``."""
    start = 0
    for end in ends.tolist():
        yield blob[start:end]
        start = end


hash_text = _native.hash_text
"""Returns the 64-bit hash that :class:`Texts` holds for a text."""


class Names(Collection[str]):
    """Names that are made anew each time: a list of ten million would take a gigabyte.

    Parameters
    ----------
    n : int
        How many there are.
    made : callable
        ``made()`` yields them.
    """

    NUMBERED = 224
    """Bytes of memory a name takes while repeated ones are numbered."""

    def __init__(self, n: int, made: Callable[[], Iterator[str]]) -> None:
        self._n, self._made = n, made

    def __len__(self) -> int:
        return self._n

    def __contains__(self, name: object) -> bool:
        return any(name == one for one in self)

    def __iter__(self) -> Iterator[str]:
        return self._made()

    @staticmethod
    def numbered(names: Collection[str]) -> Iterator[str]:
        """Yield names of which repeated ones end in -1, -2, ..., as AnnData makes them distinct."""
        taken, numbers = set(names), dict[str, Iterator[int]]()
        for name in names:
            made = (f"{name}-{i}" for i in numbers.get(name, ()))
            yield next((one for one in made if one not in taken), name)
            numbers.setdefault(name, count(1))


@contextmanager
def reading(
    what: object,
    expected: str,
    remedy: str,
    errors: Any = Exception,
    found: str = "could not read it",
    passed: Any = SrsOocError,
) -> Iterator[None]:
    """Have errors of a library, all if none are named, say that a file cannot be read.

    Those ``passed`` say so themselves.

    Raises
    ------
    InputError
        With what the library says.
    """
    try:
        yield
    except passed:
        raise
    except errors as error:
        texts = (one.decode(errors="replace") for one in error.args[:1] if isinstance(one, bytes))
        said = " ".join(next(texts, str(error)).split())[:300].rstrip(".") or repr(error)
        raise InputError(f"{what}: expected {expected}, {found}: {said}. {remedy}") from error


LONGEST = 1 << 20
"""An item or a line of a file is no longer, and no more than so much is held at a time."""
FEW, BLOCK_NBYTES = 1 << 8, 1 << 20
"""Texts, which may be of any length, are read so many at a time; blocks take so much memory."""


def bounded(
    items: Iterable[Any], size: Callable[[Any], int] = getsizeof, nbytes: int = BLOCK_NBYTES
) -> Iterator[list[Any]]:
    """Yield items in blocks of about so many bytes, or of one item that is larger."""
    block, left = list[Any](), nbytes
    for item in items:
        block.append(item)
        left -= size(item)
        if left <= 0:
            yield block
            block, left = [], nbytes
    if block:
        yield block


def lines_of(path: Path, expected: str, newline: str | None = None) -> Iterator[str]:
    """Yield the lines of a text file, with their ends; ``expected`` says what one holds.

    Raises
    ------
    InputError
        If one is longer than :data:`LONGEST`.
    """
    with path.open(encoding="utf-8-sig", newline=newline) as file:
        for number, line in enumerate(iter(partial(file.readline, LONGEST + 1), ""), 1):
            if len(line) > LONGEST:
                found, wanted = f"a line of more than {LONGEST} characters", f"{expected} a line"
                remedy = f"Give a text file with {wanted}."
                raise unfit(f"{path}, line {number}", wanted, found, remedy)
            yield line


class Items(Sequence[Any]):
    """Numbers or texts of a file, read a block at a time; None or NaN where one is missing.

    Parameters
    ----------
    n : int
        How many there are.
    read : callable
        ``read(slice)`` returns some of them as a list.
    step : int
        How many are read at a time.
    """

    def __init__(self, n: int, read: Callable[[slice], list[Any]], step: int = 1 << 14) -> None:
        self._n, self._read, self._step = n, read, step

    @property
    def held_nbytes(self) -> int:
        """Memory that is held once an item is read."""
        return 0

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self._read(slice(*at.indices(self._n)))
        return self._read(slice(at, at + 1))[0]

    def __iter__(self) -> Iterator[Any]:
        return (one for at in range(0, self._n, self._step) for one in self[at : at + self._step])


def repeated(texts: Iterable[str], *others: bytes) -> tuple[int, Uints]:
    """Return how many texts there are, and hashes of those that repeat or are one of ``others``.

    Hashes ascend.
    """
    hashes = np.fromiter((hash_text(one.encode()) for one in texts), np.uint64)
    hashes.sort()
    is_found = np.isin(hashes, np.array([hash_text(one) for one in others], np.uint64))
    is_found[1:] |= hashes[1:] == hashes[:-1]
    return len(hashes), np.unique(hashes[is_found])


def finding_leases(n: int, *others: Lease) -> tuple[tuple[Lease, ...], tuple[Lease, ...]]:
    """Return what opening variants of so many ids takes besides, and what is held: which repeat."""
    opening = Lease("variant ids compared", 32 * n)
    return (*others, opening), (*others, Lease("which variant ids repeat", 8 * n))


def distinct_names(own: Callable[[], Iterable[str]], made: Callable[[], Iterable[str]]) -> Names:
    """Return names: of each item its own, or what is made where that repeats, is "." or empty.

    ``own()`` and ``made()`` yield those of all items, in the same order.
    """
    n, others = repeated(own(), b".", b"")

    def read() -> Iterator[str]:
        if not len(others):
            yield from own()
            return
        pairs = zip(own(), made(), strict=True)
        while some := list(islice(pairs, 1 << 12)):
            hashes = np.array([hash_text(name.encode()) for name, _ in some], np.uint64)
            found = others[np.minimum(np.searchsorted(others, hashes), len(others) - 1)] == hashes
            yield from (both[one] for both, one in zip(some, found.tolist(), strict=True))

    return Names(n, read)


class Table:
    """A table that an ingest can read piece by piece; ``srs_ooc.testing`` checks one.

    A subclass has ``format``, ``shape`` and :meth:`read`. All else has a value here, which holds of
    most tables, and need not be said.

    Attributes
    ----------
    format : str
        Name of the format, for the manifest.
    shape : (int, int)
        Rows and columns.
    by_rows : bool
        Whether :meth:`read` takes rows, from first to last, rather than columns.
    narrow : bool, or bool (n_columns,)
        Whether the dtypes, or that of each column, promise that float32 holds every value exactly.
    cell_nbytes : {8, 4}
        Bytes of a cell as :meth:`read` returns it; 4 where that is float32 always.
    names : collection of str or None
        Names of the columns; None if the format has none.
    text_columns : bool (n_columns,) or None
        Which columns hold texts, which are categories; None if the format has no texts.
    pool : TextCoder or None
        Texts that were numbered when the table was opened; None if that is done by reading.
    annotations : mapping of str to sequence (n_rows,)
        What else is known of the rows, by name: numbers or texts, None or NaN where one is missing.
        None is a feature; options name those that are the target, row ids, covariates and so on.
    default_ids, default_target : str or None
        Which of them are row ids, and the target, where none is named.
    index_names : sequence of str
        Columns that are no features unless they are named: one alone holds row ids.
    genotypes : BedFile or None
        The file, where it is one of PLINK 1 that a store may link to.
    feature_columns : mapping of str to collection (n_columns,)
        What else is known of the columns, by name: numbers or texts, None where one is missing.
    held, opening : tuple of Lease, or None
        What is held of the table to the end, and what opening it took; None where only the process
        can tell.
    work_nbytes : int
        Memory that reading takes beyond what is read and what is held already.
    said : str
        What the file was taken for, and where names and ids came from; empty if nothing is to say.
    takes : tuple of str
        Options that only some formats take, ``names_from`` and ``feature_type``, and this does.
    scratch_nbytes : int
        Bytes that reading writes to scratch disk, besides rows on their way to columns.
    values_nbytes : int or None
        Bytes of values in the store, about and at most, where that is less than cells take.
    """

    format: str = ""
    shape: tuple[int, int]
    by_rows: bool = False
    narrow: bool | Bools = False
    cell_nbytes: int = 8
    names: Collection[str] | None = None
    text_columns: Bools | None = None
    pool: TextCoder | None = None
    annotations: Mapping[str, Sequence[Any]] = MappingProxyType({})
    default_ids: str | None = None
    default_target: str | None = None
    index_names: Sequence[str] = ()
    genotypes: BedFile | None = None
    feature_columns: Mapping[str, Collection[Any]] = MappingProxyType({})
    held: tuple[Lease, ...] | None = None
    opening: tuple[Lease, ...] = ()
    work_nbytes: int = 0
    said: str = ""
    takes: tuple[str, ...] = ()
    scratch_nbytes: int = 0
    values_nbytes: int | None = None

    def prepare(self) -> None:
        """Do what takes long before all else is read; :attr:`narrow` is settled then."""

    def read(self, positions: Indices, pool: TextCoder) -> Reals:
        """Return columns (rows if ``by_rows``) by position, each a row of the result.

        float64, C-contiguous; of a table that is ``narrow`` perhaps float32. NaN where a value is
        missing; infinities as they are; of columns of texts the number of each text in ``pool``.

        Raises
        ------
        InputError
            If one holds something else than numbers.
        """
        raise NotImplementedError

    def items(self, position: int) -> Iterator[list[Any]]:
        """Yield the cells of a column in blocks; None or NaN where one is missing."""
        (n_rows, n_columns), pool = self.shape, self.pool or TextCoder(CATEGORY_NBYTES)
        if not self.by_rows:
            cells = self.read(np.array([position]), pool)[0]
            is_text = self.text_columns is not None and self.text_columns[position]
            texts = pool.texts() if is_text else []
            for block in bounded(Items(n_rows, lambda some: cells[some].tolist())):
                known = (None if np.isnan(one) else texts[int(one)] for one in block)
                yield list(known) if is_text else block
            return
        for start, stop in line_pieces(n_rows, n_columns):
            yield self.read(np.arange(start, stop), pool)[:, position].tolist()

    def levels(self, position: int) -> list[str] | None:
        """Return the levels of a column that is declared categorical, none if they have no order.

        None of any other column.
        """
        return None

    def feature_cells(self) -> Iterable[Sequence[Any]]:
        """Yield what ``feature_columns`` hold of each column."""
        return zip(*self.feature_columns.values(), strict=True)

    @property
    def index(self) -> Iterable[Any] | None:
        """Labels of the rows, whose order is that of labelled columns given beside the table."""
        return self.annotations.get(self.default_ids or "")

    def close(self) -> None:
        """Close what is open."""


# What a file is: how it is known, who reads it, and what that takes.

_BED, _ZIP = re.escape(MAGIC), rb"PK\x03\x04.{26}"
_VCF = b"##fileformat=VCF|BCF\2"
_LINE = rb"[^\s:#]+(\s+qid:\d+)?(\s+\d+:[^\s:]+)+\s*(#.*)?"
_OTUS = rb"# Constructed from biom file|(#[^\t\n]*\n)*#OTU ?ID\t"
_ARFF = rb"(?i)([ \t\r]*(%[^\n]*)?\n)*[ \t]*@relation\s"
_BIOM = (
    rb'\s*\{.*("format_url"\s*:\s*"http://(www\.)?biom-format|"Biological Observation Matrix'
    rb'|"(rows|columns)"\s*:\s*\[\s*\{\s*"(id|metadata)"\s*:)'
)
_GENOTYPES = rb"(?=.*\s[ACGT]\s)(\S+[ \t]+){4}[-0-9]+[ \t]+\S+([ \t]+[ACGTN0]){2}([ \t].*)?"
_SOFT = rb"\^(DATABASE|DATASET|SERIES|SAMPLE|PLATFORM|Annotation)\b"
_BOOK = rb"\xd0\xcf\x11\xe0|PK\x03\x04.{26}(\[Content_Types|_rels/|docProps/|xl/|mimetypeapp)"
_PT = rb"\x80\x02\x8a\nl\xfc\x9cF|PK\x03\x04.{26}[^/\0]+/data\.pkl"
_HDF5 = rb"(.{512})?\x89HDF\r\n\x1a\n"
_R = rb"RD[XAB][23]\n|(X\n\0\0\0|B\n)[\2\3]|A\n[23]\n\d{5,6}\n\d{5,6}\n"
_BINARY = rb"(?!\x1f\x8b|BZh|\xfd7z|\x28\xb5)(?=.*\0).*[\0-\x7f][\x80-\xc1\xf5-\xff]"
PACKED = {"gz": "gzip", "xz": "xz", "bz2": "bzip2", "zst": "zstd"}
"""What packs a file, by the suffix that its name then has."""
_PACKED_NAME = re.compile(r"(.*)\.b?(gz|xz|bz2|zst)", re.IGNORECASE)


def _python(library: str, code: str) -> str:
    """Return what converts a file; the library is ``p``."""
    run = f"python -c \"import {library} as p; {code}.to_parquet('NEW.parquet')\""
    return f"Convert it, with `pip install pandas pyarrow pyreadstat`: `{run}`."


def _joined(files: str, name: str, how: str) -> str:
    """Return what joins files of one sample each."""
    cells = f"f.{name}: p.read_csv(f, sep='\\t', index_col=0{how}"
    made = f"p.DataFrame({{{cells} for f in pathlib.Path('FILE').glob('{files}')}}).T"
    return _python("pathlib, pandas", f"{made}.filter(regex='^(?!__)')")


_R_LINE = """Convert a frame or matrix: `Rscript -e 'write.table(tryCatch(readRDS("FILE"), error =
 function(e) get(load("FILE")[1])), "NEW.csv", sep=",")'`.""".replace("\n", "")
_PICKLE = _python("pandas", "p.read_pickle('FILE')")
_STREAM = _python("pyarrow", "p.ipc.open_stream('FILE').read_pandas()")
_SPSS = _python("pyreadstat", "p.read_sav('FILE', apply_value_formats=True)[0]")
_STATA = _python("pandas", "p.read_stata('FILE')")
_SAS = _python("pyreadstat", "p.read_sas7bdat('FILE')[0]")
_UMI = _python("pandas", "p.read_table('FILE').pivot_table('count', 'cell', 'gene', 'sum', 0)")
_XPT = _python("pyreadstat", "p.read_xport('FILE')[0]")
_SALMON = _joined("*/quant.sf", "parent.name", ").TPM")
_KALLISTO = _joined("*/abundance.tsv", "parent.name", ").tpm")
_TRUST = "A pickle can run any program: only if you trust it. "
_SHEET = "Save the sheet that holds the table as CSV (UTF-8) and ingest that."
_TABLE = "Take the table out: `unzip -p FILE '*/data/feature-table.biom' > NEW.biom`."
_TORCH = "Save a matrix, in Python: `numpy.save('NEW.npy', torch.load('FILE'))`."
_CUT = "Ingest what follows with --orient features: `grep -v '^#' FILE | cut -f 1,7- > NEW.tsv`."
_PROTEINS = """d = p.read_csv('FILE', sep='\\t', index_col='Majority protein IDs');
 d = d[(d.filter(regex='^Reverse|ontaminant') != '+').all(axis=1)];
 d = d.filter(regex='^(LFQ intensity|Reporter intensity corrected) '); d.where(d > 0).T"""
_MAXQUANT = _python("pandas", _PROTEINS.replace("\n", ""))
_PED = "`plink --file NAME --make-bed --out NAME`, of NAME.ped and NAME.map; then ingest NAME.bed."
_SERIES = """GEO has its series, too: get `GSE..._series_matrix.txt.gz`. Of a GDS, with --orient
 features: `gzip -dc FILE | grep -v '^[!#^]' | cut -f 1,3- > NEW.tsv`.""".replace("\n", "")
_EACH = "Name the file in it. If each holds the counts of a sample, as of HTSeq: "
_PAGE = "Download the file itself: this is a page about it, or an error."
_UTF_16 = "Convert it: `iconv -f utf-16 -t utf-8 FILE > NEW`."
_UNKNOWN = "`srs-ooc formats` lists those that are. If it is one of them, get the file again."


@dataclass(frozen=True)
class Format:
    """A kind of file: a row of :data:`FORMATS`.

    Attributes
    ----------
    name : str
        Its name, in messages and documents.
    reader : str
        Where the class or function is that makes a :class:`Table` of a ``files.File``, as
        ``module:name``, loaded once it is needed; empty where nothing reads it, ``csv`` of texts
        that are streamed.
    magic : bytes
        Regular expression of its first bytes; packed by gzip, xz, bzip2 or zstd it is not read.
    ending : str
        Regular expression of its name. Where there is a ``magic``, both are there.
    line : bytes
        Regular expression of the first line of a text that has another name.
    head : bytes
        Regular expression of its beginning, unpacked, where it may be packed.
    holds : tuple of str
        Patterns of files of which a folder of this format holds one.
    also : {'', 'query', 'path'}
        What is said besides: a query, or a path within it, after ``::``.
    needs : str
        Module that reading takes, of :data:`REMEDIES`.
    remedy : str
        What to do with it where nothing reads it: a sentence with the command that converts it.
    named : str
        Usual endings of its name, by which alone nothing is known: a remark says where something
        else has such a name.
    """

    name: str
    reader: str = ""
    magic: bytes = b""
    ending: str = ""
    line: bytes = b""
    head: bytes = b""
    holds: tuple[str, ...] = ()
    also: str = ""
    needs: str = ""
    remedy: str = ""
    named: str = ""

    @property
    def known_by(self) -> str:
        """How it is known, in words."""
        ways = {"first bytes": self.magic + self.head, "name": self.ending}
        ways |= {"first line": self.line, "files in the folder": self.holds}
        found = [way for way, one in ways.items() if one] or ["nothing else fits"]
        return (" and " if self.magic else " or ").join(found)

    def fits(self, path: Path, start: bytes, text: bytes, inner: str = "") -> str:
        """Return by what a file is known to be of this format, or a folder; empty if it is not.

        ``start`` holds its first bytes, ``text`` more of them, unpacked.
        """
        if path.is_dir():
            is_asked = bool(inner and self.also == "path" and self.holds)
            return "files in it" * (is_asked or any(any(path.glob(one)) for one in self.holds))
        is_named = bool(self.ending and re.fullmatch(self.ending, path.name))
        if self.magic and (is_named or not self.ending):
            starts = (start, text[:4096])
            return "first bytes" * any(re.match(self.magic, one, re.DOTALL) for one in starts)
        if self.head and re.match(self.head, text, re.DOTALL):
            return "first bytes"
        lines = text.splitlines() if self.line else []
        first = next((one for one in lines if one.strip() and not one.startswith(b"#")), b"")
        is_it = bool(self.line and re.fullmatch(self.line, first))
        return "first line" * is_it or "name" * (is_named and not self.magic)

    def belied(self, name: str, packing: str) -> str:
        """Return a remark on a file of this format whose name promises another; empty if none."""
        plain, packed = match.groups() if (match := _PACKED_NAME.fullmatch(name)) else (name, "")
        ending, said = plain.rpartition(".")[2].lower(), list[str]()
        kinds = [one for one in (*FORMATS, TEXT) if ending in one.named.split()]
        if self.named and kinds and self not in kinds:
            said.append(f"{kinds[0].name}, but it is {self.name}")
        if (named := packed.lower()) != packing and self.reader:
            how = [f"packed by {PACKED[one]}" if one else "not packed" for one in (named, packing)]
            said.append(f"a file {how[0]}, but it is {how[1]}")
        return f"its name is that of {' and '.join(said)}, and was read so" * bool(said)


TEXT = Format("a text table", "csv", named="csv tsv tab txt")
"""What a file is that is none of :data:`FORMATS`."""

FORMATS = (
    Format("SQLite", "databases:QueryTable", rb"SQLite format 3\0", also="query", named="sqlite"),
    Format("DuckDB", "databases:QueryTable", b".{8}DUCK", also="query", needs="duckdb"),
    Format("HDF5", "hdf5:open_hdf5", _HDF5, also="path", needs="h5py", named="h5 hdf5 h5ad h5mu"),
    Format("MATLAB", "matlab:open_mat", b"MATLAB 5.0 MAT-file", also="path", named="mat"),
    Format("NumPy", "files:NpyTable", rb"\x93NUMPY", named="npy"),
    Format("NumPy", "files:open_npz", _ZIP + rb"[^/\0]+?\.npy", also="path", named="npz"),
    Format("Parquet", "files:ArrowFile", b"PAR1", needs="pyarrow", named="parquet pq"),
    Format("Feather", "files:ArrowFile", b"ARROW1", needs="pyarrow", named="feather arrow"),
    Format("PLINK 2", "genotypes:PgenTable", _BED, r".+\.pgen", needs="pgenlib", named="pgen"),
    Format("PLINK 1", "genotypes:BedTable", _BED, named="bed"),
    Format("VCF", "vcf:VcfTable", head=_VCF, also="path", needs="cyvcf2", named="vcf bcf"),
    Format("BGEN", "bgen:BgenTable", b".{16}bgen", also="path", needs="bgen", named="bgen"),
    Format("svmlight", "files:SvmlightTable", b"", r".+\.(svm|svmlight|libsvm)(\.[^.]*)?", _LINE),
    Format("MatrixMarket", "matrix_market:MtxTable", head=rb"(?i)%%MatrixMarket\s", also="path"),
    Format("GCT", "feature_texts:open_rows", head=rb"#1\.[23]\s"),
    Format("GEO series matrix", "feature_texts:open_rows", head=rb"\s*!(Series|Sample)_\w+\t"),
    Format("BIOM TSV", "feature_texts:open_rows", head=_OTUS),
    Format("BIOM 1.0", "feature_texts:open_json", head=_BIOM),
    Format("10x folder", "matrix_market:MtxTable", holds=("matrix.mtx", "matrix.mtx.gz")),
    Format("ARFF", TEXT.reader, head=_ARFF, named="arff"),
    Format("Zarr", "zarr_arrays:open_zarr", holds=("zarr.json", ".zarray", ".zgroup"), also="path"),
    Format("data of R", head=_R, named="rds rdata rda", remedy=_R_LINE),
    Format("PyTorch", "", _PT, named="pt pth", remedy=_TORCH),
    Format("pickle", "", rb"\x80[\2-\5]|ccopy_reg\n", named="pkl pickle", remedy=_TRUST + _PICKLE),
    Format("a stream of Arrow", "", rb"\xff{4}.{4}[\4-\x20]\0{3}", named="arrows", remedy=_STREAM),
    Format("SPSS", "", rb"\$FL[23]@\(#\)", named="sav zsav", remedy=_SPSS),
    Format("Stata", "", rb"<stata_dta>|[\x66-\x73][\1\2]\x01\0", named="dta", remedy=_STATA),
    Format("SAS", "", rb"\0{12}\xc2\xea\x81\x60\xb3\x14\x11\xcf", named="sas7bdat", remedy=_SAS),
    Format("SAS transport", "", rb"HEADER RECORD\*{7}LIB", named="xpt", remedy=_XPT),
    Format("a workbook", "", _BOOK, named="xlsx xlsm xls ods", remedy=_SHEET),
    Format("QIIME 2", "", _ZIP + rb"[-0-9a-f]{36}/", named="qza", remedy=_TABLE),
    Format("a zip archive", "", rb"PK\x03\x04", named="zip", remedy="Unpack it: `unzip FILE`."),
    Format("featureCounts", line=rb"Geneid\tChr\tStart\tEnd\tStrand\tLength\t.*", remedy=_CUT),
    Format("UMI-tools", line=rb"gene\tcell\tcount", remedy=_UMI),
    Format("MaxQuant", line=rb"Protein IDs\tMajority protein IDs\t.*", remedy=_MAXQUANT),
    Format("PLINK's text", "", b"", r".+\.ped(\.[^.]*)?", _GENOTYPES, remedy=_PED),
    Format("GEO SOFT", head=_SOFT, remedy=_SERIES),
    Format("salmon", holds=("*/quant.sf",), remedy=_SALMON),
    Format("kallisto", holds=("*/abundance.tsv",), remedy=_KALLISTO),
    Format("a folder", holds=("*",), remedy=_EACH + _joined("*", "stem", ", header=None)[1]")),
    Format("a web page", "", rb"\s*<(!DOCTYPE html|html)", named="html htm", remedy=_PAGE),
    Format("text in UTF-16", "", rb"\xff\xfe|\xfe\xff", remedy=_UTF_16),
    Format("a binary file of no kind that is known", "", _BINARY, remedy=_UNKNOWN),
)
"""Each kind of file that is known, read or not; the first that fits is what a file is."""

REMEDIES = {
    "bgen": "Run `pip install 'srs-ooc[bgen]'`, or `plink2 --bgen FILE ref-first --make-pgen`.",
    "cyvcf2": "Run `pip install 'srs-ooc[vcf]'`, or `plink2 --vcf FILE --make-pgen`.",
    "duckdb": "Run `pip install 'srs-ooc[duckdb]'`, or export the table as Parquet.",
    "h5py": "Run `pip install 'srs-ooc[cells]'`, or save the table as CSV or .npy.",
    "pgenlib": "Run `pip install 'srs-ooc[genetics]'`, or `plink2 --pfile NAME --make-bed`.",
    "pyarrow": "Run `pip install 'srs-ooc[arrow]'`, or save the table as CSV or .npy.",
}
"""What to do where a module is not installed that a format needs."""
