"""Covariates, censored targets and groups made rows: kept, read back, or refused with a remedy."""

import gzip
import json
import math
import statistics

import numpy as np
import pytest
from command import error_of, json_of, srs_ooc
from examples import examples, given, st
from refusals import refused
from stores import values_of
from tables import write_columns, write_lines

import srs_ooc as package
from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.store import Store

TABLE = """id,age,sex,batch,f1,f2,days,dead,who
a,30,m,1,0.1,1,10,1,p1
b,31.5,f,1,0.2,2,0,0,p1
c,,f,2,0.3,1,30,1,p2
d,44,m,2,0.4,1,20,0,p2
e,50,,3,0.5,0,,1,p3
f,-1e3,f,3,0.15,0,12,1,p3
g,30,m,1,0.1,1,10,1,p4
h,31.5,f,1,0.2,2,0,0,p4
i,,f,2,0.3,1,30,1,p5
j,44,m,2,0.4,1,20,0,p5
k,50,,3,0.5,0,,1,p6
l,-1e3,f,3,0.15,0,12,1,p6
"""
ROWS = [line.split(",") for line in TABLE.splitlines()]
NAMED = ("age", "sex", "batch")
LEVELS = {"age": (), "sex": ("f", "m"), "batch": ("1", "2", "3")}
KEPT = {
    "age": [30, 31.5, math.nan, 44, -1000] * 2,
    "sex": [1, 0, 0, 1, 0] * 2,
    "batch": [0, 0, 1, 1, 2] * 2,
}
EVENTS = [True, False, True, False, True] * 2


def opened(store):
    found = Store.open(store)
    found.verify()
    return found


def assert_kept(store, expected=KEPT, levels=LEVELS):
    found = opened(store).covariates()
    assert [one.name for one in found] == list(expected)
    for name, values, texts in found:
        np.testing.assert_array_equal(values, expected[name])
        assert (values.dtype, texts) == (np.float64, levels[name])


def made(folder, table=None, **options):
    """Ingest a table in Python; TABLE, as a file, if none is given."""
    if table is None:
        (folder / "t.csv").write_text(TABLE)
        table = folder / "t.csv"
    store = folder / f"{len(list(folder.iterdir()))}.zarr"
    options = {"memory_mb": 4000, "ignore": ("id",)} | options
    return store, package.ingest(table, store, **options)


CENSORED = {
    "time": "days", "event": "dead", "covariates": NAMED, "kinds": {"batch": "categorical"},
    "ignore": ("id", "who"),
}  # fmt: skip


def test_covariates_and_events_are_kept_and_not_searched(tmp_path):
    store, manifest = made(tmp_path, **CENSORED)
    assert_kept(store)
    found = opened(store)
    assert sorted(found.names) == ["f1", "f2"]
    assert found.events().tolist() == EVENTS
    assert found.target().tolist() == [10, 0, 30, 20, 12] * 2
    assert (manifest.task, manifest.target_name) == ("regression", "days")
    assert manifest.n_dropped_rows == 2
    assert manifest.row_columns == {"covariates": list(NAMED), "events": ["dead"]}
    assert manifest.inferred["missing_covariates"] == {"age": 2}
    assert manifest.inferred["events"] == {"value": "1", "n": 6}
    assert manifest.format == 4


def test_a_store_without_either_is_what_it_always_was(tmp_path):
    store, manifest = made(tmp_path, target="f1", ignore=("id", "sex", "who"))
    assert (manifest.format, opened(store).covariates(), opened(store).events()) == (3, [], None)
    assert "levels" not in json.loads((store / "zarr.json").read_text())["attributes"]["srs_ooc"]


def columns():
    return dict(zip(ROWS[0], map(list, zip(*ROWS[1:], strict=True)), strict=True))


def as_numbers(texts):
    return [float(text) if text else None for text in texts]


def frame_of(library):
    given = columns()
    for name in ("age", "batch", "f1", "f2", "days", "dead"):
        given[name] = as_numbers(given[name])
    given["batch"] = [int(number) for number in given["batch"]]
    given["sex"] = [text or None for text in given["sex"]]
    return library(given)


