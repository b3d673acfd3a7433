"""MatrixMarket files and folders of 10x are read as SciPy and scanpy read them.

What those make of a file was seen from scipy 1.17.1 (``io.mmread``) and scanpy 1.11.5
(``read_10x_mtx``, ``read_mtx``).
"""

import gzip
import lzma
import re

import numpy as np
import pytest
from command import srs_ooc
from refusals import refused
from tables import data_file, opened

from srs_ooc import ingest
from srs_ooc.base.errors import BudgetError, InputError, StoreError
from srs_ooc.ingestion.formats.files import format_of, together, turned
from srs_ooc.store.opening import open_store
from srs_ooc.testing import check_table

HEAD = "%%MatrixMarket matrix coordinate {} general\n"
ENTRIES = "% made by hand\n\n2 3 3\n1 1 5\n2 3 7\n1 2 4\n"
ROWS = [[5.0, 4.0, 0.0], [0.0, 0.0, 7.0]]
FEATURES = "E1\tA\tGene Expression\nE2\tB\tAntibody Capture\nE3\tA\tGene Expression\n"


def written(folder, text, name="m.mtx"):
    data = text.encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder / name


def columns(path, **options):
    table = opened(path, **options)
    return table.read(np.arange(table.shape[1]), None).tolist()


def tenx(
    folder, gz=".gz", features="features", text=FEATURES, matrix="3 2 3\n3 1 1\n1 1 5\n2 2 7\n"
):
    folder.mkdir(parents=True)
    written(folder, HEAD.format("integer") + matrix, f"matrix.mtx{gz}")
    written(folder, text, f"{features}.tsv{gz}")
    written(folder, "c1-1\nc2-1\n", f"barcodes.tsv{gz}")
    return folder


def test_it_keeps_the_contract(tmp_path):
    alone = opened(written(tmp_path, HEAD.format("integer") + ENTRIES))
    check_table(alone, [*zip(*ROWS, strict=True)])
    assert "lines are samples" in alone.said
    table = opened(tenx(tmp_path / "a"))
    beside = {"barcodes": ["c1-1", "c2-1"]}
    check_table(table, [[5.0, 0.0], [0.0, 7.0], [1.0, 0.0]], ["A", "B", "A-1"], beside)
    assert (table.default_ids, table.format) == ("barcodes", "mtx.gz")


@pytest.mark.parametrize(
    ("field", "entries", "expected"),
    [
        ("integer", ENTRIES, ROWS),
        ("integer", ENTRIES.replace("\n", "\r\n"), ROWS),
        ("integer", ENTRIES.replace(" ", "\t "), ROWS),
        ("integer", ENTRIES.rstrip("\n").replace("7\n", "7\n% in between\n\n"), ROWS),
        ("unsigned-integer", ENTRIES, ROWS),
        ("INTEGER", ENTRIES, ROWS),
        ("integer", "1 2 3\n1 2 5\n1 1 1\n1 2 6\n", [[1.0, 11.0]]),  # repeated, summed
        ("integer", "1 1 2\n1 1 16777217\n1 1 1\n", [[16777218.0]]),  # beyond float32
        ("integer", "01 1 1\n0001 01 -3\n", [[-3.0]]),
        ("integer", "1 2 0\n", [[0.0, 0.0]]),
        ("pattern", "2 2 3\n1 1\n1 1\n2 2\n", [[2.0, 0.0], [0.0, 1.0]]),
        ("real", "2 2 3\n1 1 1e-3\n2 1 .5\n2 2 -7.\n", [[1e-3, 0.0], [0.5, -7.0]]),
        ("real", "1 1 1\n1 1 0.1234567890123456789\n", [[0.12345678901234568]]),
        ("double", "1 1 1\n1 1 +2.5\n", [[2.5]]),
    ],
)
def test_entries_are_read_as_scipy_reads_them(tmp_path, field, entries, expected):
    for name in ("m.mtx", "other.gz"):
        path = written(tmp_path, HEAD.format(field) + entries, name)
        assert format_of(path).name == "MatrixMarket"
        np.testing.assert_array_equal(columns(path), np.array(expected).T)
    turned_round = turned(path)
    assert turned_round.name == "other.gz::.T"
    np.testing.assert_array_equal(columns(turned_round), expected)


