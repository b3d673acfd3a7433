"""A problem's numbers, and its table as text, as a store, and as files."""

import csv
import errno
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from examples import given, st

from srs_ooc.base.errors import StoreError, UsageError
from srs_ooc.ingestion.ingest_options import IngestOptions
from srs_ooc.ingestion.stages import ingest_table
from srs_ooc.store.arrays import Names
from srs_ooc.store.manifest import read_manifest
from srs_ooc.synthetic import problems, table_files
from srs_ooc.synthetic.cells import CELL_LIMIT, STEPS, hash_grid, noise_cells, normals, uniforms
from srs_ooc.synthetic.madelon import Madelon
from srs_ooc.synthetic.problems import columns, describe, rows
from srs_ooc.synthetic.table_files import csv_pieces, truth_path, write_csv, write_table


@given(st.integers(0, 2**64 - 1))
def test_inversion_agrees_with_the_quantile_function(word: int) -> None:
    tail = (word % 2**52 + 0.5) * 2.0**-53
    expected = NormalDist().inv_cdf(tail) * (1 if word < 2**63 else -1) * -1
    assert abs(float(normals(np.array([word], dtype=np.uint64))[0]) - expected) < 1e-5


def test_moments_and_tails() -> None:
    values = normals(hash_grid(11, np.arange(1000), np.arange(1000))).ravel()
    assert abs(values.mean()) < 0.005
    assert abs(values.std() - 1) < 0.005
    for z in (0.5, 1.0, 2.0, 3.0, 4.0):
        expected = len(values) * NormalDist().cdf(-z)
        assert abs((values > z).sum() - expected) < 5 * np.sqrt(expected)
        assert abs((values < -z).sum() - expected) < 5 * np.sqrt(expected)


def test_cells_of_neighbours_are_uncorrelated() -> None:
    cells = noise_cells(5, 0, 400, np.arange(400, dtype=np.uint32)).astype(float)
    for left, right in ((cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])):
        assert abs(np.corrcoef(left.ravel(), right.ravel())[0, 1]) < 0.0125


def test_uniforms_stay_in_range_and_fill_it() -> None:
    extremes = uniforms(np.array([0, 2**64 - 1], dtype=np.uint64))
    assert extremes[0] == -1
    assert 0.999999 < extremes[1] < 1


PROBLEM = Madelon(53, 31, 8, seed=9)


def parsed(content: bytes) -> tuple[list[str], np.ndarray, list[str]]:
    header, *lines = csv.reader(io.StringIO(content.decode()))
    return header, np.array([line[:-1] for line in lines], dtype=float), [x[-1] for x in lines]


def test_text_reads_back_as_the_table() -> None:
    header, values, labels = parsed(b"".join(csv_pieces(PROBLEM)))
    assert header == [*(f"f{i}" for i in range(31)), "target"]
    np.testing.assert_array_equal(values, rows(PROBLEM, 0, 53))
    assert labels == [str(label) for label in PROBLEM.target(0, 53)]


