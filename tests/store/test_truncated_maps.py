"""A chunk file cut short while it is mapped is an error of the gather, not of the process."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from command import environment
from stores import make_store

from srs_ooc.ingestion.ingest import ingest_table
from srs_ooc.ingestion.ingest_options import IngestOptions

GATHER = """
import faulthandler, os, signal, sys, threading
from pathlib import Path
import numpy as np
from srs_ooc.base.errors import StoreError
from srs_ooc.store.store import Store
from srs_ooc.trees.block import Block

path, then = Path(sys.argv[1]), sys.argv[2]
if then == "faulthandler":
    faulthandler.enable()
with Store.open(path).columns(mapped=True) as store:
    block = Block(70, store.manifest.n_rows, 1, tiled=True)
    items = np.arange(70, dtype=np.uint32)
    rows = np.arange(9, dtype=np.int32)
    store.gather(items, block)
    before = block.codes.copy()
    file = path / "codes" / "c" / "0" / "0"
    whole = file.read_bytes()
    os.truncate(file, 5000)
    found = []
    def gather(**how):
        try:
            store.gather(items, block, **how)
        except StoreError as error:
            found.append(str(error))
    for _ in range(3):
        gather()
    gather(rows=rows)
    threads = [threading.Thread(target=gather) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12 and len(set(found)) == 1, found
    print(found[0])
    file.write_bytes(whole)  # the same file, whole again
    store.gather(items, block)
    assert np.array_equal(before, block.codes)
if then == "other":
    os.kill(os.getpid(), signal.SIGBUS)
"""


@pytest.mark.few(2)
@pytest.mark.parametrize("then", ["nothing", "faulthandler", "other"])
def test_a_chunk_cut_short_under_a_mapped_store_is_a_store_error(tmp_path, then):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((70, 1000))
    store = make_store(tmp_path / "t.zarr", values, np.arange(1000) % 2)
    done = subprocess.run(
        [sys.executable, "-c", GATHER, store, then],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=3600,
        check=False,
    )
    # a SIGBUS that is none of a gather still ends the process, as without us
    expected = -signal.SIGBUS if then == "other" else 0
    assert done.returncode == expected, done.stderr
    if then != "other":  # what was printed is lost with the process
        assert "chunk file 0: expected 70000 bytes, found that it was cut short" in done.stdout


SMALL = """
import os, sys
from pathlib import Path
from srs_ooc.base.errors import StoreError
from srs_ooc.store.store import Store

store = Store.open(Path(sys.argv[1]))
read = lambda: [store.target(), store.weights(), store.strata(), store.groups(), store.kinds(),
                store.array("positions"), store.array("n_missing")]
arrays = read()
expected = [array.copy() for array in arrays]
names, ids, categories = store.names, store.row_ids, store.categories()
pieces = store.pieces("positions")
for name in store.manifest.small_arrays:
    os.truncate(store.path / name / "c" / "0", 1)
assert all((a == b).all() for a, b in zip(arrays, expected, strict=True))
uses = [lambda: names[1], lambda: list(ids), lambda: names.find(["a"]), lambda: next(pieces),
        lambda: [categories.of(i) for i in range(store.n_features)], read, store.check_files]
for use in uses:
    try:
        use()
    except StoreError as error:
        print(error)
"""


def test_small_arrays_cut_short_while_they_are_in_use_are_store_errors(tmp_path):
    rows = "".join(f"r{i},{i},{'pqr'[i % 3]},{i + 1},{i // 3},{i // 2},{i % 2}\n" for i in range(9))
    (tmp_path / "t.csv").write_text("id,a,c,w,s,g,y\n" + rows)
    options = IngestOptions("y", weights="w", strata=("s",), groups="g", row_ids="id")
    ingest_table(tmp_path / "t.csv", tmp_path / "t.zarr", options)
    done = subprocess.run(
        [sys.executable, "-c", SMALL, tmp_path / "t.zarr"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = done.stdout.splitlines()
    assert len(found) == 7, found
    assert all("/c/0: expected" in line for line in found), found