def written(folder, kind):
    """Return the table as this kind of source."""
    if kind == "csv":
        return None
    if kind == "tsv.gz":
        (folder / "t.tsv.gz").write_bytes(gzip.compress(TABLE.replace(",", "\t").encode()))
        return folder / "t.tsv.gz"
    if kind in ("pandas", "polars"):
        return frame_of(pytest.importorskip(kind).DataFrame)
    table = frame_of(pytest.importorskip("pyarrow").table)
    if kind == "arrow":
        return table
    import pyarrow.feather
    import pyarrow.parquet

    write = {"parquet": pyarrow.parquet.write_table, "feather": pyarrow.feather.write_feather}
    write[kind](table, folder / f"t.{kind}")
    return folder / f"t.{kind}"


@pytest.mark.parametrize(
    "kind", ["csv", "tsv.gz", "pandas", "polars", "arrow", "parquet", "feather"]
)
def test_every_format_knows_covariates_and_events(tmp_path, kind):
    store, _ = made(tmp_path, written(tmp_path, kind), **CENSORED)
    assert_kept(store)
    assert opened(store).events().tolist() == EVENTS


def test_they_stand_beside_an_array_too(tmp_path):
    given = columns()
    features = np.array([as_numbers(given["f1"]), as_numbers(given["f2"])], np.float64).T
    covariates = {name: given[name] for name in ("age", "sex", "batch")}
    beside = {"kinds": {"batch": "categorical"}, "ignore": ()}
    times = [np.nan if t is None else t for t in as_numbers(given["days"])]
    seen = np.array([text == "1" for text in given["dead"]])
    times_to = {"covariates": covariates, "time": times, "event": seen}
    store, manifest = made(tmp_path, features, **times_to, **beside)
    assert_kept(store)
    assert opened(store).events().tolist() == EVENTS
    assert manifest.inferred["events"] == {"value": "True", "n": 6}
    np.save(tmp_path / "x.npy", features)
    numbers = {"age": [1, 2, 3, 4, np.nan, 6] * 2}
    beside = {"target": list("uv" * 6), "ignore": ()}
    store, _ = made(tmp_path, tmp_path / "x.npy", covariates=numbers, **beside)
    assert_kept(store, numbers, {"age": ()})
    with pytest.raises(InputError, match="age: expected 12 items, one for each row, found 2"):
        made(tmp_path, features, covariates={"age": [1, 2]}, **beside)
    with pytest.raises(UsageError, match="covariates: expected names of columns, or columns by n"):
        made(tmp_path, features, covariates=[1, 2], **beside)


@pytest.mark.slow
def test_features_as_rows_take_them_from_the_sample_table(tmp_path):
    given = columns()
    lines = [["name", *given["id"]], ["f1", *given["f1"]], ["f2", *given["f2"]]]
    write_lines(tmp_path / "m.csv", lines)
    (tmp_path / "s.csv").write_text(TABLE)
    beside = ("--orient", "features", "--samples", "s.csv", "--id", "id")
    words = (*beside, "--time", "days", "--event", "dead", "--covariates", "age,sex,batch")
    words += ("--kind", "batch=numeric", "--sample-features", "batch")
    said = srs_ooc("ingest", "m.csv", "t.zarr", *words, cwd=tmp_path).stdout
    assert "covariates: 'age' (numbers, 2 missing), 'sex' (2 levels), 'batch' (numbers)" in said
    assert "kept beside the features, not searched; --sample-features makes features" in said
    assert "events: 6 of 10 rows ('dead' is '1')" in said
    assert_kept(tmp_path / "t.zarr", KEPT | {"batch": [1, 1, 2, 2, 3] * 2}, LEVELS | {"batch": ()})
    assert sorted(opened(tmp_path / "t.zarr").names) == ["batch", "f1", "f2"]
    role = "--covariates: expected columns of no other role, found"
    of = (*beside, "--target", "dead", "--covariates")
    for table, words, message in (
        ("m.csv", (*of, "old"), "no such column 'old' (--covariates)"),
        ("m.csv", (*of, "dead"), f"{role} 'dead'"),
        ("m.csv", (*of, "id"), f"{role} 'id'"),
        ("s.csv", ("--sample-features", "age"), "--sample-features only with --orient features"),
    ):
        assert message in error_of("ingest", table, "u.zarr", *words, cwd=tmp_path)


