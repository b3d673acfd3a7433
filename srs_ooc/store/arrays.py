"""Small arrays of a store, read and checked: names, row ids, target, weights, categories.

The Zarr library is not needed. Items are checked whatever their checksums say. At the end the
columns of rows that are added to a store later.
"""

import hashlib
import os
import re
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bytes, Ints, Reals, Uints
from srs_ooc.base.errors import StoreError
from srs_ooc.base.files import Closing, explained, published_file
from srs_ooc.base.records import Covariate
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.store.manifest import (
    CATEGORICAL,
    NAMES,
    SMALL_ARRAYS,
    ImpossibleError,
    Manifest,
    canonical,
    chunk_file,
    damaged,
    dtype_of,
    max_codes,
    parse,
    reading,
    require_file,
    small_file,
    values_file,
    verified_pieces,
    wrong,
)

# What must hold of the items of the small arrays, whatever their checksums say.


def _check_items(name: str, manifest: Manifest, pieces: Iterable[NDArray[Any]]) -> None:
    """Check the items of a small array, some at a time.

    Raises
    ------
    ImpossibleError
        If one cannot be, or if all together they are not what the manifest says.
    """
    if name.endswith(("_offsets", "_first")):
        last: int | None = None
        for items in pieces:
            if last is None and int(items[0]) != 0:
                wrong("0 as the first offset", int(items[0]))
            if (items[1:] < items[:-1]).any() or int(items[0]) < (last or 0):
                wrong("offsets that do not descend", "one that does")
            last = int(items[-1])
        n_bytes = manifest.lengths.get(name.replace("_offsets", "_bytes"))
        if name.endswith("_offsets") and max(1, last or 0) != n_bytes:
            wrong(f"{n_bytes} bytes of texts", last)
    elif name == "covariates":
        _check_covariates(manifest, pieces)
    elif name in ("target_values", "weights"):
        for items in pieces:
            bad = ~(np.isfinite(items) & (items > (0.0 if name == "weights" else -np.inf)))
            if bad.any():
                kind = "positive numbers" if name == "weights" else "numbers"
                wrong(f"finite {kind}", float(items[bad.argmax()]))
    elif name.endswith(("_bytes", "_crc32c")):
        deque(pieces, maxlen=0)  # they may be any
    else:
        _check_numbers(name, manifest, pieces)


@np.errstate(invalid="ignore")  # of a signalling NaN
def _check_covariates(manifest: Manifest, pieces: Iterable[NDArray[Any]]) -> None:
    n_levels, first = np.array([len(levels) for levels in manifest.levels]), 0
    for items in pieces:
        which = np.arange(first, first + len(items)) // manifest.n_rows
        most = n_levels[np.minimum(which, len(n_levels) - 1)]
        is_level = (items >= 0) & (items < most) & (items == np.floor(items))
        bad = ~np.isnan(items) & ~np.where(most > 0, is_level, np.isfinite(items))
        if bad.any():
            wrong("finite numbers, or places of levels", float(items[bad.argmax()]))
        first += len(items)


def _check_numbers(name: str, manifest: Manifest, pieces: Iterable[NDArray[Any]]) -> None:
    most = {
        "target": len(manifest.classes) - 1,
        "kinds": len(NAMES) - 1,
        "positions": manifest.n_features - 1,
        "n_codes": min(max_codes(manifest.code_dtype), manifest.n_rows),
        "n_missing": manifest.n_rows,
        "strata": manifest.n_rows - 1,
        "groups": manifest.n_rows - 1,
        "exact": 1,
        "events": 1,
        "linked_rows": manifest.n_linked_rows - 1,
        "present": 7,
    }[name]
    counts = np.zeros(most + 1 if name in ("target", "kinds") else 2, np.int64)
    seen = np.zeros(manifest.n_features if name == "positions" else 0, np.bool_)
    for items in pieces:
        bad = (items < 0) | (items > most)
        if bad.any():
            wrong(f"0 .. {most}", int(items[bad.argmax()]))
        if name in ("target", "kinds"):
            counts += np.bincount(items, minlength=most + 1)
        elif name == "positions":
            seen[items] = True
        elif name == "n_missing":
            counts += items.sum(dtype=np.int64), np.count_nonzero(items)
    if not seen.all():
        wrong("each feature once", f"no {int(seen.argmin())}")
    said = {
        "target": list(manifest.class_counts),
        "kinds": [manifest.kind_counts[kind] for kind in NAMES],
        "n_missing": [manifest.n_missing_cells, manifest.n_missing_features],
    }
    if name in said and said[name] != counts.tolist():
        wrong(f"counts {said[name]} as in the manifest", counts.tolist())


