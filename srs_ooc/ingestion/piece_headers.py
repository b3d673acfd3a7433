"""The headers of the pieces of a table: which options each takes, and whether they fit together."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.choosing import open_reading
from srs_ooc.ingestion.forced_kinds import ForcedKinds
from srs_ooc.ingestion.options import IngestOptions, SideColumns
from srs_ooc.ingestion.reading import Workplace
from srs_ooc.ingestion.roles import choose_roles
from srs_ooc.ingestion.scratch import TextSpool, texts_of


@dataclass(frozen=True)
class Header:
    """What the header of a piece says.

    Attributes
    ----------
    table : Path
        The piece.
    options : IngestOptions
        Of the whole, as far as the piece has what they name.
    n_features : int
        Its features.
    """

    table: Path
    options: IngestOptions
    n_features: int


def headers_of(tables: list[Path], options: IngestOptions, folder: Path) -> list[Header]:
    """Read the headers of all pieces; those after the first need not have what it has.

    Parameters
    ----------
    tables : list of Path
        The pieces.
    options : IngestOptions
        Of the whole.
    folder : Path
        Where there is room for the names meanwhile.

    Raises
    ------
    InputError
        If one cannot be read, the first lacks a column that is named, or a feature is in two.
    """
    with _emptied(folder / "names") as scratch, TextSpool(scratch, "names") as names:
        headers = []
        for i, table in enumerate(tables):
            its_own = options if i == 0 else _options_of(table, options, folder)
            with _read(table, its_own, folder) as (header, found):
                roles = choose_roles(table, header, found, has_target=not found.no_target)
                _append(names, header, roles.special)
            headers.append(Header(table, its_own, roles.n_features))
        _check_distinct(names, headers)
    return headers


def _append(names: TextSpool, header: TextSpool, special: frozenset[int]) -> None:
    for blob, ends in header.blocks(special):
        starts = [0, *ends.tolist()]
        pieces = [blob[start:end] for start, end in pairwise(starts)]
        names.append(texts_of(piece.decode("utf-8", "surrogateescape") for piece in pieces))


def _check_distinct(names: TextSpool, headers: list[Header]) -> None:
    pairs = names.duplicates()
    if not pairs:
        return
    last = np.cumsum([header.n_features for header in headers])
    found = "; ".join(
        f"{names.describe(first)} in "
        + " and ".join(str(headers[int(np.searchsorted(last, i, "right"))].table) for i in pair)
        for pair in pairs
        for first in pair[:1]
    )
    raise InputError(
        f"expected pieces with other features each, found {found}. Rename them. If the pieces are "
        "rows of one table, join them under one header, which standard input takes: "
        "(cat A; tail -q -n +2 B C) | srs-ooc ingest - STORE"
    )


def _options_of(table: Path, options: IngestOptions, folder: Path) -> IngestOptions:
    """Return options without the columns that a piece has not."""
    bare = replace(
        options, target=None, row_ids=None, weights=None, groups=None, strata=(), ignore=(),
        kinds=ForcedKinds(), no_target=True,
    )  # fmt: skip
    with _read(table, bare, folder) as (header, _):
        return _those_in(header, options)


def _those_in(header: TextSpool, options: IngestOptions) -> IngestOptions:
    def there(name: str | None) -> str | None:
        return name if name is not None and header.find(name) is not None else None

    target = there(options.target)
    return replace(
        options,
        target=target,
        no_target=target is None,
        row_ids=there(options.row_ids),
        weights=there(options.weights),
        groups=there(options.groups),
        strata=options.strata if all(map(there, options.strata)) else (),
        ignore=tuple(name for name in options.ignore if there(name) is not None),
        kinds=ForcedKinds(tuple(p for p in options.kinds.given if there(p[0]) is not None)),
    )


@contextlib.contextmanager
def _read(
    table: Path, options: IngestOptions, folder: Path
) -> Iterator[tuple[TextSpool, IngestOptions]]:
    """Yield the names of a table's columns, and the options as the table settles them."""
    with _emptied(folder / "header") as scratch, contextlib.ExitStack() as stack:
        work = Workplace(scratch, stack, lambda stage, done, total: None)
        work.scratch.mkdir()
        reading = open_reading(table, options, SideColumns(), work)
        header = stack.enter_context(TextSpool(work.scratch, "header"))
        reading.read_names(header)
        yield header, reading.options


@contextlib.contextmanager
def _emptied(folder: Path) -> Iterator[Path]:
    """Yield an empty folder, which goes after the block."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
