"""Queries of SQLite and DuckDB become the stores of their CSVs, and can do nothing but read."""

import math
import os
import shutil
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from examples import examples, given, st
from stores import values_of
from tables import here, opened, said_here, write_columns

import srs_ooc
from srs_ooc.base.errors import BudgetError, InputError, UsageError
from srs_ooc.store.manifest import read_manifest
from srs_ooc.testing import check_table

RNG = np.random.default_rng(3)
N_ROWS, N_FEATURES = 31, 230
VALUES = RNG.normal(size=(N_ROWS, N_FEATURES)).round(3) + 0.0  # SQLite keeps no -0.0
VALUES[RNG.random(VALUES.shape) < 0.2] = math.nan
IDS = [f"r{i:02d}" for i in range(N_ROWS)]
NAMES = [f"g{j:03d}" for j in range(N_FEATURES)]
LABELS = [("case", "control", "other")[i % 3] for i in range(N_ROWS)]
LONG = "select sample, gene, value from counts"
ENGINES = ["sqlite", "duckdb"]


def connected(path: Path):
    if path.suffix == ".duckdb":
        return pytest.importorskip("duckdb").connect(str(path))
    return sqlite3.connect(path, isolation_level=None)


def write_database(folder: Path, engine: str) -> Path:
    """Write a long and a wide table of the same cells."""
    path = folder / f"data.{engine}"
    database = connected(path)
    database.execute("create table counts (sample text, gene text, value double)")
    known = RNG.permutation(np.argwhere(~np.isnan(VALUES)))
    cells = [(IDS[i], NAMES[j], float(VALUES[i, j])) for i, j in known]
    columns = ", ".join(f"{name} double" for name in NAMES)
    database.execute(f"create table wide (sample text, {columns}, status text)")
    values = ([None if math.isnan(cell) else cell for cell in row] for row in VALUES.tolist())
    rows = [(one, *row, label) for one, row, label in zip(IDS, values, LABELS, strict=True)]
    database.execute("begin")
    database.executemany("insert into counts values (?, ?, ?)", cells)
    marks = ", ".join("?" * (N_FEATURES + 2))
    database.executemany(f"insert into wide values ({marks})", rows[::-1])
    database.execute("commit")
    database.close()
    return path


def write_csv(folder: Path) -> Path:
    cells = dict(zip(NAMES, VALUES.T.tolist(), strict=True))
    return write_columns(folder / "twin.csv", {"sample": IDS, **cells, "status": LABELS})


def small(folder: Path, rows, kinds: str = "", columns: str = "r, f, v") -> Path:
    """Write a table of a few rows to an SQLite database."""
    path = folder / "small.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"create table t ({columns})")
        database.executemany(f"insert into t values ({', '.join('?' * len(rows[0]))})", rows)
    return path


@pytest.fixture(scope="module", params=ENGINES)
def written(request, tmp_path_factory):
    return write_database(tmp_path_factory.mktemp("written"), request.param)


@pytest.fixture
def database(written, tmp_path):
    return Path(shutil.copy(written, tmp_path))


def test_a_long_table_becomes_the_store_of_its_csv(tmp_path, database):
    samples = tmp_path / "samples.csv"
    samples.write_text("id,status\n" + "".join(map("{},{}\n".format, IDS, LABELS)))
    options = ["--samples", samples, "--id", "id", "--target", "status"]
    here("ingest", database, tmp_path / "d.zarr", "--query", LONG, *options)
    twin = srs_ooc.ingest(write_csv(tmp_path), tmp_path / "twin.zarr", row_ids="sample")
    manifest = read_manifest(tmp_path / "d.zarr")
    assert manifest.checksums == twin.checksums
    assert manifest.source["format"].endswith(f"long: {LONG}")
    np.testing.assert_array_equal(values_of(tmp_path / "d.zarr"), VALUES.T)


def test_a_wide_table_becomes_the_store_of_its_csv(tmp_path, database):
    asked = {"query": "select * from wide;", "target": "status"}
    manifest = srs_ooc.ingest(database, tmp_path / "d.zarr", **asked)
    twin = srs_ooc.ingest(write_csv(tmp_path), tmp_path / "twin.zarr", row_ids="sample")
    assert manifest.checksums == twin.checksums
    assert manifest.classes == ("case", "control", "other")


def test_a_feature_of_a_long_table_can_be_the_target(tmp_path, database):
    asked = {"query": LONG, "target": "g007", "task": "regression"}
    manifest = srs_ooc.ingest(database, tmp_path / "d.zarr", **asked)
    assert manifest.n_features == N_FEATURES - 1
    assert manifest.n_rows == (~np.isnan(VALUES[:, 7])).sum()


