"""Several targets in one store: kept at ingest or added later, searched, read together, refused."""

import csv
import io
import json
import shutil
from contextlib import closing

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc

import srs_ooc as package
from srs_ooc.base.errors import StoreError
from srs_ooc.runs.jobs import WorkerStore
from srs_ooc.runs.run import Run
from srs_ooc.store.store import Store

N_ROWS, N_FEATURES = 60, 40
QUICK = ("--iterations", 40, "--q", 20)
LACK_B, LACK_A = range(5, 60, 9), (3, 8, 14)
"""Rows without b, and, in one of the tables, without a; one of these has no b either."""


def write(path, columns):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def without(column, rows):
    return ["" if row in rows else cell for row, cell in enumerate(column)]


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((N_ROWS, N_FEATURES)).round(3)
    noise = rng.standard_normal((3, N_ROWS)) / 2
    a, c = (
        (x[:, j : j + 2].sum(axis=1) + e > 0).tolist() for j, e in ((0, noise[0]), (4, noise[1]))
    )
    b = (x[:, 2:4].sum(axis=1) + noise[2]).round(3).tolist()
    return {
        "id": [f"r{i}" for i in range(N_ROWS)],
        "a": ["ill" if one else "well" for one in a],
        "b": b,
        "c": ["yes" if one else "no" for one in c],
        "age": rng.normal(50, 9, N_ROWS).round(1).tolist(),
        "x": {f"f{j}": x[:, j].tolist() for j in range(N_FEATURES)},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory, columns):
    """Tables of one, two or three targets; stores of some; a table of persons in another order."""
    folder = tmp_path_factory.mktemp("targets")
    x, ids, b = columns["x"], {"id": columns["id"]}, without(columns["b"], LACK_B)
    for name in ("a", "c"):
        write(folder / f"{name}.csv", ids | {name: columns[name]} | x)
        srs_ooc("ingest", f"{name}.csv", f"{name}.zarr", "--target", name, *ROW_IDS, cwd=folder)
    write(folder / "b.csv", ids | {"b": columns["b"]} | x)
    three = {"a": columns["a"], "b": b, "c": columns["c"]}
    write(folder / "abc.csv", ids | three | x)
    write(folder / "less.csv", ids | three | {"a": without(columns["a"], LACK_A)} | x)
    known = {"ID": columns["id"], "b": b, "c": columns["c"], "age": columns["age"]}
    order = np.random.default_rng(1).permutation(N_ROWS).tolist()
    write(folder / "people.csv", {name: [col[i] for i in order] for name, col in known.items()})
    with (folder / "people.csv").open("a") as file:
        file.write("nobody,1,yes,30\r\n")
    (folder / "with_b.txt").write_text(
        "".join(f"{i}\n" for i, v in zip(known["ID"], b, strict=True) if v != "")
    )
    srs_ooc("ingest", "b.csv", "b.zarr", "--target", "b", *ROW_IDS, cwd=folder)
    return folder


ROW_IDS = ("--row-ids", "id")
PEOPLE = ("people.csv", "--id", "ID")


@pytest.fixture
def added(folder, tmp_path):
    """A store of a, to which b, c and age were added."""
    for name in ("a.zarr", "people.csv", "with_b.txt"):
        (shutil.copytree if name == "a.zarr" else shutil.copy)(folder / name, tmp_path / name)
    asked = ("--target", "b,c", "--covariates", "age")
    done = srs_ooc("targets", "a.zarr", *PEOPLE, *asked, cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "lines without a row, left out: 1 (nobody)",
        "target 'a' (2 levels): 60 of 60 rows, the store's own",
        f"target 'b' (numbers): {60 - len(LACK_B)} of 60 rows",
        "target 'c' (2 levels): 60 of 60 rows",
        "covariate 'age' (numbers): 60 of 60 rows",
    ]
    return tmp_path


def features(run, cwd):
    return srs_ooc("features", run, "--csv", cwd=cwd).stdout


