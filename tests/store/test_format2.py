"""Stores of format 2, and runs on them, are read as they were by the code that wrote them."""

import csv
import tarfile
from pathlib import Path

import pytest
from command import json_of, srs_ooc

from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.store import Store

PACKED = Path(__file__).parents[1] / "fixtures" / "format2.tar.gz"
FINGERPRINTS = {
    "format2.zarr": "2597bec59f9b9cf83374fff2de24ddf9ab5b7767347b5000f7562e50103659b3",
    "format2-codes.zarr": "ee81e2bd680838e6aa611bc5c3dc046328d183dabbe8cbcb3d8bf72cdaa410dc",
}


@pytest.fixture
def folder(tmp_path):
    with tarfile.open(PACKED) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_a_store_of_format_2_keeps_its_fingerprint_and_is_whole(folder, name):
    manifest = read_manifest(folder / name)
    assert (manifest.format, manifest.fingerprint) == (2, FINGERPRINTS[name])
    Store.open(folder / name).verify()


TESTED = ("rank", "p_value", "differs_in")


@pytest.mark.slow
def test_its_half_done_run_goes_on_to_the_result_of_the_finished_one(folder):
    """But for the tests, which are those of today; the finished run keeps its own."""
    srs_ooc("resume", folder / "half.run")
    found = [
        {
            feature.pop("name"): {k: v for k, v in feature.items() if k not in TESTED}
            for feature in json_of("features", folder / f"{name}.run", "--json")
        }
        for name in ("half", "finished")
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 13


def test_its_columns_are_exported_as_they_were_in_the_table(folder):
    out = folder / "out.csv"
    srs_ooc("export", folder / "format2.zarr", folder / "finished.run", out, "--top", 13)
    with (folder / "table.csv").open() as table, out.open() as exported:
        rows, found = list(csv.DictReader(table)), list(csv.DictReader(exported))
    assert [set(row) for row in found] == [set(rows[0]) - {"w", "batch", "who"}] * len(rows)
    for row, there in zip(rows, found, strict=True):
        texts = ("id", "site", "y")
        assert [row[name] for name in texts] == [there[name] for name in texts]
        names = [name for name in there if name not in texts]
        assert [row[name] and float(row[name]) for name in names] == [
            there[name] and float(there[name]) for name in names
        ]
