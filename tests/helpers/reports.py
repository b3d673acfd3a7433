"""Small runs of every kind to report on, made once."""

from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import srs_ooc
from srs_ooc.results.report import Report
from srs_ooc.runs.run import Run

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a\x1b[2Jb\u202e\u2028",
    "=1+1",
    "$x^2$ `code` | & 'quoted'",
    "_hidden",
]
N_ROWS, N_FEATURES = 120, 40


@cache
def folder():
    return Path(mkdtemp(prefix="srs-ooc-reports-"))


def values_of(seed=0):
    values = np.random.default_rng(seed).standard_normal((N_ROWS, N_FEATURES))
    values[:, 6] = np.arange(N_ROWS) % 3
    values[3:9, 0] = np.nan
    return values


@cache
def run_of(kind):
    """The folder of a run: two classes, many classes, numbers, by other judges, provisional."""
    values = values_of()
    known = np.nan_to_num(values)
    y = known[:, 0] + known[:, 1] + known[:, 2]
    names = [*HOSTILE, *(f"f{i}" for i in range(len(HOSTILE), N_FEATURES))]
    targets = {
        "many": np.array([f"class <{int(v)}>" for v in np.argsort(np.argsort(y)) // 8]),
        "numbers": y,
        "nothing": np.arange(N_ROWS) % 2,
    }
    options = {
        "probe": {"judge": "probe", "iterations": 300},
        "nothing": {"judge": "probe", "iterations": 5},
        "provisional": {"iterations": 300},
        "ranked": {"iterations": 20, "model": "knn", "judge": "none"},
    }
    store, run = folder() / f"{kind}.zarr", folder() / f"{kind}.run"
    target = targets.get(kind, np.where(y > 0, "ill", "well"))
    srs_ooc.ingest(values, store, target=target, names=names)
    given = {"iterations": 300, "q": 15, "memory_mb": 4000, "out": run} | options.get(kind, {})
    if kind != "provisional":
        return srs_ooc.run(store, **given).run

    def stop(step):
        raise KeyboardInterrupt

    try:
        srs_ooc.run(store, progress=stop, **given)
    except KeyboardInterrupt:
        return run
    raise AssertionError("it was to be stopped")


KINDS = ["classes", "many", "numbers", "probe", "nothing", "provisional"]


@contextmanager
def report_of(kind):
    ledger = Run(run_of(kind), writable=False)
    try:
        yield Report(ledger, ledger.find_store())
    finally:
        ledger.close()
