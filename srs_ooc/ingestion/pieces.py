"""A table in pieces of columns: each coded by itself, here or by workers, into one store.

Pieces that are done lie beside the store until all of them are; after a kill the same command does
those that are missing.
"""

import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import InputError, StoreError, UsageError
from srs_ooc.base.files import published_folder, try_lock
from srs_ooc.ingestion.contents import ByteProgress
from srs_ooc.ingestion.disk import check_replaceable, disk_errors
from srs_ooc.ingestion.memory import load_libraries, release
from srs_ooc.ingestion.merging import Merging
from srs_ooc.ingestion.options import IngestOptions
from srs_ooc.ingestion.piece_headers import Header, headers_of
from srs_ooc.ingestion.pipeline import ingest_table
from srs_ooc.store.manifest import Manifest
from srs_ooc.store.store import Store

LOCK, IDENTITY, FINISHED = "lock", "identity", "finished"
"""Files in the folder of the pieces; the last one says that the store is there, and they can go."""


@dataclass(frozen=True)
class Piece:
    """A piece of a table to be coded: a file, the store it becomes, and how."""

    table: Path
    store: Path
    options: IngestOptions


Workers = Callable[[Callable[[Piece], str], list[Piece]], Iterable[str]]
"""Has pieces done in any order, and yields as they are; as ``map`` does one after another."""


def do_piece(piece: Piece) -> str:
    """Code a piece, unless it is there; return its fingerprint.

    Raises
    ------
    InputError, StoreError, BudgetError
        As of :func:`srs_ooc.ingestion.pipeline.ingest_table`.
    """
    if piece.store.exists():
        return Store.open(piece.store).fingerprint
    release()
    with growth_counted():  # a worker holds what is none of an ingest's
        return ingest_table(piece.table, piece.store, piece.options).fingerprint


def do_here(piece: Piece) -> str:
    """Code a piece in this process, unless it is there; errors as of :func:`do_piece`."""
    if piece.store.exists():
        return Store.open(piece.store).fingerprint
    made = ingest_table(piece.table, piece.store, piece.options).fingerprint
    release()
    return made


def ingest_pieces(
    tables: list[Path],
    store: Path,
    options: IngestOptions,
    progress: ByteProgress | None = None,
    *,
    workers: Workers | None = None,
) -> Manifest:
    """Turn a table in pieces of columns into one store, which appears complete or not at all.

    All that the store holds is what one ingest of the joined table gives; its fingerprint differs,
    since it says what it was made of, and depends on the pieces and options alone.

    Parameters
    ----------
    tables : list of Path
        Files with the same rows in the same order; the first one has the target. Others are
        compared where they have it, row ids, weights, strata or groups as well.
    store : Path
        The store to make.
    options : IngestOptions
        As for a single table; each process is under the memory cap.
    progress : callable, optional
        Told of the pieces done, and of the bytes merged.
    workers : callable, optional
        Has the pieces done elsewhere: on machines that have all paths.

    Raises
    ------
    InputError
        If the pieces do not fit together.
    StoreError
        If the store cannot be written, or pieces of something else lie there.
    UsageError
        If options are given that pieces cannot have.
    """
    load_libraries()
    tell = progress or (lambda stage, done, total: None)
    _check_options(options)
    if options.overwrite:
        check_replaceable(store)
    with disk_errors(store), _work_folder(store, tables, options) as folder:
        pieces = list(_pieces(headers_of(tables, options, folder), folder))
        each = map(do_here, pieces) if workers is None else workers(do_piece, pieces)
        sizes = [table.stat().st_size for table in tables]
        for done, _ in enumerate(each):  # in any order, so about
            tell("pieces", sum(sizes[: done + 1]), sum(sizes))
        stores = [Store.open(piece.store) for piece in pieces]
        _check_rows(stores, tables)
        with published_folder(store, replaces=options.overwrite) as made:
            source = _source_of(tables, stores)
            manifest = Merging(made, stores, options.memory_nbytes, tell).write(source)
        (folder / IDENTITY).replace(folder / FINISHED)
        with suppress(OSError):
            _clear(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return manifest


def _check_options(options: IngestOptions) -> None:
    if options.samples is not None:
        raise UsageError(
            "--orient features: expected one table, found pieces. Join their lines under one "
            "header, which standard input takes: (cat A; tail -q -n +2 B C) | srs-ooc ingest - "
            "STORE"
        )
    if options.target is None and not options.no_target:
        raise UsageError(
            "expected --target NAME, or --no-target, with a table in pieces, found neither: the "
            "last column of each piece is another. Name the target's column in the first piece."
        )
    if options.kinds.file is not None:
        raise UsageError(
            "--kinds: expected one table, found pieces. Name kinds by --kind NAME=KIND, or give "
            "one table."
        )


def _pieces(headers: list[Header], folder: Path) -> Iterator[Piece]:
    first = 0
    for number, header in enumerate(headers):
        options = replace(header.options, first_feature=first, overwrite=False)
        yield Piece(header.table.absolute(), folder.absolute() / f"{number:06}.zarr", options)
        first += header.n_features


@contextmanager
def _work_folder(store: Path, tables: list[Path], options: IngestOptions) -> Iterator[Path]:
    """Yield the folder of the pieces beside the store, held by this process alone."""
    if store.exists() and not options.overwrite:
        raise FileExistsError(f"{store} exists")
    folder = store.with_name(f"{store.name}.pieces")
    folder.mkdir(exist_ok=True)
    lock = try_lock(folder / LOCK)
    if lock is None:
        raise StoreError(
            f"{folder}: another process is doing the pieces of this store. Wait for it, or choose "
            "another path."
        )
    with ExitStack() as stack:
        stack.callback(os.close, lock)
        _check_same(folder, _identity(tables, options))
        yield folder


def _clear(folder: Path) -> None:
    """Remove pieces that are no longer needed, and last what says so: kills leave it to be done."""
    for path in folder.iterdir():
        if path.name not in (LOCK, FINISHED):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / FINISHED).unlink()


