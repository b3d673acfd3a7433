"""Texts of any length (cells, names, row ids) stay under the cap that is named, in each format."""

import re
import sqlite3

import numpy as np
import pytest
from command import check_least_cap, error_of, least_cap
from command import srs_ooc as run_command

from srs_ooc.base.text import MB
from srs_ooc.ingestion.formats import BLOCK_NBYTES, Items, bounded
from srs_ooc.ingestion.formats.files import length_of_footer, size_of
from srs_ooc.ingestion.formats.in_memory import item_blocks

LONG, N = 1500, 20_000
KINDS = ["sqlite cells", "sqlite names", "h5ad ids", "features names", "parquet cells"]
"""One of each reader and part of a table; others are of the campaign."""
RARE = ["sqlite ids", "h5ad names", "h5ad ids fixed", "h5ad samples", "parquet ids"]


def long_texts(letter, n, length=LONG):
    return [f"{letter}{i}_".ljust(length, "x") for i in range(n)]


def short(letter, n):
    return [f"{letter}{i}" for i in range(n)]


def fill(path, columns, rows):
    """Write a table of an SQLite database."""
    database = sqlite3.connect(path)
    database.execute(f"create table t ({columns})")
    database.executemany(f"insert into t values ({', '.join('?' * len(rows[0]))})", rows)
    database.commit()
    database.close()


def write_sqlite(path, what):
    if what == "cells":
        texts = [letter * 20_000 for letter in "abc"]
        columns = "id text, y double, a double, x text"
        rows = [(f"r{i}", i % 2, i / 3, texts[i % 3]) for i in range(8000)]
    elif what == "ids":
        columns = "id text, y double, a double, b double"
        rows = [(one, i % 2, i / 3, i % 7) for i, one in enumerate(long_texts("r", 30_000))]
    else:
        columns = "id text, f text, v double"
        names = long_texts("f", 1500)
        rows = [(f"r{i}", one, i + j % 9) for i in range(30) for j, one in enumerate(names)]
    fill(path, columns, rows)


def write_h5ad(path, ids, names, *, fixed=False):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["X"] = np.random.default_rng(0).integers(0, 99, (len(ids), len(names))).astype("f4")
        for key, items in (("obs", ids), ("var", names)):
            group = file.create_group(key)
            group.attrs["_index"] = "_index"
            kept = np.array(items, "S" if fixed else object)
            dtype = kept.dtype if fixed else h5py.string_dtype()
            group.create_dataset("_index", data=kept, dtype=dtype)
        file["obs/label"] = np.array(["uv"[i % 2] for i in range(len(ids))], "S1")
        codes = np.arange(len(ids), dtype="i4")
        file["obs/who/codes"] = codes
        file["obs/who/categories"] = np.array(long_texts("c", len(ids), 100), "S")


def write_arrow(path, columns):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(arrow.table(columns), path)


