"""Measuring a command from outside: its status, its limit, its peak."""

import sys

import pytest
from measured import measure

ALLOCATE = "b = b'x' * 150_000_000"


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


def test_what_takes_too_long_is_killed_with_its_children(tmp_path):
    started, ended = tmp_path / "started", tmp_path / "ended"
    child = f"import time; open({str(started)!r}, 'w'); time.sleep(3); open({str(ended)!r}, 'w')"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    done = python(code, limit_seconds=1.5)
    assert done.status is None
    assert done.seconds < 3
    assert not ended.exists()


def test_the_peak_is_that_of_the_command():
    assert python("pass").peak_mb < 140  # a child begins at its parent's peak
    assert python(ALLOCATE).peak_mb > 150
