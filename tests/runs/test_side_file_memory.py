"""Side files of 10^6 to 10^7 lines stay under the smallest cap named, and all that follows does.

The large ones take minutes: ``pytest tests/runs/test_side_file_memory.py -m slow``.
"""

import numpy as np
import pytest
from command import error_of, peak_kb
from stores import make_store

LARGE = [pytest.param(n, marks=pytest.mark.campaign) for n in (10**6, 10**7)]
SEVERAL = pytest.mark.parametrize("n", [100_000, *LARGE])


def write_lines(path, lines):
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


def values_of(n_features, n_rows):
    rng = np.random.default_rng(0)
    return rng.integers(0, 9, (n_features, n_rows)).astype(np.float32)


def named(*arguments):
    """The smallest cap that a command names; it is refused by a first one only."""
    refused = error_of(*arguments, "--memory-mb", 9)
    return int(refused.rsplit("--memory-mb ", 1)[1].rstrip("."))


def check(*arguments, cap=None):
    cap = named(*arguments) if cap is None else cap
    assert peak_kb(*arguments, "--memory-mb", cap) * 1024 / 1e6 < cap, arguments[0]
    return cap


@pytest.mark.slow
@SEVERAL
def test_files_of_features_and_what_reads_the_run(tmp_path, n):
    store = make_store(tmp_path / "t.zarr", values_of(n, 8), np.arange(8) % 2)
    exclude = write_lines(tmp_path / "exclude.txt", (f"f{i}" for i in range(0, n, 2)))
    scores = write_lines(tmp_path / "scores.csv", ["name,score", *(f"f{i},1" for i in range(n))])
    options = ("--judge", "probe", "--q", 100, "--iterations", 3, "--threads", 1)
    run, less = tmp_path / "a.run", tmp_path / "b.run"
    cap = check("run", store, "--out", run, "--exclude", exclude, *options)
    check("run", store, "--out", run, "--exclude", exclude, cap=cap)  # asked again
    for command in (
        ("features", run, "--csv"),
        ("status", run),
        ("inspect", store),
        ("verify", store),
        ("inspect", store, "--verify"),
        ("verify", run),
        ("export", store, run, tmp_path / "out.csv", "--top", 3),
    ):
        check(*command, cap=cap)
    check("run", store, "--out", less, "--method", "less", "--scores", scores, *options)
    check("scores", store, "--exclude", exclude, "--csv")


@pytest.mark.slow
@SEVERAL
def test_files_of_rows(tmp_path, n):
    store = make_store(tmp_path / "t.zarr", values_of(3, n), np.arange(n) % 2)
    rows = write_lines(tmp_path / "rows.txt", range(1, n, 3))
    options = ("--q", 2, "--iterations", 2, "--max-depth", 2, "--threads", 1, "--judge", "probe")
    run = tmp_path / "a.run"
    cap = check("run", store, "--out", run, "--rows", rows, *options)
    check("features", run, cap=cap)
    check("export", store, run, tmp_path / "out.csv", "--top", 2, cap=cap)


@pytest.mark.slow
@SEVERAL
@pytest.mark.parametrize("many", ["features", "rows"])
def test_files_of_names_and_of_targets(tmp_path, n, many):
    n_rows, n_features = (8, n) if many == "features" else (n, 3)
    np.save(tmp_path / "t.npy", np.ones((n_rows, n_features), np.uint8))
    names = write_lines(tmp_path / "names.txt", (f"name{i}" for i in range(n_features)))
    target = write_lines(tmp_path / "y.txt", ("uv"[i % 2] for i in range(n_rows)))
    files = ("--names", names, "--target-file", target)
    check("ingest", tmp_path / "t.npy", tmp_path / "t.zarr", *files)


@pytest.mark.slow
@SEVERAL
def test_files_of_samples(tmp_path, n):
    with (tmp_path / "t.csv").open("w") as file:
        file.write("id," + ",".join(f"s{i}" for i in range(n)) + "\n")
        file.writelines(f"a{i}" + f",{i}" * n + "\n" for i in range(2))
    lines = ("id,y", *(f"s{i},{'uv'[i % 2]}" for i in range(n)))
    samples = write_lines(tmp_path / "samples.csv", lines)
    options = ("--orient", "features", "--samples", samples, "--id", "id", "--target", "y")
    check("ingest", tmp_path / "t.csv", tmp_path / "t.zarr", *options)
