"""GCT, GEO series matrices, BIOM's TSV and BIOM 1.0 are read with what they say of their samples.

Expected values are those of cmapPy 4.0.1, GEOquery 2.66.0 and biom-format 2.1.18 for these files.
"""

import gzip
import json

import numpy as np
import pytest
from command import peak_kb, srs_ooc
from tables import data_file
from tables import opened as opened_by

import srs_ooc as package
from srs_ooc.base.errors import BudgetError, InputError
from srs_ooc.ingestion.formats.files import format_of
from srs_ooc.store.opening import open_store
from srs_ooc.testing import check_table

NAN = float("nan")

GCT = (  # as cmapPy writes a table of 4 rows and 5 columns
    "#1.3\n4\t5\t2\t3\nid\tsym\tn\ts0\ts1\ts2\ts3\ts4\n"
    "dose\t-666\t-666\t1.5\t-666\t3.0\t4.0\t5.0\n"
    'disease state\t-666\t-666\tx\ty\tx\tNone\t"a""q"\n'
    "plate\t-666\t-666\t-666\tp\tp\tq\tq\n"
    "g0\tA\t1.0\t0.0000\t0.3333\t0.6667\t1.0000\t1.3333\n"
    "g1\tB\t2.0\t1.6667\t2.0000\tNaN\t2.6667\t3.0000\n"
    "g2\tNA\t-666\t3.3333\t123456789.1235\t4.0000\t4.3333\t4.6667\n"
    "g3\tD\t4.0\t5.0000\t5.3333\t5.6667\t0.0000\t6.3333\n"
)
GCT_COLUMNS = [
    [0.0, 0.3333, 0.6667, 1.0, 1.3333],
    [1.6667, 2.0, NAN, 2.6667, 3.0],
    [3.3333, 123456789.1235, 4.0, 4.3333, 4.6667],
    [5.0, 5.3333, 5.6667, 0.0, 6.3333],
]
GCT_BESIDE = {
    "id": ["s0", "s1", "s2", "s3", "s4"],
    "dose": ["1.5", None, "3.0", "4.0", "5.0"],
    "disease state": ["x", "y", "x", None, 'a"q'],
    "plate": [None, "p", "p", "q", "q"],
}
SECOND = (  # as GenePattern and spreadsheets have it: the first lines are filled up with tabs
    "#1.2\t\t\t\n2\t3\t\t\nName\tDescription\ta\tb\tc\n"
    "p1\tGene one\t1\t\t3\np2\tna\t-4.5\t-666\t6\n"
)
GEO = (
    '!Series_title\t"t"\n!Series_geo_accession\t"GSE2"\n!Series_supplementary_file\t"ftp://x.gz"\n'
    "\n"
    '!Sample_title\t"s one"\t"s two"\t"s three"\n'
    '!Sample_geo_accession\t"GSM1"\t"GSM2"\t"GSM3"\n'
    '!Sample_characteristics_ch1\t"title: A"\t"title: B"\t"title: B"\n'
    '!Sample_characteristics_ch1\t"disease state: x"\t"disease state: y"\t"age: 4"\n'
    '!Sample_characteristics_ch1\t"disease state: z:1"\t"age: 5"\t"disease state: y"\n'
    '!Sample_characteristics_ch1\t""\t"smoker"\t""\n'
    '!Sample_characteristics_ch2\t"age:7"\t"age: "\t"age:8"\n'
    '!Sample_data_processing\t"a"\t"a"\t"a"\n!Sample_data_processing\t"b"\t"b"\t"b"\n'
    '!series_matrix_table_begin\n"ID_REF"\t"GSM1"\t"GSM2"\t"GSM3"\n'
    '"a b"\t1\t2\t3\n200_at\t1e3\t-2.5\tnull\n"x"\t\t\t7\n!series_matrix_table_end\n'
)
GEO_COLUMNS = [[1.0, 2.0, 3.0], [1e3, -2.5, NAN], [NAN, NAN, 7.0]]
GEO_BESIDE = {
    "id": ["GSM1", "GSM2", "GSM3"],
    "title": ["s one", "s two", "s three"],
    "geo_accession": ["GSM1", "GSM2", "GSM3"],
    "data_processing": ["a", "a", "a"],
    "data_processing-1": ["b", "b", "b"],
    "title-1": ["A", "B", "B"],
    "disease state": ["x;z:1", "y", "y"],
    "age": [None, "5", "4"],
    "characteristics_ch1": [None, "smoker", None],
    "age:ch2": ["7", None, "8"],
}
OTUS = (
    "# Constructed from biom file\n#OTU ID\tS1\tS2\tS 3\ttaxonomy\n"
    "O0\t0.0\t1.0\t2.5\tk__B; p__X\nO1\t3.0\t0.0\t0.0\tk__B; p__Y\n"
    "O2\t0.0\t0.0\t7.0\t\nO3\t1e-07\t0.0\t12345678.0\tk__A\n"
)
OTU_COLUMNS = [[0.0, 1.0, 2.5], [3.0, 0.0, 0.0], [0.0, 0.0, 7.0], [1e-7, 0.0, 12345678.0]]
OTU_NAMES, OTU_IDS = ["O0", "O1", "O2", "O3"], ["S1", "S2", "S 3"]
BIOM = {
    "id": "x",
    "format": "Biological Observation Matrix 1.0.0",
    "format_url": "http://biom-format.org",
    "matrix_type": "sparse",
    "generated_by": "BIOM-Format 2.1.18",
    "type": "OTU table",
    "matrix_element_type": "float",
    "shape": [4, 3],
    "data": [[0, 1, 1.0], [0, 2, 2.5], [1, 0, 3.0], [2, 2, 7.0], [3, 0, 1e-7], [3, 2, 12345678.0]],
    "rows": [{"id": one, "metadata": {"taxonomy": ["k__B"]}} for one in OTU_NAMES],
    "columns": [
        {"id": "S1", "metadata": {"age": 3, "site": "gut"}},
        {"id": "S2", "metadata": {"age": 4.5, "site": "skin", "parts": ["a", "b"]}},
        {"id": "S 3", "metadata": {"age": None, "site": "gut"}},
    ],
}
BIOM_BESIDE = {
    "id": OTU_IDS,
    "age": [3, 4.5, None],
    "site": ["gut", "skin", "gut"],
    "parts": [None, "a; b", None],
}


