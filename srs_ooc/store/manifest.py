"""The manifest: what a store says of itself, read without touching its data.

A store is one Zarr v3 group. Its manifest is the attribute ``srs_ooc`` of the group, beside its
SHA-256 (of its canonical JSON, in hexadecimal digits), ``srs_ooc_sha256``. It holds:

========================  ======================================================================
``format``                version of this layout (:data:`FORMAT`)
``n_rows``, ``n_features``  shape of the table
``task``                  ``classification`` or ``regression``
``classes``, ``class_counts``  labels as text, in code order, and rows of each; else empty
``n_dropped_rows``        rows of the source left out, having no target
``row_columns``           names of the source's columns of ``weights``, ``strata``, ``groups``
``kind_counts``           features of each kind
``code_dtype``            ``uint8`` or ``uint16``; the largest code means missing
``chunk_features``        features per chunk file of ``codes``
``values_dtype``          ``float32``, ``float64``, or null where only codes are kept
``n_missing_cells``, ``n_missing_features``  cells without a value; features with such a cell
``order_key``             key of the random order in which features lie on disk
``target_name``, ``row_id_name``, ``inferred``, ``source``  where it came from; what was found
``checksums``             CRC-32 of every file but those of ``values`` and the code ranges, by path
``lengths``               items of every small array, by name
``values_chunk``          features and items of a chunk of ``values``, or of the code ranges
========================  ======================================================================

Format 2 has no SHA-256, no last two fields, no ``feature`` and ``row``, and no checksums of the
chunks of values but those inside them, which do not know their place.

Arrays of the group (features in stored order unless said otherwise):

==================  ==========================================================================
``codes``           (n_features, n_rows) ordinal codes, uncompressed, chunks of whole features
``values``          (n_features, n_rows) original values, Blosc; only where ``values_dtype``; of a
                    categorical feature the codes
``code_lows``, ``code_highs``  (n_features, n_codes) value range of each code; only without values
``target``          (n_rows,) int32 class codes; only of a classification
``target_values``   (n_rows,) float64 targets; only of a regression
``weights``         (n_rows,) float64, positive; these three only where given
``strata``, ``groups``  (n_rows,) int32 codes of distinct texts or tuples of texts
``kinds``           (n_features,) uint8: 0 numeric, 1 integer, 2 boolean, 3 categorical, 4 constant
``categories_first``  (n_features + 1,) uint32 first category of each feature; only with kind 3
``categories_bytes``, ``categories_offsets``  UTF-8 texts of the categories, in code order
``positions``       (n_features,) uint32 source position of each stored feature
``n_missing``       (n_features,) uint32 missing cells
``n_codes``         (n_features,) uint16 codes in use, the missing code not counted
``exact``           (n_features,) bool: equal codes mean equal values
``names_bytes``, ``names_offsets``      UTF-8 feature names in *source* order
``row_ids_bytes``, ``row_ids_offsets``  UTF-8 row ids
``values_crc32c``   (chunks,) CRC-32C of each chunk of ``values``, by rows of the grid of chunks
``code_lows_crc32c``, ``code_highs_crc32c``  the same of these
``feature``         (n_features,) feature names in *stored* order, as Zarr strings
``row``             (n_rows,) row ids, as Zarr strings
==================  ==========================================================================

``feature`` and ``row`` are there for Zarr and xarray, to which they are the coordinates of the
dimensions of these names; nothing here reads them.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Any

from srs_ooc.base.errors import StoreError
from srs_ooc.base.urls import Place
from srs_ooc.store.layout import (
    SMALL_ARRAYS,
    Shape,
    cannot_read,
    float_arrays,
    small_arrays_of,
    values_chunk,
)
from srs_ooc.store.validation import ImpossibleError, check_record, damaged

FORMAT = 3
NO_TARGET = "none; rows are numbered"
"""What a manifest says was inferred of the target where the table has none."""
READABLE = (2, 3)
ATTRIBUTE = "srs_ooc"
SHA256 = "srs_ooc_sha256"
_SINCE_3 = ("lengths", "values_chunk")


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
    lengths: dict[str, int] = field(default_factory=dict)
    values_chunk: tuple[int, int] | None = None
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
    def float_chunk(self) -> tuple[int, int]:
        """Return the features and items of a chunk of the compressed arrays."""
        if self.values_chunk is not None:
            return self.values_chunk
        shape = Shape(next(iter(self.float_arrays.values())), self.n_features)
        return values_chunk(shape, 4 if self.float_dtype == "float32" else 8)

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
        """Return the manifest as JSON-ready values, with the fields of its format."""
        record = dataclasses.asdict(self)
        for name in _SINCE_3 if self.format == 2 else ():
            del record[name]
        return record


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
    if type(version) is not int or version not in READABLE:
        raise StoreError(
            f"{place}: expected store format {FORMAT}, found {version!r}. "
            "Use the srs-ooc version that wrote it, or ingest the table again."
        )
    try:
        _check_sum(record, attributes)
        return _from_record(record)
    except (ImpossibleError, RecursionError) as error:
        raise damaged(metadata, error) from error


def parse(text: bytes) -> Any:
    """Return JSON parsed; ValueError for numbers that JSON does not have."""
    return json.loads(text.decode(), parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _check_sum(record: dict[str, Any], attributes: dict[str, Any]) -> None:
    if record["format"] == 2:
        return
    expected, found = attributes.get(SHA256), sha256_of(record)
    if expected != found:
        raise ImpossibleError(f"expected a manifest of SHA-256 {expected!r}, found {found!r}")


def _from_record(record: dict[str, Any]) -> Manifest:
    fields = {field.name for field in dataclasses.fields(Manifest)}
    fields -= set(_SINCE_3 if record["format"] == 2 else ())
    wrong = sorted(fields.symmetric_difference(record))
    if wrong:
        raise ImpossibleError(
            f"expected a manifest with the fields of format {record['format']}, "
            f"found {', '.join(wrong)} missing or unknown"
        )
    check_record(record)
    lists = ("classes", "class_counts", "values_chunk")
    return Manifest(**record | {name: tuple(record[name]) for name in lists if name in record})