CELL = st.one_of(
    st.just(""), st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-9, 9).map(str),
)  # fmt: skip


@given(st.lists(st.tuples(CELL, st.sampled_from(["", "x", "y z", "é"])), min_size=8))
@examples(30)
def test_cells_come_back_whatever_the_order_of_rows(tmp_path_factory, cells):
    folder = tmp_path_factory.mktemp("cells")
    rows = [(number, text, i % 2, i) for i, (number, text) in enumerate(cells)]
    rows += [(str(i), ("x", "y z", "é")[i % 3], i % 2, i) for i in range(6)]  # so texts repeat
    found = []
    for ordered in (rows, rows[::-1]):
        write_lines(folder / "t.csv", ["ntyf", *ordered])
        options = {"target": "y", "covariates": ("n", "t"), "ignore": ()}
        store, manifest = made(folder, folder / "t.csv", **options)
        numbers, texts = opened(store).covariates()
        shown = [texts.levels[int(k)] if k == k else "" for k in texts.values]
        assert shown == [row[1] for row in ordered]
        expected = [float(row[0]) if row[0] else math.nan for row in ordered]
        np.testing.assert_array_equal(numbers.values, expected)
        missing = {"n": sum(not row[0] for row in rows), "t": sum(not row[1] for row in rows)}
        told = {k: v for k, v in missing.items() if v}
        assert manifest.inferred.get("missing_covariates") == told
        found.append(texts.levels)
    assert found[0] == found[1]


def test_rows_without_a_covariate_are_left_out_if_asked(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE.replace(",50,", ",50,m"))
    options = ("--target", "dead", "--ignore", "id,who,days", "--covariates", "age,sex")
    options += ("--missing-covariates", "drop")
    said = srs_ooc("ingest", "t.csv", "t.zarr", *options, cwd=tmp_path).stdout
    assert "rows without a covariate, left out: 2" in said
    assert "without a target" not in said
    assert "covariates: 'age' (numbers), 'sex' (2 levels)" in said
    facts = json_of("inspect", tmp_path / "t.zarr", "--json")
    assert (facts["n_rows"], facts["n_dropped_rows"], facts["class_counts"]) == (10, 2, [4, 6])
    assert facts["covariates"] == [
        {"name": "age", "categories": [], "n_missing": 0},
        {"name": "sex", "categories": ["f", "m"], "n_missing": 0},
    ]
    assert facts["n_events"] is None
    said = srs_ooc("inspect", tmp_path / "t.zarr").stdout
    assert "2 without a target or a covariate left out" in said


def test_a_class_that_only_rows_left_out_have_is_none(tmp_path):
    (tmp_path / "t.csv").write_text("a,y,f\n1,u,1\n2,v,2\n,w,3\n3,u,4\n4,v,5\n")
    options = {"covariates": "a", "missing_covariates": "drop", "target": "y", "ignore": ()}
    _, manifest = made(tmp_path, tmp_path / "t.csv", **options)
    assert (manifest.classes, manifest.class_counts) == (("u", "v"), (2, 2))


N = 8


def table_of(name, cells):
    """A table with a column of these cells, a target y and a feature f."""
    rows = (f"{cell},{'uv'[i % 2]},{i}\n" for i, cell in enumerate(cells))
    return f"{name},y,f\n" + "".join(rows)


BAD_COVARIATES = {
    "ids": ([f"p{i}" for i in range(N)], {}, "column 'c' .covariates.: expected numbers, or cat"),
    "mixed": ([*"1234123", "unk"], {}, "line 9: column 'c': expected a fin"),
    "remedy": ([*"1234123", "unk"], {}, "missing, or say kinds={'c': 'categor"),
    "forced": ([*"mf"] * 4, {"kinds": {"c": "numeric"}}, "line 2: column 'c': expected a finite"),
    "none": ([""] * N, {}, "expected a value in some row, found none"),
    "infinite": ([*"1234567", "inf"], {}, "line 9: column 'c': expected a finite number"),
    "long": (["x" * 101, "y"] * 4, {}, "expected labels of at most 100 bytes"),
}


