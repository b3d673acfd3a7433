"""`ingest` and `inspect` as a user meets them: what they print, and every bad input they refuse."""

import errno
import gzip
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from srs_ooc.base.files import MARKER, SCRATCH_SUFFIX
from srs_ooc.cli import main
from srs_ooc.ingestion import reading, sources, stages
from srs_ooc.store import writing

GOOD = "id,a,b,y\nr1,1,2,u\nr2,3,,v\nr3,5,6,u\n"


@pytest.fixture
def run(capsys):
    """Run the command line in this process; return exit status, stdout and stderr."""

    def run_command(*arguments: object) -> tuple[int, str, str]:
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = int(end.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return run_command


def make(folder: Path, text: str | bytes) -> Path:
    path = folder / "t.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_refused(result: tuple[int, str, str], *fragments: str) -> None:
    status, _, err = result
    assert status == 2, err
    assert err.startswith("srs-ooc: ")
    assert "Traceback" not in err
    for fragment in fragments:
        assert fragment in err


def test_ingest_then_inspect(tmp_path, run):
    store = tmp_path / "t.zarr"
    status, out, err = run("ingest", make(tmp_path, GOOD), store, "--row-ids", "id")
    assert (status, err) == (0, "")
    assert "3 rows x 2 features" in out
    assert "target: 'y', the last column (classification, 2 classes)" in out
    assert "missing: 1 cells in 1 features" in out
    status, out, _ = run("inspect", store)
    assert status == 0
    for fragment in ("u (2), v (1)", "uint8", "float32", "a, b"):
        assert fragment in out
    assert run("inspect", store, "--names")[1] == "a\nb\n"
    assert run("inspect", store, "--row-ids")[1].splitlines() == [
        line.split(",")[0] for line in GOOD.splitlines()[1:]
    ]


def test_inspect_json_has_the_documented_keys(tmp_path, run):
    store = tmp_path / "t.zarr"
    run("ingest", make(tmp_path, GOOD), store, "--target", "y", "--ignore", "id")
    status, out, _ = run("inspect", store, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["n_rows"] == 3
    assert found["n_features"] == 2
    assert (found["task"], found["target"]) == ("classification", "y")
    assert (found["classes"], found["class_counts"]) == (["u", "v"], [2, 1])
    assert (found["n_missing_cells"], found["n_missing_features"]) == (1, 1)
    assert found["first_names"] == ["a", "b"]
    assert found["source"]["name"] == "t.csv"
    _, help_text, _ = run("inspect", "--help")
    assert all(key in help_text for key in found)


BAD_TABLES = {
    "empty file": ("", ["found an empty file"]),
    "only blank lines": ("\n\r\n\n", ["found only blank lines"]),
    "header only": ("a,b,y\n", ["expected rows after the header, found none"]),
    "too few fields": ("a,b,y\n1,2,u\n1,u\n", ["line 3", "expected 3 fields", "found 2"]),
    "too many fields": ("a,b,y\n1,2,u\n\n1,2,3,u\n", ["line 4", "expected 3 fields", "found 4"]),
    "no number": ("a,b,y\n1,2,u\n1,zwei,v\n", ["line 3", "column 'b'", "'zwei'", "--ignore"]),
    "infinity": ("a,b,y\n1,-inf,u\n1,2,v\n", ["line 2", "column 'b'", "'-inf'", "finite"]),
    "overflow": ("a,b,y\n1,1e999,u\n1,2,v\n", ["line 2", "column 'b'", "'1e999'", "finite"]),
    "duplicate names": ("a,b,a,b,y\n1,2,3,4,u\n", ["distinct column names", "'a' at 1 and 3"]),
    "one class": ("a,y\n1,u\n2,u\n", ["at least two classes", "only 'u'", "column 'y'"]),
    "one label": ("a,y\n1,u\n2,\n", ["at least two classes", "only 'u'", "column 'y'"]),
    "no label": ("a,y\n1,\n2,\n", ["at least two classes", "found none", "column 'y'"]),
    "ids as a feature": ("id,a,y\nr,1,u\ns,2,v\n", ["'id'", "2 different texts", "--row-ids"]),
    "decimal commas": ("a;y\n1,5;u\n2,5;v\n", ["line 2", "'1,5'", "--decimal comma"]),
    "text before a number": ("a,y\n,u\noops,v\n3,u\n", ["line 3", "'oops'", "--kind"]),
    "no feature": ("y\nu\nv\n", ["at least one feature"]),
    "infinite target": ("a,y\n1,0\n2,1\n3,-inf\n", ["line 4", "'-inf'", "--task regression"]),
    "open quote": ('a,y\n1,u\n2,"v\n', ["line 3", "quote that opens here"]),
    "not UTF-8": (b"a\xff,y\n1,u\n2,v\n", ["the header", "expected UTF-8"]),
    "UTF-16": ("a,y\n1,u\n".encode("utf-16"), ["found text in UTF-16", "iconv -f utf-16"]),
    "a zip": (b"PK\x03\x04....", ["found a zip archive"]),
    "broken gzip": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03+I", ["gzip", "damage"]),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_are_refused_and_leave_nothing(tmp_path, run, case):
    content, fragments = BAD_TABLES[case]
    source = make(tmp_path, content)
    assert_refused(run("ingest", source, tmp_path / "t.zarr"), str(source), *fragments)
    assert listing(tmp_path) == ["t.csv"]


def test_the_second_of_two_pairs_of_row_ids_is_named(tmp_path, run):
    source = make(tmp_path, "id,a,y\nr1,1,u\nr2,2,v\nr1,3,u\n")
    result = run("ingest", source, tmp_path / "t.zarr", "--row-ids", "id")
    assert_refused(result, "distinct row ids", "'r1' at 1 and 3")
    assert listing(tmp_path) == ["t.csv"]


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        (["--target", "z"], ["no such column 'z' (--target)", "'id', 'a', 'b', 'y'"]),
        (["--row-ids", "z"], ["no such column 'z' (--row-ids)"]),
        (["--ignore", "z"], ["no such column 'z' (--ignore)"]),
        (["--target", "a", "--row-ids", "a"], ["--row-ids", "--target", "'a'"]),
        (["--target", "a", "--ignore", "a"], ["--ignore", "--target", "'a'"]),
        (["--strata", "a,a"], ["as --strata and --strata", "Leave one of them out"]),
        (["--strata", "a,"], ["names separated by commas", "'a,'"]),
        (["--strata", '"a,b"'], ["no such column 'a,b' (--strata)"]),
        (["--kind", "y=categorical"], ["--kind", "the target 'y'", "--task"]),
        (["--memory-mb", "20", "--ignore", "id"], ["--memory-mb 20 cannot hold", "smallest cap"]),
    ],
)
def test_bad_options_are_refused_and_leave_nothing(tmp_path, run, options, fragments):
    result = run("ingest", make(tmp_path, GOOD), tmp_path / "t.zarr", *options)
    assert_refused(result, *fragments)
    assert listing(tmp_path) == ["t.csv"]


@pytest.mark.parametrize(
    "options",
    [["--missing", "-9"], ["--separator", ";"], ["--no-header"], ["--decimal", "comma"]],
)
def test_options_of_text_tables_are_not_passed_over_elsewhere(tmp_path, run, options):
    np.save(tmp_path / "t.npy", np.arange(12.0).reshape(6, 2))
    result = run("ingest", tmp_path / "t.npy", tmp_path / "t.zarr", *options)
    assert_refused(result, "t.npy", options[0], "only for text tables")
    assert listing(tmp_path) == ["t.npy"]


def test_sources_that_are_not_there(tmp_path, run):
    result = run("ingest", tmp_path / "none.csv", tmp_path / "t.zarr")
    assert_refused(result, "none.csv", "no such file")
    (tmp_path / "folder").mkdir()
    result = run("ingest", tmp_path / "folder", tmp_path / "t.zarr")
    assert_refused(result, "found a folder")


def test_an_existing_store_is_kept(tmp_path, run):
    source, store = make(tmp_path, GOOD), tmp_path / "t.zarr"
    run("ingest", source, store, "--ignore", "id")
    before = (store / "zarr.json").read_bytes()
    assert_refused(run("ingest", source, store, "--ignore", "id"), "t.zarr", "in use")
    assert (store / "zarr.json").read_bytes() == before


def test_a_folder_that_cannot_be_written(tmp_path, run):
    source = make(tmp_path, GOOD)
    result = run("ingest", source, tmp_path / "no such folder" / "t.zarr")
    assert_refused(result, "cannot be written", "No such file or directory")
    assert_refused(run("ingest", source, source / "t.zarr"), "cannot be written")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    if not os.access(locked, os.W_OK):  # root may write anywhere
        result = run("ingest", source, locked / "t.zarr")
        assert_refused(result, "cannot be written", "Permission denied")


def test_too_little_disk_is_refused_before_work(tmp_path, run, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9, 5))
    source = make(tmp_path, GOOD)
    result = run("ingest", source, tmp_path / "t.zarr", "--ignore", "id")
    assert_refused(result, "of free disk", "found 5 bytes", "scratch")
    assert listing(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("name", ["t.csv", "t.npy"])
def test_a_dry_run_says_the_disk_that_an_ingest_asks_for(tmp_path, run, monkeypatch, name):
    values = np.random.default_rng(0).standard_normal((300, 40))
    if name == "t.npy":
        np.save(tmp_path / name, values)
    else:
        np.savetxt(tmp_path / name, values, delimiter=",", header=names(40), comments="")
    asked = ("ingest", tmp_path / name, tmp_path / "t.zarr", "--no-target")
    said = run(*asked, "--dry-run")[1]
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9, 5))
    refused = " ".join(run(*asked)[2].split())
    scratch, store = re.findall(
        r"(?:scratch disk|store): (?:at most )?(?:about )?([\d.]+ kB)", said
    )
    assert f"({scratch} of scratch, given back at the end, and {store} for the store)" in refused


