"""What a query of an SQLite or DuckDB database gives, copied into a scratch file by columns.

Three columns are a long table: row id, feature, value. More are a wide one: row ids, then a column
for each feature. The connection can read and nothing else, whatever the query says.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from decimal import Decimal
from functools import partial
from itertools import chain, pairwise
from operator import ne
from sys import getsizeof
from types import NoneType
from typing import Any, BinaryIO

import numpy as np

from srs_ooc.base.arrays import Bools, Floats, Indices
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import SrsOocError, UsageError, unfit
from srs_ooc.base.text import MB
from srs_ooc.ingestion.formats import Table, TextCoder, bounded, in_memory, reading
from srs_ooc.ingestion.formats.files import File
from srs_ooc.ingestion.ingest_memory import CATEGORY_NBYTES, PIECE_NBYTES
from srs_ooc.ingestion.scratch import TextSpool, texts_of

_LIMIT = "100MB"  # DuckDB's own, of what it sorts and caches
_TAKES = {"SQLite": (2 * MB, 24 * MB), "DuckDB": (72 * MB, 200 * MB)}  # loaded; while it answers
_ROW_NBYTES, _AT_ONCE = 300, 100  # columns of a wide table: DuckDB holds a block of each
_FETCHED = 64  # rows: their texts may be of any length
_NUMBERS = {int, float, bool, Decimal, NoneType}
_IDS_FIRST = "Name the ids of rows first; a long table has three: row id, feature, value."
_ALLOWED = {
    getattr(sqlite3, f"SQLITE_{one}") for one in ("SELECT", "READ", "FUNCTION", "RECURSIVE")
}

Ask = Callable[..., Iterator[list[tuple[Any, ...]]]]
"""``ask(names, order, distinct)`` yields blocks of cells of some columns, each column a tuple.

With ``about`` it yields what such terms are of all rows, the columns being c0, c1, ..."""
_NBYTES = {"SQLite": "length(cast({} as blob))", "DuckDB": "strlen(cast({} as varchar))"}
_TEXTS = ("TEXT", "VARCHAR", "ENUM")  # the types of texts begin so


def _sqlite(file: File) -> Any:
    uri, folder = f"{file.path.absolute().as_uri()}?mode=ro", str(file.scratch).replace("'", "''")
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute(f"pragma temp_store_directory = '{folder}'")
    connection.execute("begin")  # what others write meanwhile is not seen
    connection.set_authorizer(lambda action, *_: int(action not in _ALLOWED))
    return connection


def _duckdb(file: File) -> Any:
    off = ("enable_external_access", "autoload_known_extensions", "python_enable_replacements")
    room = {"memory_limit": _LIMIT, "temp_directory": str(file.scratch / "duckdb"), "threads": 1}
    config = {**dict.fromkeys(off, False), **room, "lock_configuration": True}
    return file.library().connect(str(file), read_only=True, config=config)


@contextmanager
def _asked(file: File, query: str) -> Iterator[tuple[list[Any], Ask]]:
    """Yield names and types of a query's columns, and what asks for their cells."""
    is_sqlite = file.format.name == "SQLite"
    source = f"from ({query.strip().rstrip(';')}\n)"
    binary = " collate binary" * is_sqlite
    remedy, passed = "Mend the query, or get the file again.", (SrsOocError, OSError)
    expected = "a database, and one query that only reads it"
    opens = _sqlite if is_sqlite else _duckdb
    with (
        reading(file, expected, remedy, found="found", passed=passed),
        closing(opens(file)) as database,
        ThreadPoolExecutor(1) as worker,
    ):

        def done(call: Callable[..., Any], *arguments: Any) -> Any:
            """Call in the other thread: no signal is heeded where the database works."""
            future = worker.submit(call, *arguments)
            try:
                return future.result()
            except BaseException:
                while not future.done():  # it may not have begun to work
                    database.interrupt()
                    wait([future], 0.1)
                raise

        def ask(names: Sequence[str], order: str, distinct: str = "", about: str = "") -> Any:
            quoted = (name.replace('"', '""') for name in names)
            columns = ", ".join(f'"{one}"{binary} as c{i}' for i, one in enumerate(quoted))
            inner = f"select {distinct} {columns} {source}"
            of_all = f"select {about} from ({inner})"  # noqa: S608
            cursor = done(database.execute, of_all if about else f"{inner} order by {order}")
            rows = chain.from_iterable(iter(partial(done, cursor.fetchmany, _FETCHED), []))
            for some in bounded(rows, lambda row: sum(map(getsizeof, row)), PIECE_NBYTES):
                yield list(zip(*some, strict=True))

        yield done(database.execute, f"select * {source} limit 0").description, ask


