"""A store behind a web server that takes its time, beside the same store on the local disk.

Claims: what is found is the same; the peak stays under the cap; a store larger than its cap is
drawn in blocks, whose requests bring about the bytes that are wanted.

A server on the loopback address waits before each answer. The same
command is run on the local folder and on the URL, with an empty cache and again with the full one.

    python benchmarks/remote_store.py [--features 200000 --rows 1000 --memory-mb 190 --wait-ms 30]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from bench_cold import write_without_values

from srs_ooc.synthetic.blocks import Noise


class Server(ThreadingHTTPServer):
    """Serves a folder after a wait; counts its answers and their bytes."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder: Path, seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.seconds, self.counts = folder, seconds, [0, 0]


class Handler(BaseHTTPRequestHandler):
    """Answers requests for files and ranges of them."""

    server: Server
    protocol_version = "HTTP/1.1"
    log_message = partial(lambda *_: None)

    def do_GET(self) -> None:
        """Answer with a file or a range of it."""
        time.sleep(self.server.seconds)
        file = self.server.folder / self.path.lstrip("/")
        if not file.is_file():
            self.send_error(404)
            return
        size, asked = file.stat().st_size, self.headers.get("Range", "")
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", asked)
        start, stop = (int(found[1]), int(found[2]) + 1) if found else (0, size)
        with file.open("rb") as opened:
            data = os.pread(opened.fileno(), stop - start, start)
        sent = len(data) if self.command == "GET" else 0
        self.server.counts = [self.server.counts[0] + 1, self.server.counts[1] + sent]
        self._send(206 if found else 200, data, f"bytes {start}-{stop - 1}/{size}")

    do_HEAD = do_GET  # noqa: N815 (the library's name)

    def _send(self, status: int, data: bytes, content_range: str | None = None) -> None:
        self.send_response(status)
        if status == 206 and content_range:
            self.send_header("Content-Range", content_range)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)


def measured(store: str, out: Path, options: argparse.Namespace, cache: Path) -> dict[str, object]:
    """Run a command; return its seconds, its peak in MB and what it selected."""
    program = [sys.executable, "-P", "-m", "srs_ooc"]
    shutil.rmtree(out, ignore_errors=True)
    run = [*program, "run", store, "--out", str(out), "--judge", "probe", "--seed", "1"]
    run += ["--iterations", str(options.iterations), "--memory-mb", str(options.memory_mb)]
    run += ["--q", "2500"]
    kept = {"SRS_OOC_CACHE_DIR": str(cache), "SRS_OOC_CACHE_MB": str(options.cache_mb)}
    started = time.perf_counter()
    done = subprocess.run(
        ["/usr/bin/time", "-f", "peak %M", *run],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | kept,
    )
    seconds = time.perf_counter() - started
    features = [*program, "features", str(out), "--json", "--store", str(options.local)]
    best = subprocess.run(features, capture_output=True, text=True, check=True).stdout
    peak = int(done.stderr.rsplit("peak ", 1)[1]) * 1024 / 1e6
    return {"seconds": round(seconds, 2), "peak_mb": round(peak, 1), "found": hash(best)}


def main() -> None:
    """Print one line for each way of reading the store."""
    parser = argparse.ArgumentParser(description=__doc__)
    numbers = {"features": 200_000, "rows": 1000, "memory-mb": 190, "wait-ms": 30}
    numbers |= {"iterations": 200, "cache-mb": 2048}
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        options.local = folder / "t.zarr"
        write_without_values(options.local, Noise(options.rows, options.features, 0))
        server = Server(folder, options.wait_ms / 1000)
        Thread(target=server.serve_forever, daemon=True).start()
        show(folder, server, options)
        server.shutdown()


def show(folder: Path, server: Server, options: argparse.Namespace) -> None:
    """Measure each way and print it."""
    results, url = [], f"http://127.0.0.1:{server.server_port}"
    for name, store in (
        ("local disk", str(options.local)), ("URL, empty cache", f"{url}/t.zarr"),
        ("URL, full cache", f"{url}/t.zarr"),
    ):  # fmt: skip
        server.counts = [0, 0]
        found = measured(store, folder / "run", options, folder / "cache")
        n_requests, nbytes = server.counts
        results.append(found.pop("found"))
        print(f"{name:<18} {found} requests {n_requests} MB {nbytes / 1e6:.1f}")
    print("the same features:", len(set(results)) == 1)


if __name__ == "__main__":
    main()
