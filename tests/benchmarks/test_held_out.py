"""Selection on one half, accuracy on the other: the halves are those of the file."""

import csv
import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from held_out import Table, row_ids, srs_ooc

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "held_out.py"
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
    return folder / "small.csv.gz"


@pytest.mark.slow
def test_rows_have_the_ids_of_the_store(tmp_path):
    table = Table(write_table(tmp_path), tmp_path)
    run, out = tmp_path / "a.run", tmp_path / "a.csv"
    srs_ooc("run", table.store, "--out", run, "--judge", "probe", "--iterations", 30)
    srs_ooc("export", table.store, run, out, "--top", P)
    with out.open(newline="") as file:
        exported = {record["row_id"]: record for record in csv.DictReader(file)}
    for row, row_id in enumerate(row_ids(np.arange(N_ROWS))):
        record = exported[row_id]
        assert record["target"] == table.target[row]
        assert [float(record[name]) for name in table.names] == table.values[row].tolist()


@pytest.mark.slow
def test_selection_sees_the_rows_it_is_given(tmp_path):
    table = Table(write_table(tmp_path), tmp_path)
    told = table.ours(np.arange(0, N_ROWS, 2), 0)
    assert {f"f{i}" for i in range(15)} <= set(told)
    assert len(table.ours(np.arange(1, N_ROWS, 2), 0)) < 5


@pytest.mark.slow
def test_a_line_for_each_way(tmp_path):
    write_table(tmp_path)
    command = [sys.executable, str(SCRIPT), "--data", str(tmp_path), "--tables", "small"]
    command += ["--seeds", "1", "--without-boruta"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split(" | ") for line in done.stdout.splitlines()[2:]]
    assert [line[1] for line in lines] == ["all features", "srs-ooc"]
    assert lines[0][2] == f"{P}"
    assert 0.4 < float(lines[0][3]) <= 1