@pytest.mark.slow
def test_a_run_on_an_added_target_equals_that_on_a_store_of_it(folder, added):
    srs_ooc("run", "a.zarr", "--target", "b,c", *QUICK, cwd=added)
    srs_ooc("run", "c.zarr", "--out", added / "own.run", *QUICK, cwd=folder)
    assert features("a-c.run", added) == features("own.run", added)
    rows = ("--rows", "with_b.txt")
    srs_ooc("run", "b.zarr", "--out", added / "rows.run", *rows, *QUICK, cwd=folder)
    assert features("a-b.run", added) == features("rows.run", added)
    status = json_of("status", "a-b.run", "--json", cwd=added)
    assert status["rows"] == json_of("status", "rows.run", "--json", cwd=added)["rows"]
    assert status["target"].startswith("b (sha256 ")
    assert "target" not in json_of("status", "rows.run", "--json", cwd=added)


@pytest.mark.slow
def test_rows_without_the_target_are_left_out_of_those_that_are_named(folder, added):
    some = [f"r{i}" for i in range(0, N_ROWS - 5)]
    (added / "some.txt").write_text("\n".join(some))
    left = [one for one in some if int(one[1:]) not in LACK_B]
    (added / "left.txt").write_text("\n".join(left))
    out = ("--out", "some.run", *QUICK)
    srs_ooc("run", "a.zarr", "--target", "b", "--rows", "some.txt", *out, cwd=added)
    srs_ooc("run", folder / "b.zarr", "--rows", "left.txt", "--out", "left.run", *QUICK, cwd=added)
    assert features("some.run", added) == features("left.run", added)
    srs_ooc("run", "a.zarr", "--target", "b", "--rows", "some.txt", *out, cwd=added)
    srs_ooc("run", "a.zarr", "--out", "some.run", *QUICK, cwd=added)  # its own target and rows


@pytest.mark.slow
def test_targets_of_an_ingest_are_those_added_later(folder, added):
    done = srs_ooc(
        "ingest", "abc.csv", added / "abc.zarr", "--target", "a,b,c", *ROW_IDS, cwd=folder
    )
    assert f"target 'b', too; rows without it: {len(LACK_B)}\n" in done.stdout
    for store in ("abc.zarr", "a.zarr"):
        srs_ooc("run", store, "--target", "a,b,c", *QUICK, cwd=added)
    for run in ("", "-b", "-c"):
        assert features(f"abc{run}.run", added) == features(f"a{run}.run", added)


def test_rows_without_the_first_target_are_left_out_and_counted(folder, tmp_path):
    asked = ("--target", "a,b,c", *ROW_IDS)
    said = srs_ooc("ingest", "less.csv", tmp_path / "less.zarr", *asked, cwd=folder).stdout
    n_without, n_left_out = (
        len(set(rows)) for rows in (set(LACK_B) - {*LACK_A}, {*LACK_A} - {*LACK_B})
    )
    assert (
        f"target 'b', too; rows without it: {n_without}; with it, but left out for want of 'a': "
        f"{n_left_out}\n" in said
    )
    assert "rows without a target, left out: 3\n" in said
    there = [i for i in range(N_ROWS) if i not in LACK_A]
    seen = Store.open(tmp_path / "less.zarr").of_target("b")
    expected = [i for i, row in enumerate(there) if row not in LACK_B]
    assert seen.target_rows().tolist() == expected


@pytest.mark.slow
def test_a_column_whose_name_has_a_comma_is_one_target(tmp_path, columns):
    table = {"b,c": columns["c"], "b": columns["b"], "c": columns["a"]} | columns["x"]
    write(tmp_path / "t.csv", table)
    srs_ooc("ingest", "t.csv", "t.zarr", "--target", "b,c", cwd=tmp_path)
    assert json_of("inspect", "t.zarr", "--json", cwd=tmp_path)["target"] == "b,c"
    srs_ooc("ingest", "t.csv", "u.zarr", "--target", 'b,c,"b,c"', cwd=tmp_path)
    said = srs_ooc("targets", "u.zarr", cwd=tmp_path).stdout
    assert [line.split(" (")[0] for line in said.splitlines()] == [
        "target 'b'", "target 'b,c'", "target 'c'",
    ]  # fmt: skip
    srs_ooc("run", "u.zarr", "--target", "b,c", "--iterations", 5, cwd=tmp_path)
    assert json_of("status", "u-b_c.run", "--json", cwd=tmp_path)["target"].startswith("b,c (")


