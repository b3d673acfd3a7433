"""A table as text reads back as itself."""

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from srs_ooc.synthetic import problem_tables
from srs_ooc.synthetic import problem_tables as problems
from srs_ooc.synthetic.problem_tables import CELL_LIMIT, STEPS, csv_pieces, rows, write_csv
from srs_ooc.synthetic.problems import Madelon

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
    for module in (problems, problem_tables):
        monkeypatch.setattr(module, "PIECE_CELLS", piece)
    monkeypatch.setattr(problem_tables, "NAMES_AT_ONCE", 4)
    found = list(csv_pieces(PROBLEM))
    assert b"".join(found) == whole
    assert max(map(len, found)) <= max(8 * piece + 8 * piece // 31 + 8, 40)


def test_every_cell_has_its_text() -> None:
    words = problem_tables._words().tobytes()
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
