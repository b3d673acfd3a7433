"""Exported columns are the source's columns."""

import csv
import math
import signal
import subprocess
import sys

import numpy as np
import pytest

from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.ingestion.ingest import ingest_table
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.results import exporting
from srs_ooc.results.exporting import export_columns
from srs_ooc.store.store import Store


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def make_store(folder, n_rows=50, n_features=30, *, integers=False, **options):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.integers(-9, 9, n_features)
    if integers:
        values = np.round(rng.normal(size=values.shape) * 1000)
    values[rng.random(values.shape) < 0.1] = math.nan
    path = folder / "t.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f'f,"{j}"' for j in range(n_features)), "y"])
        for i, row in enumerate(values.tolist()):
            cells = ["" if math.isnan(v) else repr(v) for v in row]
            writer.writerow([f"r{i}", *cells, ("one, two", "three")[i % 2]])
    ingest_table(path, folder / "t.zarr", IngestOptions(row_ids="id", **options))
    return folder / "t.zarr", values


def read_back(path):
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    values = [[math.nan if cell == "" else float(cell) for cell in row[1:-1]] for row in rows]
    return header, np.array(values), [row[0] for row in rows], [row[-1] for row in rows]


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("block_nbytes", [1, 500, 8_000_000])
def test_real_values_in_the_order_asked_for(tmp_path, monkeypatch, integers, block_nbytes):
    monkeypatch.setattr(exporting, "BLOCK_NBYTES", block_nbytes)
    store, values = make_store(tmp_path, integers=integers)
    positions = np.array([29, 3, 0, 17, 3])
    export_columns(Store.open(store), positions, tmp_path / "out.csv")
    header, found, ids, labels = read_back(tmp_path / "out.csv")
    assert header == ["id", *(f'f,"{j}"' for j in positions), "y"]
    np.testing.assert_array_equal(found, values[:, positions])
    assert ids == [f"r{i}" for i in range(50)]
    assert labels == [("one, two", "three")[i % 2] for i in range(50)]
    assert listing(tmp_path) == ["out.csv", "t.csv", "t.zarr"]


def test_no_columns_and_numbered_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("row_id,y\n7,u\n8,v\n")
    ingest_table(path, tmp_path / "t.zarr")
    export_columns(Store.open(tmp_path / "t.zarr"), np.array([0]), tmp_path / "one.csv")
    assert (tmp_path / "one.csv").read_text() == "_row_id,row_id,y\n1,7,u\n2,8,v\n"
    export_columns(Store.open(tmp_path / "t.zarr"), np.array([], int), tmp_path / "none.csv")
    assert (tmp_path / "none.csv").read_text() == "row_id,y\n1,u\n2,v\n"


def test_what_is_in_the_way_or_not_there_is_refused(tmp_path):
    store, _ = make_store(tmp_path)
    out = tmp_path / "out.csv"
    with pytest.raises(UsageError, match=r"positions in 0 \.\. 29, found 5 \.\. 30"):
        export_columns(Store.open(store), np.array([5, 30]), out)
    with pytest.raises(StoreError, match="cannot be written"):
        export_columns(Store.open(store), np.array([5]), tmp_path / "none" / "out.csv")
    out.write_text("mine")
    with pytest.raises(UsageError, match="free"):
        export_columns(Store.open(store), np.array([5]), out)
    assert out.read_text() == "mine"


def test_damage_leaves_no_file(tmp_path):
    store, _ = make_store(tmp_path)
    (store / "values" / "c" / "0" / "0").unlink()
    with pytest.raises(StoreError, match="values/c/0/0"):
        export_columns(Store.open(store), np.array([5]), tmp_path / "out.csv")
    assert listing(tmp_path) == ["t.csv", "t.zarr"]


def test_a_store_of_codes_only_says_so(tmp_path):
    store, _ = make_store(tmp_path, keep_values=False)
    with pytest.raises(StoreError, match="keeps only codes"):
        export_columns(Store.open(store), np.array([5]), tmp_path / "out.csv")


KILLED = """
import os, signal, sys
import numpy as np
from pathlib import Path
from srs_ooc.results import exporting as export
from srs_ooc.store.store import Store
export._blocks = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
export.export_columns(Store.open(Path(sys.argv[1])), np.array([0, 1]), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_what_a_killed_export_left_is_cleared_by_the_next(tmp_path):
    store, values = make_store(tmp_path)
    out = tmp_path / "out.csv"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", KILLED, store, out], check=False)
        assert done.returncode == -signal.SIGKILL
    assert len(listing(tmp_path)) == 3  # what two of them left is one file
    export_columns(Store.open(store), np.array([0, 1]), out)
    assert listing(tmp_path) == ["out.csv", "t.csv", "t.zarr"]
    np.testing.assert_array_equal(read_back(out)[1], values[:, [0, 1]])


def test_a_file_made_while_columns_are_exported_is_not_written_over(tmp_path, monkeypatch):
    store, _ = make_store(tmp_path)
    out, gather = tmp_path / "out.csv", exporting.gather_columns

    def gather_and_make(*arguments):
        gather(*arguments)
        out.write_text("mine")

    monkeypatch.setattr(exporting, "gather_columns", gather_and_make)
    with pytest.raises(UsageError, match="free"):
        export_columns(Store.open(store), np.array([5]), out)
    assert out.read_text() == "mine"
    assert listing(tmp_path) == ["out.csv", "t.csv", "t.zarr"]
