"""Selection on one half, accuracy on the other: the halves are those of the file."""

import csv
import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compact import METHODS, Half, run_on
from measured import find_srs_ooc

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "compact.py"
N_ROWS, P = 80, 30


def write_table(folder):
    """Write a table whose class is told by fifteen features on the rows of even number only."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, N_ROWS)
    values = rng.integers(0, 50, (N_ROWS, P))
    values[::2, :15] += 60 * labels[::2, None]
    rows = [",".join(map(str, row)) + f",{'ab'[y]}" for row, y in zip(values, labels, strict=True)]
    text = "\n".join([",".join(f"f{i}" for i in range(P)) + ",target", *rows]) + "\n"
    (folder / "small.csv.gz").write_bytes(gzip.compress(text.encode()))


def half_of(folder, train):
    half = Half(folder, "small", 0)
    half.train = train
    return half


def test_rows_have_the_ids_of_the_store(tmp_path):
    write_table(tmp_path)
    half, out = half_of(tmp_path, np.arange(N_ROWS)), tmp_path / "a.csv"
    ledger, _ = run_on(half, tmp_path)
    ledger.close()
    words = ("export", tmp_path / "table.zarr", tmp_path / "a.run", out, "--top", P)
    subprocess.run([find_srs_ooc(), *map(str, words)], check=True)
    with out.open(newline="") as file:
        exported = {record["row_id"]: record for record in csv.DictReader(file)}
    given = (tmp_path / "rows").read_text().split()
    for row, row_id in zip(half.train, given, strict=True):
        record = exported[row_id]
        assert record["target"] == half.target[row]
        assert [float(record[name]) for name in half.names] == half.values[row].tolist()


def test_selection_sees_the_rows_it_is_given(tmp_path):
    write_table(tmp_path)
    _, told = METHODS["ours, selected"](half_of(tmp_path, np.arange(0, N_ROWS, 2)))
    assert set(range(15)) <= set(told)
    _, told = METHODS["ours, selected"](half_of(tmp_path, np.arange(1, N_ROWS, 2)))
    assert len(told) < 5


def test_a_line_for_each_way(tmp_path):
    write_table(tmp_path)
    command = [sys.executable, str(SCRIPT), "--cache", str(tmp_path / "cache"), "--tables", "small"]
    more = ["--data", str(tmp_path), "--halves", "1", "--methods", "all features", "F-test"]
    subprocess.run([*command, *more], timeout=3600, check=True)
    done = subprocess.run([*command, "--report"], capture_output=True, text=True, check=True)
    lines = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [line[0] for line in lines[1:3]] == ["| all features", "| F-test"]
    assert lines[1][7] == f"{P}"
    assert 0.4 < float(lines[1][6].split(" / ")[0]) <= 1
