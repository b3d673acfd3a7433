"""Commands as forks of one process that has loaded the program, to save a quarter second each.

A fork is a process of its own: with its own descriptors, folder, signals, memory and exit. What
happens as Python starts is not in it, nor is what the loaded program holds its own: a command with
a cap on memory is started afresh instead (:mod:`command`).
"""

import array
import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

_LENGTH = 8
LOADED = (
    "srs_ooc.cli.ingest",
    "srs_ooc.cli.plan",
    "srs_ooc.cli.saved_trees",
    "srs_ooc.cli.results",
    "srs_ooc.cli.run",
    "srs_ooc.cli.status",
    "srs_ooc.cli.synth",
    "srs_ooc.ensemble.prediction",
    "srs_ooc.ingestion.ingest",
    "srs_ooc.planning.speed",
    "srs_ooc.results.exporting",
    "srs_ooc.runs.session",
)


class Forks:
    """A process that forks for each command.

    All of them have one environment, and hang if they take longer than a number of seconds.
    """

    def __init__(self, environment, seconds):
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env=environment,
                pass_fds=[theirs.fileno()],
            )
        ours.settimeout(seconds)
        self._socket, self._lock = ours, threading.Lock()
        atexit.register(self.close)

    def run(self, arguments, cwd=None):
        """Run a command line and return (exit status, standard output, standard error)."""
        with self._lock, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            request = json.dumps([list(arguments), str(cwd or Path.cwd())]).encode()
            descriptors = array.array("i", [out.fileno(), err.fileno()])
            self._socket.sendmsg(
                [len(request).to_bytes(_LENGTH, "little")],
                [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)],
            )
            self._socket.sendall(request)
            status = int(_exactly(self._socket, _LENGTH))
            return status, _text(out), _text(err)

    def close(self):
        """End the process."""
        self._socket.close()
        self._process.wait()


def _text(file):
    file.seek(0)
    return file.read().decode(errors="surrogateescape").replace("\r\n", "\n")


def _exactly(connection, n_bytes):
    found = b""
    while len(found) < n_bytes:
        part = connection.recv(n_bytes - len(found))
        if not part:
            raise EOFError("the process that forks has ended")
        found += part
    return found


def _forked(connection):
    """Fork for each request; return in the fork, or end."""
    while True:
        length, rights, _, _ = connection.recvmsg(_LENGTH, socket.CMSG_SPACE(8))
        if not length:
            sys.exit()
        request = _exactly(connection, int.from_bytes(length, "little"))
        descriptors = array.array("i", rights[0][2])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads: those of the linear algebra see to it
            child = os.fork()
        if not child:
            return *json.loads(request), descriptors
        for descriptor in descriptors:
            os.close(descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(f"{status:{_LENGTH}d}".encode())


def _serve(number):
    import importlib

    with socket.socket(fileno=number) as connection:
        for module in LOADED:
            importlib.import_module(module)
        arguments, folder, descriptors = _forked(connection)
    for target, descriptor in zip((1, 2), descriptors, strict=True):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(folder)
    sys.argv = ["srs-ooc", *arguments]


if __name__ == "__main__":
    from srs_ooc.__main__ import main

    del sys.path[0]  # this folder, which no command sees
    _serve(int(sys.argv[1]))
    main()