def saved(folder, text, name="t.txt"):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


def opened(path, memory_mb=4000):
    return opened_by(path, scratch=path.parent / f"{path.name}.scratch", memory_mb=memory_mb)


@pytest.mark.parametrize("change", [str.encode, lambda text: text.replace("\n", "\r\n").encode()])
def test_texts_keep_the_contract(tmp_path, change):
    gct = opened(saved(tmp_path, change(GCT), "a"))
    check_table(gct, GCT_COLUMNS, ["g0", "g1", "g2", "g3"], GCT_BESIDE)
    second = opened(saved(tmp_path, change(SECOND), "b"))
    # -666 is missing, as cmapPy takes it, in cells too
    check_table(second, [[1, NAN, 3], [-4.5, NAN, 6]], ["p1", "p2"], {"id": ["a", "b", "c"]})
    geo = opened(saved(tmp_path, gzip.compress(change(GEO)), "c"))
    check_table(geo, GEO_COLUMNS, ["a b", "200_at", "x"], GEO_BESIDE)
    assert (gct.format, geo.format) == ("gct", "geo series matrix.gz")
    otus = opened(saved(tmp_path, change(OTUS), "d"))
    check_table(otus, OTU_COLUMNS, OTU_NAMES, {"id": OTU_IDS})


def test_a_last_column_of_biom_s_tsv_is_a_sample_if_it_holds_numbers(tmp_path):
    numbers = [line.rpartition("\t")[0] for line in OTUS.splitlines()[1:]]
    check_table(opened(saved(tmp_path, "\n".join(numbers))), OTU_COLUMNS, OTU_NAMES)
    text = OTUS.replace("\ttaxonomy", "\tKEGG_Pathways").replace("# Con", "\ufeff# Con")
    check_table(opened(saved(tmp_path, text, "named")), OTU_COLUMNS, OTU_NAMES)


def test_biom_1_keeps_the_contract_dense_or_sparse(tmp_path):
    sparse = opened(saved(tmp_path, json.dumps(BIOM, indent=1)))
    check_table(sparse, OTU_COLUMNS, OTU_NAMES, BIOM_BESIDE)
    dense = json.dumps(BIOM | {"matrix_type": "dense", "data": OTU_COLUMNS}).encode()
    table = opened(saved(tmp_path, gzip.compress(dense), "dense.gz"))
    check_table(table, OTU_COLUMNS, OTU_NAMES, BIOM_BESIDE)
    twice = json.dumps(BIOM | {"data": [*BIOM["data"], [0, 1, 1.5]]})  # is summed, as SciPy does
    table = opened(saved(tmp_path, twice, "twice"))
    check_table(table, [[0, 2.5, 2.5], *OTU_COLUMNS[1:]], OTU_NAMES, BIOM_BESIDE)


