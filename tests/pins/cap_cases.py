"""The smallest caps that commands name where they are given too little memory."""

import re

import pytest
from command_cases import write_table
from scripts import raw

_STORE = "ingest table.csv t.zarr --target label --row-ids id -q"
_NAMED = re.compile(r"(?:at least|--memory-mb) (\d+)")
_BEFORE = (
    _STORE,
    "run t.zarr --out a.run -q --threads 1 --iterations 60 --q 20",
    "run t.zarr --out trees.run -q --threads 1 --judge probe --iterations 40 --q 12 --save-trees "
    "--bootstrap",
    "export a.run table.parquet --top 9",
    "export a.run table.feather --top 9",
    "export a.run table.svmlight --names numbers.txt",
    "export a.run table.npy --names numbers.txt",
)
LINES = (
    "ingest table.csv x.zarr --target label",
    "ingest table.csv x.zarr --target label --code-dtype uint16",
    "ingest table.parquet x.zarr", "ingest table.feather x.zarr", "ingest table.svmlight x.zarr",
    "ingest table.npy x.zarr", "inspect t.zarr", "verify t.zarr", "verify a.run", "scores t.zarr",
    "run t.zarr --out b.run", "run t.zarr --out b.run --judge probe --q 20 --threads 1",
    "run t.zarr --out b.run --method prs --threads 1",
    "run t.zarr --out b.run --method rase --threads 1",
    "run t.zarr --out b.run --method less --threads 1", "plan t.zarr --threads 1", "status a.run",
    "features a.run", "compare a.run a.run", "report a.run --format json -o -",
    "compact a.run --threads 1", "export a.run x.csv", "export a.run x.parquet",
    "export a.run x.zarr", "predict trees.run table.csv x.csv",
    "sensitivity trees.run --threads 1", "network t.zarr --out x.csv --threads 1",
    "network t.zarr --out x.csv --threads 1 --method srs",
    "network t.zarr --out x.csv --threads 1 --method prs",
)  # fmt: skip


def pin_of_caps(_name, folder):
    """Of each line the last number that its refusal names; all in one process that is forked."""
    pytest.importorskip("pyarrow")
    write_table(folder / "table.csv", missing=True, categories=True)
    (folder / "numbers.txt").write_text("g3\ng5\ng7\n")
    for line in _BEFORE:
        assert raw(folder, line)[0] == 0, line
    return {line: _cap(folder, line) for line in LINES}


def _cap(folder, line):
    status, _, err = raw(folder, f"{line} --memory-mb 1")
    named = _NAMED.findall(err)
    return int(named[-1]) if status and named else f"{status} {err[:200]}"


NAMES = ("commands",)
