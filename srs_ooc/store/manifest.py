"""The manifest: what a store says of itself without its data, and where its arrays lie.

Dtypes, shapes and chunk files follow from the layout. What a manifest says is checked: types,
ranges, and whether its parts agree. So do the metadata of the Zarr group that the store is.
"""

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from math import factorial, prod
from pathlib import Path
from shlex import quote
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import StoreError
from srs_ooc.base.text import MB, ceil_div, counted
from srs_ooc.base.urls import Place

# Where the arrays of a store lie on disk: their dtypes, shapes and chunk files.
#
# All arrays but ``values`` and the code ranges are uncompressed. The small ones are a single chunk
# each, so that any of them can be mapped without the Zarr library.

CODES_CHUNK_NBYTES = 32 * MB
VALUES_CHUNK_NBYTES = 2 * MB
FLOAT_CHUNK_NBYTES = 4 * MB
"""The largest chunk of values that is read, uncompressed; ours are smaller."""
COORDINATE_CHUNK = 1 << 16
"""Texts of a chunk of a coordinate."""

VALUES_CODEC = {"cname": "lz4", "clevel": 5, "shuffle": "bitshuffle"}
"""How chunks of values are compressed, in the words of the Zarr standard."""

SMALL_ARRAYS = {
    "target": "<i4",
    "target_values": "<f8",
    "weights": "<f8",
    "strata": "<i4",
    "groups": "<i4",
    "covariates": "<f8",
    "events": "|b1",
    "linked_rows": "<i4",
    "present": "|u1",
    "kinds": "|u1",
    "categories_first": "<u4",
    "categories_bytes": "|u1",
    "categories_offsets": "<u8",
    "positions": "<u4",
    "n_missing": "<u4",
    "n_codes": "<u2",
    "exact": "|b1",
    "names_bytes": "|u1",
    "names_offsets": "<u8",
    "row_ids_bytes": "|u1",
    "row_ids_offsets": "<u8",
    "feature_columns_bytes": "|u1",
    "feature_columns_offsets": "<u8",
    "values_crc32c": "<u4",
    "code_lows_crc32c": "<u4",
    "code_highs_crc32c": "<u4",
}
"""Dtypes of the arrays that are one chunk file each; a store holds those that it needs."""

ROW_COLUMNS = ("weights", "strata", "groups", "covariates", "events")
"""What a store may know of its rows besides target and row ids."""

ROW_ARRAYS = ("target", "target_values", *ROW_COLUMNS)
FEATURE_ARRAYS = ("kinds", "positions", "n_missing", "n_codes", "exact", "present")
TEXTS = ("names", "row_ids")
FEATURE_COLUMNS, CELL_END = "feature_columns", "\x1f"
"""Texts of a store, of each feature one: what its columns hold, parted by the latter."""
CATEGORIES = ("categories_first", "categories_bytes", "categories_offsets")
COORDINATES = {"feature": "n_features", "row": "n_rows"}
"""Texts for Zarr and xarray, and the field of the manifest that says how many there are."""


@dataclass(frozen=True)
class Shape:
    """Size of a table: ``n_rows`` rows by ``n_features`` features."""

    n_rows: int
    n_features: int


def small_file(path: Path, name: str) -> Path:
    """Return the file that holds the small array ``name`` of the store at ``path``."""
    return path / name / "c" / "0"


def max_codes(dtype: Any) -> int:
    """Return how many codes ``dtype`` has besides the missing code and one kept in reserve."""
    return int(np.iinfo(dtype).max) - 1


