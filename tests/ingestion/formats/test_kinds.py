"""Each kind of file that is known and not read is refused by its name, with what converts it.

The beginnings are those that the tools wrote: R 4.2.2, pandas 2.3.3, PyArrow 26, pyreadstat 1.3.7,
haven 2.5.1, PLINK 1.07 and 2.00a3.5, PyTorch 1.13, QIIME 2 2019.1, GEO; each line was run on a
whole file.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas
import pytest
from command import srs_ooc

from srs_ooc.base.errors import InputError
from srs_ooc.ingestion.formats import FORMATS, TEXT
from srs_ooc.ingestion.formats.files import known_of, opener_of
from srs_ooc.store.opening import open_store

PAGE = Path(__file__).parents[3] / "docs" / "ingest.md"
_RDS = b"X\n\0\0\0\3\0\4\2\2\0\3\5\0\0\0\0\5UTF-8\0\0\3\x13"
_PICKLE = b"\x80\5\x95z\3\0\0\0\0\0\0\x8c\x11pandas.core.frame\x94\x8c\tDataFrame\x94\x93"
_SAV = b"$FL2@(#) SPSS DATA FILE - https://github.com/WizardMac/ReadStat"
_TABLE = b"a,b,y\n" + b"".join(b"%d,%d,%s\n" % (i, i * i, b"uv"[i % 2 :][:1]) for i in range(1, 9))


_PACKED = gzip.compress(_TABLE, mtime=0)


def packed(name, text=b"x"):
    """Return an archive of one member."""
    with zipfile.ZipFile(archive := io.BytesIO(), "w") as file:
        file.writestr(name, text)
    return archive.getvalue()


KINDS = {
    "d.rds": ("data of R", gzip.compress(_RDS)),
    "plain.rds": ("data of R", _RDS),
    "xz.rds": ("data of R", lzma.compress(_RDS)),
    "bz2.rds": ("data of R", bz2.compress(_RDS)),
    "ascii.rds": ("data of R", b"A\n3\n262658\n197888\n5\nUTF-8\n787\n3\n"),
    "d.RData": ("data of R", gzip.compress(b"RDX3\n" + _RDS)),
    "two.RData": ("data of R", b"RDX2\nX\n\0\0\0\2\0\4\2\2\0\2\3\0"),
    "ascii.rda": ("data of R", b"RDA3\nA\n3\n262658\n197888\n5\nUTF-8\n"),
    "d.pkl": ("pickle", _PICKLE),
    "two.pkl": ("pickle", b"\x80\2cpandas.core.frame\nDataFrame\nq\0)\x81q\1}"),
    "zero.pkl": ("pickle", b"ccopy_reg\n_reconstructor\np0\n(cpandas.core.frame\nDataFrame\np1\n"),
    "d.arrows": ("a stream of Arrow", b"\xff\xff\xff\xff\x08\4\0\0\x10\0\0\0\0\0\n\0\x0e\0\6\0"),
    "d.sav": ("SPSS", _SAV),
    "d.zsav": ("SPSS", _SAV.replace(b"2", b"3", 1)),
    "d.dta": ("Stata", b"<stata_dta><header><release>118</release><byteorder>LSF</byteorder>"),
    "old.dta": ("Stata", b"r\2\1\0\4\0\x08\0\0\0\0\0"),
    "d.sas7bdat": ("SAS", bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f")),
    "d.xpt": ("SAS transport", b"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!000000000000"),
    "eight.xpt": ("SAS transport", b"HEADER RECORD*******LIBV8   HEADER RECORD!!!!!!!0000"),
    "d.xlsx": ("a workbook", packed("docProps/app.xml")),
    "d.ods": ("a workbook", packed("mimetype", b"application/vnd.oasis.opendocument.spreadsheet")),
    "d.xls": ("a workbook", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)),
    "d.pt": ("PyTorch", packed("d/data.pkl")),
    "old.pt": ("PyTorch", b"\x80\2\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\2M\xe9\3."),
    "d.qza": ("QIIME 2", packed("9a7d3e5c-0d5e-4ff3-9e0a-6dd6ee9ee4c5/metadata.yaml")),
    "d.zip": ("a zip archive", packed("d.csv")),
    "counts.txt": (
        "featureCounts",
        b'# Program:featureCounts v2.0.3; Command:"featureCounts" "-a" "g.gtf"\n'
        b"Geneid\tChr\tStart\tEnd\tStrand\tLength\ts1.bam\ts2.bam\ng0\tchr1\t1\t600\t+\t600\t40\t42\n",
    ),
    "proteinGroups.txt": ("MaxQuant", b"Protein IDs\tMajority protein IDs\tPeptide counts (all)\n"),
    "d.ped": ("PLINK's text", b"1 1 0 0 1  1  A A  G T\n2 1 0 0 1  1  A C  T G\n"),
    "GDS507.soft": ("GEO SOFT", b"^DATABASE = Geo\n!Database_name = Gene Expression Omnibus (GEO)"),
    "GSM11805.txt": ("GEO SOFT", b"^SAMPLE = GSM11805\n!Sample_title = N035 Normal Human Kidney\n"),
    "umi.tsv": ("UMI-tools", b"gene\tcell\tcount\nENSG00000011304.18\tACAAGG\t33\n"),
    "d.html": ("a web page", b"\n<!DOCTYPE html>\n<html><head>"),
    "utf16.csv": ("text in UTF-16", "a,b\n1,2\n".encode("utf-16")),
    "d.dat": ("a binary file of no kind that is known", b"abc\0\0\1\xff\xfe\0\0"),
}
FOLDERS = {
    "salmon": ("salmon", "s1/quant.sf"),
    "kallisto": ("kallisto", "s1/abundance.tsv"),
    "htseq": ("a folder", "s1.counts"),
}


def refused(path):
    """Return what is said of a file that is not read."""
    with pytest.raises(InputError) as error:
        opener_of(path)
    return str(error.value)


def row(name):
    """Return a row of the table."""
    return next(one for one in FORMATS if one.name == name)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_that_is_not_read_is_called_by_its_name(tmp_path, name):
    kind, begins = KINDS[name]
    (tmp_path / name).write_bytes(begins)
    expected = f"{tmp_path / name}: expected a kind of file that is read, found {kind}. "
    assert refused(tmp_path / name) == expected + row(kind).remedy
    (tmp_path / "other").write_bytes(begins)  # the name says nothing
    assert known_of(tmp_path / "other")[0] is row(kind)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_one_file_a_sample_is_known(tmp_path, name):
    kind, within = FOLDERS[name]
    (path := tmp_path / name / within).parent.mkdir(parents=True)
    path.write_text("g0\t1\n")
    assert f"found {kind}. {row(kind).remedy}" in refused(tmp_path / name)
    assert known_of(tmp_path / name)[1] == "files in it"


def test_every_kind_that_is_not_read_is_tried_here():
    tried = {kind for kind, _ in [*KINDS.values(), *FOLDERS.values()]}
    assert tried == {one.name for one in FORMATS if not one.reader}
    assert all(one.remedy for one in FORMATS if not one.reader)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize(("begins", "kind"), [(b"PAR1\x15\4", "Parquet"), (_SAV, "SPSS")])
def test_what_is_packed_and_is_not_read_so_is_unpacked_first(tmp_path, pack, begins, kind):
    how = {gzip.compress: "gzip", bz2.compress: "bzip2", lzma.compress: "xz"}[pack]
    (tmp_path / "d").write_bytes(pack(begins))
    assert refused(tmp_path / "d") == (
        f"{tmp_path}/d: expected {kind}, found {how}. Unpack it: `{how} -dc FILE > NEW`."
    )


def test_a_sample_table_is_refused_alike(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 2)))
    (tmp_path / "s.rds").write_bytes(gzip.compress(_RDS))
    (tmp_path / "x.tsv").write_text("g\ts1\ts2\na\t1\t2\nb\t2\t1\n")
    asked = ("--orient", "features", "--samples", tmp_path / "s.rds", "--id", "i", "--target", "y")
    done = srs_ooc("ingest", tmp_path / "x.tsv", tmp_path / "t.zarr", *asked, expect=2)
    assert "s.rds: expected a table as UTF-8 text" in done.stderr
    assert "found data of R. Convert a frame" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.h5ad", _TABLE, "that of HDF5, but it is a text table"),
        ("t.xls", _TABLE.replace(b",", b"\t"), "that of a workbook, but it is a text table"),
        ("t.txt", _PACKED, "that of a file not packed, but it is packed by gzip"),
        ("t.csv.gz", _TABLE, "that of a file packed by gzip, but it is not packed"),
        ("t.csv.gz", _PACKED, ""),
        ("t.csv", _TABLE, ""),
        ("t.dat", _TABLE, ""),
    ],
)
def test_the_content_decides_and_a_name_that_says_otherwise_is_remarked(
    tmp_path, name, content, said
):
    (tmp_path / name).write_bytes(content)
    expected = [f"note: its name is {said}, and was read so"] * bool(said)
    for more in (["--dry-run"], []):
        out = srs_ooc("ingest", tmp_path / name, tmp_path / "t.zarr", *more).stdout
        assert [line for line in out.splitlines() if "name is" in line] == expected
    assert open_store(tmp_path / "t.zarr").n_rows == 8


def test_a_parquet_file_called_csv_is_read_as_what_it_is(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1.0, 2, 3, 4], "y": [*"uvuv"]})
    frame.to_parquet(tmp_path / "t.csv")
    out = srs_ooc("ingest", tmp_path / "t.csv", tmp_path / "t.zarr", "--dry-run").stdout
    first, second = out.splitlines()[:2]
    read_as = "read as: Parquet, by its first bytes; parquet; names: its own; row ids: none; "
    assert first == f"{read_as}beside the rows: nothing"
    assert second == ("note: its name is that of a text table, but it is Parquet, and was read so")


def test_a_dry_run_says_first_what_it_took_the_file_for(tmp_path):
    (tmp_path / "t.csv").write_bytes(_TABLE)
    np.save(tmp_path / "t.npy", np.arange(12.0).reshape(6, 2))
    (tmp_path / "t.svm").write_text("".join(f"{i % 2} 1:{i} 3:2\n" for i in range(8)))
    said = {
        "t.csv": "a text table, as it is nothing else; a line holds a row; names: its first line",
        "t.npy": "NumPy, by its first bytes; npy; names: f0, f1, ...; row ids: none; beside the "
        "rows: nothing",
        "t.svm": "svmlight, by its first line; svmlight; names: its own; row ids: none; beside "
        "the rows: label",
    }
    for name, expected in said.items():
        more = ["--no-target"] * (name == "t.npy")
        out = srs_ooc("ingest", tmp_path / name, tmp_path / "t.zarr", "--dry-run", *more).stdout
        assert out.splitlines()[0] == f"read as: {expected}"


def test_cells_of_mudata_have_the_ids_of_their_own_kind(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "m.h5mu", "w", userblock_size=512) as file:

        def frame(path, index):
            file.create_group(path).attrs["_index"] = "_index"
            file[f"{path}/_index"] = np.array(index, "S")

        for name, cells in (("rna", ["c1", "c2", "c3"]), ("prot", ["c3", "c1", "c2"])):
            file[f"mod/{name}/X"] = np.arange(6.0).reshape(3, 2)
            frame(f"mod/{name}/obs", cells)
            frame(f"mod/{name}/var", [f"{name}1", f"{name}2"])
        frame("obs", ["c1", "c2", "c3"])
        frame("var", ["rna1", "rna2", "prot1", "prot2"])
    with (tmp_path / "m.h5mu").open("r+b") as file:
        file.write(b"MuData (format-version=0.1.0;creator=muon;creator-version=0.3.10)")
    asked = ("ingest", tmp_path / "m.h5mu", tmp_path / "t.zarr", "--no-target")
    done = srs_ooc(*asked, expect=2)
    assert "expected one matrix, found MuData's prot, rna. Name one: " in done.stderr
    assert f"{tmp_path}/m.h5mu::/mod/prot/X." in done.stderr
    srs_ooc("ingest", f"{tmp_path}/m.h5mu::/mod/prot/X", tmp_path / "t.zarr", "--no-target")
    store = open_store(tmp_path / "t.zarr")
    assert (list(store.row_ids), list(store.names)) == (["c3", "c1", "c2"], ["prot1", "prot2"])


def test_formats_lists_them_all():
    rows = json.loads(srs_ooc("formats", "--json").stdout)
    assert [one["format"] for one in rows] == [one.name for one in (*FORMATS, TEXT)]
    assert rows[0]["known_by"] == "first bytes"
    assert [one["is_read"] for one in rows].count(True) == len(FORMATS) + 1 - sum(
        not one.reader for one in FORMATS
    )
    with io.StringIO(srs_ooc("formats", "--csv").stdout) as file:
        assert [one["format"] for one in csv.DictReader(file)] == [one["format"] for one in rows]
    lines = srs_ooc("formats").stdout.splitlines()
    assert len(lines) == len(rows) + 1
    assert re.search(r"SPSS +first bytes +no +- +sav zsav +Conv", "\n".join(lines))


def test_the_page_shows_those_that_are_not_read():
    section = PAGE.read_text().partition("\n## Files that are not read")[2].partition("\n## ")[0]
    listed = section.strip().split("\n\n")[-1].replace("\n", " ").rstrip(".").split("; ")
    assert listed == [one.name for one in FORMATS if not one.reader]
