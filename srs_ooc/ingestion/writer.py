"""From columns to a complete store, in one bounded pass: codes, values, facts, categories."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Bytes, Floats, Floats32, Indices, Ints32, Reals, Uints32
from srs_ooc.base.errors import InputError, no_features, unfit
from srs_ooc.base.text import MB, ceil_div
from srs_ooc.ingestion import ingest_memory, ingest_options
from srs_ooc.ingestion.csv import is_date, read_ahead
from srs_ooc.ingestion.formats import NAMED, TO_DAYS, TO_UTF8, TextCoder
from srs_ooc.ingestion.formats.in_memory import text_of
from srs_ooc.ingestion.ingest_memory import StoreForm
from srs_ooc.ingestion.ingest_options import FREE, ByteProgress, StoredColumns, stored_positions
from srs_ooc.ingestion.rows import Codes, KeptRows, TableFacts, shown
from srs_ooc.ingestion.scratch import blocks_of, joined, numbered, text_blocks
from srs_ooc.native import _native
from srs_ooc.store import bed, manifest, writing
from srs_ooc.store.bed import BedFile
from srs_ooc.store.manifest import CELL_END, NAMES, Manifest, Shape, format_of, max_codes
from srs_ooc.store.values import CodeFacts, code_columns, crc32c
from srs_ooc.store.writing import CodesWriter, FloatsWriter, NewStore, TextsWriter

# Categorical features: from numbers of texts to codes in the order of the texts.
#
# A feature whose cells are texts reaches the store as numbers of texts, in a pool that all features
# share. Its categories are the distinct texts of its cells in the order of their UTF-8 bytes, and
# its codes, which are its values too, their places in it.

_PIECE_CELLS = 1 << 17
_LOOKED_AT = 100
"""Texts of a column that are looked at for dates."""


@dataclass(frozen=True)
class FeatureKinds:
    """What is known of the features before they are coded; arrays in stored order.

    Attributes
    ----------
    forced : uint8 (n_features,)
        Kinds that are forced; ``FREE`` where none is.
    is_text : bool (n_features,)
        Features whose values are numbers of texts.
    pool : TextCoder
        Those texts.
    locate : callable
        Given a stored feature and a row of the source, returns for messages where the cell stands
        (file, line, column), and its text, or None where the source holds no texts.
    kept : KeptRows
        Which rows of the source are rows of the store.
    from_numbers : bool (n_features,), optional
        Those of ``is_text`` that the source holds as numbers, not as texts.
    amend : callable
        Given a stored feature, and what coding found of it and those that follow, mends that.
    """

    forced: Bytes
    is_text: Bools
    pool: TextCoder
    locate: Callable[[int, int], tuple[str, str | None]]
    kept: KeptRows
    from_numbers: Bools | None = None
    amend: Callable[[int, CodeFacts], None] = lambda start, facts: None

    def cell(self, feature: int, row: int, value: float) -> tuple[str, str]:
        """Return where the cell of a stored feature and row stands, and its text."""
        where, text = self.locate(feature, self.kept.source_row(row))
        if text is None and self.is_text[feature]:
            text = self.pool.texts()[int(value)].decode("utf-8", "replace")
        return where, shown((text if text is not None else text_of(value) or "").encode())

    def number_texts(self, start: int, values: Reals) -> None:
        """Replace numbers that are categories by the numbers of their texts, in place."""
        if self.from_numbers is None:
            return
        for i in np.flatnonzero(self.from_numbers[start : start + len(values)]).tolist():
            distinct, place = np.unique(values[i], return_inverse=True)
            is_there = ~np.isnan(distinct)
            texts = [(text_of(value) or "").encode() for value in distinct[is_there].tolist()]
            numbers = np.full(len(distinct), np.nan)
            numbers[is_there] = numbered(self.pool, texts, partial(self._place, start + i, place))
            values[i] = numbers[place]

    def _place(self, feature: int, place: Indices, number: int) -> str:
        """Return where the first cell of a stored feature stands that has a number's text."""
        return self.locate(feature, self.kept.source_row(int((place == number).argmax())))[0]