@examples(25)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from("abcé'\""), st.floats(-9, 9) | st.none()),
        min_size=1,
        unique_by=lambda cell: cell[:2],
    )
)
def test_a_long_table_keeps_the_contract_of_a_table(tmp_path_factory, cells):
    folder = tmp_path_factory.mktemp("long")
    rows, names = sorted({one for one, _, _ in cells}), sorted({name for _, name, _ in cells})
    known = {(one, name): value for one, name, value in cells}
    columns = [[known.get((one, name)) for one in rows] for name in names]
    table = opened(small(folder, cells), query="select r, f, v from t")
    assert table.annotations["r"] == rows
    check_table(table, columns, names)


@examples(25)
@given(st.integers(1, 9), st.integers(0, 2**16))
def test_a_wide_table_keeps_the_contract_of_a_table(tmp_path_factory, n_rows, seed):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("wide")
    texts = rng.choice(["x", "y", "zé", None], n_rows).tolist()
    numbers = rng.choice([1, 2.5, None, -3], n_rows).tolist()
    empty = [None] * n_rows
    rows = [*zip(range(n_rows), texts, numbers, empty, strict=True)]
    path = small(folder, rows, columns='i, a, "b ""q""", c')
    table = opened(path, query="select * from t")
    check_table(table, [texts, numbers, empty], ["a", 'b "q"', "c"])


def test_a_dry_run_says_what_it_takes_and_its_cap_works(tmp_path, database, capsys):
    command = ["ingest", str(database), str(tmp_path / "d.zarr"), "--query", LONG]
    command += ["--target", "g007", "--task", "regression"]
    said = said_here(capsys, *command, "--dry-run")
    assert f"columns: {N_FEATURES}\nrows: {N_ROWS}\n" in said
    assert not (tmp_path / "d.zarr").exists()
    least = said.partition("--memory-mb ")[2].partition(" ")[0]
    here(*command, "--memory-mb", least)


@pytest.mark.parametrize(
    "query",
    [
        "insert into counts values ('a', 'b', 1)",
        "delete from counts",
        "create table other as select 1",
        "attach 'other.db' as other",
        "pragma journal_mode = delete",
        "copy counts to 'other.csv'",
        "install httpfs",
        "vacuum",
        "select 1 as a, 2 as b, 3 as c); delete from counts; select * from (select 1",
        "select * from read_csv('twin.csv')",
        "select load_extension('other')",
        "select * from",
        "",
    ],
)
def test_what_does_more_than_read_is_refused(tmp_path, database, query):
    write_csv(tmp_path)
    before = database.read_bytes()
    with pytest.raises(InputError, match="one query that only reads it"):
        srs_ooc.ingest(database, tmp_path / "d.zarr", query=query, target="g007")
    assert database.read_bytes() == before
    assert {one.name for one in tmp_path.iterdir()} == {database.name, "twin.csv"}


def test_a_variable_of_the_program_is_no_table(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"a": [1], "b": [2], "c": [3]})
    with pytest.raises(InputError, match="one query that only reads it"):
        srs_ooc.ingest(write_database(tmp_path, "duckdb"), tmp_path / "d.zarr", query="from frame")
    assert len(frame) == 1


LONG_OF, WIDE_OF = ("r, f, v", None), ("r, a, b, c", "c")
ALL_NUMBERS = [("a", 1.0, 2.0, 3.0), ("a", 1.0, 2.0, 3.0)]
REFUSED = [
    (LONG_OF, "twice in row 'a'", [("a", "x", 1.0), ("b", "x", 2.0), ("a", "x", 3.0)]),
    (LONG_OF, "found none", [("a", None, 1.0), ("b", "x", 2.0)]),
    (LONG_OF, "distinct ids of rows", [(None, "x", 1.0), ("b", "x", 2.0)]),
    (LONG_OF, "found 'many' in row 'b'", [("a", "x", 1.0), ("b", "x", "many")]),
    (LONG_OF, "found '1.5' in row 'a'", [("a", "x", "1.5"), ("b", "x", "2")]),
    (LONG_OF, "found 9007199254740993 in row", [("a", "x", 2**53 + 1), ("b", "x", 2)]),
    (LONG_OF, "found b'1' in row", [("a", "x", b"1"), ("b", "x", 2)]),
    (WIDE_OF, "numbers below", [("a", 1.0, 2.0, 3.0), ("b", "x", 2.0, 3.0)]),
    (WIDE_OF, "numbers below", [("a", "x", 2.0, 3.0), ("b", 1.0, 2.0, 3.0)]),
    (WIDE_OF, "distinct ids of rows", ALL_NUMBERS),
]