def test_a_sample_table_has_several_targets(tmp_path, columns):
    x = columns["x"]
    genes = {"gene": list(x)} | {one: [x[f][i] for f in x] for i, one in enumerate(columns["id"])}
    write(tmp_path / "genes.csv", genes)
    write(tmp_path / "people.csv", {name: columns[name] for name in ("id", "a", "b")})
    asked = ("--orient", "features", "--samples", "people.csv", "--id", "id", "--target", "a,b")
    srs_ooc("ingest", "genes.csv", "g.zarr", *asked, cwd=tmp_path)
    seen = Store.open(tmp_path / "g.zarr").of_target("b")
    np.testing.assert_array_equal(seen.target(), columns["b"])
    frame = pytest.importorskip("pandas").DataFrame({n: columns[n] for n in ("a", "b")} | x)
    package.ingest(frame, tmp_path / "h.zarr", target="a,b")
    seen = Store.open(tmp_path / "h.zarr").of_target("b")
    np.testing.assert_array_equal(seen.target(), columns["b"])


@pytest.mark.slow
def test_runs_from_before_go_on_and_those_of_what_was_replaced_are_refused(folder, tmp_path):
    shutil.copytree(folder / "a.zarr", tmp_path / "a.zarr")
    shutil.copy(folder / "people.csv", tmp_path)
    srs_ooc("run", "a.zarr", *QUICK, cwd=tmp_path)
    srs_ooc("targets", "a.zarr", *PEOPLE, "--target", "b,c", cwd=tmp_path)
    srs_ooc("run", "a.zarr", "--target", "b,c", *QUICK, cwd=tmp_path)
    other = (tmp_path / "people.csv").read_text().replace("r1,", "r01,")
    (tmp_path / "people.csv").write_text(other)
    said = srs_ooc("targets", "a.zarr", *PEOPLE, "--target", "b", cwd=tmp_path).stdout
    assert "rows without a line in the table: 1 (r1)" in said
    for words in (
        ("resume", "a-b.run"),
        ("run", "a.zarr", "--target", "b"),
        ("run", "a.zarr", "--out", "a-b.run"),
        ("features", "a-b.run"),
        ("features", "a.run", "a-b.run", "--csv"),
        ("report", "a-b.run"),
        ("export", "a-b.run", "x.csv"),
    ):
        error = error_of(*words, cwd=tmp_path)
        assert "that the run was made on" in error
        assert "it was replaced" in error
    for run in ("a.run", "a-c.run"):
        srs_ooc("resume", run, "--iterations", 60, cwd=tmp_path)
    (damaged,) = (tmp_path / "a.zarr" / "columns").glob("target-b-*")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    srs_ooc("run", "a.zarr", *QUICK, cwd=tmp_path)  # other runs need not know
    assert "it is damaged, or of another" in error_of("verify", "a.zarr", cwd=tmp_path)
    shutil.rmtree(tmp_path / "a.zarr" / "columns")
    assert "expected one of its targets (a), found 'b'" in error_of(
        "resume", "a-b.run", cwd=tmp_path
    )
    srs_ooc("resume", "a.run", "--iterations", 80, cwd=tmp_path)


@pytest.mark.slow
def test_the_same_target_once_more_is_the_same(added):
    srs_ooc("run", "a.zarr", "--target", "b", "--iterations", 20, "--q", 20, cwd=added)
    srs_ooc("targets", "a.zarr", *PEOPLE, "--target", "b", cwd=added)
    srs_ooc("resume", "a-b.run", "--iterations", 40, cwd=added)
    srs_ooc("run", "a.zarr", "--target", "b", "--out", "whole.run", *QUICK, cwd=added)
    assert features("a-b.run", added) == features("whole.run", added)


@pytest.mark.slow
def test_covariates_that_were_added_are_adjusted_for(folder, added, columns):
    table = {name: columns[name] for name in ("id", "a", "age")} | columns["x"]
    write(added / "own.csv", table)
    asked = ("--target", "a", "--covariates", "age", *ROW_IDS)
    srs_ooc("ingest", "own.csv", "own.zarr", *asked, cwd=added)
    for store in ("own.zarr", "a.zarr"):
        srs_ooc("run", store, "--adjust", "all", *QUICK, cwd=added)
    assert features("a.run", added) == features("own.run", added)
    assert json_of("inspect", "a.zarr", "--json", cwd=added)["covariates"][0]["name"] == "age"
    shutil.rmtree(added / "a.zarr" / "columns")  # what a run adjusts for is in the run
    srs_ooc("resume", "a.run", "--iterations", 60, cwd=added)