# The small arrays of a store, read and checked, without the Zarr library.

PIECE_ITEMS = 1 << 17
"""Items of an array that are read at a time."""


def read_array(path: Path, manifest: Manifest, name: str) -> NDArray[np.generic]:
    """Read a small array of a store into memory, checking its bytes and what they say.

    It is read and not mapped: a map of a file that is cut short ends the process.

    Parameters
    ----------
    path : Path
        The store.
    manifest : Manifest
        Its manifest.
    name : str
        A key of :data:`srs_ooc.store.manifest.SMALL_ARRAYS`.

    Raises
    ------
    StoreError
        If its file is missing or not of the size expected, its bytes are not those that were
        written, or its items cannot be.
    """
    check_size(path, manifest, name)
    out = np.empty(manifest.lengths[name], dtype_of(name))
    verify_array(path, manifest, name, out)
    return out


def verify_array(
    path: Path, manifest: Manifest, name: str, out: NDArray[np.generic] | None = None
) -> None:
    """Read a small array; check its checksum and its items.

    ``out``, if given, is filled with the items.

    Raises
    ------
    StoreError
        If its bytes are not those that were written, its items cannot be, or it cannot be read.
    """
    file = f"{name}/c/0"
    pieces = verified_pieces(path, file, manifest.checksums[file])
    read = pieces if out is None else _filling(out.view(np.uint8), pieces)
    dtype = np.dtype("u1" if name in ("exact", "events") else SMALL_ARRAYS[name])
    try:
        _check_items(name, manifest, (np.frombuffer(piece, dtype) for piece in read))
    except ValueError as error:
        deque(pieces, maxlen=0)  # a checksum that is wrong, too, is named first
        raise damaged(path / file, error) from error


