"""Which reading a table gets: by rows or by columns, by its format."""

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from srs_ooc.base.budget import Lease, resident_nbytes
from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.base.options import path_given
from srs_ooc.ingestion.feature_reading import open_feature_rows
from srs_ooc.ingestion.formats.arrow_files import ArrowFile
from srs_ooc.ingestion.formats.dialect import TextForm
from srs_ooc.ingestion.formats.opening import is_other, open_file, open_object
from srs_ooc.ingestion.formats.source import SourceFile, settle_source
from srs_ooc.ingestion.formats.svmlight import SvmlightTable
from srs_ooc.ingestion.memory import own_nbytes
from srs_ooc.ingestion.options import IngestOptions, SideColumns
from srs_ooc.ingestion.reading import Reading, Workplace
from srs_ooc.ingestion.table_needs import with_needs
from srs_ooc.ingestion.table_reading import TableReading
from srs_ooc.ingestion.text_reading import TextReading


def open_reading(table: Any, options: IngestOptions, side: SideColumns, work: Workplace) -> Reading:
    """Open a file or an object in memory.

    Raises
    ------
    InputError
        If it is of no format that is known, or is a text table with columns beside it.
    UsageError
        If options of text tables are given for another.
    """
    path = path_given(table, "the table") if isinstance(table, str | Path) else None
    if path is not None and (options.samples or not is_other(path)):
        if side:
            raise InputError(
                f"{path}: a text table holds its names, target and row ids itself. Name their "
                "columns, or give them apart only for arrays."
            )
        source = settle_source(path, work.scratch)
        if options.samples:
            return open_feature_rows(source, options.samples, options, work)
        return TextReading(source, options, work)
    if options.text != TextForm():
        raise UsageError(
            f"{path or 'the table'}: expected --separator, --comment, --decimal, --missing and "
            "--no-header only for text tables, found one of them. Leave it out."
        )
    if path is not None:
        return _open_file(SourceFile.file(path), options, side, work)
    as_texts = {name for name, kind in options.kinds.given if kind == "categorical"}
    opened = open_object(table, as_texts)
    grown = Lease("what is held of the table", max(0, resident_nbytes() - own_nbytes()))
    _, needs = with_needs(opened, options, (grown,))
    return TableReading(opened, "the table", options, side, work, {}, needs)


def _open_file(
    source: SourceFile, options: IngestOptions, side: SideColumns, work: Workplace
) -> TableReading:
    opened, needs = open_file(source.path, work.scratch, options)
    if isinstance(opened, SvmlightTable):
        labels = {"target": [("label", opened.labels)]}
        side = replace(side, columns=labels | dict(side.columns))
    if isinstance(opened, ArrowFile):
        options, found = _with_index(opened.index_names, options, side)
        side = replace(side, inferred=side.inferred | found)
    origin = {"name": source.name, **_fingerprint(source.path)}
    return TableReading(opened, source, options, side, work, origin, needs)


def _with_index(
    names: list[str], options: IngestOptions, side: SideColumns
) -> tuple[IngestOptions, dict[str, str]]:
    """Take the index that pandas saved with a frame for the row ids; say so.

    An index of several columns is left out, and one where there are row ids.
    """
    named = {name for _, name in options.columns()}
    free = [name for name in names if name not in named.union(options.ignore)]
    if not free:
        return options, {}
    if len(names) == 1 and options.row_ids is None and "row_ids" not in side.columns:
        return replace(options, row_ids=names[0]), {"row_ids": "the index that pandas saved"}
    left_out = ", ".join(map(repr, free))
    ignore = (*options.ignore, *free)
    return replace(options, ignore=ignore), {"index": f"{left_out}, saved by pandas, left out"}


def _fingerprint(path: Path) -> dict[str, int]:
    crc32 = nbytes = 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(1 << 18):
            crc32, nbytes = zlib.crc32(data, crc32), nbytes + len(data)
    return {"nbytes": nbytes, "crc32": crc32}
