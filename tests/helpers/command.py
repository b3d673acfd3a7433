"""Running the command line as a user does, in a process of its own.

Most commands are forks of a process that has loaded the program (:mod:`forked`). A cap on memory
counts all that a process holds, so a command that names one is started afresh; so is one whose
environment the test has changed.
"""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

from forked import Forks

LAUNCHER = """
import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
unit = 1024 if sys.platform == "darwin" else 1
print("peak-kb", usage.ru_maxrss // unit, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A process of its own, as the peak of a child begins at the size of what starts it."""
HANGS = 3600
"""Seconds after which a process hangs, on the slowest machine too."""


def environment():
    found = os.environ | {"PYTHONWARNINGS": "error", "COLUMNS": "200"}
    found.pop("PYTEST_CURRENT_TEST", None)
    return found


PLAIN = environment()


def command_line(*arguments):
    return [sys.executable, "-m", "srs_ooc", *map(str, arguments)]


def committing_often(*arguments, seconds=0.05):
    """A command line whose runs commit far more often, so that short ones are killed between."""
    patched = (
        "import srs_ooc.runs.engine as e; from srs_ooc.__main__ import main; "
        f"e.COMMIT_SECONDS = {seconds}; main()"
    )
    return [sys.executable, "-c", patched, *map(str, arguments)]


def fresh(*arguments, cwd=None):
    """Run a command in a process that was started for it, and return the finished process."""
    return finished(command_line(*arguments), cwd)


def finished(words, cwd=None):
    """Run a program, and return the finished process."""
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(),
        timeout=HANGS,
        check=False,
    )


@functools.cache
def forks():
    return Forks(PLAIN, HANGS)


def forked(*arguments, cwd=None):
    """Run a command as a fork, where it cannot tell the difference."""
    has_cap = any(str(argument).startswith("--memory-mb") for argument in arguments)
    if has_cap or environment() != PLAIN:
        return fresh(*arguments, cwd=cwd)
    code, out, err = forks().run(map(str, arguments), cwd)
    return SimpleNamespace(returncode=code, stdout=out, stderr=err)


def srs_ooc(*arguments, expect=0, cwd=None):
    """Run a command and return the finished process; its exit status must be `expect`."""
    done = forked(*arguments, cwd=cwd)
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
    done = finished([sys.executable, "-ISc", LAUNCHER, *command_line(*arguments)], cwd)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.rsplit("peak-kb ", 1)[1])


def least_cap(*arguments, too_small=9):
    """Return the smallest cap that a command names where it is given one that is too small."""
    refused = error_of(*arguments, "--memory-mb", too_small)
    return int(re.findall(r"--memory-mb (\d+)", refused)[-1])


def check_least_cap(*arguments, too_small=9):
    """Return the smallest cap that a command names; it works, and the peak stays under it."""
    cap = least_cap(*arguments, too_small=too_small)
    assert peak_kb(*arguments, "--memory-mb", cap) * 1024 < cap * 10**6
    return cap


def killed_in(module, name, *arguments):
    """Run a command that kills itself where it calls a function of a module of ingestion."""
    killed = (
        f"import os, signal, srs_ooc.base.files, srs_ooc.ingestion.{module} as module; "
        "from srs_ooc.__main__ import main; "
        f"module.{name} = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL); main()"
    )
    done = finished([sys.executable, "-c", killed, *map(str, arguments)])
    assert done.returncode == -signal.SIGKILL, done.stderr


def wait_for(process, run, done):
    """Wait until a process has committed more iterations than are done."""
    while not run.exists() or json_of("status", run, "--json")["iterations"] <= done:
        assert process.poll() is None
        time.sleep(0.01)
