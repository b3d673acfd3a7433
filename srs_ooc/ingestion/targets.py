"""The target: classes or numbers, found out or said, and the rows that have none."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError
from srs_ooc.base.text import describe_nbytes
from srs_ooc.ingestion.class_checks import check_counts
from srs_ooc.ingestion.row_columns import KeptRows, RowColumn, Wording, shown
from srs_ooc.ingestion.scratch import ScratchArray, blocks_of
from srs_ooc.ingestion.texts import TO_UTF8, TextCoder, split_texts, text_cost

MAX_CLASSES = 10_000
MAX_WHOLE_CLASSES = 100
"""Whole numbers are classes only where there are at most so many different ones."""

_LONGEST_LABEL = 1000
_CODER_NBYTES = MAX_CLASSES * text_cost(100)


@dataclass(frozen=True)
class SettledTarget:
    """A target that is settled.

    Attributes
    ----------
    task : str
        ``classification`` or ``regression``.
    classes : tuple of str
        Labels in class order; none of a regression.
    values : ScratchArray
        Of each kept row, the class (int32) or the number (float64).
    kept : KeptRows
        The rows that have a target.
    inferred : dict
        What was found out, for the manifest.
    """

    task: str
    classes: tuple[str, ...]
    values: ScratchArray
    kept: KeptRows
    inferred: dict[str, Any]


def settle_target(
    column: RowColumn,
    wording: Wording,
    source: object,
    scratch: Path,
    *,
    task: str = "auto",
    refuse_missing: bool = False,
    min_class_rows: int | None = None,
) -> SettledTarget:
    """Settle what the target is.

    Without a task said (``auto``), texts are classes. Numbers are classes where there are at most
    two different ones, or if they are whole, and at most :data:`MAX_WHOLE_CLASSES` different ones
    and half as many as the rows. Rows without a target are dropped; of a regression those with an
    infinite one too.

    Raises
    ------
    InputError
        If there are too few or too many classes, one has fewer rows than ``min_class_rows``, a
        number is expected and something else found, or a value is missing and ``refuse_missing``.
    """
    work = _Settling(
        column,
        wording,
        source,
        scratch,
        refuse_missing=refuse_missing,
        min_class_rows=min_class_rows,
    )
    return work.run(task)


class _Settling:
    def __init__(
        self,
        column: RowColumn,
        wording: Wording,
        source: object,
        scratch: Path,
        *,
        refuse_missing: bool,
        min_class_rows: int | None,
    ) -> None:
        self._column, self._wording, self._source = column, wording, source
        self._scratch, self._refuse_missing = scratch, refuse_missing
        self._min_class_rows = min_class_rows

    def run(self, task: str) -> SettledTarget:
        if task == "regression":
            return self._numbers({})
        codes = ScratchArray(self._scratch / "labels", np.int32)
        labels = self._labels(codes, task)
        inferred = {}
        if task == "auto":
            task, why = self._find_task(labels)
            inferred["task"] = f"{task}: {why}"
        if task == "regression":
            return self._numbers(inferred)
        return self._classes(labels, codes, inferred)

    def _labels(self, codes: ScratchArray, task: str) -> list[bytes]:
        """Return the distinct texts; none if they are too many for classes. Code each row's."""
        coder, start = TextCoder(_CODER_NBYTES), 0
        for blob, ends in self._column.texts.blocks():
            numbers = coder.code(blob, ends)
            codes.append(numbers)
            if len(coder) > MAX_CLASSES + 1 or len(numbers) < len(ends):
                row = min(len(numbers), len(ends) - 1)
                seen = [*coder.texts(), list(split_texts(blob, ends))[row]]
                if task == "auto" and self._are_numbers(seen):
                    return []
                raise self._error(
                    start + row,
                    f"a target of at most {MAX_CLASSES} classes, their labels of at most "
                    f"{describe_nbytes(_CODER_NBYTES // 4)} in all",
                    f"more ({shown(list(split_texts(blob, ends))[row])} is one)",
                    "Name a column of class labels with --target, or say --task regression.",
                )
            start += len(ends)
        return coder.texts()

    def _are_numbers(self, texts: list[bytes]) -> bool:
        there = (text for text in texts if not self._wording.is_missing(text))
        return all(self._wording.number(text) is not None for text in there)

    def _find_task(self, labels: list[bytes]) -> tuple[str, str]:
        if not labels:
            return "regression", f"more than {MAX_CLASSES} different values"
        texts = [text for text in labels if not self._wording.is_missing(text)]
        numbers = [self._wording.number(text) for text in texts]
        if any(number is None for number in numbers):
            return "classification", "its values are texts"
        values = {number for number in numbers if number is not None and math.isfinite(number)}
        n_rows, n_values = len(self._column.texts), len(values)
        if n_values > 2 and not all(value.is_integer() for value in values):
            return "regression", "numbers that are not all whole"
        if n_values > max(2, min(MAX_WHOLE_CLASSES, n_rows // 2)):
            return "regression", f"{n_values} different whole numbers in {n_rows} rows"
        infinite = {
            t for t, n in zip(texts, numbers, strict=True) if n is not None and math.isinf(n)
        }
        if infinite:
            self._refuse(infinite)
        whole = f" whole numbers in {n_rows} rows" if n_values > 2 else " numbers"
        return "classification", f"{n_values} different{whole}"

    def _refuse(self, infinite: set[bytes]) -> NoReturn:
        """Refuse infinities beside few numbers, which are no class unless the user says so."""
        start = 0
        for blob, ends in self._column.texts.blocks():
            for row, text in enumerate(split_texts(blob, ends), start):
                if text in infinite:
                    raise self._error(
                        row,
                        "a finite number or a label",
                        shown(text),
                        "Mend the cell; or say --task regression to leave such rows out, --task "
                        "classification to take it for a class.",
                    )
            start += len(ends)
        raise AssertionError("a label of no row")

    def _classes(
        self, labels: list[bytes], codes: ScratchArray, inferred: dict[str, Any]
    ) -> SettledTarget:
        is_there = np.array([not self._wording.is_missing(text) for text in labels])
        kept = self._kept(is_there[block] for block in blocks_of(codes))
        present = np.flatnonzero(is_there)
        texts = [self._decoded(labels[i]) for i in present.tolist()]
        if len(texts) < 2:
            found = f"only {texts[0]!r}" if texts else "none"
            raise InputError(
                f"{self._source}: expected a target of at least two classes, found {found} in "
                f"column {self._column.name!r}. Name another column with --target."
            )
        counts = sum(np.bincount(block, minlength=len(labels)) for block in blocks_of(codes))
        check_counts(
            f"{self._source}, column {self._column.name!r}",
            dict(zip(texts, np.asarray(counts)[present].tolist(), strict=True)),
            self._min_class_rows,
        )
        rank = np.full(len(labels), -1, np.int32)
        order = class_order(texts)
        rank[present[order]] = np.arange(len(order), dtype=np.int32)
        values, start = ScratchArray(self._scratch / "classes", np.int32), 0
        for block in blocks_of(codes):
            values.append(kept.of(start, rank[block]))
            start += len(block)
        return SettledTarget(
            "classification", tuple(texts[i] for i in order), values, kept, inferred
        )

    def _decoded(self, label: bytes) -> str:
        where = f"{self._source}, column {self._column.name!r}"
        if len(label) > _LONGEST_LABEL:
            raise InputError(
                f"{where}: expected class labels of at most {_LONGEST_LABEL} bytes, found a longer "
                "one. Name a column of class labels with --target."
            )
        try:
            return label.decode()
        except UnicodeDecodeError:
            raise InputError(
                f"{where}: expected labels as UTF-8 text, found {label[:80]!r}. {TO_UTF8}"
            ) from None

    def _numbers(self, inferred: dict[str, Any]) -> SettledTarget:
        numbers = ScratchArray(self._scratch / "numbers", np.float64)
        start = 0
        for blob, ends in self._column.texts.blocks():
            block = np.full(len(ends), math.nan)
            for i, text in enumerate(split_texts(blob, ends)):
                if self._wording.is_missing(text):
                    continue
                value = self._wording.number(text)
                if value is None:
                    raise self._error(
                        start + i,
                        "a number, the task being regression",
                        shown(text),
                        "Mend the cell, or say --task classification.",
                    )
                block[i] = value
            numbers.append(block)
            start += len(ends)
        kept = self._kept(np.isfinite(block) for block in blocks_of(numbers))
        values, start = ScratchArray(self._scratch / "targets", np.float64), 0
        low, high = math.inf, -math.inf
        for block in blocks_of(numbers):
            mine: NDArray[np.float64] = np.asarray(kept.of(start, block), np.float64)
            values.append(mine)
            low, high = min(low, mine.min(initial=low)), max(high, mine.max(initial=high))
            start += len(block)
        if not low < high:
            found = f"only {low:g}" if low == high else "none"
            raise InputError(
                f"{self._source}: expected a target of at least two different numbers, found "
                f"{found} in column {self._column.name!r}. Name another column with --target."
            )
        return SettledTarget("regression", (), values, kept, inferred)

    def _kept(self, parts: Iterator[NDArray[np.bool_]]) -> KeptRows:
        mask = np.concatenate([np.zeros(0, np.bool_), *parts])
        if self._refuse_missing and not mask.all():
            row = int(mask.argmin())
            raise self._error(
                row,
                "a target",
                f"{shown(self._column.texts.get(row))}, which is none",
                "Fill it in or remove the row; --missing-target drop leaves such rows out.",
            )
        return KeptRows(len(mask), mask)

    def _error(self, row: int, expected: str, found: str, remedy: str) -> InputError:
        return InputError(
            f"{self._wording.where(row)}: column {self._column.name!r}: expected {expected}, found "
            f"{found}. {remedy}"
        )


def class_order(labels: list[str]) -> list[int]:
    """Return the order of labels: numerical if all are numbers, else as text."""
    keys: list[Any]
    try:
        keys = [(float(label), label) for label in labels]
    except ValueError:
        keys = list(labels)
    return sorted(range(len(labels)), key=keys.__getitem__)