@pytest.mark.parametrize("case", BAD_COVARIATES)
def test_covariates_that_are_none_are_refused(tmp_path, case):
    cells, options, match = BAD_COVARIATES[case]
    (tmp_path / "t.csv").write_text(table_of("c", cells))
    given = {"target": "y", "covariates": "c", "ignore": ()} | options
    refused(InputError, match, made, tmp_path, tmp_path / "t.csv", **given)


DEAD = {"target": "dead", "covariates": "age"}
OF_NONE, AT_F1 = {"ignore": ()}, {"target": "f1", "aggregate": "mean"}
MIXED = "who,y,f,x\n" + "p1,u,lung,1\np2,v,skin,2\n" * 3
BAD_OPTIONS = [
    (DEAD | {"covariates": "bmi"}, r"no such column 'bmi' \(covariates\)"),
    (DEAD | {"covariates": ("sex", "sex")}, "one role, found column 'sex' as covariat"),
    (DEAD | {"missing_covariates": "mean"}, "missing_covariates: expected one of keep, drop"),
    ({"time": "days"}, "expected time and event, found one of them"),
    (AT_F1, "aggregate: expected groups, whose texts become the row"),
    (AT_F1 | OF_NONE | {"groups": "who", "row_ids": "id"}, "and no row_ids"),
    (AT_F1 | {"groups": "who", "aggregate": "mode"}, "aggregate: expected one of mean, median,"),
]


@pytest.mark.parametrize(("options", "match"), BAD_OPTIONS)
def test_options_that_do_not_fit_the_table_are_refused(tmp_path, options, match):
    refused((InputError, UsageError), match, made, tmp_path, **options)


def test_a_covariate_that_is_the_same_everywhere_is_kept_with_a_remark(tmp_path):
    (tmp_path / "t.csv").write_text(table_of("c", ["3", ""] * 4))
    said = srs_ooc("ingest", "t.csv", "t.zarr", "--target", "y", "--covariates", "c", cwd=tmp_path)
    assert "note: covariate 'c' is the same in all rows that have one" in said.stdout
    assert len(opened(tmp_path / "t.zarr").covariates()) == 1


EVENT_WORDS = {
    "numbers": (["0", "1"], None), "other numbers": (["0", "1.0"], None),
    "true": (["FALSE", "TRUE"], None), "yes": (["no", "Yes"], None),
    "dead": (["alive", "dead"], None), "patients": (["LIVING", "DECEASED"], None),
    "named": (["censored", "relapse"], "relapse"), "coded": (["1", "2"], "2"),
    "reversed": (["1", "0"], "0"),
}  # fmt: skip


@pytest.mark.parametrize("case", EVENT_WORDS)
def test_events_are_two_values(tmp_path, case):
    (no, yes), named = EVENT_WORDS[case]
    (tmp_path / "t.csv").write_text(
        "t,e,f\n" + "".join(f"{i},{(no, yes)[i % 3 == 0]},{i}\n" for i in range(12))
    )
    event = "e" if named is None else f"e={named}"
    store, manifest = made(tmp_path, tmp_path / "t.csv", time="t", event=event, ignore=())
    assert opened(store).events().tolist() == [i % 3 == 0 for i in range(12)]
    assert manifest.inferred["events"] == {"value": yes, "n": 4}


BAD_EVENTS = {
    "negative": ("-1", "1", "e", "line 13: column 't': expected a time, 0 or more, found '-1'"),
    "text": ("x", "1", "e", "line 13: column 't': expected a time.*empty it: rows without a time"),
    "three": ("1", "2", "e", "expected two values, found 3: '0', '1', '2'. Competing risks are no"),
    "three, named": ("1", "2", "e=1", "Competing risks are not covered"),
    "unknown": ("1", "1", "f1", "found only 'a', 'b'. Name the value that means .* event f1=VALUE"),
    "not there": ("1", "1", "e=dead", "expected an event in some row .*found only '0', '1'"),
    "none": ("1", "0", "f2", "expected an event in some row .*found only '0'. Name the value"),
    "no column": ("1", "0", "x", r"no such column 'x' \(event\)"),
}