def write(folder, kind):
    """Write a table with long texts; return sources and options of its ingest."""
    engine, what, *_ = kind.split()
    target = folder / "y.txt"
    if engine == "sqlite":
        write_sqlite(folder / "t.sqlite", what)
        of = ("--no-target",) if what == "names" else ("--target", "y")
        return folder / "t.sqlite", "--query", "select * from t", *of
    if engine == "h5ad":
        lines = {"names": (short("r", 30), long_texts("f", N)), "cats": (short("r", N),) * 2}
        ids, names = lines.get(what, (long_texts("r", N), short("f", 30)))
        names = names[:30] if what == "cats" else names
        write_h5ad(folder / "t.h5ad", ids, names, fixed=kind.endswith("fixed"))
        if what == "samples":
            lines = (f"{one},{'uv'[i % 2]}\n" for i, one in enumerate(ids))
            (folder / "s.csv").write_text("id,y\n" + "".join(lines))
            return folder / "t.h5ad", "--samples", folder / "s.csv", "--id", "id", "--target", "y"
        return folder / "t.h5ad", "--target", "label"
    if engine == "features":
        lines = (f"{one},1,{i},{i % 7},{i % 5}\n" for i, one in enumerate(long_texts("f", N)))
        (folder / "t.csv").write_text("id,a,b,c,d\n" + "".join(lines))
        (folder / "s.csv").write_text("id,y\na,u\nb,v\nc,u\nd,v\n")
        samples = ("--samples", folder / "s.csv", "--id", "id", "--target", "y")
        return folder / "t.csv", "--orient", "features", *samples
    cells = {"a": np.arange(8000.0), "x": [c * 20_000 for c in "abc"] * 2666 + ["a" * 20_000] * 2}
    cells = {"id": long_texts("r", N), "a": np.arange(float(N))} if what == "ids" else cells
    write_arrow(folder / "t.parquet", cells)
    target.write_text("u\nv\n" * (len(cells["a"]) // 2))
    ids = ("--row-ids", "id") if what == "ids" else ()
    return folder / "t.parquet", "--target-file", target, *ids


@pytest.mark.few(0, len(KINDS))
@pytest.mark.parametrize("kind", [*KINDS, *RARE])
def test_the_cap_that_is_named_holds_texts_of_any_length(tmp_path, kind):
    source, *options = write(tmp_path, kind)
    arguments = ("ingest", source, tmp_path / "t.zarr", *options)
    least = least_cap(*arguments)
    assert least_cap(*arguments, too_small=least - 1) == least
    assert check_least_cap(*arguments) == least


@pytest.mark.slow
def test_levels_of_categories_that_become_row_ids_are_counted(tmp_path):
    source, *_ = write(tmp_path, "h5ad cats")
    plain, held = (
        least_cap("ingest", source, tmp_path / "t.zarr", "--target", "label", *more)
        for more in ((), ("--row-ids", "who"))
    )
    assert held - plain >= 100 * N // MB


def test_blocks_hold_so_many_bytes_however_long_texts_are():
    texts = ["x" * 10] * 1000 + ["y" * 100_000] * 100 + [None, 3, 2.5]
    for given in (texts, iter(texts), Items(len(texts), texts.__getitem__)):
        blocks = list(item_blocks(given))
        assert [one for block in blocks for one in block] == texts
        assert all(sum(map(len, map(str, b))) < BLOCK_NBYTES + 100_001 for b in blocks)
        assert 9 <= len(blocks) <= 12
    assert list(bounded([1, 2, 3], lambda one: one, 2)) == [[1, 2], [3]]


def test_long_texts_in_a_footer_of_parquet_are_not_counted_as_columns(tmp_path):
    path, names = tmp_path / "t.parquet", short("f", 300)
    levels = {name: [f"{name}{i % 5}_".ljust(3900, "q") for i in range(10)] for name in names}
    write_arrow(path, levels)
    assert size_of(path) == (10, 300, 1, True)
    (tmp_path / "y.txt").write_text("u\nv\n" * 5)
    target = ("--target-file", tmp_path / "y.txt", "--ignore", ",".join(names[:-1]))
    said = error_of("ingest", path, tmp_path / "t.zarr", *target, "--memory-mb", 9)
    footer = float(re.search(r"what PyArrow holds of \S+ ([\d.]+)", said)[1])
    assert length_of_footer(path) > 2 * MB
    assert footer < 10 * length_of_footer(path) / MB
    write_arrow(path, {"a": [1.0, 2.0], "b": [1.0, 2.0]})
    assert size_of(path) == (2, 2, 1, False)


def test_a_database_names_the_cap_that_holds_its_row_ids_and_texts_before_it_is_read(tmp_path):
    path = tmp_path / "t.sqlite"
    rows = [(f"r{i}".ljust(9000, "x"), i % 2, i / 3, f"c{i % 5}") for i in range(9000)]
    fill(path, "id text, y double, a double, x text", rows)
    arguments = ("ingest", path, tmp_path / "t.zarr", "--query", "select * from t", "--target", "y")
    run_command(*arguments, "--memory-mb", least_cap(*arguments, too_small=100))
