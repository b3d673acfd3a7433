"""A table and its truth appear together, complete, or not at all."""

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from srs_ooc.base.errors import UsageError
from srs_ooc.synthetic import problem_tables
from srs_ooc.synthetic.problem_tables import describe, truth_path, write_table
from srs_ooc.synthetic.problems import Madelon

PROBLEM = Madelon(20, 10, 4, seed=1)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.zarr"])
def test_the_truth_lies_beside_the_table(tmp_path: Path, name: str) -> None:
    write_table(PROBLEM, tmp_path / name)
    assert names(tmp_path) == [name, f"{name}.truth.json"]
    assert json.loads(truth_path(tmp_path / name).read_text()) == describe(PROBLEM)


@pytest.mark.parametrize("name", ["t", "t.txt", "t.gz", "t.csv.zip"])
def test_an_unknown_ending_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"expected a name ending in \.csv, \.csv\.gz or \.zarr"):
        write_table(PROBLEM, tmp_path / name)
    assert names(tmp_path) == []


@pytest.mark.parametrize("table", ["t.csv", "t.zarr"])
@pytest.mark.parametrize("ending", ["", ".truth.json"])
def test_nothing_is_overwritten(tmp_path: Path, table: str, ending: str) -> None:
    name = table + ending
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match=rf"{name} exists; expected a free name"):
        write_table(PROBLEM, tmp_path / table)
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def filling(problem: Madelon) -> Iterator[bytes]:
        yield b"f0,"
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(problem_tables, "csv_pieces", filling)
    with pytest.raises(UsageError, match="No space left on device"):
        write_table(PROBLEM, tmp_path / "t.csv")
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["t.csv", "t.zarr"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_no_table_without_its_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, name: str
) -> None:
    def failing(problem: Madelon) -> None:
        raise error

    monkeypatch.setattr(problem_tables, "describe", failing)
    with pytest.raises((UsageError, KeyboardInterrupt)):
        write_table(PROBLEM, tmp_path / name)
    assert names(tmp_path) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected a place that can be written.*No such file"):
        write_table(PROBLEM, tmp_path / "nowhere" / "t.csv")