@pytest.mark.parametrize("case", BAD_EVENTS)
def test_times_and_events_that_are_none_are_refused(tmp_path, case):
    time, seen, event, match = BAD_EVENTS[case]
    rows = "".join(f"{i},{i % 2},{'ab'[i % 2]},0,{i}\n" for i in range(11))
    (tmp_path / "t.csv").write_text(f"t,e,f1,f2,f\n{rows}{time},{seen},a,0,1\n")
    refused(InputError, match, made, tmp_path, tmp_path / "t.csv", time="t", event=event, ignore=())


@pytest.mark.slow
def test_a_time_without_an_event_and_other_roles_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    for words, said in (
        (("--time", "days"), "expected --time and --event, found one of them"),
        (("--event", "dead"), "expected --time and --event, found one of them"),
        (("--time", "days", "--event", "dead", "--target", "f1"), "expected --target or --time"),
        (("--time", "days", "--event", "days"), "each column in one role"),
        (("--time", "day", "--event", "dead"), "no such column 'day' (--time)"),
        (("--time", "days", "--event", "dead", "--no-target"), "--no-target: expected a table"),
    ):
        assert said in error_of("ingest", "t.csv", "t.zarr", *words, cwd=tmp_path)


def test_rows_without_a_time_or_an_event_have_no_target(tmp_path):
    asked = {"time": "t", "event": "e", "ignore": ()}
    (tmp_path / "t.csv").write_text("t,e,f\n1,1,1\n2,,2\n,0,3\n4,0,4\n5,1,5\nNA,NA,6\n")
    store, manifest = made(tmp_path, tmp_path / "t.csv", **asked)
    assert (opened(store).target().tolist(), manifest.n_dropped_rows) == ([1, 4, 5], 3)
    assert opened(store).events().tolist() == [True, False, True]
    with pytest.raises(InputError, match="line 4: column 't': expected a target, found an empty"):
        made(tmp_path, tmp_path / "t.csv", missing_target="refuse", **asked)
    (tmp_path / "t.csv").write_text("t,e,f\n1,1,1\n2,,2\n4,0,4\n")
    with pytest.raises(InputError, match="line 3: column 'e': expected a target, found an empty"):
        made(tmp_path, tmp_path / "t.csv", missing_target="refuse", **asked)


def test_few_events_are_remarked(tmp_path):
    rows = "".join(f"{i},{int(i % 4 == 0)},{i % 7}\n" for i in range(48))
    (tmp_path / "t.csv").write_text("t,e,f\n" + rows)
    options = ("--time", "t", "--event", "e")
    assert "events in" not in srs_ooc("ingest", "t.csv", "t.zarr", *options, cwd=tmp_path).stdout
    (tmp_path / "t.csv").write_text("t,e,f\n" + rows.replace(",1,", ",0,", 3))
    said = srs_ooc("ingest", "t.csv", "u.zarr", *options, cwd=tmp_path).stdout
    assert "note: 9 events in 48 rows: too few to find much" in said