# Features as they are coded, whatever they come from: a table, or other stores.


Coded = tuple[NDArray[Any], CodeFacts, tuple[NDArray[Any], ...]]
"""Some features as a store holds them.

Their codes, uint8 or uint16 (m, n_rows); what is known of each, whose kinds are those that the
store says; and their values (m, n_rows), or the lowest and the highest value of each code
(m, n_codes)."""


class CodedFeatures(Protocol):
    """The features of a store to be, in stored order, each of which is asked for once.

    Attributes
    ----------
    shape, form : Shape, StoreForm
        How many rows and features there are, and how the store keeps them.
    holds_texts : bool
        Whether some features are categorical.
    link : BedFile or None
        The file whose order is that of the features, where codes and values are left there.
    linked_rows : int32 (n_rows,) or None
        The samples of that file that are kept.
    """

    shape: Shape
    form: StoreForm
    holds_texts: bool
    link: BedFile | None = None
    linked_rows: Ints32 | None = None

    def coded(self, start: int, stop: int, categories: TextsWriter | None) -> Coded:
        """Return the features ``start .. stop - 1``; write the categories of those that are."""

    def lines(self, start: int, stop: int) -> Bytes:
        """Return them as lines of a ``.bed`` file of the rows there are, if the form is packed."""

    def positions(self) -> Uints32:
        """Return the place of each feature in the source."""

    def refuse(self) -> None:
        """Refuse what coding noted, once all features are coded."""
        return


ACCEPTED = {manifest.INTEGER: "a whole number", manifest.BOOLEAN: "0 or 1"}
"""What the cells of features of these forced kinds may hold, besides missing values."""