def _filling(out: Bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces as they are, copied to ``out``; what a file has grown by is not."""
    start = 0
    for piece in pieces:
        part = out[start : start + len(piece)]
        part[:] = np.frombuffer(piece, np.uint8, len(part))
        start += len(piece)
        yield piece


def check_size(path: Path, manifest: Manifest, name: str) -> None:
    """Check that the file of a small array is there, of the size expected; its bytes are not read.

    Parameters as of :func:`read_array`.

    Raises
    ------
    StoreError
        If it is missing or of another size.
    """
    require_file(small_file(path, name), manifest.lengths[name] * dtype_of(name).itemsize)


class SmallFile(Closing):
    """The file of a small array, checked and open: items or bytes are read where asked for.

    Parameters and errors as of :func:`read_array`.
    """

    def __init__(self, path: Path, manifest: Manifest, name: str) -> None:
        check_size(path, manifest, name)
        verify_array(path, manifest, name)
        self.file, self.dtype = small_file(path, name), dtype_of(name)
        self._length = manifest.lengths[name]
        with reading(self.file):
            self._handle = os.open(self.file, os.O_RDONLY)
        self._close = weakref.finalize(self, os.close, self._handle)

    def bytes(self, start: int, stop: int) -> bytes:
        """Return bytes ``start .. stop - 1``.

        Raises
        ------
        StoreError
            If they cannot be read, or the file has been cut short.
        """
        parts: list[bytes] = []
        while start < stop:
            with reading(self.file):
                part = os.pread(self._handle, stop - start, start)
            if not part:
                expected = ImpossibleError(f"expected {stop} bytes at least, found {start}")
                raise damaged(self.file, expected)
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: slice) -> NDArray[np.generic]:
        start, stop, _ = place.indices(self._length)
        size = self.dtype.itemsize
        return np.frombuffer(self.bytes(start * size, stop * size), self.dtype)

    def close(self) -> None:
        """Close the file."""
        self._close()


# The texts of a store: feature names and row ids, decoded as they are asked for.

_BLOCK = 1 << 14
_TOGETHER = 1 << 9
TEXTS_NBYTES = 1 << 20
"""Bytes of texts that are read together."""


def text_of(data: bytes, file: Path) -> str:
    """Return UTF-8 as text.

    Raises
    ------
    StoreError
        If it is none; ``file`` is where it was read.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise damaged(file, error) from error


class Names:
    """The feature names (in source order), row ids or categories of a store, decoded one by one.

    Parameters
    ----------
    path : Path
        The store.
    manifest : Manifest
        Its manifest.
    which : {'names', 'row_ids', 'categories'}
        Which texts.

    Raises
    ------
    StoreError
        If a file is missing or not of the size expected.
    """

    def __init__(self, path: Path, manifest: Manifest, which: str = "names") -> None:
        self._n = manifest.lengths[f"{which}_offsets"] - 1
        self._offsets = SmallFile(path, manifest, f"{which}_offsets")
        self._bytes = SmallFile(path, manifest, f"{which}_bytes")
        self.file = self._bytes.file

    def __len__(self) -> int:
        return self._n

    def _ends(self, start: int, count: int) -> Uints:
        return self._offsets[start : start + count].astype(np.uint64, copy=False)

    def __getitem__(self, index: int) -> str:
        return text_of(self.encoded(index), self.file)

    def encoded(self, index: int) -> bytes:
        """Return text ``index`` in UTF-8."""
        if not 0 <= index < len(self):
            raise IndexError(f"expected an index in 0 .. {len(self) - 1}, found {index}")
        return next(self.between(index, index + 1))

    def between(self, first: int, last: int) -> Iterator[bytes]:
        """Yield texts ``first .. last - 1`` in UTF-8, which are read together."""
        ends: list[int] = self._ends(first, last - first + 1).tolist()
        blob = self._bytes.bytes(ends[0], ends[-1])
        for start, stop in pairwise(ends):
            yield blob[start - ends[0] : stop - ends[0]]

    def several(self, indices: Iterable[int]) -> dict[int, str]:
        """Return texts by index; those that lie near each other are read together."""
        found: dict[int, str] = {}
        for _, some in groupby(sorted(set(indices)), lambda index: index // _TOGETHER):
            near = list(some)
            first, last = near[0], near[-1] + 1
            ends = self._ends(first, last - first + 1)
            if int(ends[-1]) - int(ends[0]) > TEXTS_NBYTES:
                found.update((index, self[index]) for index in near)
                continue
            texts = list(self.between(first, last))
            found.update((i, text_of(texts[i - first], self.file)) for i in near)
        return found

    def __iter__(self) -> Iterator[str]:
        for text in self.texts():
            yield text_of(text, self.file)

    def texts(self) -> Iterator[bytes]:
        """Yield every text in UTF-8, in bounded memory."""
        start = 0
        while start < len(self):
            offsets = self._ends(start, min(_BLOCK, len(self) - start) + 1)
            limit = int(offsets[0]) + TEXTS_NBYTES
            stop = start + max(1, int(np.searchsorted(offsets, limit, side="right")) - 1)
            yield from self.between(start, stop)
            start = stop

    def find(self, texts: list[str]) -> Ints:
        """Return the position of each of ``texts``, -1 where there is none."""
        # Names that a frame's user gives may be numbers, as the frame's are.
        encoded = [str(text).encode("utf-8", "surrogatepass") for text in texts]
        found = dict.fromkeys(encoded, -1)
        for position, text in enumerate(self.texts()):
            if text in found:
                found[text] = position
        return np.array([found[text] for text in encoded], np.int64)


class Categories:
    """The categories of the categorical features of a store.

    Parameters
    ----------
    path : Path
        The store.
    manifest : Manifest
        Its manifest.

    Raises
    ------
    StoreError
        If the store is damaged; so does :meth:`of`.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self._has_any = "categories_first" in manifest.small_arrays
        if self._has_any:
            self._kinds = SmallFile(path, manifest, "kinds")
            self._first = SmallFile(path, manifest, "categories_first")
            self._texts = Names(path, manifest, "categories")
            try:
                self._check(SmallFile(path, manifest, "n_codes"))
            except ImpossibleError as error:
                raise damaged(small_file(path, "categories_first"), error) from error

    def _check(self, n_codes: SmallFile) -> None:
        """Check that each categorical feature, and no other, has as many categories as codes."""
        kinds, first = self._kinds, self._first
        for start, stop in pairwise([*range(0, len(kinds), 1 << 16), len(kinds)]):
            counts = np.diff(first[start : stop + 1].astype(np.int64))
            expected = np.where(kinds[start:stop] == CATEGORICAL, n_codes[start:stop], 0)
            if (counts != expected).any():
                at = int((counts != expected).argmax())
                wrong(f"{int(expected[at])} categories of feature {start + at}", int(counts[at]))
        if (last := int(first[-1:][0])) != len(self._texts):
            wrong(f"{last + 1} offsets of categories", len(self._texts) + 1)

    def of(self, feature: int) -> list[str] | None:
        """Return the categories of a stored feature, by code; None if it is not categorical."""
        if not self._has_any or self._kinds[feature : feature + 1] != CATEGORICAL:
            return None
        first, last = (int(i) for i in self._first[feature : feature + 2])
        return [text_of(text, self._texts.file) for text in self._texts.between(first, last)]

    @np.errstate(invalid="ignore")  # of a signalling NaN
    def wrong_code(self, feature: int, values: Reals) -> tuple[int, str] | None:
        """Return the place of the first value of a feature that is no code, and what is wrong.

        None if it is not categorical, or all are codes of its categories or missing.
        """
        if not self._has_any or self._kinds[feature : feature + 1] != CATEGORICAL:
            return None
        n_codes = int(np.diff(self._first[feature : feature + 2].astype(np.int64))[0])
        is_code = (values >= 0) & (values < n_codes) & (values == np.floor(values))
        bad = ~(is_code | np.isnan(values))
        if not bad.any():
            return None
        at = int(bad.argmax())
        return at, f"expected codes of its {n_codes} categories, found {float(values[at]):g}"


# Is a store whole? By the names and sizes of its files; `srs_ooc.store.store` reads them.


def check_chunks(path: Path, manifest: Manifest) -> None:
    """Check that every chunk file of ``codes`` is there, with its full size; reads no data.

    Raises
    ------
    StoreError
        Naming the first file that is missing or of another size.
    """
    for index in range(manifest.n_chunks):
        require_file(path / chunk_file(index), manifest.chunk_nbytes)


# Is a file of codes still the one that it was, and was nothing written to it? Times of change
# cannot be set back, so that what is written over in place is noticed without reading it.


def stamp_of(file: str | int) -> int:
    """Return what any change to a file, by name or open, changes; 0 where it cannot be asked.

    A hash of device, inode, size and both times. Reading changes none of them; permissions and hard
    links change the time of change.
    """
    try:
        found = os.stat(file)  # noqa: PTH116 (a path takes twice as long, and is no descriptor)
    except OSError:
        return 0
    times = found.st_mtime_ns, found.st_ctime_ns
    return hash((found.st_dev, found.st_ino, found.st_size, *times))


def codes_changed(place: object) -> StoreError:
    """Return the error of a file or an object of codes whose stamp is another than it was."""
    return StoreError(
        f"{place}: expected codes that nobody changes while they are used, found that they were "
        "written to, replaced, or given other permissions or links since the store was opened. "
        "`srs-ooc verify` says whether it is damaged: put it back if so, and repeat the command; "
        "nothing read since was kept."
    )


def check_files(path: Path, manifest: Manifest) -> None:
    """Check that every file of a store is there, with its full size; those of values without it.

    Reads no data, and so is cheap enough to do whenever a store is opened: an access past the end
    of a mapped file kills the process. Errors as of :func:`check_chunks`.
    """
    check_chunks(path, manifest)
    for name in manifest.small_arrays:
        check_size(path, manifest, name)
    features, items = manifest.values_chunk
    for name, n_items in ({} if manifest.n_linked_rows else manifest.float_arrays).items():
        grid = ceil_div(manifest.n_features, features), ceil_div(n_items, items)
        for place in product(*map(range, grid)):
            if not (file := values_file(path, name, *place)).is_file():
                raise damaged(file, "expected a chunk of values, found no file")


# Columns of the rows that were added to a store later: other targets, and covariates.
#
# Each is a file below ``columns`` in the store's folder, which the manifest does not list: the
# store stays the one it was, and so do its runs. A file is replaced all at once; its first line is
# the SHA-256 of the rest: a line of JSON, and the values, float64, NaN where a row has none.

OWN = "own"
"""Stands for the target that a store was made with, where an added one could be named."""
_MOST_HEAD_NBYTES = 16 * MB


def column_file(folder: Path, kind: str, name: str) -> Path:
    """Return the file of a column of the store at ``folder``."""
    digest, shown = hashlib.sha256(name.encode()).hexdigest(), re.sub(r"\W+", "_", name)[:40]
    return folder / "columns" / f"{kind}-{shown}-{digest[:16]}"


def write_column(folder: Path, store: str, kind: str, column: Covariate) -> None:
    """Add a column to the store at ``folder``, or replace it; a kill leaves what was there.

    Parameters
    ----------
    folder, store : Path, str
        The store's folder and fingerprint.
    kind : str
        ``target`` or ``covariate``.
    column : Covariate
        The column; its levels are the classes of a target.

    Raises
    ------
    StoreError, UsageError
        If the file cannot be written, or another process writes it.
    """
    said = {"store": store, "kind": kind, "name": column.name, "levels": column.levels}
    body = canonical(said).encode() + b"\n" + column.values.astype("<f8").tobytes()
    file = column_file(folder, kind, column.name)
    with explained(file):
        file.parent.mkdir(exist_ok=True)
        with published_file(file, replaces=True) as scratch:
            scratch.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def read_column(file: Path, store: str, n_rows: int) -> tuple[Covariate, str]:
    """Return a column of the store of this fingerprint; and name and digest, as runs keep them.

    Raises
    ------
    StoreError
        If it is damaged, or of another store.
    """
    with reading(file), file.open("rb") as stream:
        digest, body = stream.read(64), stream.read(1 + _MOST_HEAD_NBYTES + 8 * n_rows)[1:]
    head, _, rest = body.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() == digest and len(rest) == 8 * n_rows:
        said, values = parse(head), np.frombuffer(rest, "<f8")
        column = Covariate(said["name"], values, tuple(said["levels"]))
        codes, n_levels = values[~np.isnan(values)], len(column.levels)
        is_code = (codes >= 0) & (codes < n_levels) & (codes % 1 == 0) | (n_levels == 0)
        if said["store"] == store and is_code.all():
            return column, f"{column.name} (sha256 {digest[:16].decode()})"
    raise StoreError(
        f"{file}: expected a column that `srs-ooc targets` wrote for this store, found that it is "
        "damaged, or of another. Remove the file, and add the column again."
    )