def _check_same(folder: Path, identity: str) -> None:
    if (folder / FINISHED).exists():
        _clear(folder)
    noted, partial = folder / IDENTITY, folder / f"{IDENTITY}.partial"
    if not noted.exists():
        if any(path.name not in (LOCK, partial.name) for path in folder.iterdir()):
            raise StoreError(
                f"{folder}: expected a free path for the pieces, found files of somebody else's. "
                "Move them away, or choose another store."
            )
        partial.write_text(identity, encoding="ascii")
        partial.replace(noted)
    elif noted.read_text(encoding="ascii") != identity:
        raise StoreError(
            f"{folder}: expected pieces of these tables with these options, found those of others, "
            "or a table was written to since. Repeat the command that began them, or remove the "
            "folder to begin again."
        )


def _identity(tables: list[Path], options: IngestOptions) -> str:
    """Return a digest of what decides what the pieces become."""
    stats = [(str(table.absolute()), table.stat()) for table in tables]
    files = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
    said = repr(replace(options, memory_nbytes=0, overwrite=False))
    return hashlib.sha256(json.dumps([files, said]).encode()).hexdigest()


def _check_rows(stores: list[Store], tables: list[Path]) -> None:
    """Refuse pieces whose rows are not those of the first, as far as they say."""
    one = stores[0].manifest
    for store, table in zip(stores[1:], tables[1:], strict=True):
        other = store.manifest
        if other.n_rows != one.n_rows:
            dropped = one.n_dropped_rows
            why = f" (after {dropped} rows without a target were left out)" if dropped else ""
            raise InputError(
                f"{table}: expected the {one.n_rows} rows of {tables[0]}{why}, found "
                f"{other.n_rows}. All pieces have the same rows in the same order; where rows lack "
                "a target, leave them out of all pieces, or have the target in each."
            )
        wanted = ["row_ids"] if one.row_id_name and other.row_id_name else []
        wanted += [what for what in one.row_columns if what in other.row_columns]
        named = other.target_name == one.target_name and other.task == one.task
        if named and "target" not in other.inferred:
            wanted.append("target" if one.task == "classification" else "target_values")
        for what in wanted:
            file = f"{what}_bytes/c/0" if what == "row_ids" else f"{what}/c/0"
            if one.checksums[file] != other.checksums[file] or one.classes != other.classes:
                raise InputError(
                    f"{table}: expected the {what.replace('_', ' ')} of {tables[0]}, found others. "
                    "All pieces have the same rows in the same order: sort them alike."
                )


def _source_of(tables: list[Path], stores: list[Store]) -> dict[str, Any]:
    more = f" and {len(tables) - 1} more" if len(tables) > 1 else ""
    crc = 0
    for store in stores:
        crc = zlib.crc32(json.dumps(store.manifest.source, sort_keys=True).encode(), crc)
    nbytes = sum(int(store.manifest.source.get("nbytes", 0)) for store in stores)
    return {"name": tables[0].name + more, "pieces": len(tables), "nbytes": nbytes, "crc32": crc}
