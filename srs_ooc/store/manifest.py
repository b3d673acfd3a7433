"""The manifest: what a store says of itself without its data, and where its arrays lie.

Dtypes, shapes and chunk files follow from the layout. What a manifest says is checked: types,
ranges, and whether its parts agree.
"""

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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

SMALL_ARRAYS = {
    "target": "<i4",
    "target_values": "<f8",
    "weights": "<f8",
    "strata": "<i4",
    "groups": "<i4",
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
    "values_crc32c": "<u4",
    "code_lows_crc32c": "<u4",
    "code_highs_crc32c": "<u4",
}
"""Dtypes of the arrays that are one chunk file each; a store holds those that it needs."""

ROW_COLUMNS = ("weights", "strata", "groups")
"""What a store may know of its rows besides target and row ids."""

ROW_ARRAYS = ("target", "target_values", *ROW_COLUMNS)
FEATURE_ARRAYS = ("kinds", "positions", "n_missing", "n_codes", "exact")
TEXTS = ("names", "row_ids")
CATEGORIES = ("categories_first", "categories_bytes", "categories_offsets")
COORDINATES = {"feature": "n_features", "row": "n_rows"}
"""Texts for Zarr and xarray, and the field of the manifest that says how many there are."""

RecordView = Mapping[str, Any]
"""The fields of a manifest by name."""


@dataclass(frozen=True)
class Shape:
    """Size of a table: ``n_rows`` rows by ``n_features`` features."""

    n_rows: int
    n_features: int

    def length_of(self, name: str) -> int:
        """Return the length of a small array of fixed length."""
        if name in (*ROW_ARRAYS, "row_ids_offsets"):
            return self.n_rows + (name == "row_ids_offsets")
        return self.n_features + (name in ("names_offsets", "categories_first"))


def small_file(path: Path, name: str) -> Path:
    """Return the file that holds the small array ``name`` of the store at ``path``."""
    return path / name / "c" / "0"


def max_codes(dtype: Any) -> int:
    """Return how many codes ``dtype`` has besides the missing code and one kept in reserve."""
    return int(np.iinfo(dtype).max) - 1


def codes_chunk_features(shape: Shape, code_nbytes: int) -> int:
    """Return how many features a chunk file of ``codes`` holds."""
    fitting = CODES_CHUNK_NBYTES // (shape.n_rows * code_nbytes)
    return max(1, min(shape.n_features, fitting))