@pytest.mark.parametrize(("form", "found", "rows"), REFUSED)
def test_a_long_or_wide_table_that_is_none_is_refused(tmp_path, form, found, rows):
    (columns, target), query = form, "select * from t"
    path, asked = small(tmp_path, rows, columns=columns), {"target": target}
    asked["no_target"] = target is None
    with pytest.raises(InputError, match=found):
        srs_ooc.ingest(path, tmp_path / "d.zarr", query=query, **asked)
    assert not (tmp_path / "d.zarr").exists()


@pytest.mark.parametrize("query", [LONG, "select * from wide"])
def test_no_rows_are_refused(tmp_path, database, query):
    with pytest.raises(InputError, match="at least one row"):
        srs_ooc.ingest(
            database, tmp_path / "d.zarr", query=f"{query} where sample = 'x'", target="g007"
        )


def test_ids_and_names_may_differ_in_case_alone(tmp_path):
    rows = [("a", "x", 1.0), ("A", "x", 2.0), ("A", "X", 3.0)]
    path = small(tmp_path, rows, columns="r text collate nocase, f text collate nocase, v")
    table = opened(path, query="select * from t")
    check_table(table, [[3.0, None], [2.0, 1.0]], ["X", "x"])


def test_damaged_files_and_others_are_refused(tmp_path, database):
    data = database.read_bytes()
    for size in (len(data) // 2, 600, 100):
        database.write_bytes(data[:size])
        with pytest.raises(InputError, match="expected"):
            srs_ooc.ingest(database, tmp_path / "d.zarr", query=LONG, target="g007")
    with pytest.raises(UsageError, match="expected a database of SQLite or DuckDB for query"):
        srs_ooc.ingest(write_csv(tmp_path), tmp_path / "d.zarr", query=LONG)
    assert not (tmp_path / "d.zarr").exists()


def test_without_a_query_one_is_asked_for(tmp_path, database):
    for query in (None, 5):
        with pytest.raises(UsageError, match="expected query, which says what is the table"):
            srs_ooc.ingest(database, tmp_path / "d.zarr", query=query)


def test_the_rows_of_others_do_not_matter_while_it_reads(tmp_path):
    path = write_database(tmp_path, "sqlite")
    table = opened(path, query=LONG)
    assert table.shape == (N_ROWS, N_FEATURES)
    assert not list((tmp_path / "scratch").glob("etilqs*"))


ENDLESS = {
    "sqlite": "with recursive c(n) as (select 1 union all select n+1 from c) select max(n) from c",
    "duckdb": "select sum(sqrt(a.range * b.range)) from range(1000000000) a, range(1000000000) b",
}


@pytest.mark.few(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("columns", ["sample, gene", "sample"])  # of a long table, a wide one
def test_a_query_ends_with_the_signal_that_interrupts_it(tmp_path, database, columns, number):
    table = "counts" if "gene" in columns else "wide"
    query = f"select {columns}, ({ENDLESS[database.suffix[1:]]}) as value from {table}"
    arguments = ["ingest", str(database), str(tmp_path / "d.zarr"), "--query", query, "--no-target"]
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have had it ignored
    presses = [threading.Timer(0.3, os.kill, (os.getpid(), one)) for one in (number, signal.SIGINT)]
    try:
        presses[0].start()
        here(*arguments, expect=128 + number)
        presses[1].start()
        with pytest.raises(KeyboardInterrupt):
            srs_ooc.ingest(database, tmp_path / "d.zarr", query=query, no_target=True)
    finally:
        for press in presses:
            press.cancel()
        for one, handler in before.items():
            signal.signal(one, handler)
    assert list(tmp_path.iterdir()) == [database]


def test_a_small_cap_is_refused_with_one_that_works(tmp_path, database):
    with pytest.raises(BudgetError, match=r"smallest cap that works is memory_mb=\d+"):
        srs_ooc.ingest(database, tmp_path / "d.zarr", query=LONG, target="g007", memory_mb=20)


def test_what_opens_duckdb_is_named_where_it_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    (tmp_path / "data.duckdb").write_bytes(bytes(8) + b"DUCK" + bytes(600))
    with pytest.raises(UsageError, match=r"pip install 'srs-ooc\[duckdb\]'"):
        srs_ooc.ingest(tmp_path / "data.duckdb", tmp_path / "d.zarr", query=LONG)