@pytest.mark.slow
def test_inspect_says_covariates_and_events(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    options = ("--time", "days", "--event", "dead", "--covariates", "age,sex", "--ignore", "id,who")
    srs_ooc("ingest", "t.csv", "t.zarr", *options, cwd=tmp_path)
    said = srs_ooc("inspect", tmp_path / "t.zarr").stdout
    assert "covariates   age (numbers, 2 missing), sex (2 levels)\n" in said
    assert "events       6 of 10 rows\n" in said
    facts = json_of("inspect", tmp_path / "t.zarr", "--json")
    assert (facts["n_events"], facts["row_columns"]["events"], facts["format"]) == (6, ["dead"], 4)
    error = error_of("inspect", tmp_path / "t.zarr", "--memory-mb", "1")
    assert "cannot hold" in error


def test_an_exported_store_keeps_them(tmp_path):
    store, manifest = made(tmp_path, **CENSORED)
    from srs_ooc.results.exporting import export_columns

    export_columns(Store.open(store), np.array([1]), tmp_path / "out.zarr", cap_nbytes=4 * 10**9)
    assert_kept(tmp_path / "out.zarr")
    assert opened(tmp_path / "out.zarr").events().tolist() == EVENTS
    found = read_manifest(tmp_path / "out.zarr")
    assert (found.row_columns, found.format) == (manifest.row_columns, 4)
    export_columns(Store.open(store), np.array([1]), tmp_path / "out.csv")  # as strata are not
    assert (tmp_path / "out.csv").read_text().splitlines()[:2] == ["row_id,f2,days", "1,1,10"]


# Pieces of columns.


def pieces(folder, *names):
    """Write the table as pieces of these columns; return their paths."""
    given = columns()
    parts = enumerate({name: given[name] for name in some} for some in names)
    return [write_columns(folder / f"p{number}.csv", part) for number, part in parts]


HEAD = ("id", "age", "sex", "days", "dead", "f1")
IN_PIECES = {
    "time": "days", "event": "dead", "covariates": ("age", "sex"), "row_ids": "id", "ignore": (),
    "missing_target": "drop",
}  # fmt: skip
LESS = {name: KEPT[name] for name in ("age", "sex")}


def test_pieces_keep_covariates_of_the_first(tmp_path, monkeypatch):
    tables = pieces(tmp_path, HEAD, ("id", "days", "dead", "f2", "batch"), (*HEAD[:-1], "who"))
    store, _ = made(tmp_path, tables, **IN_PIECES)
    assert_kept(store, LESS)
    assert opened(store).events().tolist() == EVENTS
    assert sorted(opened(store).names) == ["batch", "f1", "f2", "who"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("what", "change"),
    [("covariates", ("31.5", "31")), ("covariates", (",m,", ",k,")), ("events", ("10,1", "10,0"))],
)
def test_pieces_of_other_covariates_or_events_are_refused(tmp_path, what, change):
    tables = pieces(tmp_path, HEAD, (*HEAD[:-1], "f2"))
    tables[1].write_text(tables[1].read_text().replace(*change))
    with pytest.raises(InputError, match=f"expected the {what} of .*p0.csv, found others"):
        made(tmp_path, tables, **IN_PIECES)


@pytest.mark.slow
def test_pieces_whose_rows_lack_covariates_have_other_rows(tmp_path):
    tables = pieces(tmp_path, HEAD, ("id", "days", "dead", "f2"))
    with pytest.raises(InputError, match=r"expected the 8 rows of .*\(after 4 rows were left out"):
        made(tmp_path, tables, **IN_PIECES, missing_covariates="drop")
    tables = pieces(tmp_path, HEAD, (*HEAD[:-1], "f2"))
    _, manifest = made(tmp_path, tables, **IN_PIECES, missing_covariates="drop")
    assert (manifest.n_rows, manifest.inferred["rows_without_covariates"]) == (8, 2)


# One row of each group.


def plainly(how, rows):
    """What a group's values become, in plain Python."""
    known = [value for value in rows if value is not None]
    if not known:
        return math.nan
    return {"sum": math.fsum, "mean": statistics.fmean, "median": statistics.median}[how](known)


VALUE = st.one_of(st.none(), st.integers(-50, 50).map(lambda k: k / 4))


@given(
    st.sampled_from(["mean", "median", "sum"]),
    st.lists(st.tuples(st.integers(0, 4), VALUE, VALUE), min_size=6, max_size=40),
)
@examples(40)
def test_a_group_becomes_a_row(tmp_path_factory, how, rows):
    folder = tmp_path_factory.mktemp("groups")
    rows = [*rows, (5, 0.0, 1.0), (6, None, 2.0), (5, 1.0, None), (7, 3.0, None)]
    text = "who,y,sex,age,stage,x,gone\n"
    for group, x, age in rows:
        cells = ["" if cell is None else repr(cell) for cell in (age, x)]
        text += f"p{group},{group % 3},{'mf'[group % 2]},{cells[0]},s{group % 2},{cells[1]},1\n"
    (folder / "t.csv").write_text(text + "p8,,m,1,s1,2,1\n")
    options = {"aggregate": how, "groups": "who", "target": "y", "covariates": ("sex", "age")}
    store, manifest = made(
        folder, folder / "t.csv", **options, strata="stage", min_class_rows=1, ignore=()
    )
    order = list(dict.fromkeys(group for group, _, _ in rows))
    found = opened(store)
    assert list(found.row_ids) == [f"p{group}" for group in order]
    assert (found.groups(), manifest.row_id_name, manifest.n_dropped_rows) == (None, "who", 1)
    assert [manifest.classes[code] for code in found.target()] == [str(g % 3) for g in order]
    sex, age = found.covariates()
    assert [sex.levels[int(k)] for k in sex.values] == ["mf"[g % 2] for g in order]
    of = {g: [(x, a) for group, x, a in rows if group == g] for g in order}
    expected = [plainly("mean", [a for _, a in of[g]]) for g in order]
    np.testing.assert_allclose(age.values, expected, rtol=1e-12)
    expected = [plainly(how, [x for x, _ in of[g]]) for g in order]
    np.testing.assert_allclose(values_of(store)[0], expected, rtol=1e-12)
    expected = [len(of[g]) if how == "sum" else 1 for g in order]
    np.testing.assert_array_equal(values_of(store)[1], expected)
    assert len(set(zip(found.strata(), [g % 2 for g in order], strict=True))) == 2
    assert manifest.inferred["aggregate"] == {"how": how, "n_rows": len(rows)}


def test_a_group_of_each_row_is_the_table_itself(tmp_path):
    store, _ = made(tmp_path, **(CENSORED | {"ignore": ("who",)}), row_ids="id")
    options = CENSORED | {"ignore": ("who",), "groups": "id", "aggregate": "median"}
    grouped, _ = made(tmp_path, **options)
    np.testing.assert_array_equal(values_of(store), values_of(grouped))
    assert_kept(grouped)
    assert opened(grouped).events().tolist() == EVENTS
    assert list(opened(grouped).row_ids) == list("abcdfghijl")


NOT_ALIKE = {
    "target": ("y", "line 4: column 'y': expected the same in all rows of a group.*'p1'"),
    "strata": ("s", "line 4: column 's': expected the same in all rows of a group"),
    "weights": ("w", "line 4: column 'w': expected the same"),
    "covariates": ("c", "line 4: column 'c': expected the same"),
}


@pytest.mark.parametrize("what", NOT_ALIKE)
def test_rows_of_a_group_that_differ_are_refused(tmp_path, what):
    column, match = NOT_ALIKE[what]
    names = ["who", "y", "s", "w", "c", "x"]
    rows = [["p1", "u", "a", "1", "m", "1"], ["p2", "v", "b", "2", "f", "2"]] * 4
    rows = [list(row) for row in rows]
    rows[2][names.index(column)] = rows[1][names.index(column)]
    write_lines(tmp_path / "t.csv", [names, *rows])
    options = {"target": "y", "strata": "s", "weights": "w", "covariates": "c", "groups": "who"}
    with pytest.raises(InputError, match=match):
        made(tmp_path, tmp_path / "t.csv", **options, aggregate="mean", ignore=())


def test_what_cannot_be_aggregated_is_refused(tmp_path):
    tables = pieces(tmp_path, HEAD, ("id", "f2"))
    with pytest.raises(UsageError, match="aggregate: expected one table, found pieces"):
        made(tmp_path, tables, target="dead", groups="id", aggregate="mean", ignore=())
    (tmp_path / "t.csv").write_text(MIXED)
    with pytest.raises(InputError, match=r"column 'f': expected numbers to aggregate, found texts"):
        made(tmp_path, tmp_path / "t.csv", target="y", groups="who", aggregate="mean", ignore=())


def test_classes_of_one_group_are_rare(tmp_path):
    rows = "".join(f"p{i // 3},{'uv'[i // 3 < 1]},{i}\n" for i in range(90))
    (tmp_path / "t.csv").write_text("who,y,x\n" + rows)
    options = {"target": "y", "groups": "who", "ignore": ()}
    made(tmp_path, tmp_path / "t.csv", **options)
    with pytest.raises(InputError, match="1 of 2 classes has fewer: 'v'"):
        made(tmp_path, tmp_path / "t.csv", **options, aggregate="mean")
    words = ("--target", "y", "--groups", "who", "--aggregate", "mean", "--min-class-rows", "1")
    said = srs_ooc("ingest", "t.csv", "t.zarr", *words, cwd=tmp_path).stdout
    assert "30 rows x 1 features" in said
    assert "aggregated: a row is the mean of a group's, of 90 rows" in said
