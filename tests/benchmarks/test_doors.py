"""The benchmark of formats read where they lie makes its files, and ingests them."""

import re
import sys
from pathlib import Path

import pytest
from command import finished

DOORS = Path(__file__).parents[2] / "benchmarks" / "doors.py"


@pytest.mark.parametrize("kind", ["vcf", "raw", "geo"])
def test_files_are_made_and_ingested(tmp_path, kind):
    if kind == "vcf":
        pytest.importorskip("cyvcf2")
    command = [sys.executable, DOORS, kind, "--rows", "40", "--features", "1100"]
    command += ["--folder", tmp_path, "--memory-mb", "150"]
    done = finished(command)
    assert done.returncode == 0, done.stderr
    assert "40 x 1,100, --memory-mb 150" in done.stdout
    found = re.search(r"ingest: [\d.]+ s, CPU [\d.]+ s, peak (\d+) MB", done.stdout)
    assert 0 < int(found[1]) <= 150
