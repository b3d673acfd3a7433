"""What a table says of its rows besides features: target, weights, strata, groups, row ids.

From the row columns of a source to what a store holds; rows without a target are left out.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Floats, Ints32, Uints
from srs_ooc.base.errors import InputError, unfit
from srs_ooc.base.records import Covariate
from srs_ooc.base.text import counted, describe_nbytes
from srs_ooc.ingestion import scratch
from srs_ooc.ingestion.csv import TextForm, parse_decimal
from srs_ooc.ingestion.formats import TO_UTF8, TextCoder, split_texts, text_cost
from srs_ooc.ingestion.formats.in_memory import EXACT, text_of
from srs_ooc.ingestion.ingest_memory import line_pieces
from srs_ooc.ingestion.ingest_options import FREE, IngestOptions, StoredColumns, check_distinct
from srs_ooc.ingestion.scratch import ScratchArray, TextSpool, blocks_of, joined
from srs_ooc.store.arrays import SmallFile
from srs_ooc.store.manifest import CATEGORICAL, NO_TARGET
from srs_ooc.store.writing import TextBlocks

# What a table says of its rows besides features: target, weights, strata, groups, row ids.
#
# Each such column is first spooled as text, whatever the format, and settled when all of it is
# known.

Codes = ScratchArray | SmallFile | NDArray[Any]
"""Numbers of rows, on disk or in memory."""
_Coded = tuple[Codes, list[bytes]]
"""Of each row the number of its text, and the texts."""
_PICKED_ROWS = 1 << 15
"""Rows that are picked at a time where some are left out."""
MOST_TUPLES = 1 << 16
"""Strata of several columns are at most so many."""


@dataclass(frozen=True)
class TableFacts:
    """What is known of a table besides its values.

    Attributes
    ----------
    target_name : str
        Name of the target.
    classes : tuple of str
        Labels, in class order; none of a regression.
    row_id_name : str or None
        Name of the column of row ids; None where rows are numbered.
    n_dropped_rows : int
        Rows of the source left out.
    row_columns : dict
        Names of the columns of weights, strata, groups, covariates and events, where there are
        such.
    inferred, source : dict
        What was inferred, and where the table came from; JSON-ready.
    row_ids : TextBlocks or None
        Ids of the rows; ``1 .. n_rows`` if None.
    arrays : dict
        ``target`` (int32, classes) or ``target_values`` (float64); ``weights`` (float64),
        ``strata`` and ``groups`` (int32), ``events`` (bool), each (n_rows,), and ``covariates``
        (float64), one after another, as far as given.
    levels : tuple of tuple of str
        Of each covariate the texts of its categories; none of numbers.
    feature_columns : tuple of str
        Names of what the source says of its features besides.
    feature_cells : iterable of iterables
        What that is, of each feature.
    """

    target_name: str
    classes: tuple[str, ...]
    row_id_name: str | None = None
    n_dropped_rows: int = 0
    row_columns: dict[str, list[str]] = field(default_factory=dict)
    inferred: dict[str, Any] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict)
    row_ids: TextBlocks | None = None
    arrays: Mapping[str, Codes] = field(default_factory=dict)
    levels: tuple[tuple[str, ...], ...] = ()
    feature_columns: tuple[str, ...] = ()
    feature_cells: Iterable[Iterable[Any]] = ()


class KeptRows:
    """The rows that are kept: all, or those of a mask."""

    def __init__(self, n_rows: int, mask: Bools | None = None) -> None:
        self.mask = None if mask is None or mask.all() else mask
        self.n_source_rows = n_rows
        self.n_rows = n_rows if self.mask is None else int(self.mask.sum())

    def source_row(self, row: int) -> int:
        """Return the row of the source that kept row ``row`` is."""
        return row if self.mask is None else int(np.flatnonzero(self.mask)[row])

    def of(self, start: int, block: NDArray[Any]) -> NDArray[Any]:
        """Return the kept ones of the items of the rows from ``start`` on."""
        return block if self.mask is None else block[self.mask[start : start + len(block)]]

    def read(self, columns: StoredColumns, start: int, stop: int) -> NDArray[Any]:
        """Return the kept values (stop - start, n_rows) of features ``start .. stop - 1``."""
        if self.mask is None and type(self) is KeptRows:
            return columns.read(start, stop)
        out: NDArray[Any] = np.empty(0)
        for first, last in line_pieces(stop - start, self.n_source_rows):
            values = columns.read(start + first, start + last)
            if not first:
                out = scratch.anonymous_array((stop - start, self.n_rows), values.dtype)
            for line, whole in zip(out[first:], values, strict=False):
                self._fill(line, whole)
        return out

    def _fill(self, line: NDArray[Any], whole: NDArray[Any]) -> None:
        """Fill ``line`` with what the values of all rows become."""
        filled = 0
        for begin in range(0, len(whole), _PICKED_ROWS):  # some at a time
            picked = self.of(begin, whole[begin : begin + _PICKED_ROWS])
            line[filled : filled + len(picked)] = picked
            filled += len(picked)

    def texts(self, spool: TextSpool) -> Iterator[tuple[bytes, Uints]]:
        """Return the texts of kept rows in blocks."""
        if self.mask is None:
            return spool.blocks()
        return (joined([text for _, text in some]) for some in self.chosen(spool))

    def chosen(self, spool: TextSpool) -> Iterator[list[tuple[int, bytes]]]:
        """Yield (row of the source, text) of kept rows, some at a time."""
        start = 0
        for blob, ends in spool.blocks():
            cells = enumerate(split_texts(blob, ends), start)
            yield [one for one in cells if self.mask is None or self.mask[one[0]]]
            start += len(ends)

    def blocks(self, array: Codes) -> Iterator[NDArray[Any]]:
        """Yield the kept ones of the items of all rows, in blocks."""
        start = 0
        for block in blocks_of(array):
            yield self.of(start, block)
            start += len(block)


class GroupedRows(KeptRows):
    """The first kept row of each group, of which the values are those of all rows of the group.

    Groups (n_kept,) count from 0 in the order of their first rows; ``how`` is mean, median or sum.
    """

    def __init__(self, every: KeptRows, groups: Ints32, how: str) -> None:
        self.firsts, sizes = np.unique(groups, return_index=True, return_counts=True)[1:]
        mask = np.ones(every.n_source_rows, np.bool_) if every.mask is None else every.mask.copy()
        mask[np.delete(np.flatnonzero(mask), self.firsts)] = False
        super().__init__(len(mask), mask)
        self.groups, self._every, self._how = groups, every, how
        self._starts = np.cumsum(sizes) - sizes

    def _fill(self, line: NDArray[Any], whole: NDArray[Any]) -> None:
        line[:] = self.aggregated(self._every.of(0, whole), self._how)

    def aggregated(self, values: Floats, how: str) -> Floats:
        """Return the mean, median or sum of the known values of each group; NaN of none."""
        is_known = ~np.isnan(values)
        n_known = np.bincount(self.groups[is_known], minlength=self.n_rows)
        if how == "median":
            ordered = values[np.lexsort((values, self.groups))]  # NaN is last
            low, high = (self._starts + np.maximum(at, 0) // 2 for at in (n_known - 1, n_known))
            return np.asarray(ordered[low] / 2 + ordered[high] / 2, np.float64)
        sums = np.bincount(self.groups[is_known], values[is_known], self.n_rows)
        parts = np.maximum(n_known, 1) if how == "mean" else 1
        return np.where(n_known > 0, sums / parts, math.nan)


def combined_codes(parts: list[Codes], out: Path, what: str) -> Codes:
    """Return codes of the tuples of several codes, in order of first appearance.

    Raises
    ------
    InputError
        If there are more than :data:`MOST_TUPLES`; ``what`` says of what.
    """
    if len(parts) == 1:
        return parts[0]
    size = 4 * len(parts)
    coder, codes = TextCoder((MOST_TUPLES + 1) * text_cost(size)), ScratchArray(out, np.int32)
    for blocks in zip(*map(blocks_of, parts), strict=True):
        rows = np.ascontiguousarray(np.transpose(blocks), np.int32)  # each as a text of its bytes
        ends = size * np.arange(1, len(rows) + 1, dtype=np.uint64)
        codes.append(numbers := coder.code(rows.tobytes(), ends))
        if len(coder) > MOST_TUPLES or len(numbers) < len(rows):
            expected = f"columns that combine to at most {MOST_TUPLES} different tuples"
            raise unfit(what, expected, "more", "Name fewer columns.")
    return codes


def shown(text: bytes) -> str:
    """Return the beginning of a cell for a message."""
    return repr(text[:80].decode("utf-8", "replace")) if text else "an empty cell"


# Labels of one number, which are one label.

_LEADING_ZERO = re.compile(rb"[+-]?0\d")


def named_by_number(texts: list[bytes], form: TextForm) -> tuple[list[bytes], str]:
    """Return for each label the one that stands for all of its number, and say which are joined.

    That is the one of digits alone, else the shortest, else the first as text, whatever the order.
    Where one is no number, or begins with a zero as codes do, all stand for themselves; so do
    numbers from 2**53 on, which are no longer exact.
    """
    numbers = form.numbers(texts)
    if None in numbers.values() or any(map(_LEADING_ZERO.match, numbers)):
        return texts, ""
    ranked = sorted(numbers, key=lambda text: (not text.isdigit(), len(text), text))
    best = {numbers[text]: text for text in reversed(ranked)}
    name = {text: best[one] for text, one in numbers.items() if abs(one or 0) < EXACT}
    pairs = [pair for pair in sorted(name.items()) if pair[0] != pair[1]][:NAMED]
    said = ", ".join(f"{shown(text)} is {one.decode()}" for text, one in pairs)
    names = [name.get(text, text) for text in texts]
    return names, f"labels of one number are one, such as {said}" * bool(said)


# Classes that are often none: of one row, words for what is missing, texts among numbers.

NAMED = 5
"""Labels that a message names."""
FEW_ROWS = 20
"""In tables of fewer rows classes of one are nothing unusual."""
NINES = {sign * (10.0**digits - 1) for digits in range(1, 8) for sign in (-1, 1)} - {9.0}
NINES.add(-(2.0**31))  # R's, of integers
"""Numbers that often stand for missing values."""
_WORDS = frozenset(
    ("?", "-", "--", ".", "null", "none", "nil", "n/a", "#n/a", "nan", "<na>", "na", "missing",
     "unknown", "unk", "not available", "not known", "undefined")
)  # fmt: skip


def words_for_missing(labels: Sequence[str]) -> list[str]:
    """Return the labels that look like words for a missing value; no minus beside a plus."""
    words = _WORDS - {"-"} if "+" in labels else _WORDS
    return [label for label in labels if label.strip().lower() in words]


def texts_among_numbers(labels: Sequence[str]) -> list[str]:
    """Return the labels that are no numbers, where most are; else none."""
    texts = [label for label in labels if parse_decimal(label.encode()) is None]
    return texts if 0 < len(texts) < len(labels) / 2 else []


def check_counts(
    where: str, rows: Mapping[str, int], least: int | None = None, known: Sequence[str] | None = ()
) -> None:
    """Refuse classes of too few rows.

    Parameters
    ----------
    where : str
        File and column, for messages.
    rows : mapping of str to int
        Rows of each class.
    least : int, optional
        Rows that a class must have; by default two, where there are :data:`FEW_ROWS` or more.
    known : sequence of str, optional
        Texts that ``--missing`` named, beside which it can name more; not if it is empty.

    Raises
    ------
    InputError
        Naming such classes, and what they may be.
    """
    if least is None:
        least = 2 if sum(rows.values()) >= FEW_ROWS else 1
    if rare := [label for label, count in rows.items() if count < least]:
        keep = "--min-class-rows 1 takes classes as they are."
        remedy = (
            "Name another column with --target if this is none of classes; if the target is a "
            f"number, say --task regression; merge the classes, or leave their rows out. {keep}"
        )
        nines = [label for label in rare if parse_decimal(label.encode()) in NINES]
        if texts := texts_among_numbers([*rows]):
            remedy = f"If the target is a number, {said_of_missing(texts, known)}. {keep}"
        elif words := words_for_missing(rare) or nines:
            remedy = f"Perhaps {said_of_missing(words, known)}. {keep}"
        classes = f"{len(rare):,} of {len(rows):,} classes {'has' if len(rare) == 1 else 'have'}"
        expected = f"classes of {counted(least, 'row')} or more"
        raise unfit(where, expected, f"that {classes} fewer: {_named(rare)}", remedy)


def said_of_missing(
    labels: Sequence[str], known: Sequence[str] | None = None, remedy: str = "empty such cells"
) -> str:
    """Say that some labels stand for missing values, and what to do then.

    The option takes them for missing beside what is so by default, or those it named, ``known``; it
    is not proposed where that is empty.
    """
    verb = "stands" if len(labels) == 1 else "stand"
    words = (*(("", "NA", "nan") if known is None else known), *labels[:NAMED])
    options = ", or, of a text table, say " + " ".join(f"--missing {quote(one)}" for one in words)
    return f"{_named(labels)} {verb} for missing values: {remedy}{options * (known != ())}"


def _named(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
    return f"{', '.join(map(repr, labels[:NAMED]))}{more}"


# What a store holds of the rows of a source, from the columns that say it.

MAX_CLASSES = 10_000
MAX_WHOLE_CLASSES = 100
"""Whole numbers are classes only where there are at most so many different ones."""

_LONGEST_LABEL = 1000
_LABELS_NBYTES, _CODES_NBYTES = MAX_CLASSES * 528, 8_000_000
"""Memory for the labels of the most classes, of 100 bytes each; and for the distinct texts of
strata and groups, a column at a time."""
MOST_LEVELS, _LONGEST_LEVEL = 1000, 100
"""A covariate has at most so many categories; their texts are at most so many bytes."""
_EVENTS = {"1": "0", "true": "false", "yes": "no", "dead": "alive", "deceased": "living"}
"""Words for an event that was seen, and for one that was not."""


class RowColumns:
    """What a table says of its rows: filled as its columns are read, and settled at the end.

    Without a task said (``auto``), texts of the target are classes. Numbers are classes where there
    are at most two different ones, or if they are whole, and at most :data:`MAX_WHOLE_CLASSES`
    different ones and half as many as the rows. Rows without a target are dropped; of a regression
    those with an infinite one too.

    Parameters
    ----------
    scratch : Path
        Folder for the texts of the columns.
    source, where : object, callable
        The table, and what says where a row of it stands, for messages.
    options : IngestOptions
        What is asked.

    Attributes
    ----------
    kept : KeptRows
        The rows that have a target; all of them until that is settled.
    target : ScratchArray
        Of each kept row, the class (int32) or the number (float64).
    facts : TableFacts
        What else a store holds of them.
    further : list of Covariate
        Further targets, of the kept rows: codes of classes (levels) or numbers, NaN where missing.
    """

    def __init__(
        self, scratch: Path, source: object, where: Callable[[int], str], options: IngestOptions
    ) -> None:
        self._scratch, self._source, self._where = scratch, source, where
        self._options, self._form = options, options.text
        # rows of a store's, which has what a few may lack
        self._is_more = bool(options.append_rows)
        self._columns: dict[str, list[TextSpool]] = {}
        self._inferred: dict[str, Any] = {}

    def open(self, what: str, name: str, levels: list[str] | None = None) -> TextSpool:
        """Begin a column; ``what`` is target, row_ids, weights, strata, groups, ..."""
        columns = self._columns.setdefault(what, [])
        columns.append(TextSpool(self._scratch, f"{what}-{len(columns)}", name, levels))
        return columns[-1]

    def number_rows(self, n_rows: int) -> None:
        """Fill in the target of a table that has none: the numbers of its rows, from 1."""
        self.open("target", NO_TARGET).extend(map(str, range(1, n_rows + 1)))

    def look(self) -> str:
        """Say the kind of the target, which alone was opened, of some rows of a table."""
        task, codes, labels = self._task()
        n_rows = f"in {counted(len(self._column), 'row')}"
        if task == "regression":
            return f"numbers, {n_rows}"
        rows = zip(labels, np.bincount(codes[:], minlength=len(labels)).tolist(), strict=True)
        there = sorted((-n, shown(text)) for text, n in rows if not self._form.is_missing(text))
        each = ", ".join(f"{text} {-n}" for n, text in there[:NAMED])
        return f"{len(there)} classes, {n_rows} {each}{', ...' * (len(there) > NAMED)}"

    def settle(self) -> None:
        """Settle all of them.

        Raises
        ------
        InputError
            If one does not hold what it should: there are too few or too many classes, one has too
            few rows, a number is expected and something else found, or a value is missing where
            that is refused.
        """
        columns, aggregate = self._columns, self._options.aggregate
        task, codes, labels = self._task()
        is_number = task == "regression"
        classes = self._settle_numbers() if is_number else self._settle_classes(codes, labels)
        arrays, levels = dict[str, Codes](), list[tuple[str, ...]]()
        if "weights" in columns:
            arrays["weights"] = self._weights(columns["weights"][0])
        for what in ("strata", "groups"):
            if what in columns and not (what == "groups" and aggregate):
                parts = [self._codes(what, i, column)[0] for i, column in enumerate(columns[what])]
                arrays[what] = combined_codes(parts, self._scratch / f"{what}.codes", f"--{what}")
        if "covariates" in columns:
            arrays["covariates"], levels = self._covariates(columns["covariates"])
        if "events" in columns:
            arrays["events"] = self._events(columns["events"][0])
        row_ids, id_name = self._row_ids()
        self.further = [self._further(*one) for one in enumerate(columns.get("targets", ()))]
        self.facts = TableFacts(
            target_name=self._column.label,
            classes=classes,
            row_id_name=id_name,
            n_dropped_rows=self._every.n_source_rows - self._every.n_rows,
            row_columns={what: [column.label for column in columns[what]] for what in arrays},
            inferred=self._inferred,
            row_ids=row_ids,
            arrays={"target_values" if is_number else "target": self.target} | arrays,
            levels=tuple(levels),
        )

    def _further(self, place: int, column: TextSpool) -> Covariate:
        """Settle a further target, of the kept rows; note how many rows it has where not kept."""
        self._check_same(column)
        (folder := self._scratch / f"targets-{place}").mkdir()
        kept, options = self.kept, replace(self._options, aggregate=None, no_target=False)
        where = lambda row: self._where(kept.source_row(row))  # noqa: E731
        one = RowColumns(folder, self._source, where, options)
        texts = (text for _, text in chain.from_iterable(kept.chosen(column)))
        one.open("target", column.label, column.levels).extend(texts)
        one.settle()
        values = np.full(kept.n_rows, math.nan)
        values[slice(None) if one.kept.mask is None else one.kept.mask] = one.target[:]
        there = self._are_there(column)
        n_left_out = int(there.sum() - self._every.of(0, there).sum())
        counts = {"n_without": one.facts.n_dropped_rows, "n_left_out": n_left_out}
        self._inferred.setdefault("targets", {})[column.label] = counts
        if said := one.facts.inferred.get("joined"):
            self._inferred.setdefault("joined", []).extend(said)
        return Covariate(column.label, values, one.facts.classes)

    def _task(self) -> tuple[str, Codes, list[bytes]]:
        """Return the task, and of classes the number of each row's label, and the labels."""
        (self._column,) = self._columns["target"]
        self.kept = KeptRows(len(self._column))
        codes, labels = ScratchArray(self._scratch / "labels", np.int32), list[bytes]()
        is_number = self._options.no_target or self._options.censored
        task = "regression" if is_number else self._options.task
        if task != "regression":
            labels = self._labels(codes, task)
        if task == "auto":
            task, why = self._find_task(labels)
            self._inferred["task"] = f"{task}: {why}"
        if task == "regression":
            return task, codes, labels
        return task, *self._by_number(codes, labels, self._column)

    def _labels(self, codes: ScratchArray, task: str) -> list[bytes]:
        """Return the distinct texts; none if they are too many for classes. Code each row's."""
        coder, start = TextCoder(_LABELS_NBYTES), 0
        for blob, ends in self._column.blocks():
            codes.append(some := coder.code(blob, ends))
            if len(coder) > MAX_CLASSES + 1 or len(some) < len(ends):
                row = min(len(some), len(ends) - 1)
                text = list(split_texts(blob, ends))[row]
                numbers = self._form.numbers((*coder.texts(), text)).values()
                if task == "auto" and self._column.levels is None and None not in numbers:
                    return []
                raise self._error(
                    start + row,
                    f"a target of at most {MAX_CLASSES} classes, their labels of at most "
                    f"{describe_nbytes(_LABELS_NBYTES // 4)} in all",
                    f"more ({shown(text)} is one)",
                    "Name a column of class labels with --target, or say --task regression.",
                )
            start += len(ends)
        return coder.texts()

    def _find_task(self, labels: list[bytes]) -> tuple[str, str]:
        if not labels:
            return "regression", f"more than {MAX_CLASSES} different values"
        numbers = self._form.numbers(labels)
        if None in numbers.values():
            return "classification", "its values are texts"
        if self._column.levels is not None:
            return "classification", "its column is declared categorical"
        values = {one for one in numbers.values() if one is not None and math.isfinite(one)}
        n_rows, n_values = len(self._column), len(values)
        if n_values > 2 and not all(value.is_integer() for value in values):
            return "regression", "numbers that are not all whole"
        if n_values > max(2, min(MAX_WHOLE_CLASSES, n_rows // 2)):
            return "regression", f"{n_values} different whole numbers in {n_rows} rows"
        infinite = {text for text, number in numbers.items() if number not in values}
        if infinite:  # beside few numbers they are no class unless the user says so
            cells = chain.from_iterable(self.kept.chosen(self._column))
            row, text = next(cell for cell in cells if cell[1] in infinite)
            remedy = (
                "Mend the cell; or say --task regression to leave such rows out, --task "
                "classification to take it for a class."
            )
            raise self._error(row, "a finite number or a label", shown(text), remedy)
        whole = f" whole numbers in {n_rows} rows" if n_values > 2 else " numbers"
        return "classification", f"{n_values} different{whole}"

    def _settle_classes(self, codes: Codes, labels: list[bytes]) -> tuple[str, ...]:
        is_there = np.array([not self._form.is_missing(text) for text in labels])
        self._keep(is_there[block] for block in blocks_of(codes))
        kept = self.kept.blocks(codes)
        counts = np.asarray(sum(np.bincount(block, minlength=len(labels)) for block in kept))
        present = np.flatnonzero(counts)
        texts = [self._decoded(labels[i], self._column) for i in present.tolist()]
        if len(texts) < 2 - self._is_more:
            found = f"only {texts[0]!r}" if texts else "none"
            found = f"{found} in column {self._column.label!r}"
            remedy = "Name another with --target, or say --no-target."
            raise unfit(self._source, "a target of at least two classes", found, remedy)
        where = f"{self._source}, column {self._column.label!r}"
        n_rows = dict(zip(texts, counts[present].tolist(), strict=True))
        check_counts(where, n_rows, self._options.min_class_rows, self._form.missing)
        rank = np.full(len(labels), -1, np.int32)
        order = class_order(texts, self._column.levels)
        rank[present[order]] = np.arange(len(order), dtype=np.int32)
        self.target = ScratchArray(self._scratch / "classes", np.int32)
        for block in self.kept.blocks(codes):
            self.target.append(rank[block])
        return tuple(texts[i] for i in order)

    def _by_number(self, codes: Codes, texts: list[bytes], column: TextSpool) -> _Coded:
        """Return codes and texts of which those of one number are one, and note which."""
        (names, said), kinds = named_by_number(texts, self._form), self._options.kinds
        is_found = column.levels is None and bool(said)
        if not is_found or kinds.by_name().get(column.label.encode()) == CATEGORICAL:
            return codes, texts
        self._inferred.setdefault("joined", []).append(f"column {column.label!r}: {said}")
        place = {name: i for i, name in enumerate(dict.fromkeys(names))}
        return np.array([place[name] for name in names], np.int32)[codes[:]], list(place)

    def _decoded(self, label: bytes, column: TextSpool, most: int = _LONGEST_LABEL) -> str:
        where = f"{self._source}, column {column.label!r}"
        if len(label) > most:
            expected = f"labels of at most {most} bytes"
            raise unfit(where, expected, "a longer one", "Name a column of labels.")
        try:
            return label.decode()
        except UnicodeDecodeError:
            raise unfit(where, "labels as UTF-8 text", repr(label[:80]), TO_UTF8) from None

    def _settle_numbers(self) -> tuple[str, ...]:
        """Settle values and rows where the target is a number: there are no classes."""
        expected, remedy = "a number, the task being regression", "say --task classification."
        if is_time := self._options.censored:
            expected, remedy = "a time, 0 or more", "empty it: rows without a time are left out."
        numbers = ScratchArray(self._scratch / "numbers", np.float64)
        is_missing, number = self._form.is_missing, self._form.number
        for cells in self.kept.chosen(self._column):
            values = [math.nan if is_missing(text) else number(text) for _, text in cells]
            for (row, text), value in zip(cells, values, strict=True):
                if value is None or (is_time and value < 0):
                    mend = f"Mend the cell, or {remedy}"
                    raise self._error(row, expected, shown(text), mend)
            numbers.append(np.array(values))
        self._keep(np.isfinite(block) for block in blocks_of(numbers))
        self.target = ScratchArray(self._scratch / "targets", np.float64)
        low, high = math.inf, -math.inf
        for block in self.kept.blocks(numbers):
            self.target.append(block)
            low, high = block.min(initial=low), block.max(initial=high)
        if not (low < high or (self._is_more and low == high)):
            found = f"only {low:g}" if low == high else "none"
            found = f"{found} in column {self._column.label!r}"
            remedy = "Name another column with --target."
            raise unfit(self._source, "a target of at least two different numbers", found, remedy)
        # Some methods hold targets in single precision, some their squares.
        if max(-low, high) > 1e38 or 0 < high - low < 1e-80:
            raise InputError(
                f"{self._source}, column {self._column.label!r}: expected numbers up to 1e38 in "
                f"size, 1e-80 apart, found {low:g} to {high:g}. Write them in another unit."
            )
        return ()

    def _keep(self, parts: Iterator[Bools]) -> None:
        """Keep the rows with a target, which ``parts`` say; an event; and covariates, if asked."""
        mask = np.concatenate([np.zeros(0, np.bool_), *parts])
        events = ((column, self._are_there(column)) for column in self._columns.get("events", ()))
        for column, there in ((self._column, mask), *events):
            if self._options.missing_target == "refuse" and not there.all():
                row = int(there.argmin())
                found = f"{shown(column.get(row))}, which is none"
                remedy = "Fill it in or remove the row; --missing-target drop leaves such rows out."
                raise self._error(row, "a target", found, remedy, column)
            mask &= there
        n_rows = int(mask.sum())
        if self._options.missing_covariates == "drop":
            for column in self._columns.get("covariates", ()):
                mask &= self._are_there(column)
        if n_left_out := n_rows - int(mask.sum()):
            self._inferred["rows_without_covariates"] = n_left_out
        self.kept = self._every = KeptRows(len(mask), mask)
        if (how := self._options.aggregate) is not None:
            codes = self._codes("groups", 0, self._columns["groups"][0])[0]
            self.kept = GroupedRows(self._every, codes[:].astype(np.int32, copy=False), how)
            self._inferred["aggregate"] = {"how": how, "n_rows": self._every.n_rows}
            same = ("weights", "strata", "events", *(["target"] * (not self._options.no_target)))
            for column in chain.from_iterable(self._columns.get(what, ()) for what in same):
                self._check_same(column)

    def _check_same(self, column: TextSpool) -> None:
        """Refuse other texts in a group than in its first row, where groups become rows."""
        if isinstance(self.kept, GroupedRows):
            hashes = self._every.of(0, column.hashes[:])
            differs = hashes != hashes[self.kept.firsts][self.kept.groups]
            if differs.any():
                row = self._every.source_row(int(differs.argmax()))
                cell, group = (shown(one.get(row)) for one in (column, self._columns["groups"][0]))
                expected = "the same in all rows of a group, as --aggregate makes one row of them"
                found = f"{cell}, another than in its first row, in group {group}"
                remedy = "Mend the cell, or leave the column out."
                raise self._error(row, expected, found, remedy, column)

    def _are_there(self, column: TextSpool) -> Bools:
        texts = chain.from_iterable(split_texts(*block) for block in column.blocks())
        there = (not self._form.is_missing(text) for text in texts)
        return np.fromiter(there, np.bool_, len(column))

    def _error(
        self, row: int, expected: str, found: str, remedy: str, column: TextSpool | None = None
    ) -> InputError:
        where = f"{self._where(row)}: column {(column or self._column).label!r}"
        return unfit(where, expected, found, remedy)

    def _covariates(self, columns: list[TextSpool]) -> tuple[ScratchArray, list[tuple[str, ...]]]:
        """Return covariates, one after another, and the levels of each; count missing cells."""
        out, levels = ScratchArray(self._scratch / "covariates", np.float64), []
        kinds, n_missing = self._options.kinds.by_name(), {}
        for column in columns:
            kind = FREE if column.levels is None else CATEGORICAL
            texts = self._levels(column, kinds.get(column.label.encode(), kind))
            levels.append(tuple(texts))
            place = {text.encode(): float(i) for i, text in enumerate(texts)}
            read = place.__getitem__ if texts else self._form.number
            cells = (cell for _, cell in chain.from_iterable(self._every.chosen(column)))
            items = (math.nan if self._form.is_missing(cell) else read(cell) for cell in cells)
            values = np.fromiter(items, np.float64, self._every.n_rows)
            if isinstance(self.kept, GroupedRows) and texts:
                self._check_same(column)
                values = values[self.kept.firsts]
            elif isinstance(self.kept, GroupedRows):
                values = self.kept.aggregated(values, "mean")
            out.append(values)
            n_missing[column.label] = int(np.isnan(values).sum())
        self._inferred["missing_covariates"] = {name: n for name, n in n_missing.items() if n}
        return out, levels

    def _levels(self, column: TextSpool, kind: int) -> list[str]:
        """Return the categories of a covariate, in the order of classes; none of numbers."""
        found, text, n_known = dict[bytes, str](), None, 0
        for row, cell in chain.from_iterable(self._every.chosen(column)):
            if self._form.is_missing(cell):
                continue
            n_known += 1
            if len(found) <= MOST_LEVELS and cell not in found:
                found[cell] = self._decoded(cell, column, _LONGEST_LEVEL)
            number = self._form.number(cell)
            if text is None and (number is None or math.isinf(number)):
                text = row, cell
        where = f"{self._source}, column {column.label!r} (--covariates)"
        if not (n_known or self._is_more):
            raise InputError(f"{where}: expected a value in some row, found none. Leave it out.")
        labels = list(found.values())
        is_mixed = kind == FREE and bool(texts_among_numbers(labels))
        if text is not None and (is_mixed or kind not in (FREE, CATEGORICAL)):
            expected, (row, cell) = "a finite number as in other rows or as --kind says", text
            remedy = (
                "Mend or empty the cell, name the text with --missing, or say --kind "
                f"{quote(column.label)}=categorical."
            )
            raise self._error(row, expected, shown(cell), remedy, column)
        if text is None and kind != CATEGORICAL:
            return []
        most = math.inf if self._is_more else max(2, min(n_known, self.kept.n_rows) // 2)
        if len(found) > min(MOST_LEVELS, most):
            raise InputError(
                f"{where}: expected numbers, or categories, at most {MOST_LEVELS} and half as many "
                f"as the rows with one, found {len(found)} texts or more in {n_known} rows. "
                "Leave a column of ids out; merge rare categories; or write numbers as such, with "
                "--kind NAME=numeric where their file declares categories."
            )
        return [labels[i] for i in class_order(labels, column.levels)]

    def _events(self, column: TextSpool) -> ScratchArray:
        """Return in which kept rows the event was seen."""
        codes, cells = self._codes("event", 0, column)
        texts = [text.decode("utf-8", "replace") for text in cells]
        said = [self._plain(text) for text in texts]
        where, asked = f"{self._source}, column {column.label!r} (--event)", self._options
        listed = f"{', '.join(map(repr, texts[:NAMED]))}{', ...' * (len(texts) > NAMED)}"
        nines = [text for text in texts if self._form.number(text.encode()) in NINES]
        perhaps = f" Perhaps {said_of_missing(nines, self._form.missing)}." * bool(nines)
        if len(set(said)) > 2:
            raise InputError(
                f"{where}: expected two values, found {len(set(said)):,}: {listed}. Competing "
                "risks are not covered: give a column of 1 where the one event was seen, 0 "
                f"where not.{perhaps}"
            )
        pairs = ({*pair}.issuperset(said) and pair[0] for pair in _EVENTS.items())
        value = next(filter(None, pairs), None)
        if asked.event_value is not None:
            value = self._plain(asked.event_value)
        if value not in said and not self._is_more:
            raise InputError(
                f"{where}: expected an event in some row (1, true, yes, dead, deceased, or what is "
                f"named), found only {listed}. Name the value that means that the event was seen: "
                f"--event {quote(column.label)}=VALUE. Without an event nothing can be found."
            )
        is_event = np.array([one == value for one in said])
        events, happened = ScratchArray(self._scratch / "events", np.bool_), is_event[codes[:]]
        events.append(happened)
        n_events = int(happened.sum())
        shown_value = texts[int(is_event.argmax())] if n_events else asked.event_value
        self._inferred["events"] = {"value": shown_value, "n": n_events}
        self._inferred["events"] |= {"nines": nines} if nines else {}
        return events

    def _plain(self, text: str) -> str:
        """Return a text as its letters' case and the way a number is written do not matter."""
        number = self._form.number(text.strip().encode())
        return text.strip().lower() if number is None else str(text_of(number))

    def _codes(self, what: str, place: int, column: TextSpool) -> _Coded:
        """Return the numbers of the texts of kept rows, by first appearance; and the texts.

        Strata of one number are one; groups are told apart by their texts, as ids are.
        """
        coder, option = TextCoder(_CODES_NBYTES), f"--{what}"
        codes = ScratchArray(self._scratch / f"{what}-{place}.codes", np.int32)
        for chosen in self.kept.chosen(column):
            n_known = len(coder)
            numbers = coder.code(*joined([text for _, text in chosen]))
            if len(numbers) < len(chosen):
                row, text = chosen[len(numbers)]
                where = f"{self._where(row)}: column {column.label!r} ({option})"
                expected = f"texts of which {len(coder)} different ones fill the memory there is"
                remedy = "Name a column of fewer, or raise --memory-mb."
                raise unfit(where, expected, f"another ({shown(text)})", remedy)
            fresh = numbers.max(initial=-1) >= n_known
            for (row, text), number in zip(chosen, numbers.tolist(), strict=True) if fresh else ():
                if number >= n_known and self._form.is_missing(text):
                    where = f"{self._where(row)}: column {column.label!r} ({option})"
                    remedy = "Fill it in, or remove the row."
                    raise unfit(where, "a text", f"{shown(text)}, a missing value", remedy)
            codes.append(numbers)
        texts = coder.texts()
        return self._by_number(codes, texts, column) if what == "strata" else (codes, texts)

    def _weights(self, column: TextSpool) -> ScratchArray:
        weights = ScratchArray(self._scratch / "weights", np.float64)
        for chosen in self.kept.chosen(column):
            block = np.empty(len(chosen))
            for i, (row, text) in enumerate(chosen):
                value = None if self._form.is_missing(text) else self._form.number(text)
                if value is None or not 0 < value < math.inf:
                    where = f"{self._where(row)}: column {column.label!r} (--weights)"
                    remedy = "Mend it, or remove the row."
                    raise unfit(where, "a positive finite number", shown(text), remedy)
                block[i] = value
            weights.append(block)
        return weights

    def _row_ids(self) -> tuple[TextBlocks | None, str | None]:
        is_grouped, mask = self._options.aggregate is not None, self.kept.mask
        if is_grouped or "row_ids" in self._columns:
            (column,) = self._columns["groups" if is_grouped else "row_ids"]
            if not is_grouped:
                remedy = "Mend them, or take others; --ignore leaves the column out."
                check_distinct(self._source, column, "row ids", remedy)
            return self.kept.texts(column), column.label
        if mask is None:
            return None, None
        return scratch.text_blocks(str(row + 1) for row in np.flatnonzero(mask).tolist()), None


def class_order(labels: Sequence[str], declared: Sequence[str] | None = None) -> list[int]:
    """Return the order of labels: as declared, numerical if all are numbers, else as text."""
    places, rank = range(len(labels)), {text: i for i, text in enumerate(declared or ())}
    if rank.keys() >= {*labels}:
        return sorted(places, key=lambda i: rank[labels[i]])
    try:
        return sorted(places, key=lambda i: (float(labels[i]), labels[i]))
    except ValueError:
        return sorted(places, key=labels.__getitem__)