def names(count):
    return ",".join(f"c{i}" for i in range(count))


def test_a_disk_that_fills_up_leaves_nothing(tmp_path, run, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writing.SyncedFile, "write", full)
    source = make(tmp_path, GOOD)
    result = run("ingest", source, tmp_path / "t.zarr", "--ignore", "id")
    assert_refused(result, "cannot be written: No space left", "has room")
    assert listing(tmp_path) == ["t.csv"]


def wide_table(folder: Path, n_rows: int = 400, n_features: int = 2000) -> Path:
    header = ",".join(f"f{j}" for j in range(n_features))
    cells = ",".join(f"{j / 7:.4f}" for j in range(n_features))
    rows = "".join(f"{cells},{'uv'[i % 2]}\n" for i in range(n_rows))
    return make(folder, f"{header},y\n{rows}")


def command(source: Path, store: Path) -> list[str]:
    return [sys.executable, "-m", "srs_ooc", "ingest", str(source), str(store)]


@pytest.mark.slow
def test_a_limit_met_by_the_spool_itself_leaves_nothing(tmp_path):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    source = wide_table(tmp_path)
    done = subprocess.run(
        command(source, tmp_path / "t.zarr"),
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert_refused((done.returncode, done.stdout, done.stderr), "cannot be written: File too")
    assert listing(tmp_path) == ["t.csv"]


def test_a_killed_ingest_leaves_no_store_and_the_next_one_clears_up(tmp_path, run):
    source, store = wide_table(tmp_path), tmp_path / "t.zarr"
    scratch = tmp_path / (store.name + SCRATCH_SUFFIX)
    for delay in (0.0, 0.05, 0.1):
        process = subprocess.Popen(command(source, store))
        while not scratch.exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not store.exists() or run("verify", store)[0] == 0
        shutil.rmtree(store, ignore_errors=True)
    scratch.mkdir(exist_ok=True)
    (scratch / MARKER).touch()
    (scratch / "left over").write_text("x")
    assert run("ingest", source, store)[0] == 0
    assert not scratch.exists()
    assert not (store / "left over").exists()
    assert not (store / "scratch").exists()
    assert run("verify", store)[0] == 0


def test_inspect_refuses_what_is_no_store_or_not_whole(tmp_path, run):
    assert_refused(run("inspect", tmp_path / "none.zarr"), "nothing there")
    assert_refused(run("inspect", tmp_path), "without zarr.json")
    store = tmp_path / "t.zarr"
    run("ingest", make(tmp_path, GOOD), store, "--ignore", "id")
    chunk = store / "codes" / "c" / "0" / "0"
    whole = chunk.read_bytes()
    chunk.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    assert_refused(run("verify", store), "codes/c/0/0", "CRC-32")
    chunk.write_bytes(whole[:-1])
    assert_refused(run("inspect", store), "codes/c/0/0", f"expected {len(whole)} bytes")
    chunk.unlink()
    assert_refused(run("inspect", store), "codes/c/0/0", "no file")
    metadata = store / "zarr.json"
    metadata.write_text(metadata.read_text().replace('"format": 3', '"format": 7'))
    assert_refused(run("inspect", store), "expected store format 3 to 6, found 7")


def test_a_pipe_is_refused_at_once_and_standard_input_is_named(tmp_path, run):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert_refused(run("ingest", pipe, tmp_path / "x.zarr"), "found a pipe", "`-`")
    assert_refused(run("ingest", pipe, tmp_path / "x.zarr", "--memory-mb", "nan"), "memory-mb")


def test_a_dry_run_says_what_it_takes_and_writes_nothing(tmp_path, run):
    source = make(tmp_path, "a,b,y\n" + "1.5,2,u\n3,4,v\n" * 500)
    looked_at = "rows: about 1001", "scratch disk: about 24.0 kB", "4000 is enough"
    too_small = "rows: about 1001", "5 is NOT enough"
    for memory_mb, texts in ((4000, looked_at), (5, too_small)):
        caps = ("--memory-mb", memory_mb)
        status, out, err = run("ingest", source, tmp_path / "t.zarr", "--dry-run", *caps)
        assert (status, err) == (0, "")
        assert [text for text in ("columns: 3", *texts) if text not in out] == []
    assert listing(tmp_path) == ["t.csv"]
    assert_refused(run("ingest", "-", tmp_path / "t.zarr", "--dry-run"), "found standard input")


KIND = "kind of target:"
COUNTS = f"{KIND} 20 classes, in 42 rows '0' 3, '1' 3, '10' 2, '11' 2, '12' 2, ..."
ONE = "features: 1 column of numbers, 0 of texts (categories)"
FORETOLD = {
    "classes": ("", "target: 'y', the last column", f"{KIND} 2 classes, in 42 rows 'u'"),
    "numbers": ("--target a", "target: 'a'\n", COUNTS, "2 columns of numbers, 2 of texts (cat"),
    "said": ("--target a --task regression", f"{KIND} numbers, in 42 rows"),
    "time": ("--time a --event y=v", "target: 'a'\n", "events: 'y'", f"{KIND} numbers,"),
    "beside": ("--covariates a,b --groups t", "covariates: 'a', 'b'", "groups: 't'", ONE),
    "none": ("--no-target", "columns: 5"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "expected"), [(o, e) for o, *e in FORETOLD.values()])
def test_a_dry_run_says_what_the_columns_are(tmp_path, run, options, expected):
    lines = [f"{i % 20},{i / 7},{'pq'[i % 2]},{i % 2},{'uv'[i % 2]}" for i in range(41)]
    source = make(tmp_path, "\n".join(["a,b,t,c,y", *lines, "1,2,p,0,"]) + "\n")
    status, out, _ = run("ingest", source, tmp_path / "t.zarr", "--dry-run", *options.split())
    assert status == 0
    assert [text for text in expected if text not in out] == []


def feather_and_parquet(folder: Path, names: str, values: NDArray[np.float64]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    table = pyarrow.Table.from_arrays([*map(pyarrow.array, values.T)], names=[*names])
    parquet.write_table(table, folder / "t.parquet")
    feather.write_feather(table, folder / "t.feather")


ROWS = [f"r{i},{i % 7},{i / 3},{'uv'[i % 2]}" for i in range(120)]
MIXED = [*ROWS[:110], "r110,3,oops,u", *ROWS[111:]]
SAMPLES = "id,y\n" + "".join(f"s{i},{'uv'[i % 2]}\n" for i in range(4))
NAMED = ("--names", "names.txt")
BESIDE = ("--orient", "features", "--samples", "samples.csv", "--id", "id", "--target", "y")
REFUSED = {
    "a doubled name": ("t.csv", "id,a,a,y", ROWS),
    "a doubled name, packed": ("t.csv.gz", "id,a,a,y", ROWS),
    "a doubled name as target": ("t.csv", "id,a,a,y", ROWS, "--target", "a"),
    "a doubled name beside": ("t.npy", "", [], *NAMED),
    "a doubled name in Parquet": ("t.parquet", "", []),
    "a doubled name in Feather": ("t.feather", "", []),
    "a doubled feature": ("t.csv", "id,s0,s1,s2,s3", ["a,1,2,3,4", "a,1,2,3,5"], *BESIDE),
    "a mixed column": ("t.csv", "id,a,b,y", MIXED),
    "a mixed feature": ("t.csv", "id,s0,s1,s2,s3", ["a,1,2,3,4", "b,1,2,x,5"], *BESIDE),
    "a kind that does not hold": ("t.csv", "id,a,b,y", ROWS, "--kind", "b=integer"),
    "a ragged row": ("t.csv", "id,a,b,y", [*ROWS, "1,2"]),
    "an id twice": ("t.csv", "id,a,b,y", [*ROWS, ROWS[3]], "--row-ids", "id"),
    "a rare class": ("t.csv", "id,a,b,y", [*ROWS, "r120,1,2,w"]),
    "texts to aggregate": ("t.csv", "id,a,b,y", ROWS, "--groups", "a", "--aggregate", "mean"),
    "an infinity": ("t.npy", "", []),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
def test_a_dry_run_refuses_what_the_ingest_refuses(tmp_path, run, monkeypatch, fault):
    name, header, rows, *options = REFUSED[fault]
    monkeypatch.chdir(tmp_path)
    values = np.arange(160.0).reshape(40, 4)
    values[33, 2] = math.inf if fault == "an infinity" else 0
    np.save("t.npy", values)
    text = "\n".join([header, *rows]) + "\n"
    for path, said in (("names.txt", "a\nb\na\ny\n"), ("samples.csv", SAMPLES), ("t.csv", text)):
        Path(path).write_text(said)
    if name.endswith(".gz"):
        Path(name).write_bytes(gzip.compress(text.encode()))
    if name in ("t.parquet", "t.feather"):
        feather_and_parquet(tmp_path, "abay", values)
    before = listing(tmp_path)
    dry = run("ingest", name, "t.zarr", *options, "--dry-run")
    status, said, error = run("ingest", name, "t.zarr", *options)
    assert_refused((status, said, error), name)
    assert dry[::2] == (status, error)
    assert re.fullmatch("(read as: .*\n)?", dry[1])
    assert listing(tmp_path) == before


@pytest.fixture
def long_from(monkeypatch):
    """Have texts of so many bytes be long, and so many be read at either end."""

    def set_both(whole: int, end: int) -> None:
        for module in (sources, reading, stages):
            monkeypatch.setattr(module, "WHOLE_NBYTES", whole)
        monkeypatch.setattr(sources, "_END_NBYTES", end)

    return set_both


def test_a_dry_run_of_a_long_text_says_what_it_looked_at(tmp_path, run, long_from):
    lines = [f"{i},{i / 3:.3f},{'uv'[i % 2]}" for i in range(3000)]
    asked = ("ingest", make(tmp_path, "\n".join(["a,b,y", *lines]) + "\n"), tmp_path / "t.zarr")
    assert f"looked at: {tmp_path}/t.csv\n" in run(*asked, "--dry-run")[1]
    long_from(10_000, 2000)
    out = run(*asked, "--dry-run")[1]
    assert re.search(r"looked at: .*t.csv, first and last 2.0 kB of [\d.]+ kB\n", out)
    n_rows = int(re.search(r"kind of target: 2 classes, in (\d+) rows", out)[1])
    assert 200 < n_rows < 400
    lines[1500] = "1,oops,u"
    make(tmp_path, "\n".join(["a,b,y", *lines]) + "\n")
    assert run(*asked, "--dry-run")[0] == 0  # lies between the two
    for place in (20, 2990):
        make(tmp_path, "\n".join(["a,b,y", *lines[:place], "1,oops,u", *lines[place:]]) + "\n")
        refused = run(*asked, "--dry-run")
        assert_refused(refused, "first and last 2.0 kB of", "column 'b'", "found 'oops'")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    refused = run("ingest", tmp_path / "t.csv.gz", *asked[2:], "--dry-run")
    assert_refused(refused, "t.csv.gz, first 10.0 kB of", "found 'oops'")


def test_a_dry_run_of_a_long_table_of_another_format_looks_at_names(tmp_path, run, long_from):
    np.save(tmp_path / "t.npy", np.arange(40_000.0).reshape(1000, 40))
    asked = ("ingest", tmp_path / "t.npy", tmp_path / "t.zarr", "--names", tmp_path / "names.txt")
    (tmp_path / "names.txt").write_text("".join(f"n{i}\n" for i in range(40)))
    assert "looked at" not in run(*asked, "--dry-run")[1]
    long_from(10_000, 2000)
    assert "looked at: names and shape" in run(*asked, "--dry-run")[1]
    (tmp_path / "names.txt").write_text("".join(f"n{i % 39}\n" for i in range(40)))
    assert_refused(run(*asked, "--dry-run"), "found 'n0' at 1 and 40", "--rename-repeated")


def test_a_dry_run_counts_what_an_archive_unpacks_to(tmp_path, run):
    values = np.arange(600.0).reshape(60, 10)
    np.savez(tmp_path / "t.npz", values)
    np.save(tmp_path / "t.npy", values)
    for name, scratch in (("t.npy", "4.8 kB"), ("t.npz", "9.7 kB")):
        done = run("ingest", tmp_path / name, tmp_path / "t.zarr", "--dry-run")
        assert f"scratch disk: {scratch}" in done[1]
    assert listing(tmp_path) == ["t.npy", "t.npz"]


def test_a_store_is_replaced_only_when_asked_and_only_when_the_new_one_is_complete(run, tmp_path):
    store = tmp_path / "t.zarr"
    ids = ("--row-ids", "id")
    assert run("ingest", make(tmp_path, GOOD), store, *ids)[0] == 0
    assert_refused(run("ingest", make(tmp_path, GOOD), store, *ids), "in use", "--overwrite")
    before = (store / "zarr.json").read_bytes()
    bad = make(tmp_path, GOOD + "r4,oops,6,u\n")
    assert run("ingest", bad, store, "--overwrite", *ids)[0] == 2
    assert (store / "zarr.json").read_bytes() == before
    assert run("ingest", make(tmp_path, GOOD + "r4,7,6,u\n"), store, "--overwrite", *ids)[0] == 0
    assert (store / "zarr.json").read_bytes() != before
    assert run("verify", store)[0] == 0
    assert listing(tmp_path) == ["t.csv", "t.zarr"]


@pytest.mark.parametrize("there", ["folder", "file", "link"])
def test_what_is_no_store_is_not_overwritten(run, tmp_path, there):
    store, thesis = tmp_path / "t.zarr", tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "text").write_text("years")
    if there == "folder":
        shutil.copytree(thesis, store)
    elif there == "file":
        store.write_text("years")
    else:
        store.symlink_to(thesis)
    source = make(tmp_path, GOOD)
    before = listing(tmp_path)
    assert_refused(run("ingest", source, store, "--overwrite"), "expected a store to overwrite")
    assert listing(tmp_path) == before
    assert (thesis / "text").read_text() == "years"


def test_columns_to_leave_out_are_a_list(run, tmp_path):
    store = tmp_path / "t.zarr"
    source = make(tmp_path, 'id,a,"b,c",d,y\nr1,1,2,3,u\nr2,3,4,5,v\nr3,5,6,6,u\n')
    assert run("ingest", source, store, "--ignore", 'id,"b,c"', "--ignore", "d")[0] == 0
    assert "features     1" in run("inspect", store)[1]