def test_the_command_line_takes_columns_by_name(tmp_path):
    path, store = saved(tmp_path, GCT, "odd.csv"), tmp_path / "t.zarr"
    said = srs_ooc("ingest", path, store, "--target", "plate", "--covariates", "dose").stdout
    assert "rows without a target, left out: 1" in said
    assert "row ids: 'id' of the file" in said
    made = open_store(store)
    assert list(made.row_ids) == ["s1", "s2", "s3", "s4"]
    assert list(made.names) == ["g0", "g1", "g2", "g3"]
    assert made.manifest.classes == ("p", "q")
    assert [one.name for one in made.covariates()] == ["dose"]


def test_columns_of_a_sample_table_stand_beside_those_of_the_file(tmp_path):
    path = saved(tmp_path, gzip.compress(GEO.encode()))
    samples = saved(tmp_path, "gsm,grp\nGSM3,a\nGSM1,b\nGSM2,a\n", "s.csv")
    asked = ["--samples", samples, "--id", "gsm", "--target", "grp"]
    srs_ooc("ingest", path, tmp_path / "a.zarr", *asked, "--covariates", "age")
    srs_ooc("ingest", path, tmp_path / "b.zarr", *asked, "--orient", "features", "--comment", "!")
    for store in map(open_store, (tmp_path / "a.zarr", tmp_path / "b.zarr")):
        assert (list(store.row_ids), store.manifest.classes) == (GEO_BESIDE["id"], ("a", "b"))


def test_a_dry_run_says_which_columns_there_are(tmp_path):
    path = saved(tmp_path, GEO)
    said = srs_ooc("ingest", path, tmp_path / "t.zarr", "--dry-run", expect=2).stdout
    assert "beside: 'disease state', 2 values, 0 missing: 'x;z:1', 'y'" in said
    assert "beside: 'age', 2 values, 1 missing: '5', '4'" in said
    assert "beside: 'data_processing', 1 value, 0 missing: 'a'" in said


def test_python_takes_the_file(tmp_path):
    manifest = package.ingest(saved(tmp_path, json.dumps(BIOM)), tmp_path / "t.zarr", target="site")
    assert (manifest.classes, manifest.source["format"]) == (("gut", "skin"), "biom 1.0")


DAMAGE = r"BIOM 1\.0 table, of numbers, found damage, texts, or counts that contradict\. Write it"


def biom_with(**changes):
    return json.dumps(BIOM | changes), DAMAGE


ENDS = "!series_matrix_table_end"
BAD = {
    "counts": (GCT.replace("4\t5\t2\t3", "4\t5"), r"line 2: expected four counts, of rows"),
    "columns": (GCT.replace("4\t5\t2", "4\t6\t2"), "line 3: expected 9 fields as line 2 says, fo"),
    "rows": (GCT.replace("4\t5\t2", "5\t5\t2"), "expected 5 rows below, as line 2 says, found 4"),
    "many": (GCT.replace("4\t5\t2", f"{10**12}\t5\t2"), f"expected {10**12} rows below"),
    "much": (GCT.replace("2\t3\n", f"2\t{10**12}\n"), "line 10: expected 8 fields as line 2 sa"),
    "cell": (GCT.replace("2.0000", "x"), "line 8: column 's1': expected a number .* found 'x'"),
    "ragged": (GCT.replace("\t6.3333", ""), "line 10: expected 8 fields"),
    "cut": (GEO.replace("!series_matrix_table_end\n", ""), "expected !series_matrix_table_end at"),
    "cut head": (GEO[: GEO.index("!series")], "expected !series_matrix_table_begin and a line"),
    "empty": (GEO.replace(GEO[GEO.index('"a b"') : GEO.index(ENDS)], ""), "found none: of sequenc"),
    "short": (GEO.replace('\t"s three"', ""), "expected 3 fields in !Sample_title"),
    "no samples": ("#OTU ID\ttaxonomy\no1\tk__B\n", "expected sample ids"),
    "json": (json.dumps(BIOM)[:-9], DAMAGE),
    "shape": biom_with(shape=[10**6, 10**6]),
    "index": (json.dumps(BIOM | {"data": [[4, 0, 1]]}), DAMAGE),
    "below": (json.dumps(BIOM | {"data": [[-1, 0, 1]]}), DAMAGE),
    "whole": (json.dumps(BIOM | {"data": [[0, 0.5, 1]]}), DAMAGE),
    "dense": (json.dumps(BIOM | {"matrix_type": "dense"}), DAMAGE),
    "fewer": (json.dumps(BIOM | {"matrix_type": "dense", "data": OTU_COLUMNS[1:]}), DAMAGE),
    "text": (json.dumps(BIOM | {"data": [[0, 0, "a"]]}), DAMAGE),
    "twice": (json.dumps(BIOM | {"columns": BIOM["columns"][:2]}), DAMAGE),
}


