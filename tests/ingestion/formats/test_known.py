"""What files are is one table: a file is known by it, pages show it, and what it needs is named."""

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

from srs_ooc.base.errors import UsageError
from srs_ooc.base.options import part_at
from srs_ooc.ingestion.formats import FORMATS, REMEDIES
from srs_ooc.ingestion.formats.files import File, format_of
from srs_ooc.ingestion.ingest_options import IngestOptions

NPZ = b"PK\x03\x04-" + bytes(21) + b"\5\0\x14\0X.npy\1\0"
READ = [one for one in FORMATS if one.reader and not one.remedy]
PAGE = Path(__file__).parents[3] / "docs" / "ingest.md"


def test_the_page_shows_the_table():
    section = PAGE.read_text().partition("\n## Which format")[2].partition("\n## ")[0]
    rows = [row.strip("|").split("|") for row in re.findall(r"^\|(?!---).*$", section, re.M)][1:]
    names = dict.fromkeys(one.name for one in READ)
    assert [cells[0].partition(",")[0].strip() for cells in rows] == list(names)
    for one in READ:
        known, extra = next(cells[1:] for cells in rows if cells[0].strip().startswith(one.name))
        assert extra.strip(" `") in REMEDIES.get(one.needs, "")
        assert bool(extra.strip()) == bool(one.needs)
        assert all(f".{ending}`" in known for ending in re.findall(r"[a-z]{3,}", one.ending))


@pytest.mark.parametrize(
    "one", [one for one in READ if ":" in one.reader], ids=lambda one: one.reader
)
def test_each_reader_is_there_and_names_what_it_lacks(tmp_path, monkeypatch, one):
    assert callable(part_at(f"srs_ooc.ingestion.formats.{one.reader}", "it"))
    if one.needs:
        monkeypatch.setitem(sys.modules, one.needs, None)
        with pytest.raises(UsageError, match=re.escape(REMEDIES[one.needs])):
            File(one, tmp_path / "t", "", tmp_path, IngestOptions()).library()


@pytest.mark.parametrize(
    ("name", "start", "expected"),
    [
        ("a", b"SQLite format 3\0", "SQLite"),
        ("a", b"\n" * 8 + b"DUCK", "DuckDB"),
        ("a", b"\x89HDF\r\n\x1a\n", "HDF5"),
        ("a.mat", b"\n" * 512 + b"\x89HDF\r\n\x1a\n", "HDF5"),
        ("a.npz", NPZ, "NumPy"),
        ("a.zip", NPZ, "NumPy"),
        ("a.npz", NPZ.replace(b".npy", b".csv"), None),
        ("a.pgen", b"\x6c\x1b\x02", "PLINK 2"),
        ("a.bed", b"\x6c\x1b\x01", "PLINK 1"),
        ("a", b"##fileformat=VCFv4.2\n", "VCF"),
        ("a", b"BCF\2\2", "VCF"),
        ("a", gzip.compress(b"##fileformat=VCFv4.2\n", mtime=0), "VCF"),
        ("a.svm.gz", b"", "svmlight"),
        ("a.txt", b"# 1\n\n1 1:2 3:4.5\n", "svmlight"),
        ("a.xlsx", b"PK\x03\x04", None),
        ("a.csv", b"a,b\n1,2\n", None),
        ("gone.csv", None, None),
    ],
)
def test_what_a_file_is(tmp_path, name, start, expected):
    if start is not None:
        (tmp_path / name).write_bytes(start)
    found = format_of(tmp_path / name)
    assert (found and found.name) == expected


def test_a_folder_of_zarr_is_known_by_a_file_in_it(tmp_path):
    assert format_of(tmp_path) is None
    (tmp_path / ".zgroup").write_text("{}")
    assert format_of(tmp_path).name == "Zarr"


def test_no_reader_is_loaded_to_know_a_file(tmp_path):
    (tmp_path / "t.npz").write_bytes(NPZ)
    code = (
        "import sys\nfrom pathlib import Path\nfrom srs_ooc.ingestion.formats import files\n"
        "assert files.opener_of(Path('t.npz'))\n"
        "libraries = {'h5py', 'zarr', 'pyarrow', 'duckdb', 'pgenlib', 'scipy'}\n"
        "print(sorted(libraries & {*sys.modules}), "
        "[one for one in sys.modules if one.endswith(('.hdf5', '.zarr_arrays', '.databases'))])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, text=True)
    assert done.stdout == "[] []\n"