class CodedTable(CodedFeatures):
    """The features of a table.

    Parameters
    ----------
    columns : StoredColumns
        The values, in the order of :func:`srs_ooc.ingestion.ingest_options.stored_positions`.
    form : StoreForm, optional
        How to keep them; uint8 codes and float64 values if not given.
    kinds : FeatureKinds, optional
        Which features are texts, and which kinds are forced; all are numbers if not given.
    first_feature : int
        Place of the first feature in the table that this one is a piece of.
    link : BedFile, optional
        The file that ``columns`` are of, where the store is to be linked to it: features lie in its
        order, and codes and values are left there.
    lines : callable, optional
        Reads lines of a ``.bed`` file where codes are packed; made of ``columns`` if not given.

    Raises
    ------
    InputError
        As it is coded, if a value does not survive the round trip through float32, or a feature is
        not of the kind that is forced.
    """

    def __init__(
        self,
        columns: StoredColumns,
        form: StoreForm | None = None,
        kinds: FeatureKinds | None = None,
        *,
        first_feature: int = 0,
        link: BedFile | None = None,
        lines: Callable[[int, int], Bytes] | None = None,
    ) -> None:
        if kinds is None:
            forced = np.full(columns.n_features, FREE, np.uint8)
            no_texts, rows = np.zeros(len(forced), np.bool_), KeptRows(columns.n_rows)
            kinds = FeatureKinds(forced, no_texts, TextCoder(0), lambda *_: ("", None), rows)
        self._columns, self._kinds, self._first_feature = columns, kinds, first_feature
        self.form, self.link = form or StoreForm(), link
        self.shape = Shape(kinds.kept.n_rows, columns.n_features)
        self.holds_texts = bool(kinds.is_text.any())
        self._ordered: list[bytes] = []  # the texts in order
        self._rank = np.zeros(0, np.int64)  # the place of each text in it
        self._wrong: dict[str, list[tuple[int, int, float, int]]] = {}  # by what is wrong
        self._not_utf8 = np.zeros(0, np.int64)  # numbers of texts that no store can hold
        if link is not None:
            self.linked_rows = kinds.kept.of(0, np.arange(link.n_samples, dtype=np.int32))
        self._lines = lines or self._packed

    def lines(self, start: int, stop: int) -> Bytes:
        """Return the features ``start .. stop - 1`` as lines of a ``.bed`` file."""
        if self.link is not None:
            return self.link.lines(np.arange(start, stop))
        return self._lines(start, stop)

    def positions(self) -> Uints32:
        """Return the place of each feature in the source."""
        if self.link is not None:  # features lie as in the file
            return np.arange(self.shape.n_features, dtype=np.uint32)
        return stored_positions(self.shape.n_features, self._first_feature)

    def coded(self, start: int, stop: int, categories: TextsWriter | None) -> Coded:
        """Read and code the features ``start .. stop - 1``."""
        values: NDArray[Any] = self._kinds.kept.read(self._columns, start, stop)
        if categories is not None:
            self._code_texts(start, values, categories)
        if self.form.values_dtype == "float32":
            values = as_float32(values)
        n_ranges = self.form.n_ranges(self.shape)
        codes = np.empty(values.shape, self.form.code_dtype)
        facts = code_columns(values, codes, ranges=n_ranges)
        self._kinds.amend(start, facts)
        forced = self._kinds.forced[start:stop]
        self._check_forced(start, values, forced)
        np.copyto(facts.kinds, forced, where=forced != FREE)
        facts.kinds[self._kinds.is_text[start:stop]] = manifest.CATEGORICAL
        return codes, facts, (facts.lows, facts.highs) if n_ranges else (values,)

    def _code_texts(self, start: int, values: Floats, categories: TextsWriter) -> None:
        """Replace numbers of texts by codes in the features (m, n_rows) from ``start`` on."""
        kinds = self._kinds
        kinds.number_texts(start, values)
        if len(self._ordered) != len(kinds.pool):
            texts = kinds.pool.texts()
            is_wrong = [text.decode(errors="ignore").encode() != text for text in texts]
            self._not_utf8 = np.flatnonzero(is_wrong)
            order = sorted(range(len(texts)), key=texts.__getitem__)
            self._ordered = [texts[i] for i in order]
            self._rank = np.argsort(order)
        every = np.flatnonzero(kinds.is_text[start : start + len(values)])
        step = max(1, _PIECE_CELLS // values.shape[1])
        for rows in (every[first : first + step] for first in range(0, len(every), step)):
            ranks = values[rows]
            if len(self._not_utf8) and len(wrong := np.argwhere(np.isin(ranks, self._not_utf8))):
                line, row = wrong[0].tolist()
                where, text = kinds.cell(start + int(rows[line]), row, float(ranks[line, row]))
                raise unfit(where, "a category as UTF-8 text", text, TO_UTF8)
            is_there = ~np.isnan(ranks)
            ranks[is_there] = self._rank[ranks[is_there].astype(np.int64)]
            codes = np.empty(ranks.shape, self.form.code_dtype)
            width = min(max_codes(self.form.code_dtype), ranks.shape[1])
            facts = code_columns(ranks, codes, ranges=width)
            for i, row in enumerate(rows.tolist()):
                lows = facts.lows[i, : int(facts.n_codes[i])].tolist()
                texts = [self._ordered[int(rank)] for rank in lows]
                self._look(start + row, values[row], texts, exact=bool(facts.exact[i]))
                categories.write(*joined(texts))
            values[rows] = np.where(is_there, codes, np.nan)

    def _look(self, feature: int, numbers: Floats, texts: list[bytes], *, exact: bool) -> None:
        """Note a feature whose texts, of which ``texts`` are some, are no categories."""
        there = np.flatnonzero(~np.isnan(numbers))
        if not exact:
            firsts = np.sort(np.unique(numbers[there], return_index=True)[1])
            what, row = "many", int(there[firsts[max_codes(self.form.code_dtype)]])
        elif 1 < len(there) == len(texts) and self._kinds.forced[feature] == FREE:
            what, row = "different", int(there[0])
        else:
            return
        if all(is_date(text.decode()) for text in texts[:_LOOKED_AT]):
            what = "dates"
        found = self._wrong.setdefault(what, [])
        found.append((feature, row, float(numbers[row]), len(texts)))
        if len(found) > NAMED + 1:  # enough of them for a message
            self.refuse()

    def refuse(self) -> None:
        """Refuse the features that were noted, naming them, and for each fault the cell of one."""
        if self._wrong:
            raise no_features(*(self._said(*wrong) for wrong in sorted(self._wrong.items())))

    def _said(self, what: str, found: list[tuple[int, int, float, int]]) -> tuple[str, str]:
        """Say what was found, and what to do."""
        cells = [self._kinds.cell(feature, row, text) for feature, row, text, _ in found]
        (where, text), *others = cells[: NAMED + 1]
        named = ", ".join(place.rpartition(": ")[2] for place, _ in others)
        more = f" The same holds of {named}{', ...' * (len(cells) > NAMED + 1)}." if others else ""
        remedy = "If they identify the rows, name the column with --row-ids"
        if what == "dates":
            said = f"numbers or categories, found what looks like dates ({text})."
            remedy = f"Leave dates out with --ignore NAME,NAME, or {TO_DAYS}."
        elif what == "different":
            said = (
                f"a number, or a category that occurs more than once in the column, found {text}, "
                f"and {found[0][3]} different texts in all."
            )
            remedy += (
                " or leave it out with --ignore A,B; if they are categories all the same, say "
                "--kind NAME=categorical; if each row is a feature and each column a sample, say "
                "--orient features."
            )
        else:
            said = f"at most {max_codes(self.form.code_dtype)} categories, found another ({text})."
            wider = " or take --code-dtype uint16," if self.form.code_dtype == "uint8" else ""
            remedy += f"; or leave it out with --ignore,{wider} or merge categories."
        return f"{where}: expected {said}{more}", remedy

    def _check_forced(self, start: int, values: NDArray[Any], forced: Bytes) -> None:
        for feature in np.flatnonzero(np.isin(forced, list(ACCEPTED))).tolist():
            line, kind = values[feature], forced[feature]
            allowed = np.isin(line, (0, 1)) if kind == manifest.BOOLEAN else line == np.floor(line)
            if (wrong := ~(allowed | np.isnan(line))).any():
                row = int(wrong.argmax())
                where, text = self._kinds.cell(start + feature, row, float(line[row]))
                said = f"as --kind NAME={NAMES[kind]} says"
                expected = f"{ACCEPTED[kind]}, or a missing value, {said}"
                raise unfit(where, expected, text, "Mend the cell, or leave --kind out.")

    def _packed(self, start: int, stop: int) -> Bytes:
        """Return lines of features whose values are read."""
        values = self._kinds.kept.read(self._columns, start, stop)
        lines, wrong = packed(values)
        if wrong is not None:
            feature, row = wrong
            where, text = self._kinds.cell(start + feature, row, float(values[feature, row]))
            expected = "0, 1, 2 or a missing value, as --code-dtype 2bit says"
            raise unfit(where, expected, text, "Leave it out: uint8 holds other values.")
        return lines


def packed(values: Reals) -> tuple[Bytes, tuple[int, int] | None]:
    """Return genotypes as lines of a ``.bed`` file; and where the first is that is none."""
    lines = np.empty((len(values), ceil_div(values.shape[1], 4)), np.uint8)
    wrong = _native.pack_genotypes(values, lines.reshape(-1))
    return lines, divmod(wrong, values.shape[1]) if wrong >= 0 else None


# The one writer of stores: codes, values and facts of features, and what is known of rows.

FACTS = ("kinds", "n_missing", "n_codes", "exact")
"""What is known of each feature: arrays of the store."""
OF_ROWS = TableFacts.__annotations__.keys() & Manifest.__annotations__.keys()
"""What is known of a table that its manifest says as it is."""


class ColumnsWriter:
    """Writes features, and all that is kept of them."""

    n_linked_rows, order_key = 0, ingest_options.ORDER_KEY

    def __init__(self, store: NewStore, features: CodedFeatures) -> None:
        shape, form = features.shape, features.form
        self._store, self._features = store, features
        self.chunk_features = manifest.codes_chunk_features(shape, form.code_nbytes)
        self._step = ingest_memory.smallest_batch(shape, form)
        self._facts = {n: np.empty(shape.n_features, manifest.dtype_of(n)) for n in FACTS}
        self._categories = TextsWriter(store, "categories") if features.holds_texts else None
        self._codes = CodesWriter(store, shape, self.chunk_features, form.code_dtype)
        n_ranges = form.n_ranges(shape)
        wide = Shape(n_ranges, shape.n_features) if n_ranges else shape
        names = ("code_lows", "code_highs") if n_ranges else ("values",)
        how = (wide, np.dtype(form.values_dtype or "float64"), form.values_codec)
        self._floats = {name: FloatsWriter(store.folder, name, *how) for name in names}

    def write(self, batch: int, n_threads: int, progress: ByteProgress) -> None:
        """Write all features: each thread reads, codes and compresses its own share of a batch.

        What is written in order is written here, as the shares come; categories are written as
        they are made, so that shares with such are made one by one.
        """
        n_features, waiting = (
            self._features.shape.n_features,
            deque[Future[tuple[NDArray[Any], CodeFacts]]](),
        )
        n_threads = min(n_threads, batch // self._step) if self._categories is None else 1
        step, last = max(1, batch // self._step // n_threads) * self._step, 0
        with ThreadPoolExecutor(n_threads) as pool:
            for start in range(0, n_features, step):
                stop = min(start + step, n_features)
                waiting.append(pool.submit(self._share, start, stop))
                while len(waiting) > (n_threads if stop < n_features else 0):
                    codes, facts = waiting.popleft().result()
                    self._codes.write(codes)
                    self._note(last, facts)
                    last += len(codes)
                    size = codes[0].nbytes  # of a column
                    progress("writing", last * size, n_features * size)
        self._features.refuse()

    def _share(self, start: int, stop: int) -> tuple[NDArray[Any], CodeFacts]:
        """Have the features ``start .. stop - 1`` coded and write their values; return the rest."""
        codes, facts, arrays = self._features.coded(start, stop, self._categories)
        for floats, array in zip(self._floats.values(), arrays, strict=True):
            floats.write(start, array)
        return codes, facts

    def _note(self, start: int, facts: CodeFacts) -> None:
        """Note what is known of the features from ``start`` on."""
        for name, array in self._facts.items():
            some = getattr(facts, name)
            array[start : start + len(some)] = some

    def sync(self) -> None:
        """Wait until the values are on disk."""
        for floats in self._floats.values():
            floats.sync()

    def close(self) -> dict[str, Any]:
        """End codes and categories, and write the facts; return what the manifest says of them."""
        self._codes.close()
        if self._categories is not None:
            self._categories.close()
        for name, floats in self._floats.items():
            self._store.small(f"{name}_crc32c", [floats.crcs])
        for name, array in self._facts.items():
            self._store.small(name, [array])
        kinds, n_missing, n_codes, _ = self._facts.values()
        if self._categories is not None:
            firsts = np.zeros(len(kinds) + 1, np.int64)
            np.cumsum(np.where(kinds == manifest.CATEGORICAL, n_codes, 0), out=firsts[1:])
            self._store.small("categories_first", [firsts])
        counts = np.bincount(kinds, minlength=len(NAMES)).tolist()
        del self._facts  # the order is next
        return {
            "chunk_features": self.chunk_features,
            "order_key": self.order_key,
            "values_chunk": floats.chunk,
            "n_linked_rows": self.n_linked_rows,
            "kind_counts": dict(zip(NAMES, counts, strict=True)),
            "n_missing_cells": int(n_missing.sum(dtype=np.int64)),
            "n_missing_features": int(np.count_nonzero(n_missing)),
        }


class BedWriter(ColumnsWriter):
    """Counts genotypes, and writes all that is kept of them, the lines of a ``.bed`` file included.

    Lines of a file that the store is linked to stay where they are.
    """

    def __init__(self, store: NewStore, features: CodedFeatures) -> None:
        super().__init__(store, features)
        (n_rows, n_features), self._link = astuple(features.shape), features.link
        self.chunk_features = n_features
        self._bed = self._link or BedFile(store.folder / bed.OWN, n_rows, n_features)
        self.n_linked_rows = self._bed.n_samples
        self._rows = np.arange(n_rows, dtype=np.int32)
        if features.linked_rows is not None:
            self._rows, self.order_key = features.linked_rows, 0
        self._present = np.empty(n_features, np.uint8)

    def write(self, batch: int, n_threads: int, progress: ByteProgress) -> None:
        """Count all features, chunk by chunk of their values, and write their lines."""
        counted = self._counted(batch, progress)
        if self._link is not None:
            deque(counted, maxlen=0)
            return
        with self._bed.path.open("xb") as own:
            own.write(bed.HEAD)
            own.writelines(lines.data for lines in counted)
            own.flush()
            os.fsync(own.fileno())

    def _counted(self, batch: int, progress: ByteProgress) -> Iterator[Bytes]:
        """Yield the lines of features, counted, some at a time."""
        crcs, kept = self._floats["values"].crcs, self._bed.mask(self._rows)
        n_features, chunk = len(self._present), self._floats["values"].chunk[0]
        most = min(batch // 2, ingest_memory.PIECE_NBYTES // self._bed.line_nbytes)
        step, read = max(1, most // chunk) * chunk, self._features.lines
        parts = ((i, min(i + step, n_features)) for i in range(0, n_features, step))
        # some chunks at a time; the next are read while some are worked on
        for start, stop, lines in read_ahead((*part, read(*part)) for part in parts):
            each = [crc32c(lines[i : i + chunk].tobytes()) for i in range(0, len(lines), chunk)]
            crcs[start // chunk :][: len(each)] = np.array(each, np.uint32)[:, None]
            yield lines
            counts = self._bed.counts(lines, kept)
            is_there = counts > 0
            self._present[start:stop] = is_there @ np.array([1, 2, 4], np.uint8)
            n_codes = is_there.sum(axis=1, dtype=np.uint16)
            kinds = np.where(self._present[start:stop] == 3, manifest.BOOLEAN, manifest.INTEGER)
            kinds = np.where(n_codes > 1, kinds, manifest.CONSTANT)
            n_missing = len(self._rows) - counts.sum(axis=1)
            exact, none = np.ones(stop - start, np.bool_), np.zeros((stop - start, 0))
            self._note(start, CodeFacts(n_missing, n_codes, exact, kinds, none, none))
            progress("reading", stop * lines.shape[1], n_features * lines.shape[1])

    def sync(self) -> None:
        """Do nothing: there are no values beside the lines."""

    def close(self) -> dict[str, Any]:
        """Write the facts, and where the file is."""
        self._store.small("linked_rows", [self._rows])
        self._store.small("present", [self._present])
        del self._present
        if self._link is not None:
            bed.write_link(self._store.folder, self._link.path)
        return super().close()


def as_float32(values: NDArray[Any]) -> Floats32:
    """Return values as float32.

    Raises
    ------
    InputError
        If one does not survive that.
    """
    if values.dtype == np.float32:
        return values
    if not _native.look_at(values)[1]:
        raise InputError(
            "expected values that survive the round trip through float32, found one that does "
            "not. Write the store with float64 values."
        )
    with np.errstate(invalid="ignore"):  # R's NA is a signalling NaN
        return values.astype(np.float32)


def write_store(
    folder: Path,
    features: CodedFeatures,
    facts: TableFacts,
    names: writing.TextBlocks,
    *,
    batch_features: int | None = None,
    n_threads: int = 2,
    progress: ByteProgress = lambda *_: None,
) -> Manifest:
    """Write a complete store into an empty folder; to be published by the caller.

    Parameters
    ----------
    folder : Path
        Where the store's files go (see :func:`srs_ooc.base.files.published_folder`).
    features : CodedFeatures
        The features: :class:`CodedTable` codes those of a table.
    facts : TableFacts
        What is known of the rows, and the origin of the table.
    names : TextBlocks
        Feature names in source order.
    batch_features : int, optional
        Features to code at a time, a multiple of
        :func:`srs_ooc.ingestion.ingest_memory.smallest_batch`; about 64 MB of work if not given.
    n_threads : int
        Threads that code and compress.
    progress : ByteProgress, optional
        Told of the bytes of codes written.

    Raises
    ------
    InputError
        If the texts are not as many as the features and rows; and what coding raises.
    """
    shape, form = features.shape, features.form
    batch = batch_features or ingest_memory.fit_batch(shape, form, 96 * MB)[0]
    if n_threads > 1:  # which a tight cap does not allow
        _native.reuse_blocks()  # those of compressing; the memory plan counts them
    with NewStore(folder) as store:
        is_bed = form.is_packed or features.link is not None
        work = (BedWriter if is_bed else ColumnsWriter)(store, features)
        work.write(batch, n_threads, progress)
        found = work.close()
        _native.return_large_blocks()
        write_texts(store, features, facts, names)
        for name, array in facts.arrays.items():
            store.small(name, blocks_of(array))
    target = facts.arrays.get("target")
    made = Manifest(
        n_rows=shape.n_rows,
        n_features=shape.n_features,
        task="regression" if target is None else "classification",
        class_counts=() if target is None else _class_counts(target, len(facts.classes)),
        format=format_of(facts.row_columns, work.n_linked_rows, facts.feature_columns),
        code_dtype=form.code_dtype,
        values_dtype=form.values_dtype,
        checksums=store.checksums,
        lengths={one: store.lengths[one] for one in manifest.SMALL_ARRAYS if one in store.lengths},
        **{name: getattr(facts, name) for name in OF_ROWS},
        **found,
    )
    manifest.make_group(folder, made)
    work.sync()
    return made


def write_texts(
    store: NewStore, features: CodedFeatures, facts: TableFacts, names: writing.TextBlocks
) -> None:
    """Write names, row ids, places, and the coordinates that follow from them.

    Raises
    ------
    InputError
        If they are not as many as the features and rows.
    """
    (n_rows, n_features), positions = astuple(features.shape), features.positions()
    store.small("positions", [positions])
    ids = facts.row_ids or text_blocks(map(str, range(1, n_rows + 1)))
    texts = {"names": (names, n_features), "row_ids": (ids, n_rows)}
    if facts.feature_columns:
        each = ([text_of(one) or "" for one in cells] for cells in facts.feature_cells)
        joined_cells = (CELL_END.join(one.replace(CELL_END, " ") for one in some) for some in each)
        texts[manifest.FEATURE_COLUMNS] = (text_blocks(joined_cells), n_features)
    for name, (blocks, expected) in texts.items():
        writer = TextsWriter(store, name)
        for blob, ends in blocks:
            writer.write(blob, ends)
        writer.close()
        if (n_texts := store.lengths[f"{name}_offsets"] - 1) != expected:
            raise InputError(f"expected {expected} {name}, found {n_texts}. Give one for each.")
    writing.write_coordinate(store, "feature", "names", positions)
    writing.write_coordinate(store, "row", "row_ids")


def _class_counts(target: Codes, n_classes: int) -> tuple[int, ...]:
    counts = sum(np.bincount(block, minlength=n_classes) for block in blocks_of(target))
    return tuple(np.asarray(counts).tolist())