def codes_chunk_features(shape: Shape, code_nbytes: int) -> int:
    """Return how many features a chunk file of ``codes`` holds."""
    return max(1, min(shape.n_features, CODES_CHUNK_NBYTES // (shape.n_rows * code_nbytes)))


def values_chunk(shape: Shape, itemsize: int) -> tuple[int, int]:
    """Return the chunk shape (features, rows) of ``values``: at most 2 MB, all rows if they fit."""
    n_rows = min(shape.n_rows, VALUES_CHUNK_NBYTES // itemsize)
    return max(1, min(shape.n_features, VALUES_CHUNK_NBYTES // (n_rows * itemsize))), n_rows


def values_file(path: Path, array: str, feature_chunk: int, row_chunk: int) -> Path:
    """Return the chunk file of a compressed (n_features, ...) array."""
    return path / array / "c" / str(feature_chunk) / str(row_chunk)


def chunk_file(index: int) -> str:
    """Return the path, relative to the store, of chunk ``index`` of ``codes``."""
    return f"codes/c/{index}/0"


def damaged(place: object, error: object) -> StoreError:
    """Return the error of a store of which ``place`` says what cannot be."""
    return StoreError(f"{place}: {error}. The store is damaged; ingest the table again.")


def cannot_read(file: object, error: OSError) -> StoreError:
    """Return the error of a file that the system refuses to read, which says nothing of it."""
    return StoreError(
        f"{file}: could not be read: {error.strerror or error}. This is the disk's or the "
        "network's error, and need not be damage: check the permissions and the disk, and try "
        "again."
    )


@contextmanager
def reading(file: object) -> Iterator[None]:
    """Say of a file of a store that it is not there, or cannot be read, if the block finds that.

    Raises
    ------
    StoreError
        For the error of the system.
    """
    try:
        yield
    except FileNotFoundError:
        raise damaged(file, "expected a file, found none") from None
    except OSError as error:
        raise cannot_read(file, error) from error


def require_file(file: Path, expected_nbytes: int) -> None:
    """Check that ``file`` is there and of the size expected, before it is mapped.

    Raises
    ------
    StoreError
        If it is missing or of another size.
    """
    found: object = "no file"
    with reading(file), suppress(FileNotFoundError):
        found = file.stat().st_size
    if found != expected_nbytes:
        raise damaged(file, f"expected {expected_nbytes} bytes, found {found}")


def dtype_of(name: str) -> np.dtype[np.generic]:
    """Return the dtype of a small array."""
    return np.dtype(SMALL_ARRAYS[name])


def verified_pieces(path: Path, name: str, expected: int) -> Iterator[bytes]:
    """Yield the bytes of file ``name`` of the store at ``path``, in pieces of whole items.

    Parameters
    ----------
    path : Path
        The store.
    name : str
        The file, relative to it.
    expected : int
        Its CRC-32.

    Raises
    ------
    StoreError
        If the file cannot be read, or, at its end, if the checksum differs.
    """
    found = 0
    with reading(path / name), (path / name).open("rb") as file:
        while piece := file.read(1 << 20):
            found = zlib.crc32(piece, found)
            yield piece
    if found != expected:
        raise damaged(path / name, f"expected CRC-32 {expected:08x}, found {found:08x}")


def verify_file(path: Path, name: str, expected: int) -> int:
    """Read a file and compare its CRC-32; return the bytes read.

    Parameters and errors as of :func:`verified_pieces`.
    """
    return sum(map(len, verified_pieces(path, name, expected)))


# How the files of a store come to be where they are read.

Borrow = Callable[[Path], AbstractContextManager[object]]
"""Has a file of a store be on a local disk while the block lasts, if the store has it."""


# Kinds of feature, by number and by name.

NUMERIC, INTEGER, BOOLEAN, CATEGORICAL, CONSTANT = range(5)
"""Kinds of feature, as a store holds them."""
NAMES = ("numeric", "integer", "boolean", "categorical", "constant")
"""Names of the kinds, by number."""
KINDS = {name: kind for kind, name in enumerate(NAMES)}


FEW_EVENTS = 10
"""Fewer are said at ingest, and before a run."""


def too_few_events(n_events: int, n_rows: int) -> str | None:
    """Return that events of rows are too few, if so."""
    said = f"{counted(n_events, 'event')} in {n_rows:,} rows: too few to find much."
    return said if n_events < FEW_EVENTS else None


def hopeless(manifest: "Manifest", target: NDArray[Any] | None = None) -> str | None:
    """Return why nothing can be found in a table, if so; ``target`` of the rows trained on."""
    if manifest.kind_counts["constant"] == manifest.n_features:
        return "All features are constant. Look whether the right columns were read."
    counts = manifest.class_counts or (1,) * min(manifest.n_rows, 20)
    if target is not None:
        counts = np.unique(target, return_counts=True)[1].tolist()
    ways = factorial(sum(counts)) // prod(map(factorial, counts)) if sum(counts) < 20 else 20
    so = f"{counted(sum(counts), 'row')} can have these targets in {counted(ways, 'way')} only"
    return None if ways >= 20 else f"{so}: too few to tell from chance. Get more rows."


# Is what a store says of itself possible? Types, ranges, and whether its parts agree.
#
# A checksum says that bytes are those that were written, not that they make sense: a file may be
# made by other hands, or sealed anew. What is checked here is what the rest of the package, the
# native code among it, takes for granted.

_MOST_ROWS = (1 << 31) - 1
_MOST_FEATURES = (1 << 32) - 1
Record = dict[str, Any]


class ImpossibleError(ValueError):
    """What a store says cannot be; the message says what was expected and what was found."""


def wrong(expected: str, found: Any) -> NoReturn:
    """Raise the error of what cannot be."""
    shown = repr(found)
    raise ImpossibleError(f"expected {expected}, found {shown if len(shown) <= 80 else shown[:77]}")


def _is_count(low: int, high: int) -> Callable[[Any], bool]:
    return lambda item: type(item) is int and low <= item <= high


def _is_text(item: Any) -> bool:
    """Return whether it is a text, and one that UTF-8 can write."""
    return isinstance(item, str) and item.encode(errors="replace").decode() == item


def _is_list(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda item: isinstance(item, list) and all(map(of, item))


def _is_dict(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda item: (
        isinstance(item, dict) and all(map(_is_text, item)) and all(map(of, item.values()))
    )


def _is_plain(item: Any) -> bool:
    """Return whether JSON can hold it and a terminal can show it."""
    is_one = item is None or isinstance(item, bool | int | float) or _is_text(item)
    return is_one or _is_list(_is_plain)(item) or _is_dict(_is_plain)(item)


def _one_of(*items: Any) -> tuple[str, Callable[[Any], bool]]:
    *first, last = ("null" if item is None else item for item in items)
    return f"{', '.join(first)} or {last}", lambda item: item in items


_COUNT, _POSITIVE = (_is_count(low, (1 << 63) - 1) for low in (0, 1))
_TEXTS, _FACTS = ("a list of texts", _is_list(_is_text)), ("facts by name", _is_dict(_is_plain))
_WHOLE = ("a whole number", _COUNT)


def _checked(record: Record, sha256: object) -> "Manifest":
    """Return the manifest that its JSON is, each field checked by itself and against the others.

    Its SHA-256 must be that which is written beside it.

    Raises
    ------
    ImpossibleError
        Naming the first field that is wrong.
    """
    if sha256 != (found := sha256_of(record)):
        raise ImpossibleError(f"expected a manifest of SHA-256 {sha256!r}, found {found!r}")
    fields = _fields_of(record["format"])
    if odd := sorted(record.keys() ^ fields.keys()):
        raise ImpossibleError(
            f"expected a manifest with the fields of format {record['format']}, "
            f"found {', '.join(odd)} missing or unknown"
        )
    for name, value in record.items():
        if not fields[name]["holds"](value):
            wrong(f"{name} to be {fields[name]['expected']}", value)
    lists = {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
    manifest = Manifest(**record | lists | {"levels": tuple(map(tuple, record.get("levels", ())))})
    for expected, agrees, said in _agreements(manifest):
        if not agrees:
            wrong(expected, said)
    _check_arrays(manifest)
    return manifest


def _agreements(m: "Manifest") -> list[tuple[str, bool, Any]]:
    """Return what must hold between fields: what is expected, whether it does, what was found."""
    counts, columns, kinds = list(m.class_counts), m.row_columns, m.kind_counts
    classes, with_missing = list(m.classes), m.n_missing_features
    layout = format_of(columns, m.n_linked_rows, of_features := m.feature_columns)
    is_regression, most = m.task == "regression", next(iter(m.float_arrays.values()))
    features, items = chunk = list(m.values_chunk)
    nbytes = features * items * np.dtype(m.float_dtype).itemsize
    return [
        ("no classes of a regression", not (is_regression and classes), classes),
        ("classes of a classification", is_regression or bool(classes), classes),
        ("classes that differ", len(set(classes)) == len(classes), classes),
        ("a count of each class", len(counts) == len(classes), counts),
        (f"{m.n_rows} rows in class_counts", is_regression or sum(counts) == m.n_rows, counts),
        ("row_columns of known names", set(columns) <= set(ROW_COLUMNS), columns),
        ("columns in row_columns", all(columns.values()), columns),
        ("feature_columns that differ", len(set(of_features)) == len(of_features), of_features),
        (f"format {layout}", m.format == layout, m.format),
        (
            f"float32 values and uint8 codes of at most {m.n_linked_rows} rows",
            not m.n_linked_rows
            or (m.values_dtype, m.code_dtype, m.n_rows <= m.n_linked_rows)
            == ("float32", "uint8", True),
            [m.values_dtype, m.code_dtype, m.n_rows],
        ),
        ("levels of each covariate", len(m.levels) == len(columns.get("covariates", ())), m.levels),
        ("levels that differ", all(len(set(one)) == len(one) for one in m.levels), m.levels),
        ("events of a regression", is_regression or "events" not in columns, columns),
        ("the kinds in kind_counts", set(kinds) == set(NAMES), kinds),
        (f"{m.n_features} features in kind_counts", sum(kinds.values()) == m.n_features, kinds),
        ("chunk_features <= n_features", m.chunk_features <= m.n_features, m.chunk_features),
        ("n_missing_features <= n_features", with_missing <= m.n_features, with_missing),
        (
            "missing cells in the features said to have them",
            with_missing <= m.n_missing_cells <= with_missing * m.n_rows,
            m.n_missing_cells,
        ),
        (
            f"values_chunk within {m.n_features} x {most}",
            features <= m.n_features and items <= most,
            chunk,
        ),
        (
            f"chunks of values of at most {FLOAT_CHUNK_NBYTES} bytes",
            nbytes <= FLOAT_CHUNK_NBYTES,
            chunk,
        ),
    ]


def _check_arrays(m: "Manifest") -> None:
    """Check that files and lengths are those of the arrays that such a store has."""
    if len(m.checksums) < m.n_chunks:  # before as many names are made as a wrong number says
        wrong(f"checksums of {m.n_chunks} chunks of codes", len(m.checksums))
    files = {chunk_file(i) for i in range(m.n_chunks)} | {f"{name}/c/0" for name in m.small_arrays}
    for name, field in COORDINATES.items():
        n_chunks = ceil_div(getattr(m, field), COORDINATE_CHUNK)
        files |= {f"{name}/c/{i}" for i in range(n_chunks)}
    if different := files.symmetric_difference(m.checksums):
        wrong("checksums of the files of the store", sorted(different)[:3])
    if different := set(m.small_arrays).symmetric_difference(m.lengths):
        wrong("lengths of the small arrays", sorted(different))
    features, items = m.values_chunk
    expected = dict.fromkeys((*ROW_ARRAYS, "linked_rows"), m.n_rows)
    expected |= dict.fromkeys(FEATURE_ARRAYS, m.n_features)
    by_feature = ("names_offsets", "categories_first", f"{FEATURE_COLUMNS}_offsets")
    expected |= dict.fromkeys(by_feature, m.n_features + 1)
    expected |= {"covariates": m.n_rows * len(m.levels), "row_ids_offsets": m.n_rows + 1}
    for name, n_items in m.float_arrays.items():
        n_chunks = ceil_div(m.n_features, features) * ceil_div(n_items, items)
        expected[f"{name}_crc32c"] = n_chunks
    for name, length in m.lengths.items():
        if length != expected.get(name, length):  # texts are as many and as long as they are
            wrong(f"{expected[name]} items of {name} in lengths", length)


# The manifest: what a store says of itself, read without touching its data.
#
# A store is one Zarr v3 group. Its manifest is the attribute ``srs_ooc`` of the group, beside its
# SHA-256 (of its canonical JSON, in hexadecimal digits), ``srs_ooc_sha256``. It holds:
#
# ========================  ======================================================================
# ``format``                version of this layout (:func:`format_of`)
# ``n_rows``, ``n_features``  shape of the table
# ``task``                  ``classification`` or ``regression``
# ``classes``, ``class_counts``  labels as text, in code order, and rows of each; else empty
# ``n_dropped_rows``        rows of the source left out, having no target
# ``row_columns``           names of the source's columns of ``weights``, ``strata``, ``groups``,
#                           ``covariates``, ``events``
# ``levels``                of each covariate the texts of its categories, by number; empty of
#                           numbers; only of formats 4 to 6
# ``n_linked_rows``         samples of the ``.bed`` file that holds codes and values in place of the
#                           store (:mod:`srs_ooc.store.bed`); only of formats 5 and 6
# ``feature_columns``       names of what the source says of its features besides; only of format 6
# ``kind_counts``           features of each kind
# ``code_dtype``            ``uint8`` or ``uint16``; the largest code means missing
# ``chunk_features``        features per chunk file of ``codes``
# ``values_dtype``          ``float32``, ``float64``, or null where only codes are kept
# ``n_missing_cells``, ``n_missing_features``  cells without a value; features with such a cell
# ``order_key``             key of the random order in which features lie on disk
# ``target_name``, ``row_id_name``, ``inferred``, ``source``  where it came from; what was found
# ``checksums``             CRC-32 of files, by path; not of ``values`` and the code ranges
# ``lengths``               items of every small array, by name
# ``values_chunk``          features and items of a chunk of ``values``, or of the code ranges
# ========================  ======================================================================
#
# Arrays of the group (features in stored order unless said otherwise):
#
# ==================  ==========================================================================
# ``codes``           (n_features, n_rows) ordinal codes, uncompressed, chunks of whole features
# ``values``          (n_features, n_rows) original values, Blosc; only where ``values_dtype``; of a
#                     categorical feature the codes
# ``code_lows``, ``code_highs``  (n_features, n_codes) value range of each code; only without values
# ``target``          (n_rows,) int32 class codes; only of a classification
# ``target_values``   (n_rows,) float64 targets; only of a regression
# ``weights``         (n_rows,) float64, positive; these three only where given
# ``strata``, ``groups``  (n_rows,) int32 codes of distinct texts or tuples of texts
# ``covariates``      (n_covariates x n_rows,) float64, one covariate after another: numbers, or the
#                     places of categories in ``levels``; NaN where missing; only where given
# ``events``          (n_rows,) bool: the event was seen; only of a censored target
# ``kinds``           (n_features,) uint8: 0 numeric, 1 integer, 2 boolean, 3 categorical,
#                     4 constant
# ``categories_first``  (n_features + 1,) uint32 first category of each feature; only with kind 3
# ``categories_bytes``, ``categories_offsets``  UTF-8 texts of the categories, in code order
# ``positions``       (n_features,) uint32 source position of each stored feature
# ``present``         (n_features,) uint8 bits of the dosages 0, 1, 2 that there are; only linked
# ``linked_rows``     (n_rows,) int32 sample of the ``.bed`` file that each row is; only linked
# ``n_missing``       (n_features,) uint32 missing cells
# ``n_codes``         (n_features,) uint16 codes in use, the missing code not counted
# ``exact``           (n_features,) bool: equal codes mean equal values
# ``names_bytes``, ``names_offsets``      UTF-8 feature names in *source* order
# ``row_ids_bytes``, ``row_ids_offsets``  UTF-8 row ids
# ``feature_columns_bytes``, ``feature_columns_offsets``  UTF-8, of each feature in *source* order
#                     what its feature columns hold, parted by U+001F
# ``values_crc32c``   (chunks,) CRC-32C of each chunk of ``values``, by rows of the grid of chunks
# ``code_lows_crc32c``, ``code_highs_crc32c``  the same of these
# ``feature``         (n_features,) feature names in *stored* order, as Zarr strings
# ``row``             (n_rows,) row ids, as Zarr strings
# ==================  ==========================================================================
#
# ``feature`` and ``row`` are there for Zarr and xarray, to which they are the coordinates of the
# dimensions of these names; nothing here reads them.

FORMAT, FORMAT_OF_COVARIATES, FORMAT_OF_LINKED, FORMAT_OF_FEATURES = 3, 4, 5, 6
"""Formats of stores: the second of those with covariates or events, the third of those whose codes
are in a ``.bed`` file, the fourth of those that know more of features than their names. Older
versions refuse them."""
NO_TARGET, LAST_COLUMN = "none; rows are numbered", "last column"
"""What a manifest says was inferred of the target where the table has none."""
ATTRIBUTE = "srs_ooc"
SHA256 = "srs_ooc_sha256"


def _said(expected: str, holds: Callable[[Any], bool], since: int = FORMAT, **default: Any) -> Any:
    """Return a field of a manifest: what it must be, and since which format there is such."""
    metadata = {"expected": expected, "holds": holds, "since": since}
    return dataclasses.field(metadata=metadata, **default)


@dataclass(frozen=True)
class Manifest:
    """What a store says of itself; fields as in the module's table."""

    n_rows: int = _said(f"1 .. {_MOST_ROWS}", _is_count(1, _MOST_ROWS))
    n_features: int = _said(f"1 .. {_MOST_FEATURES}", _is_count(1, _MOST_FEATURES))
    task: str = _said(*_one_of("classification", "regression"))
    classes: tuple[str, ...] = _said(*_TEXTS)
    class_counts: tuple[int, ...] = _said("a list of whole numbers", _is_list(_COUNT))
    n_dropped_rows: int = _said(*_WHOLE)
    row_columns: dict[str, list[str]] = _said("lists of texts by name", _is_dict(_TEXTS[1]))
    kind_counts: dict[str, int] = _said("whole numbers by kind", _is_dict(_COUNT))
    code_dtype: str = _said(*_one_of("uint8", "uint16"))
    chunk_features: int = _said("a positive whole number", _POSITIVE)
    values_dtype: str | None = _said(*_one_of("float32", "float64", None))
    n_missing_cells: int = _said(*_WHOLE)
    n_missing_features: int = _said(*_WHOLE)
    order_key: int = _said("a whole number of 64 bits", _is_count(0, (1 << 64) - 1))
    target_name: str = _said("a text", _is_text)
    row_id_name: str | None = _said("a text or null", lambda item: item is None or _is_text(item))
    inferred: dict[str, Any] = _said(*_FACTS)
    source: dict[str, Any] = _said(*_FACTS)
    checksums: dict[str, int] = _said(
        "checksums of 32 bits by file", _is_dict(_is_count(0, (1 << 32) - 1))
    )
    lengths: dict[str, int] = _said("positive whole numbers by array", _is_dict(_POSITIVE))
    values_chunk: tuple[int, int] = _said(
        "two positive whole numbers", lambda item: _is_list(_POSITIVE)(item) and len(item) == 2
    )
    format: int = _said(*_WHOLE, default=FORMAT)
    levels: tuple[tuple[str, ...], ...] = _said(
        "lists of texts", _is_list(_TEXTS[1]), FORMAT_OF_COVARIATES, default=()
    )
    n_linked_rows: int = _said(
        f"0 .. {_MOST_ROWS}", _is_count(0, _MOST_ROWS), FORMAT_OF_LINKED, default=0
    )
    feature_columns: tuple[str, ...] = _said(*_TEXTS, FORMAT_OF_FEATURES, default=())

    @property
    def small_arrays(self) -> list[str]:
        """Return the names of the small arrays that the store holds."""
        there = {"target_values" if self.task == "regression" else "target"}
        there |= {*self.row_columns, *FEATURE_ARRAYS, "linked_rows"}
        there -= set() if self.n_linked_rows else {"linked_rows", "present"}
        texts = (*TEXTS, *[FEATURE_COLUMNS] * bool(self.feature_columns))
        there |= {f"{name}_{part}" for name in texts for part in ("bytes", "offsets")}
        there |= set(CATEGORIES if self.kind_counts["categorical"] else ())
        there |= {f"{name}_crc32c" for name in self.float_arrays}
        return [name for name in SMALL_ARRAYS if name in there]

    @property
    def float_arrays(self) -> dict[str, int]:
        """Return the compressed arrays of the store, and the items each has of a feature."""
        if self.values_dtype is not None:
            return {"values": self.n_rows}
        n_codes = min(max_codes(self.code_dtype), self.n_rows)
        return {"code_lows": n_codes, "code_highs": n_codes}

    @property
    def is_linked(self) -> bool:
        """Whether codes and values are left in a file elsewhere, and features in its order."""
        return self.n_linked_rows > 0 and self.order_key == 0

    @property
    def float_dtype(self) -> str:
        """Return the dtype of the compressed arrays."""
        return self.values_dtype or "float64"

    @property
    def code_nbytes(self) -> int:
        """Bytes of one code."""
        return 1 if self.code_dtype == "uint8" else 2

    @property
    def missing_code(self) -> int:
        """Return the code that stands for a missing value: the largest of its dtype."""
        return (1 << (8 * self.code_nbytes)) - 1

    @property
    def n_chunks(self) -> int:
        """Chunk files of ``codes``; none where these are in a ``.bed`` file."""
        return 0 if self.n_linked_rows else ceil_div(self.n_features, self.chunk_features)

    @property
    def chunk_nbytes(self) -> int:
        """Bytes of one chunk file; the last one is padded to this size too."""
        return self.chunk_features * self.n_rows * self.code_nbytes

    @property
    def codes_nbytes(self) -> int:
        """Bytes of all codes, padding not counted; of two bits each in a ``.bed`` file."""
        if self.n_linked_rows:
            return self.n_features * ceil_div(self.n_linked_rows, 4)
        return self.n_features * self.n_rows * self.code_nbytes

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON of the manifest: the identity of the store."""
        return sha256_of(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON-ready values, with the fields that its format has."""
        known = _fields_of(self.format)
        return {name: value for name, value in dataclasses.asdict(self).items() if name in known}


def _fields_of(version: int) -> Record:
    """Return what there is to say of each field that the manifests of a format have."""
    every = dataclasses.fields(Manifest)
    return {one.name: one.metadata for one in every if one.metadata["since"] <= version}


def format_of(rows: Collection[str], n_linked: int = 0, features: Collection[str] = ()) -> int:
    """Return the format of a store with columns of rows and features, and rows of a .bed file."""
    if features or n_linked:
        return FORMAT_OF_FEATURES if features else FORMAT_OF_LINKED
    return FORMAT_OF_COVARIATES if {"covariates", "events"} & {*rows} else FORMAT


def canonical(record: Any) -> str:
    """Return JSON of which there is one text for each meaning."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def sha256_of(record: dict[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of a manifest, in hexadecimal digits."""
    return hashlib.sha256(canonical(record).encode()).hexdigest()


def read_manifest(path: Path) -> Manifest:
    """Read and check the manifest of the store at ``path``.

    Raises
    ------
    StoreError
        If there is no store there, its metadata cannot be read, is of another format version or
        damaged, or says what cannot be.
    """
    metadata = path / "zarr.json"
    try:
        text = metadata.read_bytes()
    except FileNotFoundError:
        found = "a folder without zarr.json" if path.is_dir() else "nothing there"
        if path.suffix == ".run" and path.is_dir():
            found = f"a run: `srs-ooc status {quote(str(path))}` says of which store, too"
        raise StoreError(
            f"{path}: expected a store made by `srs-ooc ingest`, found {found}. "
            "Check the path, or ingest the table."
        ) from None
    except NotADirectoryError:
        raise StoreError(
            f"{path}: expected a store, which is a folder, found a file. If it is a table, ingest "
            f"it first: srs-ooc ingest {quote(str(path))} {quote(str(path.with_suffix('.zarr')))}"
        ) from None
    except OSError as error:
        raise cannot_read(metadata, error) from error
    return manifest_of(text, path)


def manifest_of(text: bytes, place: Place) -> Manifest:
    """Return the manifest in the metadata of the store at ``place``, checked.

    Raises
    ------
    StoreError
        As :func:`read_manifest`.
    """
    metadata = f"{place}/zarr.json"
    try:
        attributes = parse(text)["attributes"]
        record = attributes[ATTRIBUTE]
        version = record["format"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(
            f"{metadata}: expected the manifest of a store, could not read it ({error!r}). "
            "The store is damaged or is another kind of Zarr group; ingest the table again."
        ) from error
    if type(version) is not int or not FORMAT <= version <= FORMAT_OF_FEATURES:
        raise StoreError(
            f"{place}: expected store format {FORMAT} to {FORMAT_OF_FEATURES}, found "
            f"{version!r}. Use the srs-ooc version that wrote it, or ingest the table again."
        )
    try:
        return _checked(record, attributes.get(SHA256))
    except (ImpossibleError, RecursionError) as error:
        raise damaged(metadata, error) from error


def parse(text: bytes) -> Any:
    """Return JSON parsed; ValueError for numbers that JSON does not have."""
    return json.loads(text.decode(), parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


# The Zarr group that a store is: its metadata written, and compared with what zarr reads.
#
# zarr is imported where it is called, by ``verify``: it takes 0.3 s and 10 MB, which a run or an
# ingest does not have. So metadata are written here, as zarr writes them, byte by byte.

_CONSOLIDATED = "consolidated_metadata"
_ORDERS = {
    "names": "feature names in the order of the source; those in stored order are in `feature`",
    "positions": "place in the source of each stored feature",
}


def make_group(folder: Path, manifest: Manifest) -> None:
    """Write the metadata of a store beside its chunk files: one Zarr v3 group, and its arrays."""
    for name, document in _documents(manifest).items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "zarr.json").write_bytes(json.dumps(document, indent=2).encode())


def _documents(manifest: Manifest) -> dict[str, Record]:
    """Return what the metadata of the group, whose name is empty, and of each array say."""
    n_features, n_rows = manifest.n_features, manifest.n_rows
    chunks, dtype = (manifest.chunk_features, n_rows), np.dtype(manifest.code_dtype)
    codes = _array((n_features, n_rows), chunks, dtype, "feature", "row")
    found = {"codes": codes | {"fill_value": manifest.missing_code}}
    floats = manifest.float_arrays
    if manifest.n_linked_rows:
        found, floats = {}, {}
    for name in manifest.small_arrays:
        length, dtype = (manifest.lengths[name],), dtype_of(name)
        is_by_row = name in ROW_ARRAYS and name != "covariates"
        other = "row" if is_by_row else f"{name}_item"
        found[name] = _array(length, length, dtype, "feature" if name in FEATURE_ARRAYS else other)
        about = _ORDERS.get(name.split("_", maxsplit=1)[0])
        found[name]["attributes"] = {} if about is None else {"description": about}
    for name, n_items in floats.items():
        shape, dtype = (n_features, n_items), np.dtype(manifest.float_dtype)
        across = "row" if name == "values" else "code"
        found[name] = _array(shape, manifest.values_chunk, dtype, "feature", across)
        blosc = {"typesize": dtype.itemsize} | VALUES_CODEC | {"blocksize": 0}
        found[name]["codecs"] += [{"name": "blosc", "configuration": blosc}, {"name": "crc32c"}]
        found[name]["fill_value"] = "NaN"
    for name, field in COORDINATES.items():
        length = (getattr(manifest, field),)
        found[name] = _array(length, (min(*length, COORDINATE_CHUNK),), None, name)
    attributes = {ATTRIBUTE: manifest.to_json(), SHA256: manifest.fingerprint}
    # The standard has no consolidated metadata yet: who does not know them reads each array's own.
    inline = {"kind": "inline", "must_understand": False, "metadata": dict(sorted(found.items()))}
    group: Record = {"attributes": attributes, "zarr_format": 3, _CONSOLIDATED: inline}
    return {"": group | {"node_type": "group"}} | found


def _array(
    shape: tuple[int, ...], chunks: tuple[int, ...], dtype: np.dtype[Any] | None, *dimensions: str
) -> Record:
    """Return what the metadata of an array without compression say; of texts if no dtype."""
    codec: Record = {"name": "vlen-utf8", "configuration": {}}
    if dtype is not None:
        endian = {"configuration": {"endian": "little"}} if dtype.itemsize > 1 else {}
        codec = {"name": "bytes"} | endian
    return {
        "shape": shape,
        "data_type": "string" if dtype is None else dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "" if dtype is None else dtype.type(0).item(),
        "codecs": [codec],
        "attributes": {},
        "dimension_names": dimensions,
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


# Is the group, as zarr opens it, the one that follows from the manifest?


def check_group(place: Place, manifest: Manifest, read: Callable[[str], Collection[bytes]]) -> None:
    """Compare what the metadata say, those of the group and of each array.

    ``read`` returns what there is of the metadata in a file of the store, by its name below
    ``place``: all must say the same.

    Raises
    ------
    StoreError
        Naming the first file that is missing or says anything else.
    """
    for name, document in _documents(manifest).items():
        file = f"{name}/zarr.json".lstrip("/")
        with reading(f"{place}/{file}"):
            texts = read(file)
        if not all(_is_said(text, document) for text in texts):
            what = "expected the metadata that follows from the store's manifest, found others"
            raise damaged(f"{place}/{file}", what)


def verify_group(path: Path, place: Place, manifest: Manifest, borrow: Borrow) -> tuple[int, int]:
    """Compare the metadata that Zarr clients read; return its files and bytes.

    ``path`` is where the files are while they are borrowed, ``place`` what messages name.

    Raises
    ------
    StoreError
        Naming the first file that is missing, or of which zarr reads anything else: names, shapes,
        dtypes, chunks, codecs, fill values, dimensions, attributes.
    """
    import zarr

    names, nbytes = list[str](), 0

    def read(file: str) -> list[bytes]:
        """Return the text, and what zarr makes of it."""
        nonlocal nbytes
        names.append(name := file.removesuffix("zarr.json").rstrip("/"))
        opened = zarr.open_array if name else zarr.open_group
        with borrow(path / file):
            text = (path / file).read_bytes()
            nbytes += len(text)
            try:
                found = opened(path, path=name, mode="r", zarr_format=3).metadata.to_dict()
            except Exception:  # the library parses what anybody may have written
                return [b""]
        return [text, canonical(found).encode()]

    check_group(place, manifest, read)
    if others := sorted({file.parent.name for file in path.glob("*/zarr.json")} - set(names)):
        raise StoreError(
            f"{path / others[0]}: expected the arrays of a store, found another. Remove it if you "
            "put it there: Zarr shows it as a part of the store."
        )
    return len(names), nbytes


def _is_said(text: bytes, expected: Record) -> bool:
    """Return whether a text says what is expected, and nothing else."""
    try:
        written = parse(text)
        if _CONSOLIDATED not in written:  # of a store made before they were
            expected = {key: expected[key] for key in expected if key != _CONSOLIDATED}
        return _meaning(written) == _meaning(expected)
    except (ValueError, TypeError, RecursionError):
        return False


def _meaning(metadata: Record) -> str:
    """Return the text of metadata: no codec has a configuration that is empty, 0.0 fills as 0."""
    text = canonical(metadata).replace('"configuration":{},', "")
    return text.replace('"fill_value":0.0,', '"fill_value":0,')
