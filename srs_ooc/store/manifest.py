"""The manifest: what a store says of itself, read without touching its data.

A store is one Zarr v3 group. Its manifest is the attribute ``srs_ooc`` of the group, and holds:

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
``checksums``             CRC-32 of every file of ``codes`` and of the small arrays, by path
========================  ======================================================================

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
==================  ==========================================================================
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srs_ooc.errors import StoreError
from srs_ooc.store.layout import SMALL_ARRAYS

FORMAT = 2
ATTRIBUTE = "srs_ooc"


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
    format: int = FORMAT

    @property
    def small_arrays(self) -> list[str]:
        """Return the names of the small arrays that the store holds."""
        return [name for name in SMALL_ARRAYS if f"{name}/c/0" in self.checksums]

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
        canonical = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON-ready values."""
        return dataclasses.asdict(self)


def chunk_file(index: int) -> str:
    """Return the path, relative to the store, of chunk ``index`` of ``codes``."""
    return f"codes/c/{index}/0"


def read_manifest(path: Path) -> Manifest:
    """Read and check the manifest of the store at ``path``.

    Raises
    ------
    StoreError
        If there is no store there, its metadata cannot be read, or it is of another format version.
    """
    metadata = path / "zarr.json"
    try:
        record = json.loads(metadata.read_text(encoding="utf-8"))["attributes"][ATTRIBUTE]
        version = record["format"]
    except FileNotFoundError:
        found = "a folder without zarr.json" if path.is_dir() else "nothing there"
        raise StoreError(
            f"{path}: expected a store made by `srs-ooc ingest`, found {found}. "
            "Check the path, or ingest the table."
        ) from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(
            f"{metadata}: expected the manifest of a store, could not read it ({error!r}). "
            "The store is damaged or is another kind of Zarr group; ingest the table again."
        ) from error
    if version != FORMAT:
        raise StoreError(
            f"{path}: expected store format {FORMAT}, found {version!r}. "
            "Use the srs-ooc version that wrote it, or ingest the table again."
        )
    return _from_record(path, record)


def _from_record(path: Path, record: dict[str, Any]) -> Manifest:
    fields = {field.name for field in dataclasses.fields(Manifest)}
    wrong = sorted(fields.symmetric_difference(record))
    if wrong:
        raise StoreError(
            f"{path}: expected a manifest with the fields of format {FORMAT}, "
            f"found {', '.join(wrong)} missing or unknown. "
            "The store is damaged; ingest the table again."
        )
    record = record | {name: tuple(record[name]) for name in ("classes", "class_counts")}
    return Manifest(**record)