class QueryTable(Table):
    """The result of a query: a ``Table`` by columns, those of a long table in order of their names.

    Raises
    ------
    InputError
        If the query does more than read, or its result is neither kind of table.
    UsageError
        If there is no query, or DuckDB is not installed.
    BudgetError
        If the cap cannot hold the database's work, the row ids, or the texts.
    StoreError
        If the disk has no room for the copy.
    """

    def __init__(self, file: File) -> None:
        engine, options = file.format.name, file.options
        if not isinstance(options.query, str):
            raise UsageError(
                f"{file}: expected --query, which says what is the table, found "
                f"{options.query!r:.60}. Say as in docs/databases.md."
            )
        self._what, self._scratch = str(file), file.scratch
        self._ids, self._is_text = list[Any](), dict[int, bool]()
        self.pool: TextCoder = TextCoder(max(CATEGORY_NBYTES, int(options.memory_mb * MB) // 4))
        with (
            _asked(file, options.query) as (described, ask),
            (file.scratch / "columns").open("wb") as copy,
        ):
            columns = [str(one[0]) for one in described]
            is_long = len(columns) == 3
            self._look(engine, columns, ask, is_long=is_long)
            file.check(self)
            for (ids,) in ask(columns[:1], "1", "distinct" * is_long):
                self._ids.extend(ids)
            self.default_ids, self.annotations = columns[0], {columns[0]: self._ids}
            if any(map(in_memory.is_missing, self._ids)) or len({*self._ids}) < len(self._ids):
                expected = f"distinct ids of rows in the first column, {columns[0]!r}"
                raise unfit(self._what, expected, "others", _IDS_FIRST)
            names = self._copy_long(columns, ask, copy) if is_long else columns[1:]
            self.names: Collection[str] = names
            self.shape = (len(self._ids), len(names))
            in_memory.check_shape(self.shape, self._what)
            if not is_long:
                file.scratch_file("columns", 8 * len(self._ids) * len(names))
            # some columns at a time, rows in the order of their ids
            for first in () if is_long else range(1, len(columns), _AT_ONCE):
                row, some = 0, columns[first : first + _AT_ONCE]
                for ids, *blocks in ask([columns[0], *some], "1"):
                    for at, (name, cells) in enumerate(zip(some, blocks, strict=True), first - 1):
                        copy.seek(8 * (at * len(self._ids) + row))
                        copy.write(self._coded(cells, [name] * len(ids), ids, row, at).data)
                    row += len(ids)
        self.format = f"{engine}, {'long' if is_long else 'wide'}: {options.query}"
        self.text_columns = np.array([self._is_text.get(at, False) for at in range(len(names))])
        self._types = [one[1] for one in described[1:]]

    def _look(self, engine: str, columns: list[str], ask: Ask, *, is_long: bool) -> None:
        """Ask how many rows and features there are, how long row ids, and whether any is text."""
        distinct, nbytes = "distinct" * is_long, _NBYTES[engine].format("c0")
        others = [] if is_long else [f"max(typeof(c{at}))" for at in range(1, len(columns))]
        about = ", ".join(["count(*)", f"coalesce(sum({nbytes}), 0)", *others])
        ((n_rows,), (n_bytes,), *kinds) = next(ask(columns[: len(others) + 1], "", distinct, about))
        n_features = (
            next(ask(columns[1:2], "", distinct, "count(*)"))[0][0] if is_long else len(kinds)
        )
        self.shape = (n_rows, n_features)
        holds = any(str(kind).upper().startswith(_TEXTS) for (kind,) in kinds)
        self.text_columns: Bools = np.array([holds])
        loaded, answering = _TAKES[engine]
        ids = Lease("row ids", _ROW_NBYTES * n_rows + int(n_bytes))
        self.held: tuple[Lease, ...] = (Lease(f"{engine}, loaded", loaded), ids)
        self.opening = (Lease(f"{engine} and its answers", answering), ids)

    def _copy_long(self, columns: list[str], ask: Ask, file: BinaryIO) -> TextSpool:
        """Write the features, each a line of the file; return their names."""
        places, n_rows = {one: row for row, one in enumerate(self._ids)}, len(self._ids)
        names, line, key = TextSpool(self._scratch, "names"), np.zeros(0), -1
        last: Any = object()
        for ids, features, values in ask(columns, "2, 1"):
            rows = np.fromiter((places[one] for one in ids), np.int64, len(ids))
            is_new = np.fromiter(map(ne, features, (last, *features)), np.bool_, len(features))
            keys = (len(names) - 1 + np.cumsum(is_new)) * n_rows + rows
            twice = np.flatnonzero(np.diff(keys, prepend=key) <= 0).tolist()
            if None in features or twice:
                found = (
                    f"{features[twice[0]]!r} twice in row {ids[twice[0]]!r}" if twice else "none"
                )
                remedy = "Take one of the values in the query, or their mean."
                raise unfit(self._what, "each feature, by its name, once in a row", found, remedy)
            cells = self._coded(values, features, ids, 0)
            bounds = [*np.flatnonzero(is_new).tolist(), len(ids)]
            line[rows[: bounds[0]]] = cells[: bounds[0]]  # of the feature before
            for start, stop in pairwise(bounds):
                file.write(line.data)
                line = np.full(n_rows, np.nan)
                line[rows[start:stop]] = cells[start:stop]
            names.append(texts_of(str(features[start]) for start in bounds[:-1]))
            last, key = features[-1], int(keys[-1])
        file.write(line.data)
        return names

    def _coded(
        self, cells: Sequence[Any], names: Sequence[Any], ids: Sequence[Any], row: int, at: int = -1
    ) -> Floats:
        """Return numbers, NaN where one is missing; of texts of a column ``at`` their numbers."""
        kinds = set(map(type, cells)) - {NoneType}
        is_text = at >= 0 and kinds == {str}
        is_known = bool(kinds) and self._is_text.setdefault(at, is_text)
        if is_text and is_known:
            what = f"{self._what}: {names[0]!r}"
            return in_memory.text_numbers(list(cells), self.pool, what, row)
        for name, one, cell in zip(names, ids, cells, strict=True):
            is_long = type(cell) is int and abs(cell) > in_memory.EXACT
            if cell is not None and (is_known or is_long or type(cell) not in _NUMBERS):
                wanted = f"numbers below 2**53 in {name!r}, or, of a wide table, texts alone"
                remedy = "Turn all into numbers in the query, as with cast(... as double)."
                raise unfit(self._what, wanted, f"{cell!r:.60} in row {one!r}", remedy)
        return np.array(cells, np.float64)

    def read(self, positions: Indices, pool: TextCoder) -> Floats:
        """Return columns, each a row of the result."""
        path, dtype = self._scratch / "columns", np.dtype(np.float64)
        return in_memory.read_lines(path, dtype, 0, self.shape[0], positions, self._what)

    def levels(self, position: int) -> list[str] | None:
        """Return the values of an ENUM."""
        kind: Any = self._types[position] if self.text_columns[position] else None
        return dict(kind.children)["values"] if getattr(kind, "id", "") == "enum" else None