@pytest.mark.parametrize("name", BAD)
def test_what_contradicts_itself_is_refused(tmp_path, name):
    text, said = BAD[name]
    with pytest.raises(InputError, match=said):
        opened(saved(tmp_path, text))


def test_too_small_a_cap_is_refused_before_the_work(tmp_path):
    for name, text in {"a": GEO, "b": json.dumps(BIOM)}.items():
        with pytest.raises(BudgetError, match="The smallest cap that works is --memory-mb"):
            opened(saved(tmp_path, text, name), memory_mb=50)


@pytest.mark.parametrize("name", ["mini-1.3.gct", "n5x10-1.2.gct", "otu-1.0.biom"])
def test_real_files_are_known_by_what_they_hold(tmp_path, name):
    table = opened_by(path := data_file("files", name), scratch=tmp_path)
    known = {
        "mini-1.3.gct": ("GCT", (6, 6), {"id", "count_cv", "distil_nsample", "distil_ss"}),
        "n5x10-1.2.gct": ("GCT", (5, 10), {"id"}),
        "otu-1.0.biom": ("BIOM 1.0", (6, 5), {"id", "BODY_SITE", "Description"}),
    }[name]
    assert (format_of(path).name, table.shape) == known[:2]
    assert known[2] <= table.annotations.keys()
    if name == "n5x10-1.2.gct":
        first = [11.3819, 11.3336, 11.4486, 11.3117, 11.6321]
        assert table.read(np.array([0]), None).tolist() == [first]


@pytest.mark.slow
def test_the_smallest_cap_that_is_named_holds(tmp_path):
    n = 10_000
    ids = "\t".join(f'"GSM{i}"' for i in range(n))
    head = "".join(
        f"!Sample_field_{k}\t" + "\t".join(f'"{i % 97}"' for i in range(n)) + "\n"
        for k in range(20)
    )
    ages = "\t".join(f'"age: {i}"' for i in range(n))
    rows = "".join(
        f"p{j}\t" + "\t".join(f"{(i * j) % 89}.5" for i in range(n)) + "\n" for j in range(60)
    )
    text = (
        f'!Series_title\t"t"\n{head}!Sample_characteristics_ch1\t{ages}\n!series_matrix_table_begin\n'
        f'"ID_REF"\t{ids}\n{rows}!series_matrix_table_end\n'
    )
    path = saved(tmp_path, text)
    triples = [[j, i, (i * j) % 89] for i in range(2_000) for j in range(200)]
    biom = BIOM | {
        "shape": [200, 2_000],
        "data": triples,
        "rows": [{"id": f"o{j}", "metadata": None} for j in range(200)],
        "columns": [{"id": f"s{i}", "metadata": {"age": i}} for i in range(2_000)],
    }
    for one in (path, saved(tmp_path, json.dumps(biom), "t.biom")):
        asked = ["ingest", one, tmp_path / f"{one.name}.zarr", "--target", "age"]
        said = srs_ooc(*asked, "--dry-run", "--memory-mb", "2000").stdout
        cap = int(said.partition("--memory-mb ")[2].split()[0])
        assert peak_kb(*asked, "--memory-mb", cap) <= cap * 1000


def test_a_biom_file_may_begin_with_its_rows(tmp_path):
    """As QIIME 1.5 wrote it: what says that it is BIOM stands after all cells."""
    taxa = {"taxonomy": ["k__Bacteria"] * 7}
    long = [{"id": str(i * 7 % 4001), "metadata": taxa} for i in range(4000)]
    text = BIOM | {"rows": long, "shape": [4000, 3]}
    text["data"] = [[i, i % 3, 1] for i in range(4000)]
    order = ["rows", "columns", *(name for name in text if name not in ("rows", "columns"))]
    table = opened(saved(tmp_path, json.dumps({name: text[name] for name in order})))
    assert table.format == "biom 1.0"
    assert table.shape == (3, 4000)
    said = srs_ooc("ingest", tmp_path / "t.txt", tmp_path / "t.zarr", "--no-target").stdout
    assert "--no-header" not in said  # of ids that are numbers, out of order