def values_chunk(shape: Shape, itemsize: int) -> tuple[int, int]:
    """Return the chunk shape (features, rows) of ``values``: at most 2 MB, all rows if they fit."""
    n_rows = min(shape.n_rows, VALUES_CHUNK_NBYTES // itemsize)
    fitting = VALUES_CHUNK_NBYTES // (n_rows * itemsize)
    return max(1, min(shape.n_features, fitting)), n_rows


def values_file(path: Path, array: str, feature_chunk: int, row_chunk: int) -> Path:
    """Return the chunk file of a compressed (n_features, ...) array."""
    return path / array / "c" / str(feature_chunk) / str(row_chunk)


def chunk_file(index: int) -> str:
    """Return the path, relative to the store, of chunk ``index`` of ``codes``."""
    return f"codes/c/{index}/0"


def float_arrays(record: RecordView) -> dict[str, int]:
    """Return the compressed arrays of a store, and the items that each has of a feature."""
    if record["values_dtype"] is not None:
        return {"values": record["n_rows"]}
    n_codes = min(max_codes(record["code_dtype"]), record["n_rows"])
    return {"code_lows": n_codes, "code_highs": n_codes}


def n_float_chunks(record: RecordView) -> int:
    """Return the chunk files of each of the compressed arrays."""
    features, items = record["values_chunk"]
    n_items = next(iter(float_arrays(record).values()))
    return ceil_div(record["n_features"], features) * ceil_div(n_items, items)


def small_arrays_of(record: RecordView) -> set[str]:
    """Return the names of the small arrays of a store."""
    names = {"target_values" if record["task"] == "regression" else "target"}
    names |= {*record["row_columns"], *FEATURE_ARRAYS}
    names |= {f"{name}_{part}" for name in TEXTS for part in ("bytes", "offsets")}
    names |= set(CATEGORIES if record["kind_counts"]["categorical"] else ())
    return names | {f"{name}_crc32c" for name in float_arrays(record)}


def checksummed_files(record: RecordView) -> set[str]:
    """Return the files whose checksums stand in the manifest, relative to the store."""
    files = {chunk_file(i) for i in range(ceil_div(record["n_features"], record["chunk_features"]))}
    files |= {f"{name}/c/0" for name in small_arrays_of(record)}
    for name, field in COORDINATES.items():
        files |= {f"{name}/c/{i}" for i in range(ceil_div(record[field], COORDINATE_CHUNK))}
    return files


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
        raise StoreError(
            f"{file}: expected a file, found none. The store is damaged; ingest the table again."
        ) from None
    except OSError as error:
        raise cannot_read(file, error) from error


def require_file(file: Path, expected_nbytes: int) -> None:
    """Check that ``file`` is there and of the size expected, before it is mapped.

    Raises
    ------
    StoreError
        If it is missing or of another size.
    """
    try:
        found = file.stat().st_size
    except FileNotFoundError:
        raise StoreError(
            f"{file}: expected {expected_nbytes} bytes, found no file. "
            "The store is damaged; ingest the table again."
        ) from None
    except OSError as error:
        raise cannot_read(file, error) from error
    if found != expected_nbytes:
        raise StoreError(
            f"{file}: expected {expected_nbytes} bytes, found {found}. "
            "The store is damaged; ingest the table again."
        )


def dtype_of(name: str) -> np.dtype[np.generic]:
    """Return the dtype of a small array."""
    return np.dtype(SMALL_ARRAYS[name])


def verify_file(
    path: Path, name: str, expected: int, feed: Callable[[bytes], None] | None = None
) -> int:
    """Compare the CRC-32 of file ``name`` of the store at ``path``; return the bytes read.

    Parameters
    ----------
    path : Path
        The store.
    name : str
        The file, relative to it.
    expected : int
        Its CRC-32.
    feed : callable, optional
        Is given what is read, in whole items.

    Raises
    ------
    StoreError
        If the checksum differs, or the file cannot be read.
    """
    found = n_read = 0
    with reading(path / name), (path / name).open("rb") as file:
        while piece := file.read(1 << 20):
            found = zlib.crc32(piece, found)
            n_read += len(piece)
            if feed is not None:
                feed(piece)
    if found != expected:
        raise StoreError(
            f"{path / name}: expected CRC-32 {expected:08x}, found {found:08x}. "
            "The store is damaged; ingest the table again."
        )
    return n_read


# Kinds of feature, by number and by name.

NUMERIC, INTEGER, BOOLEAN, CATEGORICAL, CONSTANT = range(5)
"""Kinds of feature, as a store holds them."""
NAMES = ("numeric", "integer", "boolean", "categorical", "constant")
"""Names of the kinds, by number."""
KINDS = {name: kind for kind, name in enumerate(NAMES)}


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
    if not isinstance(item, str):
        return False
    try:
        item.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_list(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda item: isinstance(item, list) and all(map(of, item))


def _is_dict(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda item: (
        isinstance(item, dict) and all(map(_is_text, item)) and all(map(of, item.values()))
    )


def _is_plain(item: Any) -> bool:
    """Return whether JSON can hold it and a terminal can show it."""
    if isinstance(item, dict | list):
        return (_is_dict if isinstance(item, dict) else _is_list)(_is_plain)(item)
    return item is None or isinstance(item, bool | int | float) or _is_text(item)


_COUNT = _is_count(0, (1 << 63) - 1)
_POSITIVE = _is_count(1, (1 << 63) - 1)
_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "n_rows": (f"1 .. {_MOST_ROWS}", _is_count(1, _MOST_ROWS)),
    "n_features": (f"1 .. {_MOST_FEATURES}", _is_count(1, _MOST_FEATURES)),
    "task": ("classification or regression", lambda t: t in ("classification", "regression")),
    "classes": ("a list of texts", _is_list(_is_text)),
    "class_counts": ("a list of whole numbers", _is_list(_COUNT)),
    "n_dropped_rows": ("a whole number", _COUNT),
    "row_columns": ("lists of texts by name", _is_dict(_is_list(_is_text))),
    "kind_counts": ("whole numbers by kind", _is_dict(_COUNT)),
    "code_dtype": ("uint8 or uint16", lambda t: t in ("uint8", "uint16")),
    "chunk_features": ("a positive whole number", _POSITIVE),
    "values_dtype": ("float32, float64 or null", lambda t: t in ("float32", "float64", None)),
    "n_missing_cells": ("a whole number", _COUNT),
    "n_missing_features": ("a whole number", _COUNT),
    "order_key": ("a whole number of 64 bits", _is_count(0, (1 << 64) - 1)),
    "target_name": ("a text", _is_text),
    "row_id_name": ("a text or null", lambda t: t is None or _is_text(t)),
    "inferred": ("facts by name", _is_dict(_is_plain)),
    "source": ("facts by name", _is_dict(_is_plain)),
    "checksums": ("checksums of 32 bits by file", _is_dict(_is_count(0, (1 << 32) - 1))),
    "format": ("a whole number", _POSITIVE),
    "lengths": ("positive whole numbers by array", _is_dict(_POSITIVE)),
    "values_chunk": (
        "two positive whole numbers",
        lambda c: _is_list(_POSITIVE)(c) and len(c) == 2,
    ),
}


def check_record(record: Record) -> None:
    """Check the fields of a manifest, each by itself and against the others.

    Parameters
    ----------
    record : dict
        The manifest as JSON.

    Raises
    ------
    ImpossibleError
        Naming the first field that is wrong.
    """
    if odd := sorted(record.keys() ^ _FIELDS.keys()):
        raise ImpossibleError(
            f"expected a manifest with the fields of format {FORMAT}, "
            f"found {', '.join(odd)} missing or unknown"
        )
    for name, value in record.items():
        expected, holds = _FIELDS[name]
        if not holds(value):
            wrong(f"{name} to be {expected}", value)
    for expected, agrees, found in _agreements(record):
        if not agrees:
            wrong(expected, found)
    _check_files(record)
    _check_lengths(record)
    _check_values_chunk(record)


def _agreements(r: Record) -> list[tuple[str, bool, Any]]:
    """Return what must hold between fields: what is expected, whether it does, what was found."""
    n_rows, n_features, cells = r["n_rows"], r["n_features"], r["n_missing_cells"]
    counts, columns = r["class_counts"], r["row_columns"]
    is_regression, with_missing = r["task"] == "regression", r["n_missing_features"]
    return [
        ("no classes of a regression", not (is_regression and r["classes"]), r["classes"]),
        ("classes of a classification", is_regression or bool(r["classes"]), r["classes"]),
        ("classes that differ", len(set(r["classes"])) == len(r["classes"]), r["classes"]),
        ("a count of each class", len(counts) == len(r["classes"]), counts),
        (f"{n_rows} rows in class_counts", is_regression or sum(counts) == n_rows, counts),
        ("row_columns of known names", set(columns) <= set(ROW_COLUMNS), columns),
        ("columns in row_columns", all(columns.values()), columns),
        ("the kinds in kind_counts", set(r["kind_counts"]) == set(NAMES), r["kind_counts"]),
        (
            f"{n_features} features in kind_counts",
            sum(r["kind_counts"].values()) == n_features,
            r["kind_counts"],
        ),
        ("chunk_features <= n_features", r["chunk_features"] <= n_features, r["chunk_features"]),
        ("n_missing_features <= n_features", with_missing <= n_features, with_missing),
        (
            "missing cells in the features said to have them",
            with_missing <= cells <= with_missing * n_rows,
            cells,
        ),
    ]


def _check_files(record: Record) -> None:
    n_chunks = -(-record["n_features"] // record["chunk_features"])
    found = record["checksums"]
    if len(found) < n_chunks:  # before as many names are made as a wrong number says
        wrong(f"checksums of {n_chunks} chunks of codes", len(found))
    different = checksummed_files(record).symmetric_difference(found)
    if different:
        wrong("checksums of the files of the store", sorted(different)[:3])


def _check_lengths(record: Record) -> None:
    lengths, shape = record["lengths"], Shape(record["n_rows"], record["n_features"])
    names = small_arrays_of(record)
    if set(lengths) != names:
        wrong("lengths of the small arrays", sorted(names.symmetric_difference(lengths)))
    for name, length in lengths.items():
        if name.endswith("_crc32c"):
            expected = n_float_chunks(record)
        elif (name.startswith("categories_") and name != "categories_first") or name.endswith(
            "_bytes"
        ):
            continue
        else:
            expected = shape.length_of(name)
        if length != expected:
            wrong(f"{expected} items of {name} in lengths", length)


def _check_values_chunk(record: Record) -> None:
    features, items = record["values_chunk"]
    itemsize = 4 if record["values_dtype"] == "float32" else 8
    most = next(iter(float_arrays(record).values()))
    if features > record["n_features"] or items > most:
        wrong(f"values_chunk within {record['n_features']} x {most}", [features, items])
    if features * items * itemsize > FLOAT_CHUNK_NBYTES:
        wrong(f"chunks of values of at most {FLOAT_CHUNK_NBYTES} bytes", [features, items])


def damaged(place: object, error: Exception) -> StoreError:
    """Return the error of a store of which ``place`` says what cannot be."""
    return StoreError(f"{place}: {error}. The store is damaged; ingest the table again.")


# The manifest: what a store says of itself, read without touching its data.
#
# A store is one Zarr v3 group. Its manifest is the attribute ``srs_ooc`` of the group, beside its
# SHA-256 (of its canonical JSON, in hexadecimal digits), ``srs_ooc_sha256``. It holds:
#
# ========================  ======================================================================
# ``format``                version of this layout (`FORMAT`)
# ``n_rows``, ``n_features``  shape of the table
# ``task``                  ``classification`` or ``regression``
# ``classes``, ``class_counts``  labels as text, in code order, and rows of each; else empty
# ``n_dropped_rows``        rows of the source left out, having no target
# ``row_columns``           names of the source's columns of ``weights``, ``strata``, ``groups``
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
# ``kinds``           (n_features,) uint8: 0 numeric, 1 integer, 2 boolean, 3 categorical,
#                     4 constant
# ``categories_first``  (n_features + 1,) uint32 first category of each feature; only with kind 3
# ``categories_bytes``, ``categories_offsets``  UTF-8 texts of the categories, in code order
# ``positions``       (n_features,) uint32 source position of each stored feature
# ``n_missing``       (n_features,) uint32 missing cells
# ``n_codes``         (n_features,) uint16 codes in use, the missing code not counted
# ``exact``           (n_features,) bool: equal codes mean equal values
# ``names_bytes``, ``names_offsets``      UTF-8 feature names in *source* order
# ``row_ids_bytes``, ``row_ids_offsets``  UTF-8 row ids
# ``values_crc32c``   (chunks,) CRC-32C of each chunk of ``values``, by rows of the grid of chunks
# ``code_lows_crc32c``, ``code_highs_crc32c``  the same of these
# ``feature``         (n_features,) feature names in *stored* order, as Zarr strings
# ``row``             (n_rows,) row ids, as Zarr strings
# ==================  ==========================================================================
#
# ``feature`` and ``row`` are there for Zarr and xarray, to which they are the coordinates of the
# dimensions of these names; nothing here reads them.

FORMAT = 3
NO_TARGET = "none; rows are numbered"
"""What a manifest says was inferred of the target where the table has none."""
ATTRIBUTE = "srs_ooc"
SHA256 = "srs_ooc_sha256"


@dataclass(frozen=True)
class Manifest:
    """What a store says of itself; fields as in the module's table."""

    n_rows: int
    n_features: int
    task: str
    classes: tuple[str, ...]
    class_counts: tuple[int, ...]
    n_dropped_rows: int
    row_columns: dict[str, list[str]]
    kind_counts: dict[str, int]
    code_dtype: str
    chunk_features: int
    values_dtype: str | None
    n_missing_cells: int
    n_missing_features: int
    order_key: int
    target_name: str
    row_id_name: str | None
    inferred: dict[str, Any]
    source: dict[str, Any]
    checksums: dict[str, int]
    lengths: dict[str, int]
    values_chunk: tuple[int, int]
    format: int = FORMAT

    @property
    def small_arrays(self) -> list[str]:
        """Return the names of the small arrays that the store holds."""
        there = small_arrays_of(vars(self))
        return [name for name in SMALL_ARRAYS if name in there]

    @property
    def float_arrays(self) -> dict[str, int]:
        """Return the compressed arrays of the store, and the items each has of a feature."""
        return float_arrays(vars(self))

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
        """Chunk files of ``codes``."""
        return -(-self.n_features // self.chunk_features)

    @property
    def chunk_nbytes(self) -> int:
        """Bytes of one chunk file; the last one is padded to this size too."""
        return self.chunk_features * self.n_rows * self.code_nbytes

    @property
    def codes_nbytes(self) -> int:
        """Bytes of all codes, padding not counted."""
        return self.n_features * self.n_rows * self.code_nbytes

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical JSON of the manifest: the identity of the store."""
        return sha256_of(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON-ready values."""
        return dataclasses.asdict(self)


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
    if type(version) is not int or version != FORMAT:
        raise StoreError(
            f"{place}: expected store format {FORMAT}, found {version!r}. "
            "Use the srs-ooc version that wrote it, or ingest the table again."
        )
    try:
        _check_sum(record, attributes)
        check_record(record)
    except (ImpossibleError, RecursionError) as error:
        raise damaged(metadata, error) from error
    lists = ("classes", "class_counts", "values_chunk")
    return Manifest(**record | {name: tuple(record[name]) for name in lists})


def _check_sum(record: Record, attributes: Record) -> None:
    expected, found = attributes.get(SHA256), sha256_of(record)
    if expected != found:
        raise ImpossibleError(f"expected a manifest of SHA-256 {expected!r}, found {found!r}")


def parse(text: bytes) -> Any:
    """Return JSON parsed; ValueError for numbers that JSON does not have."""
    return json.loads(text.decode(), parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