@pytest.mark.parametrize("piece", [1, 7, 31, 100])
def test_pieces_do_not_show(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = b"".join(csv_pieces(PROBLEM))
    monkeypatch.setattr(problems, "PIECE_CELLS", piece)
    monkeypatch.setattr(table_files, "NAMES_AT_ONCE", 4)
    found = list(csv_pieces(PROBLEM))
    assert b"".join(found) == whole
    assert max(map(len, found)) <= max(8 * piece + 8 * piece // 31 + 8, 40)


def test_every_cell_has_its_text() -> None:
    words = table_files._words().tobytes()
    assert len(words) == 8 * (2 * CELL_LIMIT + 1)
    for cell in (-CELL_LIMIT, -10_001, -10_000, -1, 0, 1, 9_999, 10_000, CELL_LIMIT):
        at = 8 * (cell + CELL_LIMIT)
        word = words[at : at + 8].rstrip(b"\0").decode()
        assert word == f"{cell / STEPS:.4f},"
        assert float(word[:-1]) == cell / STEPS


def test_gzip_holds_the_same_text_and_no_clock(tmp_path: Path) -> None:
    write_csv(PROBLEM, tmp_path / "plain", compressed=False)
    for name in ("once", "twice"):
        write_csv(PROBLEM, tmp_path / name, compressed=True)
    once = (tmp_path / "once").read_bytes()
    assert gzip.decompress(once) == (tmp_path / "plain").read_bytes()
    assert once == (tmp_path / "twice").read_bytes()
    assert once[4:8] == bytes(4)


PROBLEM_STORE = Madelon(300, 70, 12, seed=2)


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a store but the manifest's, which tells where it came from."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    found = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    del found["zarr.json"]
    return found


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_the_store_equals_the_ingested_text(tmp_path: Path, ending: str) -> None:
    write_table(PROBLEM_STORE, tmp_path / "direct.zarr")
    write_table(PROBLEM_STORE, tmp_path / f"table{ending}")
    options = IngestOptions(target="target")
    ingest_table(tmp_path / f"table{ending}", tmp_path / "ingested.zarr", options)
    direct, ingested = files(tmp_path / "direct.zarr"), files(tmp_path / "ingested.zarr")
    assert sorted(direct) == sorted(ingested)
    assert [name for name in direct if direct[name] != ingested[name]] == []
    one, other = (read_manifest(tmp_path / f"{name}.zarr") for name in ("direct", "ingested"))
    differing = {key for key, value in one.to_json().items() if value != other.to_json()[key]}
    assert differing == {"source", "inferred"}


def test_the_store_holds_names_values_and_truth(tmp_path: Path) -> None:
    import zarr

    write_table(PROBLEM_STORE, tmp_path / "t.zarr")
    manifest = read_manifest(tmp_path / "t.zarr")
    assert (manifest.n_rows, manifest.n_features) == (300, 70)
    assert list(Names(tmp_path / "t.zarr", manifest)) == [f"f{i}" for i in range(70)]
    group = zarr.open_group(tmp_path / "t.zarr", mode="r")
    positions = np.asarray(group["positions"])
    np.testing.assert_array_equal(np.asarray(group["values"]), columns(PROBLEM_STORE, positions))
    np.testing.assert_array_equal(np.asarray(group["target"]), PROBLEM_STORE.target(0, 300))
    assert (tmp_path / "t.zarr.truth.json").is_file()
    assert manifest.source["parameters"]["seed"] == 2


def test_batches_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_table(PROBLEM_STORE, tmp_path / "one.zarr")
    monkeypatch.setattr(table_files, "N_THREADS", 1)
    monkeypatch.setattr(table_files, "WORK_NBYTES", 1)
    write_table(PROBLEM_STORE, tmp_path / "other.zarr")
    assert files(tmp_path / "one.zarr") == files(tmp_path / "other.zarr")


@pytest.mark.parametrize("name", ["t.csv", "t.zarr"])
def test_a_table_of_one_class_is_refused(tmp_path: Path, name: str) -> None:
    """One label of two is flipped under this seed."""
    with pytest.raises(UsageError, match="expected a table of at least two classes"):
        write_table(Madelon(2, 3, 1, seed=78), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


PROBLEM_OUTPUT = Madelon(20, 10, 4, seed=1)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.zarr"])
def test_the_truth_lies_beside_the_table(tmp_path: Path, name: str) -> None:
    write_table(PROBLEM_OUTPUT, tmp_path / name)
    assert names(tmp_path) == [name, f"{name}.truth.json"]
    assert json.loads(truth_path(tmp_path / name).read_text()) == describe(PROBLEM_OUTPUT)


@pytest.mark.parametrize("name", ["t", "t.txt", "t.gz", "t.csv.zip"])
def test_an_unknown_ending_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"expected a name ending in \.csv, \.csv\.gz or \.zarr"):
        write_table(PROBLEM_OUTPUT, tmp_path / name)
    assert names(tmp_path) == []


@pytest.mark.parametrize("table", ["t.csv", "t.zarr"])
@pytest.mark.parametrize("ending", ["", ".truth.json"])
def test_nothing_is_overwritten(tmp_path: Path, table: str, ending: str) -> None:
    name = table + ending
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match=rf"{name}: expected a path that is free"):
        write_table(PROBLEM_OUTPUT, tmp_path / table)
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def filling(problem: Madelon) -> Iterator[bytes]:
        yield b"f0,"
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(table_files, "csv_pieces", filling)
    with pytest.raises(StoreError, match="No space left on device"):
        write_table(PROBLEM_OUTPUT, tmp_path / "t.csv")
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["t.csv", "t.zarr"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_no_table_without_its_truth(tmp_path, monkeypatch, error, name) -> None:
    def failing(problem: Madelon) -> None:
        raise error

    monkeypatch.setattr(problems, "describe", failing)
    with pytest.raises((StoreError, KeyboardInterrupt)):
        write_table(PROBLEM_OUTPUT, tmp_path / name)
    assert names(tmp_path) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot be written.*No such file"):
        write_table(PROBLEM_OUTPUT, tmp_path / "nowhere" / "t.csv")