@pytest.mark.slow
def test_several_runs_are_one_table(added):
    done = srs_ooc("run", "a.zarr", "--target", "b,c", "--fdr", "0.2", *QUICK, cwd=added)
    assert "Level 0.2 holds for each of the 2 targets alone" in done.stdout
    assert "--fdr 0.1, the level over the number of targets" in done.stdout
    runs = ("a-b.run", "a-c.run")
    joined = srs_ooc("features", *runs, "--csv", cwd=added).stdout
    lines = list(csv.DictReader(io.StringIO(joined)))
    assert len(lines) == 2 * N_FEATURES
    for run in runs:
        of_run = [line for line in lines if line["run"] == run]
        assert {f"a-{line['target']}.run" for line in of_run} == {run}
        alone = list(csv.DictReader(io.StringIO(features(run, added))))
        assert [{name: line[name] for name in alone[0]} for line in of_run] == alone
    first = json.loads(srs_ooc("features", *runs, "--top", 1, "--json", cwd=added).stdout)
    assert [(one["target"], one["rank"]) for one in first] == [("b", 1), ("c", 1)]
    table = srs_ooc("features", *runs, "--selected", cwd=added).stdout.splitlines()
    assert table[0].split()[:2] == ["target", "rank"]
    assert "expected one run" in error_of("features", *runs, "--why", "f1", cwd=added)


@pytest.mark.slow
def test_places_of_runs(added):
    srs_ooc("run", "a.zarr", "--target", "b,a", "--out", "r.run", *QUICK, cwd=added)
    assert sorted(path.name for path in added.glob("*.run")) == ["r-b.run", "r.run"]
    srs_ooc("run", "a.zarr", "--target", "b", "--fresh", *QUICK, cwd=added)
    srs_ooc("run", "a.zarr", "--target", "b", "--fresh", *QUICK, cwd=added)
    assert (added / "a-b-2.run").is_dir()
    error = error_of("run", "a.zarr", "--target", "c", "--out", "r-b.run", *QUICK, cwd=added)
    assert "is a run with target b (sha256" in error
    assert "(asked for: c (sha256" in error


@pytest.mark.slow
def test_what_reads_a_run_sees_its_target(added):
    srs_ooc("run", "a.zarr", "--target", "b", "--halves", 2, *QUICK, cwd=added)
    plan = json_of("plan", "a.zarr", "--target", "b", "--json", cwd=added)
    assert (plan["n_rows"], plan["class_counts"]) == (60 - len(LACK_B), [])
    srs_ooc("export", "a-b.run", "best.csv", "--top", 2, cwd=added)
    lines = list(csv.reader((added / "best.csv").read_text().splitlines()))
    assert lines[0][-1] == "b"
    assert [line[0] for line in lines[1:]] == (added / "with_b.txt").read_text().split()
    srs_ooc("export", "a-b.run", "best.zarr", "--top", 2, cwd=added)
    assert json_of("inspect", "best.zarr", "--json", cwd=added)["target"] == "a"
    report = srs_ooc("report", "a-b.run", "--format", "md", "-o", "-", cwd=added).stdout
    assert "say something about b (a number)" in report
    assert "--target b" in report
    assert "--rows FILE" not in report
    with closing(Run(added / "a-b.run", writable=False)) as ledger:
        seen = ledger.find_store(added / "a.zarr")
    worker = WorkerStore.of(seen, 100)
    np.testing.assert_array_equal(worker.open().target(), seen.target())
    text = (added / "people.csv").read_text()
    (added / "people.csv").write_text(text.replace("r1,", "r01,"))
    srs_ooc("targets", "a.zarr", *PEOPLE, "--target", "b", cwd=added)
    with pytest.raises(StoreError, match="it was replaced"):
        worker.open()


@pytest.mark.slow
def test_python_runs_and_plans_a_target(added):
    store = added / "a.zarr"
    result = package.run(store, target="b", iterations=40, subspace_size=20)
    assert result.run == added / "a-b.run"
    assert package.run(store, target="a", iterations=5, subspace_size=20).run == added / "a.run"
    assert package.plan(store, target="b")["n_rows"] == 60 - len(LACK_B)
    assert package.resume(result, iterations=50).run == result.run


