"""Measuring a command from outside, and keeping what was measured."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import measured
import psutil
import pytest
from measured import Results, measure


def python(code, **options):
    return measure([sys.executable, "-c", code], **options)


@pytest.mark.parametrize("limit", [None, 60.0])
def test_the_exit_status_and_the_output_are_the_commands(tmp_path, limit):
    files = {"out": str(tmp_path / "out"), "errors": str(tmp_path / "errors")}
    code = "import sys; print('said'); print('why', file=sys.stderr); sys.exit(3)"
    done = python(code, limit_seconds=limit, **files)
    assert done.status == 3
    assert (tmp_path / "out").read_text() == "said\n"
    assert (tmp_path / "errors").read_text() == "why\n"


@pytest.mark.slow
def test_what_takes_too_long_is_killed_with_its_children(tmp_path):
    started = tmp_path / "started"
    child = (
        f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(3600)"
    )
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    limit = 1.0
    while not (started.exists() and started.read_text()):  # killed before its child began: longer
        assert python(code, limit_seconds=limit).status is None
        limit *= 2
    with contextlib.suppress(psutil.NoSuchProcess):
        grandchild = psutil.Process(int(started.read_text()))
        while grandchild.status() != psutil.STATUS_ZOMBIE:  # hangs if it lives on
            time.sleep(0.01)


def test_the_peak_is_that_of_the_command():
    """Measured from a small process, as the benchmarks are: a child begins at its parent's peak."""
    launcher = (
        "import sys; from measured import measure\n"
        "for code in ('pass', 'b = bytes([1]) * 150_000_000'):\n"
        "    print(measure([sys.executable, '-c', code]).peak_mb)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(measured.__file__).parent)}
    said = subprocess.check_output([sys.executable, "-c", launcher], text=True, env=environment)
    idle, busy = map(float, said.split())
    assert idle < 60
    assert 150 < busy < 200


LINES = [{"problem": "madelon", "seed": 0, "power": 0.5}, {"problem": "noise", "seed": 0}]


def test_records_are_kept_and_found_again(tmp_path):
    file = tmp_path / "results.jsonl"
    results = Results(file)
    assert results.find({"seed": 0}) is None
    for line in LINES:
        results.add(line)
    results.add({"problem": "chain"}, is_kept=False)
    assert results.find({"problem": "chain"}) == {"problem": "chain"}
    assert Results(file).records == LINES
    assert Results(file).find({"seed": 0, "problem": "noise"}) == LINES[1]
    assert Results(file).find({"seed": 1}) is None


def test_a_line_cut_short_is_taken_away(tmp_path):
    file = tmp_path / "results.jsonl"
    whole = "".join(json.dumps(line) + "\n" for line in LINES)
    file.write_text(whole + '{"problem": "madel')
    assert Results(file).records == LINES
    assert file.read_text() == whole
