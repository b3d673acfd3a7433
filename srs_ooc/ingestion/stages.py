"""One table to a store: the stages, and what they would take.

One pipeline serves all formats: roles, read, code, write, publish.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

from srs_ooc.base.arrays import Bytes
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError, UsageError, unfit
from srs_ooc.base.files import crc_of, published_folder
from srs_ooc.base.options import names_in, path_given
from srs_ooc.base.text import MB, counted, describe_nbytes
from srs_ooc.ingestion import ingest_memory, ingest_options, sources
from srs_ooc.ingestion.csv import TextForm, estimate, rows_at_most
from srs_ooc.ingestion.formats import Format, Items, Names, Table
from srs_ooc.ingestion.formats.genotypes import RAW, in_role, is_plink
from srs_ooc.ingestion.formats.in_memory import memory_of, open_object, text_of
from srs_ooc.ingestion.ingest_options import FREE, IngestOptions, Roles
from srs_ooc.ingestion.reading import Origin, Reading, TableReading, TextReading, WorkFolder
from srs_ooc.ingestion.rows import RowColumns
from srs_ooc.ingestion.scratch import TextSpool, disk_errors, disk_of
from srs_ooc.ingestion.sources import WHOLE_NBYTES, SourceFile, check_unchanged, place_in
from srs_ooc.ingestion.writer import CodedTable, FeatureKinds, write_store
from srs_ooc.store.arrays import write_column
from srs_ooc.store.bed import BedFile
from srs_ooc.store.manifest import LAST_COLUMN, NO_TARGET, Manifest, Shape

# Which reading a table gets: by rows or by columns, by its format.

_ZERO = (
    " Of phenotypes that are 0 and 1, 0 is missing: `plink2 --1 --make-bed` makes 1 and 2 of them."
)


def open_reading(table: Any, options: IngestOptions, work: WorkFolder) -> Reading:
    """Open a file or an object in memory.

    Raises
    ------
    InputError
        If it is of no format that is known, or is a text table with columns beside it.
    UsageError
        If options of text tables are given for another.
    """
    if isinstance(table, str | Path):
        return _open_file(path_given(table, "the table"), options, work)
    _check_takes("the table", options, ())
    _check_no_text_form("the table", options)
    as_texts = {name for name, kind in options.kinds.given if kind == "categorical"}
    opened = open_object(table, as_texts)
    options = _with_own(opened, "the table", options, work)
    return TableReading(opened, "the table", options, work, dict)


def _read_as(known: Format, why: str, options: IngestOptions, table: Table | None) -> str:
    """Return what a file is taken for, and by what; no table: for text."""
    if table is None:
        what, names = ("feature", "column") if options.samples else ("row", "line")
        names = f"names: its first {names}" if options.text.header else "names: f0, f1, ..."
        names, by = ("names: its own", f"by its {why}") if why else (names, "as it is nothing else")
        return f"read as: {known.name}, {by}; a line holds a {what}; {names}"
    names = "f0, f1, ..." if table.names is None else "its own"
    ids, beside = table.default_ids or "none", ", ".join([*table.annotations][:9]) or "nothing"
    said = f"{table.format}; names: {names}; row ids: {ids}; beside the rows: {beside}"
    return f"read as: {why and f'{known.name}, by its {why}; '}{table.said or said}"


def _open_file(path: Path, options: IngestOptions, work: WorkFolder) -> Reading:
    from srs_ooc.ingestion.formats.files import known_of, opener_of

    file, inner = place_in(path)
    known = known_of(file, inner)
    if remark := known[0].belied(file.name, known[2]):
        work.inferred["named"] = remark
    if (opener := opener_of(path, options.query, known)) is None:
        if options.has_items:
            raise InputError(
                f"{path}: a text table holds its names, target and row ids itself. Name their "
                "columns, or give them apart only for arrays."
            )
        _check_takes(path, options, ())
        text = sources.settle_source(path, work.scratch)
        if not options.samples:
            return TextReading(text, options, work)
        from srs_ooc.ingestion.feature_rows import RawReading, begins_as, open_feature_rows

        return (RawReading if begins_as(RAW, text.path) else open_feature_rows)(text, options, work)
    if not options.samples or not options.text.header:
        _check_no_text_form(path, options)
    source = SourceFile(file, str(path), f"{file.name}::{inner}" if inner else file.name)
    opened = opener(work.scratch, options)
    work.callback(opened.close)
    _check_takes(path, options, opened.takes)
    if opened.said:
        work.inferred["read_as"] = opened.said
    options = _with_own(opened, path, options, work)
    if missing := options.text.missing:  # in the table of samples; in the file those that are empty
        options = replace(options, text=replace(options.text, missing=(*missing, "")))
    return TableReading(opened, source, options, work, _origin_of(source, work))


def _with_own(
    table: Table, path: object, options: IngestOptions, work: WorkFolder
) -> IngestOptions:
    """Take what a table, or a table of samples, says of rows; errors as of the functions below."""
    names, named = table.index_names, {name for _, name in options.columns()}
    free = [name for name in names if name not in named.union(options.ignore)]
    if free and len(names) == 1 and options.row_ids is None and "row_ids" not in options.beside:
        work.inferred["row_ids"] = "the index that pandas saved"
        options = replace(options, row_ids=free[0])
    elif free:  # an index of several columns, or one where there are row ids
        options = replace(options, ignore=(*options.ignore, *free))
        work.inferred["index"] = f"{', '.join(map(repr, free))}, saved by pandas, left out"
    if options.samples:
        options = _with_samples(table, path, options, work)
    return _with_annotations(table, path, options, work) if table.annotations else options


def _with_samples(
    table: Table, path: object, options: IngestOptions, work: WorkFolder
) -> IngestOptions:
    """Take the columns that options name from a sample table, by the row ids of the file.

    These may be a column of it, such as the index that pandas saved. Columns that the sample table
    lacks may be of the file.

    Raises
    ------
    InputError
        If the file has no row ids, or none of them is in the sample table.
    UsageError
        If options are given that leave no room for these.
    """
    from srs_ooc.ingestion import feature_rows

    own, known = options.row_ids, table.annotations
    names = list(table.names or ()) if own and own not in known else []
    is_own = own and (table.default_ids or own not in {*names, *known})
    if is_own or options.sample_features:
        raise UsageError(
            f"{path}: expected no --row-ids or --sample-features beside --samples: row ids are the "
            "file's own, features too. Leave the option out."
        )
    if (ids_name := own or table.default_ids) is None:
        expected = "row ids, by which --samples is joined"
        remedy = "Put the rows of the sample table in order, and name it with --target-file."
        raise unfit(path, expected, "a format or file with none", remedy)
    in_table = feature_rows.sample_columns(options)
    in_file = [name for name in known if name not in in_table]
    if names:  # a column of it, which is no feature then, nor are those of the sample table
        blocks = table.items(names.index(ids_name))
        items: Sequence[Any] = [text_of(one) for block in blocks for one in block]
        left_out = (*options.ignore, ids_name, *({*names} & {*in_table}))
        options = replace(options, ignore=left_out)
    else:
        items = known[ids_name]
    asked = replace(options, row_ids=None).without_columns(in_file)
    if table.held is not None:
        lease = feature_rows.samples_lease(asked, len(items), sum(len(str(one)) for one in items))
        table.held = (*table.held, lease)
        memory_of(table, options).check(path)
    ids = list(map(str, items))
    found = feature_rows.read_samples(asked, ids, f"{path}: expected row ids", work.inferred)
    columns: dict[str, Any] = {"row_ids": [(str(options.id_name), ids)]}
    plink = work.inferred if is_plink({"format": table.format}) else None
    for what, name, cells in feature_rows.columns_of(asked, found, ids, plink):
        columns.setdefault(what, []).append((name, cells))
    return replace(options.without_columns(in_table), row_ids=None, beside=columns)


def _origin_of(source: SourceFile, work: WorkFolder) -> Origin:
    """Return what tells name, size and checksum of a file, which is read beside the work.

    Of a folder it tells the name alone.
    """
    if not source.path.is_file():
        return lambda: {"name": source.name}
    has_ended = Event()

    def read() -> dict[str, Any]:
        with source.path.open("rb", buffering=0) as file:
            pieces = SimpleNamespace(read=lambda n: b"" if has_ended.is_set() else file.read(n))
            crc32, nbytes = crc_of(pieces)
        return {"name": source.name, "nbytes": nbytes, "crc32": crc32}

    reader = work.enter_context(ThreadPoolExecutor(1))
    work.callback(has_ended.set)
    return reader.submit(read).result


def _check_takes(path: object, options: IngestOptions, takes: Sequence[str]) -> None:
    """Refuse options that other formats take."""
    for name in ("names_from", "feature_type"):
        if getattr(options, name) is not None and name not in takes:
            raise UsageError(
                f"{path}: expected {options.flag_of(name)} of a file that says several names or "
                "types of its features, such as 10x, found another. Leave it out."
            )


def _check_no_text_form(table: object, options: IngestOptions) -> None:
    if options.text != TextForm():
        raise UsageError(
            f"{table}: expected --separator, --comment, --decimal, --missing and "
            "--no-header only for text tables, found one of them. Leave it out."
        )


def _with_annotations(
    table: Table, path: object, options: IngestOptions, work: WorkFolder
) -> IngestOptions:
    """Take columns that options name from what a file says of its rows, and its own defaults.

    ``groups`` may be several, by whose combinations rows are grouped.

    Raises
    ------
    InputError
        If no target is named, and the file has none, or a column is not there.
    """
    known, inferred = dict(table.annotations), work.inferred
    options, of_plink = options.with_targets(known), is_plink({"format": table.format})

    def column(what: str, name: str) -> Any:
        cells, role = known[name], (what, name)
        return in_role(options, role, cells, known["id"], inferred) if of_plink else cells

    names = names_in(options.groups) if options.groups and options.groups not in known else ()
    if names and known.keys() >= set(names):
        parts = [column("groups", name) for name in names]
        known[str(options.groups)] = Items(len(parts[0]), partial(_combined, parts))
    columns = {what: list(given) for what, given in options.beside.items()}
    for what, name in options.columns():
        if name in known:
            columns.setdefault(what, []).append((name, column(what, name)))
        elif options.names is None and table.names is not None and name not in table.names:
            raise InputError(
                f"{path}: no such column {name!r} ({options.flag_of(what)}); expected a feature, "
                f"or one of {', '.join(map(repr, known))}."
            )
    named = [name for _, name in options.columns()]
    ids = None if options.aggregate else table.default_ids  # those of the groups
    for what, default in (("row_ids", ids), ("target", table.default_target)):
        is_free = what not in columns and getattr(options, what) is None
        is_free &= default not in named
        if default is not None and is_free and not (what == "target" and options.no_target):
            columns[what] = [(default, column(what, default))]
            if what == "row_ids" or len(known) > 1:
                inferred[what] = f"{default!r} of the file"
    taken = [one for given in columns.values() for _, one in given]
    if nbytes := sum(one.held_nbytes for one in taken if isinstance(one, Items)):
        table.held = (*(table.held or ()), Lease("texts of categories", nbytes))
    name, cells = columns.get("target", [("", ())])[0]
    is_whole = not of_plink or "target" in options.beside or len({*cells, None, ""}) > 3
    if not (is_whole or options.append_rows if name else options.target or options.no_target):
        others = ", ".join(other for other in known if other != name)
        found = f"{name!r}, in all rows {' or '.join([*({*cells} - {None, ''}), 'missing'])}"
        raise InputError(
            f"{path}: expected --target, as no column of this format is the last, found "
            f"{found if name else 'none'}. Name one of {others}, a feature, or a column of "
            f"--samples FILE --id NAME; or say --no-target.{_ZERO * of_plink}"
        )
    return replace(options.without_columns(known), beside=columns)


def _combined(columns: list[Sequence[Any]], part: slice) -> list[str | None]:
    """Return the combinations of some items; None where one of them is missing."""
    rows = zip(*(map(text_of, column[part]) for column in columns), strict=True)
    return [None if None in texts else ":".join(map(str, texts)) for texts in rows]


def ingest_table(
    table: Any,
    store: Path,
    options: IngestOptions | None = None,
    progress: ingest_options.ByteProgress | None = None,
) -> Manifest:
    """Turn a table into a store, which appears complete or not at all.

    Equal bytes and options make equal stores.

    Parameters
    ----------
    table : path or object
        A file of any format, ``-`` for text on standard input, or an object in memory.
    store : Path
        The store to make.
    options : IngestOptions, optional
        Defaults if not given.
    progress : callable, optional
        Told of the bytes read and written.

    Raises
    ------
    InputError
        If the table cannot be ingested as asked.
    StoreError
        If the store exists, or cannot be written.
    BudgetError
        If the memory cap cannot hold the work.
    """
    ingest_memory.load_libraries()
    options = options or IngestOptions()
    errors = disk_errors(store, replaces=options.overwrite)
    published = published_folder(store, replaces=options.overwrite)
    with errors, published as folder, WorkFolder(folder, progress) as work:
        return ingest_reading(open_reading(table, options, work), work)


def ingest_reading(reading: Reading, work: WorkFolder) -> Manifest:
    """Take a table through all stages but the last, which is to publish.

    Errors as of :func:`ingest_table`.
    """
    header = read_names(reading, work)
    options, table, inferred = reading.options, reading.table, work.inferred
    rows = RowColumns(work.scratch, reading.source, reading.where, options)
    if options.no_target:
        if options.target is not None or options.samples or "target" in options.beside:
            raise UsageError(
                "--no-target: expected a table with rows of samples and no target named, found a "
                "target, or --orient features. Leave one of the two out."
            )
        inferred["target"] = NO_TARGET
    roles = ingest_options.choose_roles(reading.source, header, options)
    if roles.target is not None and options.target is None:
        inferred["target"] = LAST_COLUMN
    memory = reading.share(roles)
    link = _file_to_link(reading, roles) if options.link else None
    reading.read_rows(roles, rows)
    check_unchanged(reading.source)
    rows.settle()
    columns, fits_float32, kinds, held = reading.features(rows.kept)
    shape = Shape(rows.kept.n_rows, roles.n_features)
    if options.aggregate is not None and kinds.is_text.any():
        feature = int(roles.stored_columns()[kinds.is_text.argmax()])
        where = f"{reading.source}, column {header.describe(feature)}"
        remedy = "Leave it out with --ignore, or keep it as one of --covariates."
        raise unfit(where, "numbers to aggregate", "texts", remedy)
    lines = _lines_of(reading, kinds)
    form = options.form("float32" if fits_float32 and not options.aggregate else "float64")
    form = replace(form, values_codec="lz4" if table.values_nbytes is None else "zstd")
    batch, n_threads = memory.writing(shape, form, held, columns.n_rows, options.most_threads)
    first = options.first_feature
    features = CodedTable(columns, form, kinds, first_feature=first, link=link, lines=lines)
    said = (cells for at, cells in enumerate(table.feature_cells()) if at not in roles.special)
    inferred |= rows.facts.inferred
    known: dict[str, Any] = {"feature_columns": (*table.feature_columns,), "feature_cells": said}
    with reading.naming_the_cap():
        manifest = write_store(
            work.folder,
            features,
            replace(rows.facts, inferred=inferred, source=reading.origin(), **known),
            header.blocks(roles.special),
            batch_features=batch,
            n_threads=n_threads,
            progress=work.tell,
        )
    for further in rows.further:
        write_column(work.folder, manifest.fingerprint, "target", further)
    check_unchanged(reading.source)
    return manifest


def read_names(reading: Reading, work: WorkFolder) -> TextSpool:
    """Return the names of the columns of a table.

    Raises
    ------
    InputError
        If some are the same, and are not to be renamed.
    """
    header = TextSpool(work.scratch, "header")
    reading.read_names(header)
    if reading.options.rename_repeated and (n := len(header) - len({*header})):
        header.rewrite(Names.numbered(header))
        work.inferred["renamed"] = f"{counted(n, 'column')} of repeated names, to NAME-1, ..."
    remedy = "Rename them, as --rename-repeated of ingest does."
    ingest_options.check_distinct(reading.source, header, "column names", remedy)
    return header


def _file_to_link(reading: Reading, roles: Roles) -> BedFile:
    """Return the file whose codes and values are to be left where they are.

    Raises
    ------
    UsageError
        If the table is no ``.bed`` file, or options change what its columns are.
    """
    if (bed := reading.table.genotypes) is None:
        raise UsageError(
            f"--link: expected a .bed file of PLINK 1, found {reading.source}. Leave it out, or "
            "make one with `plink2 --make-bed`."
        )
    options = reading.options
    plain = options.code_dtype == "uint8" and options.keep_values and options.aggregate is None
    if not plain or len(roles.special) or (roles.forced != FREE).any():
        raise UsageError(
            "--link: expected all variants as they are in the file, found --ignore, --kind, "
            "--aggregate, --code-dtype, --no-values, or a variant as target or the like. Leave it "
            "out, or --link."
        )
    return bed


def _lines_of(reading: Reading, kinds: FeatureKinds) -> Callable[[int, int], Bytes] | None:
    """Return what reads variants of a ``.bed`` file as they are; None where values have to be read.

    That is also where codes take bytes.

    Raises
    ------
    UsageError
        If options make more of the values than two bits hold.
    """
    options = reading.options
    if options.code_dtype != "2bit":
        return None
    plain = options.keep_values and options.aggregate is None and not kinds.is_text.any()
    if not plain or (kinds.forced != FREE).any():
        raise UsageError(
            "--code-dtype 2bit: expected numbers kept as they are, found texts, --kind, "
            "--aggregate or --no-values. Leave it out, or these."
        )
    bed = reading.table.genotypes
    if bed is None or kinds.kept.mask is not None or not isinstance(reading, TableReading):
        return None
    return lambda start, stop: bed.lines(reading.places(start, stop))


# What an ingest would take, found without writing a store: rows, disk, memory.


def forecast(table: Path, store: Path, options: IngestOptions) -> Iterator[str]:
    """Yield lines on what ingesting a file would take.

    Rows, and what follows from them, are estimated of text: the lines say ``about``. The last line
    names the smallest cap.

    Raises
    ------
    UsageError
        If the table is standard input, which can be read but once, or is to be appended.
    InputError
        If the table cannot be read.
    BudgetError
        If the cap cannot hold a look at the table; it names the one that an ingest takes.
    """
    if str(table) == "-":
        raise UsageError("--dry-run: expected a file, found standard input. Save it first.")
    if options.append_rows or options.append_features:
        raise UsageError(
            "--dry-run: expected a table by itself, found --append-rows or --append-features. "
            "Leave it out: a cap that is too small is refused before the work."
        )
    from srs_ooc.ingestion.formats.files import known_of, opener_of

    ingest_memory.load_libraries()
    unpacked, text_nbytes, opened = 0, None, Table()
    with tempfile.TemporaryDirectory() as folder, WorkFolder(Path(folder)) as work:
        known, why, packing = known_of(*place_in(table))
        opener = opener_of(table, options.query, (known, why, packing))
        about, said = "about " if opener is None else "", list[str]()
        if opener is None:
            n_columns, n_rows, text_nbytes, memory = _look_at_text(table, options, work, said)
            yield _read_as(known, why, options, None)
        else:
            opened = opener(work.scratch, options)
            work.callback(opened.close)
            yield _read_as(known, why, options, opened)
            memory = memory_of(opened, options)
            _check_takes(table, options, opened.takes)
            unpacked = sum(file.stat().st_size for file in work.scratch.iterdir())
            n_rows, n_columns = opened.shape
            yield from _said_of(opened)
            if memory.fits:  # else an ingest refuses no more than the cap
                read_names(TableReading(opened, table, options, work, dict), work)
    is_turned = opener is None and bool(options.samples)  # a line is a feature
    wide = (n_columns - 1, n_rows) if is_turned else (n_rows, n_columns)
    shape, nbytes = Shape(*(max(1, n) for n in wide)), text_nbytes or opened.values_nbytes
    how = partial(disk_of, by_rows=opener is None or opened.by_rows, text_nbytes=nbytes)
    scratch, stored = how(shape, memory.form, cell_nbytes=memory.cell_nbytes)
    if options.link:  # names, ids and counts
        stored = 100 * sum((n_rows, n_columns))
    scratch, free = scratch + unpacked + opened.scratch_nbytes, shutil.disk_usage(store.parent).free
    taken, room = scratch + stored, shutil.disk_usage(tempfile.gettempdir()).free
    if memory.fits and taken <= room and (text_nbytes or taken // 8) <= WHOLE_NBYTES:
        with tempfile.TemporaryDirectory() as folder:
            ingest_table(table, Path(folder) / "tried.zarr", options)
    elif text_nbytes is None:
        said.append("looked at: names and shape, not the cells")
    if remark := known.belied(place_in(table)[0].name, packing):
        yield f"note: {remark}"
    yield from (f"columns: {n_columns}", f"rows: {about}{n_rows}", *said)
    yield f"scratch disk: {about}{describe_nbytes(scratch)}, given back"
    codes = memory.form.code_nbytes * shape.n_rows * shape.n_features
    parts = f": codes {describe_nbytes(codes)}, values {describe_nbytes(stored - codes)}"
    yield f"store: at most {about}{describe_nbytes(stored)}{parts * bool(opened.scratch_nbytes)}"
    yield f"free disk: {describe_nbytes(free)}, {'NOT ' * (taken > free)}enough"
    given, negated = memory.cap_nbytes // MB, "" if memory.fits else "NOT "
    yield f"memory: --memory-mb {memory.least_mb} or more; {given} is {negated}enough"


def _said_of(table: Table) -> Iterator[str]:
    """Yield what a text says of its rows by columns: how many different values, the first ones."""
    for name, cells in table.annotations.items():
        if isinstance(cells, list):  # held in memory
            values = [*dict.fromkeys(one for one in cells if one is not None)]
            said = f"{counted(len(values), 'value')}, {cells.count(None)} missing"
            yield f"beside: {name!r}, {said}: {', '.join(map(repr, values[:3]))[:120]}"


def _look_at_text(
    table: Path, options: IngestOptions, work: WorkFolder, said: list[str]
) -> tuple[int, int, int, ingest_memory.IngestMemory]:
    """Return columns, rows and bytes of a text table, about, and what its ingest takes.

    What its columns are is ``said`` in lines.
    """
    source = SourceFile(table)
    if options.samples:
        from srs_ooc.ingestion.feature_rows import feature_memory, open_stream

        header = TextSpool(work.scratch, "header")
        open_stream(source, options.text, header)
        memory = feature_memory(source, header, options)
        return len(header), *estimate(source, options.text, len(header)), memory
    reading = TextReading(source, options, work)
    header = read_names(reading, work)
    roles = ingest_options.choose_roles(source, header, reading.options)
    memory = reading.memory(roles)
    n_rows, text_nbytes = estimate(source, options.text, len(header))
    if memory.n_rows == rows_at_most(source, len(header)) and memory.depends_on_rows:
        # the cap is enough for as many as there can be
        memory = replace(memory, n_rows=max(1, n_rows))
    for what in dict(roles.named):
        columns = [header.describe(column) for role, column in roles.named if role == what]
        last = ", the last column" * (what == "target" and reading.options.target is None)
        said.append(f"{what.replace('_', ' ')}: {', '.join(columns)}{last}")
    said.extend(reading.look(roles, n_rows, text_nbytes))
    return len(header), n_rows, text_nbytes, memory