@pytest.mark.slow
def test_a_store_without_a_target_gets_some(folder, added, columns):
    write(added / "x.csv", {"id": columns["id"]} | columns["x"])
    srs_ooc("ingest", "x.csv", "x.zarr", "--no-target", *ROW_IDS, cwd=added)
    srs_ooc("targets", "x.zarr", *PEOPLE, "--target", "c", cwd=added)
    assert "expected a store with a target" in error_of("run", "x.zarr", cwd=added)
    srs_ooc("run", "x.zarr", "--target", "c", *QUICK, cwd=added)
    srs_ooc("run", folder / "c.zarr", "--out", "own.run", *QUICK, cwd=added)
    assert features("x-c.run", added) == features("own.run", added)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "b"), "expected --id NAME"),
        (("--id", "ID"), "--target or --covariates that it was not made with, found none"),
        (("--id", "ID", "--target", "a"), "found 'a', which is its own"),
        (("--id", "ID", "--target", "zzz"), "no such column 'zzz' (--target)"),
        (
            ("--id", "strangers", "--target", "c"),
            "found none of them among 'r0', 'r1', 'r2', ... Name",
        ),
        (("--id", "twice", "--target", "c"), "expected distinct ids in column 'twice', found 'r1'"),
        (("--id", "ID", "--target", "b", "--task", "classification"), "has fewer"),
        (("--id", "ID", "--target", "c", "--task", "regression"), "expected a number"),
        (("--id", "ID", "--target", "same"), "expected a target of at least two classes"),
        (("--id", "ID", "--target", "none"), "expected a target of at least two classes"),
        (("--id", "ID", "--covariates", "strangers"), "Leave a column of ids out"),
        (("--id", "ID", "--target", "c", "--covariates", "c"), "columns of no other role"),
    ],
)
def test_what_cannot_be_added_is_refused_and_changes_nothing(added, words, said):
    lines = list(csv.reader((added / "people.csv").read_text().splitlines()))
    table = {name: [line[i] for line in lines[1:]] for i, name in enumerate(lines[0])}
    n = len(lines) - 1
    table |= {"same": ["1"] * n, "none": [""] * n, "twice": ["r1"] * n}
    write(added / "odd.csv", table | {"strangers": [f"p{i}" for i in range(n)]})
    before = {path: path.read_bytes() for path in (added / "a.zarr" / "columns").iterdir()}
    error = error_of("targets", "a.zarr", "odd.csv", *words, cwd=added)
    assert said in error or said.replace("has fewer", "have fewer") in error
    assert {p: p.read_bytes() for p in (added / "a.zarr" / "columns").iterdir()} == before


@pytest.mark.slow
def test_targets_that_are_none_are_refused(folder, added):
    assert "(a, b, c), found 'd'" in error_of("run", "a.zarr", "--target", "d", cwd=added)
    error = error_of("run", "a.zarr", "--target", "b,d", cwd=added)
    assert "found 'd'" in error
    assert not list(added.glob("*.run"))
    error = error_of("run", "a.zarr", "--target", "b", "--adjust", "b", cwd=added)
    assert "expected covariates of a.zarr (age)" in error
    both = ("b.csv", "a.csv", added / "two.zarr", "--target", "a,b")
    assert "expected" in error_of("ingest", *both, cwd=folder)
    assert not (added / "two.zarr").exists()


@pytest.mark.slow
def test_targets_of_a_table_in_pieces_are_those_of_the_whole(folder, tmp_path, columns):
    b = without(columns["b"], LACK_B)
    named = {"id": columns["id"], "a": columns["a"], "b": b}
    x = list(columns["x"].items())
    write(tmp_path / "p0.csv", named | dict(x[:25]))
    write(tmp_path / "p1.csv", named | dict(x[25:]))  # they are no features there either
    write(tmp_path / "p2.csv", {"id": columns["id"], "b": b, "more": columns["age"]})
    asked = ("--target", "a,b", *ROW_IDS)
    srs_ooc("ingest", "p0.csv", "p1.csv", "p2.csv", "p.zarr", *asked, cwd=tmp_path)
    store = Store.open(tmp_path / "p.zarr")
    assert list(store.names) == [*columns["x"], "more"]
    whole = tmp_path / "whole.zarr"
    srs_ooc("ingest", "abc.csv", whole, "--ignore", "c", *asked, cwd=folder)
    seen, expected = (one.of_target("b") for one in (store, Store.open(whole)))
    np.testing.assert_array_equal(seen.target(), expected.target())
    assert seen.target_rows().tolist() == expected.target_rows().tolist()
