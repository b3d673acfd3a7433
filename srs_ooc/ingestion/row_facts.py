"""From the row columns of a source to what a store holds of its rows."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.contents import TableFacts
from srs_ooc.ingestion.formats.dialect import TextForm
from srs_ooc.ingestion.options import IngestOptions
from srs_ooc.ingestion.roles import check_distinct
from srs_ooc.ingestion.row_columns import (
    KeptRows,
    RowColumn,
    Wording,
    coded_texts,
    combined_codes,
    weights_of,
)
from srs_ooc.ingestion.scratch import ScratchArray, TextSpool, text_blocks, texts_of
from srs_ooc.ingestion.targets import SettledTarget, settle_target
from srs_ooc.ingestion.texts import Texts
from srs_ooc.store.manifest import NO_TARGET
from srs_ooc.store.writing import TextBlocks

NUMBERED = 1 << 14
"""Rows that are numbered together."""
CODES_NBYTES = 8_000_000
"""Memory for the distinct texts of strata and groups, a column at a time."""


@dataclass(frozen=True)
class RowFacts:
    """What is known of the rows.

    Attributes
    ----------
    target_name : str
        Name of the target.
    target : SettledTarget
        The target, and which rows are kept for having one.
    arrays : dict
        ``weights``, ``strata``, ``groups``, as far as given.
    names : dict
        The names of their columns.
    row_ids : TextBlocks or None
        Ids of the kept rows; None where they are numbered and all are kept.
    row_id_name : str or None
        Name of the column of ids.
    """

    target_name: str
    target: SettledTarget
    arrays: dict[str, ScratchArray]
    names: dict[str, list[str]]
    row_ids: TextBlocks | None
    row_id_name: str | None

    @property
    def kept(self) -> KeptRows:
        """The rows that are kept."""
        return self.target.kept

    def facts(self, inferred: dict[str, Any], source: dict[str, Any]) -> TableFacts:
        """Return what goes into the manifest."""
        return TableFacts(
            target_name=self.target_name,
            classes=self.target.classes,
            row_id_name=self.row_id_name,
            n_dropped_rows=self.kept.n_dropped,
            row_columns=self.names,
            inferred=inferred | self.target.inferred,
            source=source,
        )


def wording_of(form: TextForm, where: Callable[[int], str]) -> Wording:
    """Return how the cells of a text table are read."""
    missing = None if form.missing is None else frozenset(t.encode() for t in form.missing)
    return Wording(where, missing, form.point.encode())


class RowColumns:
    """The row columns of a source, filled as it is read.

    Parameters
    ----------
    scratch : Path
        Folder for their texts.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._columns: dict[str, list[RowColumn]] = {}

    def open(self, what: str, name: str) -> TextSpool:
        """Begin a column; ``what`` is target, row_ids, weights, strata or groups."""
        columns = self._columns.setdefault(what, [])
        spool = TextSpool(self._scratch, f"{what}-{len(columns)}")
        columns.append(RowColumn(name, spool))
        return spool

    def append(self, what: str, texts: Texts, place: int = 0) -> None:
        """Append texts to a column."""
        self._columns[what][place].texts.append(texts)

    def number_rows(self, n_rows: int) -> None:
        """Fill in the target of a table that has none: the numbers of its rows, from 1."""
        spool = self.open("target", NO_TARGET)
        for start in range(1, n_rows + 1, NUMBERED):
            spool.append(texts_of(map(str, range(start, min(start + NUMBERED, n_rows + 1)))))

    def close(self) -> None:
        """Delete the texts."""
        for columns in self._columns.values():
            for column in columns:
                column.texts.close()

    def settle(self, source: object, wording: Wording, options: IngestOptions) -> RowFacts:
        """Settle all of them.

        Raises
        ------
        InputError
            If one does not hold what it should.
        """
        columns = self._columns
        (target_column,) = columns["target"]
        target = settle_target(
            target_column,
            wording,
            source,
            self._scratch,
            task="regression" if options.no_target else options.task,
            refuse_missing=options.missing_target == "refuse",
            min_class_rows=options.min_class_rows,
        )
        arrays, kept = {}, target.kept
        if "weights" in columns:
            out = self._scratch / "weights"
            arrays["weights"] = weights_of(columns["weights"][0], kept, wording, out)
        for what in ("strata", "groups"):
            if what in columns:
                arrays[what] = self._codes(what, kept, wording)
        ids, id_name = self._row_ids(source, kept)
        names = {what: [column.name for column in columns[what]] for what in arrays}
        return RowFacts(target_column.name, target, arrays, names, ids, id_name)

    def _codes(self, what: str, kept: KeptRows, wording: Wording) -> ScratchArray:
        parts = [
            coded_texts(
                column,
                kept,
                wording,
                self._scratch / f"{what}-{i}.codes",
                f"--{what}",
                CODES_NBYTES,
            )
            for i, column in enumerate(self._columns[what])
        ]
        return combined_codes(parts, self._scratch / f"{what}.codes", f"--{what}")

    def _row_ids(self, source: object, kept: KeptRows) -> tuple[TextBlocks | None, str | None]:
        if "row_ids" not in self._columns:
            return (text_blocks(map(str, kept.numbers())) if kept.n_dropped else None), None
        (column,) = self._columns["row_ids"]
        check_distinct(
            source,
            column.texts,
            "row ids",
            "Mend them, or take others; --ignore leaves the column out.",
        )
        return kept.texts(column.texts), column.name


def same_length(what: str, found: int, expected: int) -> None:
    """Refuse a row column that is not as long as the table.

    Raises
    ------
    InputError
        Naming both numbers.
    """
    if found != expected:
        raise InputError(
            f"{what}: expected {expected} items, one for each row, found {found}. Give as many as "
            "rows."
        )
