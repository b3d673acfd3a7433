"""`srs-ooc predict`: the mean of the saved trees, by values, whatever the table lies in."""

import csv
import gzip
import json
import shutil

import numpy as np
import pytest
from command import error_of, json_of, peak_kb, srs_ooc
from forest_reference import add_shares, decode_tree
from stores import noise_table

from srs_ooc.ensemble.prediction import Scores
from srs_ooc.ingestion.ingest_options import stored_positions

N_ROWS, N_FEATURES, N_TREES = 320, 60, 150
TRAINED = 200


def write_csv(path, header, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, its store, and a run with saved trees, small subspaces (so that probes are used)."""
    folder = tmp_path_factory.mktemp("predict")
    values, labels = noise_table(N_ROWS, N_FEATURES, n_classes=3)
    values[7] = np.round(values[7], 1)
    header = ["id", *(f"f{i}" for i in range(N_FEATURES)), "group"]
    rows = [
        [f"r{row}", *(repr(float(x)) for x in values[:, row]), "abc"[labels[row]]]
        for row in range(N_ROWS)
    ]
    write_csv(folder / "table.csv", header, rows)
    write_csv(folder / "train.csv", header, rows[:TRAINED])
    write_csv(folder / "test.csv", header, rows[TRAINED:])
    options = ("--row-ids", "id", "--target", "group")
    srs_ooc("ingest", "train.csv", "t.zarr", *options, cwd=folder)
    srs_ooc("ingest", "table.csv", "all.zarr", *options, cwd=folder)
    srs_ooc("run", "t.zarr", "--save-trees", "--iterations", N_TREES, "--q", 12, cwd=folder)
    return folder


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


def predicted(folder, data, out, *options, run="t.run"):
    """The report and the bytes of a prediction."""
    report = json_of("predict", run, data, out, "--json", *options, cwd=folder)
    return report, out.read_bytes()


@pytest.mark.slow
def test_training_store_and_its_csv_and_another_store_of_it_agree_to_the_bit(folder, tmp_path):
    by_codes = predicted(folder, "t.zarr", tmp_path / "codes.csv")
    assert by_codes[0]["n_training_rows"] == TRAINED
    assert predicted(folder, "train.csv", tmp_path / "csv.csv") == by_codes
    other = tmp_path / "other.zarr"
    options = ("--row-ids", "id", "--target", "group", "--code-dtype", "uint16")
    srs_ooc("ingest", folder / "train.csv", other, *options)
    assert predicted(folder, other, tmp_path / "values.csv") == by_codes
    exported = tmp_path / "exported.csv.gz"
    srs_ooc("export", "t.zarr", "t.run", exported, "--top", N_FEATURES, cwd=folder)
    by_codes[0]["n_training_rows"] = None  # rows of other tables are not compared
    assert predicted(folder, exported, tmp_path / "again.csv") == by_codes
    report = by_codes[0]
    assert report["n_rows"] == TRAINED
    assert report["n_trees"] == N_TREES
    assert report["accuracy"] > 0.95


@pytest.mark.slow
def test_scores_of_training_rows_are_said_to_be_such(folder, tmp_path):
    said = srs_ooc("predict", "t.run", "t.zarr", tmp_path / "a.csv", cwd=folder).stdout
    assert "all rows are those that the run was trained on" in said
    (tmp_path / "copy.csv").write_bytes((folder / "train.csv").read_bytes())
    (tmp_path / "other.csv").write_bytes((folder / "train.csv").read_bytes() + b"\n")
    for name, is_known in (("copy.csv", True), ("other.csv", False)):
        done = srs_ooc("predict", "t.run", tmp_path / name, tmp_path / f"of-{name}", cwd=folder)
        assert ("all rows are those that the run was trained on" in done.stdout) == is_known
    said = srs_ooc("predict", "t.run", "test.csv", tmp_path / "b.csv", cwd=folder).stdout
    assert "trained on" not in said
    (tmp_path / "rows.txt").write_text("".join(f"r{i}\n" for i in range(50)))
    some = ("--rows", tmp_path / "rows.txt", "--out", tmp_path / "some.run", "--iterations", 5)
    srs_ooc("run", "t.zarr", "--save-trees", *some, cwd=folder)
    said = srs_ooc("predict", tmp_path / "some.run", "t.zarr", tmp_path / "c.csv", cwd=folder)
    assert f"50 of the {TRAINED} rows are those that the run was trained on" in said.stdout


@pytest.mark.slow
def test_it_is_what_the_reference_says(folder, tmp_path):
    """Trees decoded in Python, thresholds from the training values, the held-out rows walked."""
    report, made = predicted(folder, "test.csv", tmp_path / "out.csv")
    table = np.array([row[1:-1] for row in rows_of(folder / "table.csv")[1:]], float)
    table = table[:, stored_positions(N_FEATURES)]
    train, test = table[:TRAINED], table[TRAINED:]
    ranks = [np.unique(column) for column in train.T]  # few enough rows: codes are ranks
    data, place, trees = (folder / "t.run" / "trees.bin").read_bytes(), 16, []
    while place < len(data):
        length = int.from_bytes(data[place : place + 4], "little")
        trees.append(decode_tree(data[place + 8 : place + 8 + length]))
        place += 8 + length
    lines = ["id,prediction,probability_a,probability_b,probability_c"]
    right, labels = 0, [row[-1] for row in rows_of(folder / "test.csv")[1:]]
    for i, row in enumerate(test):
        shares = [0.0] * 3

        def goes_left(split, row=row):
            below, above = ranks[split.feature][split.code : split.code + 2]
            return row[split.feature] <= (below + above) / 2

        for tree in trees:
            add_shares(tree, goes_left, shares)
        means = [share / N_TREES for share in shares]
        guess = "abc"[means.index(max(means))]
        right += guess == labels[i]
        lines.append(f"r{TRAINED + i},{guess}," + ",".join(map(repr, means)))
    assert made.decode().splitlines() == lines
    assert report["accuracy"] == right / len(test)
    probabilities = np.array([row[2:] for row in rows_of(tmp_path / "out.csv")[1:]], float)
    own = probabilities[np.arange(len(test)), ["abc".index(label) for label in labels]]
    assert report["log_loss"] == pytest.approx(-np.log(np.maximum(own, 1e-15)).mean())


@pytest.mark.slow
def test_held_out_rows_of_a_store_equal_those_of_a_csv(folder, tmp_path):
    whole, _ = predicted(folder, "all.zarr", tmp_path / "all.csv")
    predicted(folder, "test.csv", tmp_path / "test.csv")
    assert rows_of(tmp_path / "all.csv")[1 + TRAINED :] == rows_of(tmp_path / "test.csv")[1:]
    assert whole["n_rows"] == N_ROWS


@pytest.mark.slow
def test_columns_are_found_by_name_and_others_do_not_matter(folder, tmp_path):
    """Other order, no target, no ids, a column of text, gzip; then labels never seen."""
    rows = rows_of(folder / "test.csv")
    order = np.random.default_rng(0).permutation(np.arange(1, N_FEATURES + 1)).tolist()
    header, *body = [["note", *(row[i] for i in order)] for row in rows]
    plain = write_csv(tmp_path / "plain.csv", header, [["what", *row[1:]] for row in body])
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    report, _ = predicted(folder, packed, tmp_path / "out.csv")
    assert report["accuracy"] is report["log_loss"] is report["n_unknown_labels"] is None
    predicted(folder, "test.csv", tmp_path / "expected.csv")
    found, expected = rows_of(tmp_path / "out.csv"), rows_of(tmp_path / "expected.csv")
    assert [row[1:] for row in found] == [row[1:] for row in expected]
    assert [row[0] for row in found] == ["id", *map(str, range(1, len(found)))]
    strange = write_csv(tmp_path / "s.csv", rows[0], [[*row[:-1], "zebra"] for row in rows[1:]])
    report, _ = predicted(folder, strange, tmp_path / "strange.csv", "--row-ids", "id")
    assert report["accuracy"] == 0
    assert report["n_unknown_labels"] == report["n_rows"] == N_ROWS - TRAINED
    assert report["log_loss"] == pytest.approx(-np.log(1e-15))


@pytest.mark.slow
def test_memory_is_bounded_and_changes_nothing(folder, tmp_path):
    refused = error_of(
        "predict", "t.run", "test.csv", tmp_path / "no", "--memory-mb", 9, cwd=folder
    )
    smallest = int(refused.rsplit("--memory-mb ", 1)[1].rstrip("."))
    outs = [tmp_path / f"{i}.csv" for i in range(2)]
    rows = rows_of(folder / "test.csv")
    many = write_csv(tmp_path / "many.csv", rows[0], rows[1:] * 90)
    for out, cap in zip(outs, (smallest + 1, 600), strict=True):
        options = ("--memory-mb", cap)
        peak_mb = peak_kb("predict", "t.run", many, out, *options, cwd=folder) * 1024 / 1e6
        assert peak_mb < cap
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert len(rows_of(outs[0])) == 90 * (N_ROWS - TRAINED) + 1


@pytest.mark.slow
def test_memory_is_bounded_where_there_are_many_classes(tmp_path):
    """Panels of 8,192 rows and 300 classes: each probability is 8 bytes, and a Python number."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 900, (9000, 2))
    rows = [[*row, row[0] // 3] for row in x.tolist()]
    data = write_csv(tmp_path / "t.csv", ["a", "b", "group"], rows)
    write_csv(tmp_path / "small.csv", ["a", "b", "group"], rows[:1800])
    srs_ooc(
        "ingest",
        "small.csv",
        "t.zarr",
        "--task",
        "classification",
        "--min-class-rows",
        1,
        cwd=tmp_path,
    )
    srs_ooc("run", "t.zarr", "--save-trees", "--iterations", 2, cwd=tmp_path)
    options = ("predict", tmp_path / "t.run", data, tmp_path / "out.csv", "--memory-mb", 90)
    assert peak_kb(*options) * 1024 / 1e6 < 90


@pytest.mark.slow
def test_labels_may_be_missing_and_targets_have_other_names(folder, tmp_path):
    header, *rows = rows_of(folder / "test.csv")
    some = [[*row[:-1], "" if i < 5 else row[-1]] for i, row in enumerate(rows)]
    report, out = predicted(folder, write_csv(tmp_path / "s.csv", header, some), tmp_path / "a.csv")
    assert (report["n_rows"], report["n_unlabelled"]) == (N_ROWS - TRAINED, 5)
    assert report["n_unknown_labels"] == 0
    assert predicted(folder, "test.csv", tmp_path / "b.csv")[1] == out
    other = write_csv(tmp_path / "other.csv", [*header[:-1], "species"], rows)
    srs_ooc("ingest", other, tmp_path / "other.zarr", "--row-ids", "id")
    report, out_of_store = predicted(folder, tmp_path / "other.zarr", tmp_path / "c.csv")
    assert report["accuracy"] is report["n_unlabelled"] is None
    assert out_of_store == out


@pytest.mark.slow
def test_ranges_of_codes_serve_where_values_were_not_kept(folder, tmp_path):
    store, run = tmp_path / "n.zarr", tmp_path / "n.run"
    options = ("--row-ids", "id", "--target", "group", "--no-values")
    srs_ooc("ingest", folder / "train.csv", store, *options)
    srs_ooc("run", store, "--save-trees", "--iterations", N_TREES, "--q", 12)
    expected = predicted(folder, "test.csv", tmp_path / "a.csv")
    assert predicted(folder, "test.csv", tmp_path / "b.csv", run=run) == expected
    codes = predicted(folder, store, tmp_path / "c.csv", run=run)
    assert codes == predicted(folder, "t.zarr", tmp_path / "d.csv")
    assert "--no-values" in error_of("predict", "t.run", store, tmp_path / "e.csv", cwd=folder)


@pytest.mark.slow
def test_thresholds_are_kept_until_there_are_more_trees(folder, tmp_path):
    """After the first prediction the store may be gone; for new trees it must be there."""
    store, run = tmp_path / "t.zarr", tmp_path / "t.run"
    shutil.copytree(folder / "t.zarr", store)
    srs_ooc("run", store, "--save-trees", "--iterations", 30, "--q", 12)
    first = predicted(folder, "test.csv", tmp_path / "a.csv", run=run)
    away = store.rename(tmp_path / "away.zarr")
    assert predicted(folder, "test.csv", tmp_path / "b.csv", run=run) == first
    srs_ooc("run", away, "--out", run, "--iterations", 60)
    away.rename(tmp_path / "far.zarr")
    assert "no longer at" in error_of("predict", run, folder / "test.csv", tmp_path / "c.csv")
    options = ("--store", tmp_path / "far.zarr")
    more, _ = predicted(folder, "test.csv", tmp_path / "d.csv", *options, run=run)
    assert (first[0]["n_trees"], more["n_trees"]) == (30, 60)
    file = run / "splits.bin"
    whole = file.read_bytes()
    for place in (3, 18, whole.index(b'"classes": ["') + 13, len(whole) - 1):
        data = bytearray(whole)
        data[place] ^= 1
        file.write_bytes(data)
        message = error_of("predict", run, folder / "test.csv", tmp_path / "e.csv")
        assert "splits.bin" in message
        assert "Remove" in message
    file.unlink()
    left_by_a_kill = run / "splits.bin.partial"
    left_by_a_kill.write_bytes(whole[:100])
    again, _ = predicted(folder, "test.csv", tmp_path / "f.csv", *options, run=run)
    assert again == more
    assert file.read_bytes() == whole
    assert not left_by_a_kill.exists()


@pytest.mark.slow
def test_trees_that_never_split_predict_the_shares_of_the_training_rows(folder, tmp_path):
    run = tmp_path / "roots.run"
    options = ("--min-samples-leaf", TRAINED, "--iterations", 5, "--q", 12)
    srs_ooc("run", folder / "t.zarr", "--out", run, "--save-trees", *options)
    report, _ = predicted(folder, "test.csv", tmp_path / "out.csv", run=run)
    assert report["n_features"] == 0
    assert predicted(folder, "t.zarr", tmp_path / "o.csv", run=run)[0]["n_rows"] == TRAINED
    counts = json.loads((folder / "t.zarr" / "zarr.json").read_text())
    counts = counts["attributes"]["srs_ooc"]["class_counts"]
    shares = {tuple(map(float, row[2:])) for row in rows_of(tmp_path / "out.csv")[1:]}
    assert len(shares) == 1
    np.testing.assert_allclose(shares.pop(), np.array(counts) / TRAINED)


def edited(folder, tmp_path, change):
    header, *rows = rows_of(folder / "test.csv")
    change(header, rows)
    return write_csv(tmp_path / "bad.csv", header, rows)


def _drop(header, rows):
    for row in (header, *rows):
        del row[5]


def _twice(header, rows):
    header[4] = "f7"
    for row in (header, *rows):
        row.append(row[4])
    header[-1], header[4] = "f3", "f3"


def _text(header, rows):
    rows[3][5] = "tall"


def _ragged(header, rows):
    rows[3].pop()


def _no_rows(header, rows):
    rows.clear()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (_drop, ["1 of them missing", "'f4'"]),
        (_twice, ["found twice", "'f3'"]),
        (_text, ["line 5", "'f4'", "'tall'"]),
        (_ragged, ["line 5", "fields"]),
        (_no_rows, ["expected rows"]),
    ],
)
def test_a_table_that_does_not_fit_is_refused(folder, tmp_path, change, parts):
    out = tmp_path / "out.csv"
    message = error_of("predict", "t.run", edited(folder, tmp_path, change), out, cwd=folder)
    assert all(part in message for part in parts), message
    assert not out.exists()
    assert not out.with_name("out.csv.partial").exists()


@pytest.mark.slow
def test_what_cannot_be_predicted_is_refused(folder, tmp_path):
    def refused(*arguments):
        return error_of("predict", *arguments, cwd=folder)

    out = tmp_path / "out.csv"
    plain = tmp_path / "plain.run"
    srs_ooc("run", folder / "t.zarr", "--out", plain, "--iterations", 3, "--q", 12)
    assert "--save-trees" in refused(plain, "test.csv", out)
    assert "no such file" in refused("t.run", "nothing.csv", out)
    assert "expected the folder of a run" in refused("nothing.run", "test.csv", out)
    assert "--row-ids" in refused("t.run", "test.csv", out, "--row-ids", "nowhere")
    assert "which the trees use" in refused("t.run", "test.csv", out, "--row-ids", "f3")
    assert "Leave it out" in refused("t.run", "all.zarr", out, "--row-ids", "id")
    numbered = [[*row[:-1], i] for i, row in enumerate(rows_of(folder / "test.csv")[1:])]
    numbers = write_csv(tmp_path / "n.csv", rows_of(folder / "test.csv")[0], numbered)
    options = ("--row-ids", "id", "--target", "group", "--task", "regression")
    srs_ooc("ingest", numbers, tmp_path / "n.zarr", *options)
    assert "--task classification" in refused("t.run", tmp_path / "n.zarr", out)
    other = tmp_path / "other.zarr"
    header, *rows = rows_of(folder / "test.csv")
    small = write_csv(tmp_path / "small.csv", header[:9] + header[-1:], [
        row[:9] + row[-1:] for row in rows
    ])  # fmt: skip
    srs_ooc("ingest", small, other, "--row-ids", "id")
    assert "of them missing" in refused("t.run", other, out)
    assert "cannot be written" in refused("t.run", "test.csv", tmp_path / "no" / "out.csv")
    assert not out.exists()
    out.write_text("mine")
    assert "path that is free" in refused("t.run", "test.csv", out)
    assert out.read_text() == "mine"


# Scores: what is counted, what is left out, and numbers near the ends of doubles.


def test_missing_labels_are_left_out_and_unknown_ones_count_as_wrong():
    scores = Scores(["a", "b"])
    shares = np.array([[0.75, 0.25]] * 6)
    scores.add(["a", "", "NA", "-nan", "zebra", "b"], [0] * 6, shares)
    assert (scores.n_rows, scores.n_unlabelled, scores.n_unknown) == (3, 3, 1)
    assert scores.measures()["accuracy"] == pytest.approx(1 / 3)
    assert scores.measures()["log_loss"] == pytest.approx(
        -(np.log(0.75) + np.log(1e-15) + np.log(0.25)) / 3
    )


def test_a_class_may_be_called_like_a_missing_value():
    scores = Scores(["NA", "b"])
    scores.add(["NA"], [0], np.array([[1.0, 0.0]]))
    assert (scores.measures()["accuracy"], scores.n_unlabelled) == (1, 0)


def test_targets_that_are_no_numbers_are_left_out():
    scores = Scores([])
    scores.add(["1", "", "tall", "3", "inf"], [0] * 5, np.array([[1.0], [9], [9], [2], [9]]))
    assert (scores.n_rows, scores.n_unlabelled, scores.n_unknown) == (2, 1, 2)
    assert scores.measures()["r2"] == 0.5
    assert scores.measures()["rmse"] == np.sqrt(0.5)


@pytest.mark.parametrize("exponent", [-1000, 0, 1000])
def test_scores_do_not_depend_on_the_unit_of_targets(exponent):
    """Squares of differences would leave the range of doubles at both ends."""
    targets = np.ldexp([1.0, 2, 4, 7], exponent)
    means = np.ldexp([[1.5], [2], [3], [6.5]], exponent)
    scores = Scores([], 2.0**-exponent)
    scores.add([repr(t) for t in targets.tolist()], [0] * 4, means)
    plain = Scores([])
    plain.add(["1", "2", "4", "7"], [0] * 4, np.array([[1.5], [2], [3], [6.5]]))
    assert scores.measures()["r2"] == plain.measures()["r2"]
    assert scores.measures()["rmse"] == np.ldexp(plain.measures()["rmse"], exponent)


def test_an_error_beyond_doubles_has_no_score():
    scores = Scores([])
    scores.add(["1e300", "-1e300"], [0, 0], np.zeros((2, 1)))
    assert scores.measures()["r2"] is None
    assert scores.measures()["rmse"] is None
