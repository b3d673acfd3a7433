"""Figure 2 at a small size: points of every setting, and a second command only goes on."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.research, pytest.mark.slow]

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "research" / "figure2.py"


def figure(folder, iterations, steps, judge="probe"):
    command = [sys.executable, str(SCRIPT), "--folder", str(folder), "--p", "400"]
    command += ["--judge", judge]
    command += ["--iterations", str(iterations), "--steps", str(steps)]
    command += ["--shares", "0.05", "--alphas", "0", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr
    with (folder / f"figure2-{judge}.csv").open(newline="") as file:
        return list(csv.DictReader(file)), done.stderr


def test_points_and_a_picture_and_going_on(tmp_path):
    first, _ = figure(tmp_path, 60, 1)
    assert len(first) == 2
    assert [(p["q_share"], p["alpha"]) for p in first] == [("0.05", "0"), ("0.05", "1")]
    assert (tmp_path / "figure2-probe.png").read_bytes().startswith(b"\x89PNG")
    second, said = figure(tmp_path, 120, 2)
    assert said.count("Point(") == 2
    assert [p for p in second if p["iterations"] == "60"] == first
    assert {p["iterations"] for p in second} == {"60", "120"}


def test_points_of_the_default_judge(tmp_path):
    points, _ = figure(tmp_path, 300, 1, "tests")
    assert len(points) == 2
    assert all(0 <= float(point["f1"]) <= 1 for point in points)
