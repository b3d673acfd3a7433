"""Labels: columns declared categorical, labels of one number, and Series in another order."""

import random

import numpy as np
import pandas as pd
import pytest
from command import srs_ooc as run_command
from tables import write_columns, write_lines

from srs_ooc import SRSClassifier, SRSSelector, estimators, ingest
from srs_ooc.base.errors import InputError
from srs_ooc.store.manifest import read_manifest
from srs_ooc.store.store import Store

N_ROWS = 24
RNG = np.random.default_rng(5)
VALUES = RNG.normal(size=(N_ROWS, 3)).round(2)
DONOR = [str(1 + i % 4) for i in range(N_ROWS)]
GRADE = [("3", "10", "2")[i % 3] for i in range(N_ROWS)]
ORDER = ["3", "10", "2", "77"]
"""Of the grades, as declared; one of them is in no row."""
DECLARED = "classification: its column is declared categorical"
KINDS = ["pandas", "polars", "pyarrow", "parquet", "feather", "polars parquet"]


def frame_of(kind, folder=None, times=1):
    """A table of donors and ordered grades, in memory or as a file; its rows so many times."""
    columns = {f"f{i}": np.tile(VALUES[:, i], times) for i in range(3)}
    donor = pd.Categorical(DONOR * times)
    grade = pd.Categorical(GRADE * times, categories=ORDER, ordered=True)
    frame = pd.DataFrame(columns | {"donor": donor, "grade": grade})
    if kind == "pandas":
        return frame
    if kind.startswith("polars"):
        polars = pytest.importorskip("polars")
        types = {"donor": polars.Categorical, "grade": polars.Enum(ORDER)}
        frame = polars.DataFrame(columns | {"donor": [*donor], "grade": [*grade]}).cast(types)
        if kind == "polars":
            return frame
        frame.write_parquet(folder / "t")
        return folder / "t"
    pyarrow = pytest.importorskip("pyarrow")
    if kind == "pyarrow":
        return pyarrow.Table.from_pandas(frame)
    (frame.to_parquet if kind == "parquet" else frame.to_feather)(folder / "t")
    return folder / "t"


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_table_declares_categorical_is_no_number(tmp_path, kind):
    table = frame_of(kind, tmp_path)
    found = ingest(table, tmp_path / "t.zarr", target="grade", covariates=["donor"])
    assert (found.task, found.inferred["task"]) == ("classification", DECLARED)
    assert found.classes == ("3", "10", "2")
    assert found.levels == (("1", "2", "3", "4"),)
    swapped = ingest(table, tmp_path / "u.zarr", target="donor", covariates=["grade"])
    assert (swapped.classes, swapped.levels) == (("1", "2", "3", "4"), (("3", "10", "2"),))
    said = {"task": "regression", "kinds": {"donor": "numeric"}}
    numbers = ingest(table, tmp_path / "v.zarr", target="grade", covariates=["donor"], **said)
    assert (numbers.task, numbers.levels) == ("regression", ((),))


@pytest.mark.parametrize("kind", KINDS[:3])
def test_columns_apart_may_be_declared_categorical(tmp_path, kind):
    table = frame_of(kind, tmp_path)
    beside = {"target": table["grade"], "covariates": {"donor": table["donor"]}}
    found = ingest(VALUES, tmp_path / "t.zarr", **beside)
    assert (found.classes, found.levels) == (("3", "10", "2"), (("1", "2", "3", "4"),))


