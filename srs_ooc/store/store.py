"""A store, opened once and handed on: what it says of itself, and everything that is read of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import StoreError
from srs_ooc.base.urls import Place
from srs_ooc.store import reading
from srs_ooc.store.boundaries import boundaries, code_ranges
from srs_ooc.store.check import check_files
from srs_ooc.store.columns import ColumnStore
from srs_ooc.store.files import LOCAL, Files
from srs_ooc.store.kinds import CATEGORICAL
from srs_ooc.store.layout import CATEGORIES
from srs_ooc.store.manifest import Manifest, read_manifest
from srs_ooc.store.names import Names
from srs_ooc.store.small_arrays import array_pieces, read_array
from srs_ooc.store.value_tables import ValueTables
from srs_ooc.store.values import ValuesReader
from srs_ooc.store.verify import Verified, verify_store


class Store:
    """A store on disk, known by its fingerprint: another may come to lie at its path.

    Small arrays are compared with the checksums of the manifest whenever they are read. What else
    is opened by path is this store's only if it is still there afterwards: see :meth:`unchanged`.

    Parameters
    ----------
    path : Path
        Its folder.
    manifest : Manifest
        What it says of itself; :meth:`open` reads it.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest

    @classmethod
    def open(cls, path: Path, fingerprint: str | None = None) -> "Store":
        """Read and check the manifest of the store at ``path``, and nothing else.

        Raises
        ------
        StoreError
            If there is no store, or its manifest is damaged, or it is not the one with this
            ``fingerprint``.
        """
        store = cls(path, read_manifest(path))
        if fingerprint is not None:
            store.check_is(fingerprint)
        return store

    def check_is(self, fingerprint: str) -> None:
        """Check that this is the store with that fingerprint.

        Raises
        ------
        StoreError
            If it is not.
        """
        self._check_same(self.fingerprint, fingerprint)

    def _check_same(self, found: str, expected: str) -> None:
        if found != expected:
            raise StoreError(
                f"{self.place}: expected the store with fingerprint {expected[:16]}, found "
                f"another store there, with fingerprint {found[:16]}: it was replaced. "
                "Put the store back, or name its new place, and repeat the command; nothing read "
                "since was kept."
            )

    def check_unchanged(self) -> None:
        """Look again whether the store at the path is still this one.

        Raises
        ------
        StoreError
            If it is another, or there is none.
        """
        Store.open(self.path, self.fingerprint)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Have the store at the path be this one when the block begins and when it ends.

        Raises
        ------
        StoreError
            If it is another; also in place of damage that the block found, where that comes of the
            store having been replaced.
        """
        self.check_unchanged()
        try:
            yield
        except StoreError:
            self.check_unchanged()
            raise
        self.check_unchanged()

    @property
    def place(self) -> Place:
        """Where it is: its folder, or its URL, whose ``path`` is what is kept of it here."""
        return self.path

    @property
    def reading_nbytes(self) -> int:
        """Memory that reading its columns takes besides the block."""
        return 0

    @property
    def _files(self) -> Files:
        return LOCAL

    @property
    def _checksums(self) -> list[str]:
        return [f"{name}_crc32c" for name in self.manifest.float_arrays]

    def _have(self, *arrays: str) -> None:
        """Have the files of small arrays, as far as the store has them, be at its path."""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the manifest: the identity of the store."""
        return self.manifest.fingerprint

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self.manifest.n_rows

    @property
    def n_features(self) -> int:
        """Features of the table."""
        return self.manifest.n_features

    @cached_property
    def names(self) -> Names:
        """Names of the features, in source order; opened when first asked for."""
        self._have("names_offsets", "names_bytes")
        return Names(self.path, self.manifest, "names")

    @cached_property
    def row_ids(self) -> Names:
        """Ids of the rows; opened when first asked for."""
        self._have("row_ids_offsets", "row_ids_bytes")
        return Names(self.path, self.manifest, "row_ids")

    def array(self, name: str) -> NDArray[np.generic]:
        """Read a small array, checked: a key of :data:`srs_ooc.store.layout.SMALL_ARRAYS`.

        Raises
        ------
        StoreError
            If the store is damaged; so do all methods that read.
        """
        self._have(name)
        return read_array(self.path, self.manifest, name)

    def pieces(self, name: str) -> Iterator[tuple[int, NDArray[np.generic]]]:
        """Yield (first item, items) of a small array, some at a time, in bounded memory."""
        self._have(name)
        return array_pieces(self.path, self.manifest, name)

    def target(self) -> NDArray[np.int32] | NDArray[np.float64]:
        """Return the target of each row: int32 (n_rows,) classes, or float64 of a regression."""
        self._have("target", "target_values")
        return reading.read_target(self.path, self.manifest)

    def weights(self) -> NDArray[np.float64] | None:
        """Return the weight of each row, float64 (n_rows,); None if the store has none."""
        self._have("weights")
        return reading.read_weights(self.path, self.manifest)

    def strata(self) -> NDArray[np.int32] | None:
        """Return the stratum of each row, int32 (n_rows,) from 0; None if the store has none."""
        self._have("strata")
        return reading.read_strata(self.path, self.manifest)

    def groups(self) -> NDArray[np.int32] | None:
        """Return the group of each row, int32 (n_rows,) from 0; None if the store has none."""
        self._have("groups")
        return reading.read_groups(self.path, self.manifest)

    def kinds(self) -> NDArray[np.uint8]:
        """Return the kind of each stored feature, uint8 (n_features,)."""
        self._have("kinds")
        return reading.read_kinds(self.path, self.manifest)

    def categories(self) -> reading.Categories:
        """Return what gives the categories of a stored feature."""
        self._have("kinds", "n_codes", *CATEGORIES)
        return reading.Categories(self.path, self.manifest)

    def columns(self, *, mapped: bool) -> ColumnStore:
        """Open the codes, mapped into memory or to be read; to be closed."""
        return ColumnStore(self.path, self.manifest, mapped=mapped)

    def value_tables(self) -> ValueTables:
        """Make the tables of the values of codes; to be closed."""
        self._have("kinds", *self._checksums)
        return ValueTables(self.path, self.manifest, self._files)

    def values(self, array: str = "values") -> ValuesReader:
        """Return what reads the values, or ``code_lows`` or ``code_highs`` where none are kept."""
        self._have(f"{array}_crc32c")
        return ValuesReader(self.path, self.manifest, array, self._files)

    def column_parts(
        self, stored: NDArray[np.int64]
    ) -> Iterator[tuple[int, int, NDArray[np.floating[Any]]]]:
        """Yield values of stored features as :meth:`srs_ooc.store.values.ValuesReader.columns`.

        Raises
        ------
        StoreError
            As there; also if a value of a categorical feature is not the code of a category.
        """
        categories = self.categories()
        for i, first_row, part in self.values().columns(stored):
            wrong = categories.wrong_code(int(stored[i]), part)
            if wrong is not None:
                at, found = wrong
                name = self.names[int(self.array("positions")[stored[i]])]
                raise StoreError(
                    f"{self.place}: feature {name!r}, row {first_row + at + 1}: {found}. The store "
                    "is damaged; ingest the table again."
                )
            yield i, first_row, part

    def boundaries(
        self, features: NDArray[np.int64], codes: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the values that separate codes: :func:`srs_ooc.store.boundaries.boundaries`."""
        self._have(*self._checksums)
        return boundaries(self.path, self.manifest, features, codes, self._files)

    def code_ranges(
        self, used: NDArray[np.int64]
    ) -> Iterator[tuple[int, NDArray[np.float64], NDArray[np.float64]]]:
        """Yield the range of each code: :func:`srs_ooc.store.boundaries.code_ranges`."""
        self._have(*self._checksums)
        return code_ranges(self.path, self.manifest, used, self._files)

    def check_files(self) -> None:
        """Check that every file is there, with its full size; reads no data."""
        check_files(self.path, self.manifest)

    def stored_nbytes(self) -> int | None:
        """Return the bytes of all its files; None where they cannot be listed."""
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())

    def verify(self) -> Verified:
        """Read all of it, and compare it with its checksums and its parts with each other."""
        self.check_files()
        found = verify_store(self.path, self.manifest, self._files)
        if self.manifest.values_dtype is not None and self.manifest.kind_counts["categorical"]:
            for _ in self.column_parts(np.flatnonzero(self.kinds() == CATEGORICAL)):
                pass
        return found
