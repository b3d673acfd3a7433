"""Running the command line as a user does, in a process of its own."""

import json
import os
import shutil
import subprocess
import sys

import pytest

TIME = "/usr/bin/time"
HANGS = 3600
"""Seconds after which a process hangs, on the slowest machine too."""


def environment():
    return os.environ | {"PYTHONWARNINGS": "error", "COLUMNS": "200"}


def command_line(*arguments):
    return [sys.executable, "-m", "srs_ooc", *map(str, arguments)]


def srs_ooc(*arguments, expect=0, cwd=None):
    """Run a command and return the finished process; its exit status must be `expect`."""
    done = subprocess.run(
        command_line(*arguments),
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(),
        timeout=HANGS,
        check=False,
    )
    assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done


def error_of(*arguments, cwd=None):
    """Run a command that must fail with exit status 2, and return its one message."""
    done = srs_ooc(*arguments, expect=2, cwd=cwd)
    return done.stderr.strip()


def json_of(*arguments, cwd=None):
    return json.loads(srs_ooc(*arguments, cwd=cwd).stdout)


def peak_kb(*arguments, cwd=None):
    """Peak resident kilobytes of a command, measured from outside through a bare launcher."""
    if shutil.which(TIME) is None:
        pytest.skip("needs /usr/bin/time")
    done = subprocess.run(
        [TIME, "-f", "peak-kb %M", *command_line(*arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(),
        timeout=HANGS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stderr.rsplit("peak-kb ", 1)[1])