def test_many_declared_labels_that_are_numbers_are_classes(tmp_path):
    target = pd.Series(pd.Categorical([str(i // 2) for i in range(300)]))
    table = RNG.normal(size=(300, 2))
    assert len(ingest(table, tmp_path / "t.zarr", target=target).classes) == 150
    assert ingest(table, tmp_path / "u.zarr", target=list(target)).task == "regression"


def test_ids_that_are_declared_categorical_are_refused_as_covariate(tmp_path):
    ids = pd.Series(pd.Categorical([str(i) for i in range(N_ROWS)]))
    with pytest.raises(InputError, match=r"found 24 texts .* kinds={'NAME': 'numeric'}"):
        ingest(VALUES, tmp_path / "t.zarr", target=GRADE, covariates={"id": ids})


def test_an_enum_of_duckdb_is_no_number(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    values = ", ".join(f"'{one}'" for one in ORDER)
    with duckdb.connect(str(tmp_path / "t.db")) as database:
        database.execute(f"create type grades as enum ({values})")
        database.execute("create table t (id int, f double, grade grades, plain varchar)")
        rows = zip(range(N_ROWS), VALUES[:, 0].tolist(), GRADE, GRADE, strict=True)
        database.executemany("insert into t values (?, ?, ?, ?)", [*rows])
    said = {"query": "select * from t", "memory_mb": 2000}
    found = ingest(tmp_path / "t.db", tmp_path / "t.zarr", target="grade", **said)
    assert (found.classes, found.inferred["task"]) == (("3", "10", "2"), DECLARED)
    plain = ingest(tmp_path / "t.db", tmp_path / "u.zarr", target="plain", **said)
    assert plain.classes == ("2", "3", "10")
    beside = ingest(tmp_path / "t.db", tmp_path / "v.zarr", target="f", covariates="grade", **said)
    assert beside.levels == (("3", "10", "2"),)


def cells_of(folder, kind):
    """Write a file of AnnData by hand: as now, as of 0.7, or on Zarr; grades are ordered."""
    codes = {"donor": [int(one) - 1 for one in DONOR], "grade": [ORDER.index(g) for g in GRADE]}
    levels = {"donor": list("1234"), "grade": ORDER}
    if kind == "zarr":
        root = pytest.importorskip("zarr").open_group(folder / "t", mode="w", zarr_format=2)
    else:
        root = pytest.importorskip("h5py").File(folder / "t", "w")
    write = root.create_array if kind == "zarr" else root.create_dataset
    write("X", data=VALUES)
    for name in ("obs", "var"):
        root.create_group(name).attrs["_index"] = "id"
    write("obs/id", data=np.arange(N_ROWS))
    write("var/id", data=np.arange(3))
    for name, places in codes.items():
        if kind == "0.7":
            write(f"obs/{name}", data=np.array(places, "i1"))
            categories = write(f"obs/__categories/{name}", data=levels[name])
            categories.attrs["ordered"] = name == "grade"
            root[f"obs/{name}"].attrs["categories"] = categories.ref
            continue
        root.create_group(f"obs/{name}").attrs["ordered"] = name == "grade"
        write(f"obs/{name}/codes", data=np.array(places, "i1"))
        numbers = np.array(levels[name], "i8" if kind == "numbers" else None)
        write(f"obs/{name}/categories", data=numbers if kind != "now" else levels[name])
    if kind != "zarr":
        root.close()
    return folder / "t"


@pytest.mark.parametrize("kind", ["now", "numbers", "0.7", "zarr"])
def test_categories_of_anndata_are_no_numbers(tmp_path, kind):
    asked = {"target": "grade", "covariates": "donor"}
    found = ingest(cells_of(tmp_path, kind), tmp_path / "t.zarr", **asked)
    assert (found.classes, found.inferred["task"]) == (("3", "10", "2"), DECLARED)
    assert found.levels == (("1", "2", "3", "4"),)


def test_a_further_target_may_be_declared_categorical(tmp_path):
    table = frame_of("pandas")
    ingest(table, tmp_path / "t.zarr", target="f0,grade")
    ((name, _, levels),) = Store.open(tmp_path / "t.zarr").added("target")
    assert (name, levels) == ("grade", ("3", "10", "2"))


@pytest.mark.parametrize("more", [["10", "3"], ["3", "10", "2", "3"], ["2", "11"]])
def test_appended_rows_keep_the_declared_order(tmp_path, more):
    """Whether the new rows declare it, or not; labels that it lacks come last."""
    table = frame_of("pandas")
    ingest(table, tmp_path / "t.zarr", target="grade", covariates="donor")
    rows = {f"f{i}": VALUES[: len(more), i].tolist() for i in range(3)}
    rows |= {"grade": more, "donor": ["9", "1", "1", "2"][: len(more)]}
    asked = {"append_rows": tmp_path / "t.zarr", "min_class_rows": 1}
    found = ingest(pd.DataFrame(rows), tmp_path / "u.zarr", **asked)
    assert found.classes == ("3", "10", "2", *(one for one in more if one not in ORDER))
    assert found.levels == (("1", "2", "3", "4", "9"),)
    labels = [found.classes[code] for code in Store.open(tmp_path / "u.zarr").target()]
    assert labels == [*GRADE, *more]


def test_appended_rows_that_declare_a_middle_level_put_it_there(tmp_path):
    order = pd.CategoricalDtype(["mild", "middle", "bad"], ordered=True)
    frame = pd.DataFrame({"x": VALUES[:, 0], "y": pd.Series(["mild", "bad"] * 12, dtype=order)})
    ingest(frame, tmp_path / "t.zarr", target="y")
    frame["y"] = pd.Series(["middle", "mild", "bad"] * 8, dtype=order)
    found = ingest(frame, tmp_path / "u.zarr", append_rows=tmp_path / "t.zarr")
    assert found.classes == ("mild", "middle", "bad")


def test_an_appended_column_is_what_the_old_store_says(tmp_path):
    table = frame_of("pandas")
    plain = table.assign(grade=list(map(float, GRADE)), donor=list(map(int, DONOR)))
    asked = {"target": "grade", "covariates": "donor"}
    ingest(plain, tmp_path / "t.zarr", task="regression", **asked)
    found = ingest(table, tmp_path / "u.zarr", append_rows=tmp_path / "t.zarr")
    assert (found.task, found.levels) == ("regression", ((),))


@pytest.mark.parametrize("kind", KINDS[:3])
def test_estimators_take_what_a_frame_declares(monkeypatch, kind):
    """The target of a selector, and covariates; rows of no weight are left out before."""
    table, names, plain = frame_of(kind, times=2), ["f0", "f1", "f2", "donor"], ingest

    def ingested(*given, **how):
        raise RuntimeError(plain(*given, **how))

    monkeypatch.setattr(estimators, "ingest", ingested)
    X = table[names] if kind == "pandas" else table.select(names)
    y = pd.Series(pd.Categorical(GRADE * 2, categories=ORDER, ordered=True))
    with pytest.raises(RuntimeError) as ended:
        SRSSelector(adjust=["donor"]).fit(X, y)
    (made,) = ended.value.args
    assert (made.classes, made.levels) == (("3", "10", "2"), (("1", "2", "3", "4"),))
    weights = np.arange(2 * N_ROWS) % 5
    for of in (SRSClassifier, SRSSelector):
        with pytest.raises(RuntimeError) as ended:
            (found := of()).fit(table["f0"].to_numpy()[:, None], y, sample_weight=weights)
        (made,) = ended.value.args
        assert (made.n_rows, len(made.classes)) == ((weights > 0).sum(), 3)
        if of is SRSClassifier:
            assert found.classes_.tolist() == sorted(set(GRADE))


# Labels of one number.


def csv(folder, labels, **more):
    x = (VALUES[:, 0].tolist() * 9)[: len(labels)]
    return write_columns(folder / "t.csv", {"x": x, "y": labels, **more})


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1", "1.0", "+1", "2"], ("1", "2")),
        (["+1", "1.0", "-1", "-1.0"], ("-1", "+1")),
        (["0", "-0", "0.0", "1e3", "1000"], ("0", "1000")),
        (["1.50", "1.5", "2.5"], ("1.5", "2.5")),
        (["01", "1", "1.0"], ("01", "1", "1.0")),
        (["a", "1", "1.0"], ("1", "1.0", "a")),
        (["9007199254740993", "9007199254740992"], ("9007199254740992", "9007199254740993")),
        (["1.0", "2.0"], ("1.0", "2.0")),
        (["inf", "Infinity", "1"], ("1", "Infinity", "inf")),
    ],
)
def test_labels_of_one_number_are_one_class(tmp_path, labels, classes):
    some = labels * 6
    for seed in range(2):
        random.Random(seed).shuffle(some)
        found = ingest(csv(tmp_path, some), tmp_path / f"{seed}.zarr", task="classification")
        assert found.classes == classes
        codes = Store.open(tmp_path / f"{seed}.zarr").target().tolist()
        number = {one: float(one.replace("a", "7")) for one in {*some, *classes}}
        assert [number[classes[code]] for code in codes] == [number[one] for one in some]
    said = found.inferred.get("joined", [])
    assert bool(said) == (len(classes) < len(labels))
    for label in {*labels} - {*classes}:
        assert f"{label!r} is " in said[0]


def test_joined_labels_make_the_store_of_plain_ones_and_are_said(tmp_path, caplog):
    labels = ["2", "1", "+1", "1.0", "2.00", "", "1"] * 4
    number = {"+1": "1", "1.0": "1", "2.00": "2"}
    plain = [number.get(one, one) for one in labels]
    one = ingest(csv(tmp_path, labels, s=labels), tmp_path / "a.zarr", target="y", strata="s")
    assert "column 'y': labels of one number are one, such as '+1' is 1, '1.0' is 1" in caplog.text
    assert "column 's': labels of one number are one" in caplog.text
    two = ingest(csv(tmp_path, plain, s=plain), tmp_path / "b.zarr", target="y", strata="s")
    assert one.checksums == two.checksums
    assert one.classes == two.classes == ("1", "2")
    assert one.class_counts == two.class_counts == (16, 8)
    assert "joined" not in two.inferred


def test_one_number_is_one_class_in_texts_of_frames_and_in_svmlight(tmp_path):
    labels = ["1", "+1", "-1", "-1.0"] * 6
    (tmp_path / "t.svm").write_text("".join(f"{one} 1:{i} 2:1\n" for i, one in enumerate(labels)))
    tables = [tmp_path / "t.svm"]
    frame = pd.DataFrame({"x": VALUES[:, 0], "z": VALUES[:, 1], "y": labels})
    tables.append(frame)
    frame.to_parquet(tmp_path / "t.parquet")
    for i, table in enumerate([*tables, tmp_path / "t.parquet"]):
        assert ingest(table, tmp_path / f"{i}.zarr").classes == ("-1", "1")


def test_one_number_is_one_class_among_samples_and_added_targets(tmp_path):
    labels = ["1", "1.0", "2", "+2"] * 6
    ids, n = [f"r{i}" for i in range(N_ROWS)], range(N_ROWS)
    write_columns(tmp_path / "t.csv", {"id": ids, "x": n, "z": [i % 5 for i in n]})
    write_columns(tmp_path / "s.csv", {"id": ids, "label": labels, "n": [i % 7 for i in n]})
    store = tmp_path / "t.zarr"
    run_command("ingest", tmp_path / "t.csv", store, "--row-ids", "id", "--target", "z")
    said = run_command("targets", store, tmp_path / "s.csv", "--id", "id", "--target", "label")
    assert "note: column 'label': labels of one number are one, such as '+2' is 2" in said.stdout
    ((_, values, levels),) = Store.open(store).added("target")
    assert (levels, values.tolist()) == (("1", "2"), [0, 0, 1, 1] * 6)
    write_lines(tmp_path / "m.csv", [["name", *ids], ["a", *n], ["b", *n[::-1]]])
    how = ("--orient", "features", "--samples", tmp_path / "s.csv", "--id", "id")
    run_command("ingest", tmp_path / "m.csv", tmp_path / "m.zarr", *how, "--target", "n,label")
    ((_, _, levels),) = Store.open(tmp_path / "m.zarr").added("target")
    assert levels == ("1", "2")
    assert "'label'" in read_manifest(tmp_path / "m.zarr").inferred["joined"][0]


@pytest.mark.parametrize(("old", "new"), [(["1", "2"], ["1.0", "+2"]), (["1.0", "2"], ["1", "2"])])
def test_appended_labels_of_one_number_are_the_old_class(tmp_path, old, new):
    ingest(csv(tmp_path, old * 6), tmp_path / "a.zarr")
    table = csv(tmp_path, new * 6)
    found = ingest(table, tmp_path / "b.zarr", append_rows=tmp_path / "a.zarr")
    both = ingest(csv(tmp_path, old * 6 + new * 6), tmp_path / "c.zarr")
    assert (found.classes, found.class_counts) == (both.classes, both.class_counts)
    assert (found.classes, found.class_counts) == (("1", "2"), (12, 12))
    assert Store.open(tmp_path / "b.zarr").target().tolist() == [0, 1] * 12
    assert "labels of one number are one" in " ".join(found.inferred["appended"])


def test_groups_are_told_apart_by_their_texts_and_events_by_their_numbers(tmp_path):
    table = csv(tmp_path, ["a", "b"] * 12, g=["1", "1.0", "2"] * 8, e=["1", "1.0", "0"] * 8)
    ingest(table, tmp_path / "t.zarr", target="y", groups="g", ignore="e")
    assert len({*Store.open(tmp_path / "t.zarr").groups().tolist()}) == 3
    numbers = csv(tmp_path, ["a"] * 24, t=range(24), e=["1000000", "1000001", "1e6"] * 8)
    found = ingest(numbers, tmp_path / "v.zarr", time="t", event="e=1000000", ignore="y")
    assert found.inferred["events"]["n"] == 16


# Series of pandas, whose index says which row each item is of.


NAMES = [f"r{i:02}" for i in range(N_ROWS)]
TURNED = list(range(N_ROWS))[::-1]


@pytest.mark.parametrize(
    "what", ["target", "covariates", "groups", "strata", "weights", "row_ids", "event", "time"]
)
@pytest.mark.parametrize("index", [NAMES, None])
def test_labels_of_the_index_in_another_order_are_refused(tmp_path, what, index):
    table, items = pd.DataFrame(VALUES, index=index), pd.Series(range(1, N_ROWS + 1), index=index)
    plain = {"target": GRADE} if what not in ("target", "event", "time") else {}
    if what in ("event", "time"):
        plain = {"time": list(range(N_ROWS)), "event": [0, 1] * 12}
    given = lambda one: plain | {what: {"c": one} if what == "covariates" else one}  # noqa: E731
    if what == "event":
        items = items % 2
    with pytest.raises(InputError, match=r"in another order\. .* y\.loc\[X\.index\]"):
        ingest(table, tmp_path / "t.zarr", **given(items.iloc[TURNED]))
    turned = items.iloc[TURNED].loc[table.index]
    for i, one in enumerate([items, turned, items.to_numpy(), items.set_axis(range(90, 114))]):
        ingest(table, tmp_path / f"{i}.zarr", min_class_rows=1, **given(one))


@pytest.mark.parametrize(
    ("ours", "theirs", "fits"),
    [
        (NAMES, range(N_ROWS), True),  # counted: by place
        (range(100, 100 + N_ROWS), range(N_ROWS), True),
        (range(2, 2 + N_ROWS), range(N_ROWS), True),
        (range(2, 2 + N_ROWS), range(3, 3 + N_ROWS), False),  # rows of one table, not the same
        (NAMES, [*NAMES[1:], "other"], False),
        (TURNED, range(N_ROWS), False),
        (["a", "b"] * 12, ["b", "a"] * 12, False),
        (range(N_ROWS), [*range(12), *range(12)], True),  # of two tables, one below the other
        (np.arange(N_ROWS) * 1.0, range(N_ROWS), True),
        (pd.Index(NAMES, dtype=object), pd.Index(NAMES, dtype="str"), True),
        (pd.MultiIndex.from_product([range(12), list("ab")]), range(N_ROWS), True),
    ],
)
def test_labels_that_are_shared_in_part(tmp_path, ours, theirs, fits):
    table, items = pd.DataFrame(VALUES, index=ours), pd.Series(GRADE, index=theirs)
    if fits:
        assert ingest(table, tmp_path / "t.zarr", target=items).classes == ("2", "3", "10")
        return
    with pytest.raises(InputError, match="expected the labels of the table's index in its order"):
        ingest(table, tmp_path / "t.zarr", target=items)


def test_the_row_ids_of_a_file_are_an_index(tmp_path):
    path, items = cells_of(tmp_path, "now"), pd.Series(GRADE)
    for i, fitting in enumerate([items, items.set_axis(NAMES), items.to_numpy()]):
        ingest(path, tmp_path / f"{i}.zarr", target=fitting)
    with pytest.raises(InputError, match="expected the labels of the table's index in its order"):
        ingest(path, tmp_path / "t.zarr", target=items.iloc[TURNED])


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_labels_of_the_index_that_a_file_holds_are_compared(tmp_path, suffix):
    path, items = tmp_path / f"t.{suffix}", pd.Series(range(N_ROWS), index=NAMES)
    getattr(pd.DataFrame(VALUES, index=NAMES, columns=list("abc")), f"to_{suffix}")(path)
    with pytest.raises(InputError, match="expected the labels of the table's index"):
        ingest(path, tmp_path / "t.zarr", target=items.iloc[TURNED])
    ingest(path, tmp_path / "t.zarr", target=items)


@pytest.mark.parametrize("what", ["y", "sample_weight", "groups"])
def test_estimators_refuse_labels_of_the_index_in_another_order(what):
    X = pd.DataFrame(VALUES, index=NAMES, columns=list("abc"))
    given = {name: pd.Series(range(1, 25), index=NAMES) // 2 for name in ("y", "groups")}
    given["sample_weight"] = pd.Series(1 + RNG.random(N_ROWS), index=NAMES)
    turned = given | {what: given[what].iloc[TURNED]}
    with pytest.raises(ValueError, match=rf"{what}: expected the labels of the table's index"):
        SRSSelector(iterations=2).fit(X, **turned)


def test_labels_declared_apart_stay_apart_as_rows_are_appended(tmp_path):
    """Two labels of one number on one side were declared so; else they are one."""
    kinds = pd.Categorical(["1", "1.0", "2"] * 8)
    frame = pd.DataFrame({"id": NAMES, "x": VALUES[:, 0], "y": kinds})
    more = frame.assign(id=[f"more {name}" for name in NAMES])
    ingest(frame, tmp_path / "t.zarr", row_ids="id", target="y")
    asked = {"row_ids": "id", "target": "y", "append_rows": tmp_path / "t.zarr"}
    assert ingest(more, tmp_path / "u.zarr", **asked).classes == ("1", "1.0", "2")
    texts = more.assign(y=["1.0", "2.0"] * 12)
    assert ingest(texts, tmp_path / "v.zarr", **asked).classes == ("1", "1.0", "2", "2.0")


def test_a_covariate_has_one_level_for_a_number_as_rows_are_appended(tmp_path):
    frame = pd.DataFrame({"x": VALUES[:, 0], "y": GRADE, "k": pd.Categorical(["1", "2"] * 12)})
    ingest(frame, tmp_path / "t.zarr", target="y", covariates="k")
    more = frame.assign(k=pd.Categorical(["1.0", "2.0"] * 12))
    asked = {"target": "y", "covariates": "k", "append_rows": tmp_path / "t.zarr"}
    assert ingest(more, tmp_path / "u.zarr", **asked).levels == (("1", "2"),)


def test_strata_that_are_said_to_be_texts_are_told_apart_as_such(tmp_path):
    rows = "".join(f"{i},{1 + i % 2}.0,{i % 3}\n{i},1,{i % 3}\n" for i in range(24))
    (tmp_path / "t.csv").write_text(f"x,s,y\n{rows}")
    asked = {"target": "y", "strata": "s"}
    ingest(tmp_path / "t.csv", tmp_path / "t.zarr", **asked)
    ingest(tmp_path / "t.csv", tmp_path / "u.zarr", **asked, kinds={"s": "categorical"})
    found = [len(set(Store.open(tmp_path / f"{n}.zarr").array("strata").tolist())) for n in "tu"]
    assert found == [2, 3]


def test_an_array_with_coordinates_is_taken_item_by_item(tmp_path):
    xarray = pytest.importorskip("xarray")
    target = xarray.DataArray(np.array(["ill", "well"] * 12), dims="index", coords={"index": NAMES})
    found = ingest(pd.DataFrame(VALUES), tmp_path / "t.zarr", target=target)
    assert found.classes == ("ill", "well")
