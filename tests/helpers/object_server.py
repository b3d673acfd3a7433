"""A web server on the loopback address that answers requests for ranges, and fails on demand."""

import re
import socket
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread

from srs_ooc.store import objects


def set_patience(monkeypatch, attempts, *seconds):
    """Have requests be tried so often, and wait so long: at first, at most, for an answer."""
    for name, value in zip(("FIRST_WAIT", "LONGEST_WAIT", "TIMEOUT"), seconds, strict=True):
        monkeypatch.setattr(objects, name, value)
    monkeypatch.setattr(objects, "ATTEMPTS", attempts)


class ObjectServer(ThreadingHTTPServer):
    """Serves the files of a folder.

    ``fault(number, path, range)`` is asked before each request: None to answer it, or what goes
    wrong: ``503``, ``cut`` (half an answer), ``reset`` (none), ``slow`` (the answer in drops),
    ``stall`` (none until the server ends), ``whole`` (the range is not looked at).
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.fault = folder, lambda number, path, part: None
        self.requests, self.lock, self.over = [], Lock(), Event()

    def handle_error(self, request, client_address):
        """Say nothing of clients that went away."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: "ObjectServer"
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, *, with_body):
        server = self.server
        with server.lock:
            number = len(server.requests)
            server.requests.append((self.command, self.path, self.headers.get("Range")))
        fault = server.fault(number, self.path, self.headers.get("Range"))
        if fault == "stall":
            server.over.wait()
        if fault in ("reset", "stall"):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.close_connection = True
            return
        if fault == "503":
            self.send_error(503)
            return
        file = server.folder / self.path.lstrip("/")
        try:
            data, written = file.read_bytes(), file.stat().st_mtime_ns
        except OSError:
            self.send_error(404)
            return
        self.send(data, fault, written, with_body=with_body)

    def send(self, data, fault, written, *, with_body):
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        part = data
        if found and fault != "whole":
            part = data[int(found[1]) : int(found[2]) + 1]
            self.send_response(206)
            end = int(found[1]) + len(part) - 1
            self.send_header("Content-Range", f"bytes {found[1]}-{end}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("ETag", f'"{written:x}"')
        self.end_headers()
        if not with_body:
            return
        if fault == "cut":
            self.wfile.write(part[: len(part) // 2])
            self.close_connection = True
        elif fault == "slow":
            for start in range(0, len(part), 1 + len(part) // 8):
                self.wfile.write(part[start : start + 1 + len(part) // 8])
                self.server.over.wait(0.01)
        else:
            self.wfile.write(part)


@contextmanager
def serving(folder):
    """Yield a server of the files of a folder."""
    server = ObjectServer(folder)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