def test_any_order_of_entries_and_any_number_of_them_give_the_same(tmp_path):
    rng = np.random.default_rng(5)
    places = rng.choice(300 * 2000, 40_000, replace=False)
    cells = rng.integers(1, 9, len(places))
    whole = np.zeros((300, 2000))
    whole.flat[places] = cells
    for order in (np.argsort(places), np.argsort(places % 2000, kind="stable"), slice(None)):
        rows, items = np.divmod(places[order], 2000)
        lines = zip((rows + 1).tolist(), (items + 1).tolist(), cells[order].tolist(), strict=True)
        text = f"300 2000 {len(places)}\n" + "".join("{} {} {}\n".format(*line) for line in lines)
        path = written(tmp_path, HEAD.format("integer") + text, "m.mtx.gz")
        np.testing.assert_array_equal(columns(path), whole.T)


@pytest.mark.parametrize(("gz", "features"), [("", "genes"), (".gz", "features"), ("", "features")])
def test_folders_of_10x_have_their_names_and_barcodes(tmp_path, gz, features):
    text = "E1\tA\nE2\tB\nE3\tA\n" if features == "genes" else FEATURES
    folder = tenx(tmp_path / "a", gz, features, text)
    by_file = opened(folder / f"matrix.mtx{gz}")
    assert list(opened(folder).names) == list(by_file.names) == ["A", "B", "A-1"]
    assert list(opened(folder, names_from="id").names) == ["E1", "E2", "E3"]
    assert columns(turned(folder / f"matrix.mtx{gz}")) == columns(folder)  # are features already
    if features == "features":
        some = opened(folder, feature_type="Gene Expression")
        assert list(some.names) == ["A", "A-1"]
        assert some.read(np.array([1, 0]), None).tolist() == [[1.0, 0.0], [5.0, 0.0]]
        assert "'Gene Expression' 2, 'Antibody Capture' 1" in opened(folder).said
        types = "'Gene Expression' 2, 'Antibody Capture' 1"
        with pytest.raises(InputError, match=rf"type 'Custom', found {types}\. Name one"):
            opened(folder, feature_type="Custom")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("%%MatrixMarket matrix\n2 3\n", "expected matrix coordinate integer|uns"),
        ("%%MatrixMarket vector coordinate integer general\n3 2\n", "found vector"),
        ("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 1 1\n", "Write it anew"),
        ("%%MatrixMarket matrix array real general\n2 1\n1\n2\n", "found matrix array real gen"),
        ("%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 1 1\n", "found matrix coo"),
        (HEAD + "2 3\n", "rows and columns"),
        (HEAD + "2.0 3 1\n1 1 1\n", "rows and columns of 1 to"),
        (HEAD + "0 3 1\n1 1 1\n", "rows and columns of 1 to"),
        (HEAD + "% only\n", "and entries, found ''"),
        (HEAD + "2 3 2\n1 1 1\n0 1 1\n", "line 4: expected a row of 1 to 2, found '0 1 1'"),
        (HEAD + "2 3 2\n1 1 1\n1 4 1\n", "line 4: expected a column of 1 to 3, found '1 4 1'"),
        (HEAD + "2 3 2\n1 1 1\n1 x 1\n", "line 4: expected two or three fields"),
        (HEAD + "2 3 2\n1 1 1\n1 1\n", "line 4: expected two or three fields"),
        (HEAD + "2 3 2\n1 1 1 9\n1 1 1\n", "line 3: expected two or three fields"),
        (HEAD + "2 3 1\n1,2,1\n", "line 3: expected two or three fields"),
        (HEAD + "2 3 1\n1 1 one\n", "line 3: expected a number"),
        (HEAD + "2 3 1\n1 1 NaN\n", "line 3: expected a number"),
        (HEAD + "2 3 1\n1 1 1.5\n", "expected a whole number below 2"),
        (HEAD + "2 3 1\n1 1 9007199254740993\n", "expected a whole number below 2"),
        (HEAD + "2 3 3\n1 1 1\n1 2 1\n", "as many entries as the header says, 3, found 2"),
        (HEAD + "2 3 1\n1 1 1\n1 2 1\n", "as many entries as the header says, 1, found more"),
        (HEAD + "2 3 1\n1 1 " + "1" * (1 << 21) + "\n1 1 1\n", "an entry a line, found"),
        (HEAD + "20000000 20000000 1000000000000\n1 1 1\n", "bytes, which cannot hold them"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(tmp_path, text, said):
    for name in ("m.mtx", "m.mtx.gz"):
        refused(InputError, said, columns, written(tmp_path, text.replace("{}", "integer"), name))


def test_what_promises_much_or_ends_early_is_refused(tmp_path):
    wide = written(tmp_path, HEAD.format("integer") + "4000000000 4000000000 1\n1 1 1\n")
    refused(BudgetError, "where columns begin", opened, wide, memory_mb=512)
    whole = written(tmp_path, HEAD.format("integer") + ENTRIES, "m.mtx.gz")
    whole.write_bytes(whole.read_bytes()[:-12])
    refused(InputError, "gzip-compressed text, found damage", columns, whole)
    packed = written(tmp_path, HEAD.format("pattern") + "9 9 999999999999\n" + "1 1\n" * 9, "m.xz")
    packed.write_bytes(lzma.compress(packed.read_bytes()))
    refused(StoreError, "free disk", columns, packed)


def test_lists_that_contradict_the_matrix_are_refused(tmp_path):
    folder = tenx(tmp_path / "a")
    written(folder, "c1\nc2\nc3\n", "barcodes.tsv.gz")
    refused(InputError, r"barcodes.*: expected 2 lines, as .*, found more", opened, folder)
    (folder / "barcodes.tsv.gz").unlink()
    with pytest.raises(
        InputError, match=r"barcodes\.tsv, beside it.*, found features\.tsv\.gz\. Put all"
    ):
        opened(folder)
    (folder / "features.tsv.gz").unlink()
    refused(InputError, "found none of them", opened, folder)
    assert opened(folder / "matrix.mtx.gz").names is None
    one_field = tenx(tmp_path / "b", text="E1\nE2\nE3\n")
    assert list(opened(one_field).names) == ["E1", "E2", "E3"]
    with pytest.raises(InputError, match="the symbol of each feature, found id"):
        opened(one_field, names_from="symbol")


def test_the_command_line_joins_samples_and_names_scratch_and_store(tmp_path):
    folder = tenx(tmp_path / "a")
    (tmp_path / "y.csv").write_text("cell,y\nc2-1,v\nc1-1,u\n")
    joined = ["--samples", tmp_path / "y.csv", "--id", "cell", "--target", "y"]
    said = srs_ooc("ingest", folder, tmp_path / "a.zarr", *joined, "--dry-run").stdout
    assert "columns: 3\nrows: 2\n" in said
    assert "scratch disk: 72 bytes" in said
    assert re.search("store: at most .*: codes 6 bytes, values .* bytes\n", said)
    srs_ooc("ingest", folder, tmp_path / "a.zarr", *joined, "--orient", "features")
    store = open_store(tmp_path / "a.zarr")
    assert (list(store.names), list(store.row_ids)) == (["A", "B", "A-1"], ["c1-1", "c2-1"])
    assert store.manifest.classes == ("u", "v")
    alone = written(tmp_path, HEAD.format("integer") + ENTRIES)
    srs_ooc("ingest", alone, tmp_path / "m.zarr", "--target", "f0")
    assert open_store(tmp_path / "m.zarr").manifest.n_rows == 2


def test_real_files_are_read_as_scanpy_reads_them(tmp_path):
    shown = {"10x-v2": ((12, 343), 12, "DSCAM"), "10x-v3": ((1107, 507), 41549, "CH507-9B2.2")}
    for name, expected in shown.items():
        table = opened(data_file("files", name), scratch=tmp_path)
        cells = table.read(np.arange(table.shape[1]), None)
        assert (table.shape, cells.sum(), next(iter(table.names))) == expected
        assert table.narrow


def test_several_folders_are_samples_one_after_another(tmp_path):
    """Ids are those of ``anndata.concat(keys=["a", "b"], index_unique="-")`` (anndata 0.12.19)."""
    folders = [tenx(tmp_path / f"{one}/outs") for one in "ab"]
    written(folders[1], HEAD.format("integer") + "3 2 2\n3 2 2\n1 1 16777217\n", "matrix.mtx.gz")
    table = opened(together(folders)[0], scratch=tmp_path)
    cells = [[5.0, 0.0, 16777217.0, 0.0], [0.0, 7.0, 0.0, 0.0], [1.0, 0.0, 0.0, 2.0]]
    beside = {"barcodes": ["c1-1-a", "c2-1-a", "c1-1-b", "c2-1-b"], "sample": [*"aabb"]}
    check_table(table, cells, ["A", "B", "A-1"], beside)
    assert together([folders[0]]) == [folders[0]]
    assert together([folders[0], tmp_path / "y.csv"]) == [folders[0], tmp_path / "y.csv"]
    srs_ooc("ingest", *folders, tmp_path / "a.zarr", "--target", "sample")
    ingest(list(map(str, folders)), tmp_path / "b.zarr", target="sample")
    for name in "ab":
        store = open_store(tmp_path / f"{name}.zarr")
        assert list(store.row_ids) == beside["barcodes"]
        assert store.manifest.classes == ("a", "b")
    said = srs_ooc("ingest", *folders, tmp_path / "c.zarr", "--no-target", "--dry-run").stdout
    assert "rows: 4\n" in said
    assert "lines are features; samples: a, b; row ids: barcodes; " in said


def test_samples_that_do_not_fit_together_are_refused(tmp_path):
    first = tenx(tmp_path / "a")
    other = tenx(tmp_path / "b", text=FEATURES.replace("E2\tB", "E2\tC"))
    with pytest.raises(InputError, match=r"the 3 features of .*, found 3, among them E2 C Anti"):
        opened(together([first, other])[0])
    few = tenx(tmp_path / "c", text="E1\tA\n", matrix="1 2 1\n1 1 1\n")
    refused(InputError, r"found 1, among them E1 A\. Count all", opened, together([first, few])[0])
    with pytest.raises(InputError, match="distinct row ids, found 'c1-1' at 1 and 3"):
        ingest([first, first], tmp_path / "a.zarr", no_target=True)
    alone = written(tmp_path, HEAD.format("integer") + ENTRIES)
    with pytest.raises(InputError, match=r"barcodes\.tsv, beside it.* found none of them"):
        opened(together([first, alone])[0])


def test_samples_as_geo_has_them_are_told_apart_by_what_stands_before(tmp_path):
    for name in ("GSM1_a", "GSM2_b"):
        written(tmp_path, HEAD.format("integer") + "2 1 1\n1 1 5\n", f"{name}_matrix.mtx.gz")
        written(tmp_path, "E1\tA\nE2\tB\n", f"{name}_features.tsv.gz")
        written(tmp_path, "c1\n", f"{name}_barcodes.tsv.gz")
    (place,) = together(sorted(tmp_path.glob("*_matrix.mtx.gz")))
    table = opened(place, scratch=tmp_path)
    samples = ["GSM1_a", "GSM2_b"]
    beside = {"sample": samples, "barcodes": [f"c1-{one}" for one in samples]}
    check_table(table, [[5.0, 5.0], [0.0, 0.0]], ["A", "B"], beside)
