"""A command that is refused writes nothing: what it was given is as it was, byte by byte."""

import shutil
from contextlib import closing

import pytest
from command import forked, json_of, srs_ooc
from stores import make_store, noise_table

from srs_ooc.runs.request import Request
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.store.store import Store

JUDGED = {"judge": "tests", "subspace_size": "20", "fdr": "0.2", "bootstrap": True}
KINDS: dict[str, tuple[dict[str, object], int | None]] = {
    "finished": (JUDGED, None),
    "stopped": (JUDGED, 30),
    "begun": (JUDGED, 0),
    "probe": ({"judge": "probe", "subspace_size": "20"}, None),
    "weighted": ({"method": "less", "judge": "positive", "subspace_size": "20"}, None),
    "unweighted": ({"method": "less", "judge": "positive", "subspace_size": "20"}, 0),
    "linear": ({"method": "rs", "judge": "none", "model": "linear", "subspace_size": "9"}, None),
}
N_ITERATIONS = 60
CAPS = [("--memory-mb", cap) for cap in ("0", "1", "12", "20", "30.5", "x")]
RESUMED = [
    *[("--iterations", "400", *cap) for cap in CAPS],
    *[("--iterations", "400", "--threads", n) for n in ("0", "-1", "x")],
    *[("--iterations", n) for n in ("0", "-3", "x")],
    ("--iterations", "400", "--dask", "missing.json"),
    ("--iterations", "400", "--worker-memory-mb", "0"),
    ("--iterations", "400", "--accept-loss", "--memory-mb", "12"),
    ("--iterations", "400", "--cache-mb", "3"),
    ("--iterations", "400", "--iterations"),
    ("--unknown",),
]
STORES = [("--store", "other.zarr"), ("--store", "missing.zarr")]
READERS: dict[str, list[tuple[str, ...]]] = {
    "status": [*CAPS[:3], ("--unknown",)],
    "features": [*CAPS[:3], *STORES, ("--top", "0"), ("--why", "nobody")],
    "compare": [("missing.run",), ("s.zarr",)],
    "report": [*CAPS, *STORES, ("--figure", "x"), ("--format", "x"), ("-o", "no/where.html")],
    "compact": [
        *CAPS,
        *STORES,
        *[
            (f"--{name}", n)
            for name in ("folds", "repeats", "max-features", "threads")
            for n in ("0", "x")
        ],
        ("--folds", "1"),
        ("--folds", "1000"),
        ("--dask", "missing.json"),
    ],
    "export": [
        ("no/where.csv",),
        ("out.csv", "--top", "0"),
        ("out.csv", "--names", "missing.txt"),
        ("out.csv", "--memory-mb", "12"),
    ],
    "predict": [
        ("missing.csv", "p.csv"),
        ("table.csv", "no/p.csv"),
        ("wrong.txt", "p.csv"),
        ("s.zarr", "no/p.csv"),
        ("s.zarr", "p.csv", "--row-ids", "x"),
        ("s.zarr", "p.csv", "--memory-mb", "12"),
        ("s.zarr", "p.csv", "--rows", "x"),
    ],
    "sensitivity": [
        *CAPS,
        *STORES,
        ("--rows", "missing.txt"),
        ("--flip", "x"),
        ("--repeats", "0"),
        ("--threads", "0"),
        ("--top", "0"),
    ],
    "remove": [("--unknown",)],
    "verify": [*CAPS, ("--unknown",)],
}
NETWORKS = [
    *CAPS[1:3],
    ("--memory-mb", "57"),
    ("--plan", "--memory-mb", "12"),
    *[(f"--{name}", "0") for name in ("threads", "top", "trees", "k", "worker-memory-mb")],
    ("--method", "x"),
    ("--method", "srs", "--alpha", "2"),
    ("--method", "srs", "--q", "1000"),
    ("--method", "prs", "--with", "trees=5"),
    ("--method", "prs", "--with", "inclusion=7"),
    *[(f"--{name}", "missing.txt") for name in ("regulators", "targets", "rows", "config")],
    *[(f"--{name}", "wrong.txt") for name in ("regulators", "targets", "rows", "config")],
    ("--run", "s.zarr"),
    ("--run", "finished.run"),
    ("--dask", "missing.json"),
    ("--unknown",),
]
"""Refused whether or not there is such a network; and where there is one, for what differs."""
LINES: list[tuple[str, str, tuple[str, ...]]] = [
    *[("resume", kind, how) for kind in ("finished", "stopped", "probe") for how in RESUMED],
    *[("resume", kind, how) for kind in KINDS for how in RESUMED[2:4]],
    ("resume", "stopped", ("--iterations", "29")),
    *[("resume", kind, ("--memory-mb", "20")) for kind in ("stopped", "finished", "linear")],
    ("resume", "unweighted", ("--memory-mb", "58")),
    ("resume", "probe", ("--iterations", "400", "--until-stable")),
    *[(command, "finished", how) for command, hows in READERS.items() for how in hows],
    *[
        ("network", "s.zarr", (*how, "--out", out))
        for out, hows in (("new.csv", NETWORKS), ("n.csv", [*NETWORKS[::6], ("--seed", "2")]))
        for how in hows
    ],
    *[("network", "s.zarr", ("--out", out)) for out in ("no/n.csv", "n.xlsx", "wrong.txt")],
    ("compact", "stopped", ()),
    *[(command, "linear", ()) for command in ("compact", "sensitivity")],
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with stores, a run of each kind, and a network."""
    folder = tmp_path_factory.mktemp("refused")
    values, labels = noise_table(80, 300, n_relevant=4)
    store = make_store(folder / "s.zarr", values, labels)
    make_store(folder / "other.zarr", values[:200], labels)
    for kind, (options, stopped_at) in KINDS.items():
        saves = True if options is JUDGED else None
        asked = Request(options=options, iterations=N_ITERATIONS, save_trees=saves)
        with closing(open_or_create(Store.open(store), folder / f"{kind}.run", asked)) as ledger:
            if stopped_at != 0:
                stops = (lambda step: step.done < 30) if stopped_at else (lambda _: True)
                work_on(ledger, Store.open(store), asked, stops)
    (folder / "wrong.txt").write_text("nobody\n")
    srs_ooc("network", store, "--with", "trees=1", "--out", folder / "n.csv", "-q")
    return folder


def content(folder):
    """All files, but for the empty log and the index that SQLite makes to read a ledger."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    found = {path: path.read_bytes() for path in files if not path.name.endswith("-shm")}
    return {path: data for path, data in found.items() if data or not path.name.endswith("-wal")}


@pytest.mark.slow
@pytest.mark.parametrize(("command", "kind"), dict.fromkeys(line[:2] for line in LINES))
def test_a_refused_command_writes_nothing(made, command, kind):
    subject = made / (kind if "." in kind else f"{kind}.run")
    wrong, before = [], content(made)
    for how in [how for *which, how in LINES if which == [command, kind]]:
        words = [word if word.startswith("-") or "." not in word else made / word for word in how]
        done = forked(command, subject, *words, cwd=made)
        after = content(made)
        changed = [path.name for path in {**before, **after} if before.get(path) != after.get(path)]
        if changed or done.returncode != 2:
            wrong.append((how, changed, done.returncode, done.stderr[-300:]))
        before = after
    assert not wrong


@pytest.mark.slow
def test_a_run_that_is_done_keeps_its_cap_and_one_that_goes_on_takes_the_new(made, tmp_path):
    run = shutil.copytree(made / "finished.run", tmp_path / "f.run")
    before = json_of("status", run, "--json")
    said = srs_ooc("resume", run, "--memory-mb", 100).stdout
    assert f"of {before['memory_mb']} MB." in said
    assert json_of("status", run, "--json") == before
    srs_ooc("resume", run, "--memory-mb", 300, "--iterations", N_ITERATIONS + 5)
    after = json_of("status", run, "--json")
    assert (after["memory_mb"], after["iterations_asked"]) == (300, N_ITERATIONS + 5)
    assert after["state"] == "finished"
