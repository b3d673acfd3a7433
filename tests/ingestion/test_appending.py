"""A store with more rows or features is that of the joined table; the old one stays as it is."""

import dataclasses
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas
import pytest
from command import check_least_cap, error_of, killed_in, least_cap
from command import srs_ooc as run_command
from examples import examples, given, st
from object_server import serving
from tables import write_columns as write

from srs_ooc import ingest
from srs_ooc.base.errors import BudgetError, InputError, StoreError, UsageError
from srs_ooc.store.manifest import NAMES
from srs_ooc.store.store import Store

CELLS = {
    "numbers": st.sampled_from(["0.5", "-1.25", "3", "1e30", "0.1", "-0.0", "NA"]),
    "narrow": st.sampled_from(["0.5", "1.5", "-2", ""]),
    "whole": st.sampled_from(["0", "1", "2", "77", ""]),
    "booleans": st.sampled_from(["0", "1"]),
    "categories": st.sampled_from(["b", "ä", "1", "a,b", "NA"]),
    "missing": st.just("NA"),
    "constant": st.just("7"),
}
KINDS = {"f_categories": "categorical"}
ROWS = {"target": "y", "row_ids": "id", "weights": "w", "covariates": ("age", "site")}


def below(one, other):
    return {name: one[name] + other[name] for name in one}


def same(made, joined, but=()):
    """All fields but those of where the table came from, checksums of every file included."""
    a, b = dataclasses.asdict(made), dataclasses.asdict(joined)
    assert a.pop("source")["appended_to"]
    b.pop("source")
    inferred = a.pop("inferred"), b.pop("inferred")
    for what in ("events", "missing_covariates", "rows_without_covariates", "aggregate"):
        assert inferred[0].get(what) == inferred[1].get(what)
    for name in but:
        a.pop(name), b.pop(name)
    assert a == b


@st.composite
def two_tables(draw, task="classification"):
    """The columns of two tables, the second with its columns in another order."""
    tables = []
    for first in (0, 100):
        n = draw(st.integers(4 if first == 0 else 1, 12))
        some = lambda cells, n=n: draw(st.lists(cells, min_size=n, max_size=n))  # noqa: E731
        made = {f"f_{name}": some(cells) for name, cells in CELLS.items()}
        made["age"] = some(st.sampled_from(["31", "44.5", "-0.0", "NA"]))
        made["site"] = some(st.sampled_from(["x", "y"] + ["z"] * (first > 0)))
        made["w"] = some(st.sampled_from(["1", "0.25"]))
        made["id"] = [f"r{first + i}" for i in range(n)]
        labels = ["b", "a", "b", "a"] if first == 0 else [draw(st.sampled_from("abc"))]
        numbers = ["1", "-2.5", "1", "4"] if first == 0 else ["0.125"]
        fixed = labels if task == "classification" else numbers
        made["y"] = fixed + some(st.sampled_from([*fixed, "NA"]))[len(fixed) :]
        made["age"][0], made["site"][0], made["site"][-1] = "31", "x", "y"
        tables.append(made)
    names = draw(st.permutations(list(tables[1])))
    return tables[0], {name: tables[1][name] for name in names}


@pytest.mark.few(0, 1)
@pytest.mark.parametrize("task", ["classification", "regression"])
@examples(40)
@given(data=st.data(), keep_values=st.booleans(), numbered=st.booleans())
def test_appended_rows_make_the_store_of_the_joined_table(task, data, keep_values, numbered):
    one, other = data.draw(two_tables(task))
    more = ROWS | {"keep_values": keep_values, "kinds": KINDS, "task": task, "min_class_rows": 1}
    if numbered:
        more["row_ids"], more["ignore"] = None, "id"
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        ingest(write(at / "a.csv", one), at / "a.zarr", **more)
        before = Store.open(at / "a.zarr").fingerprint
        write(at / "b.csv", other)
        left_out = {"min_class_rows": 1, "ignore": more.get("ignore", ())}
        made = ingest(at / "b.csv", at / "b.zarr", append_rows=at / "a.zarr", **left_out)
        same(made, ingest(write(at / "ab.csv", below(one, other)), at / "ab.zarr", **more))
        store = Store.open(at / "b.zarr")
        store.verify()
        assert Store.open(at / "a.zarr").fingerprint == before
        joined = Store.open(at / "ab.zarr")
        assert list(store.row_ids) == list(joined.row_ids)
        for name in made.float_arrays:
            assert (store.array(f"{name}_crc32c") == joined.array(f"{name}_crc32c")).all()


@pytest.mark.slow
@examples(40)
@given(data=st.data(), keep_values=st.booleans())
def test_appended_features_make_the_store_of_the_joined_table(data, keep_values):
    one, _ = data.draw(two_tables())
    n = len(one["id"])
    other = {
        f"g_{name}": data.draw(st.lists(cells, min_size=n, max_size=n))
        for name, cells in CELLS.items()
    }
    one["y"] = ["b", "a"] + ["b"] * (n - 2)
    kinds = {"g_categories": "categorical"}
    more = ROWS | {"keep_values": keep_values}
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        ingest(write(at / "a.csv", one), at / "a.zarr", kinds=KINDS, **more)
        order = data.draw(st.permutations(range(n)))
        moved = {
            name: [cells[i] for i in order] for name, cells in ({"id": one["id"]} | other).items()
        }
        made = ingest(
            write(at / "b.csv", moved), at / "b.zarr", append_features=at / "a.zarr", kinds=kinds
        )
        write(at / "ab.csv", one | {name: other[name] for name in other if name != "id"})
        same(made, ingest(at / "ab.csv", at / "ab.zarr", kinds=KINDS | kinds, **more))
        store, joined = Store.open(at / "b.zarr"), Store.open(at / "ab.zarr")
        store.verify()
        for name in made.float_arrays:
            assert (store.array(f"{name}_crc32c") == joined.array(f"{name}_crc32c")).all()


AGED = {"missing_covariates": "drop", "covariates": "age"}
COLUMNS = ("plate", "sex", "t", "died", "age", "y")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("roles", "used"),
    [
        ({"target": "y", "strata": ("plate", "sex")}, {"y", "plate", "sex"}),
        ({"time": "t", "event": "died=dead"} | AGED, {"t", "died", "age"}),
        ({"no_target": True} | AGED, {"age"}),
        ({"target": "y", "groups": "plate", "aggregate": "mean"}, {"y", "plate"}),
    ],
)
def test_what_is_known_of_rows_is_that_of_the_joined_table(tmp_path, roles, used):
    def columns(n, plate):
        rng = np.random.default_rng(n)
        return {
            "plate": [f"{plate}{i % 5}" for i in range(n)],
            "sex": ["m"] * n,
            "t": [str(i) for i in range(n)],
            "died": ["dead", "alive"] * (n // 2) if plate == "p" else ["alive"] * n,
            "age": ["", *(str(a) for a in rng.integers(20, 80, n - 1))],
            "y": ["case" if i % 5 < 2 else "control" for i in range(n)],
            **{f"f{j}": [str(v) for v in rng.normal(size=n)] for j in range(6)},
        }

    more = {"ignore": [name for name in COLUMNS if name not in used]}
    one, other = columns(30, "p"), columns(20, "q")
    ingest(write(tmp_path / "a.csv", one), tmp_path / "a.zarr", **roles, **more)
    write(tmp_path / "ab.csv", below(one, other))
    joined = ingest(tmp_path / "ab.csv", tmp_path / "ab.zarr", **roles, **more)
    more["missing_covariates"] = roles.get("missing_covariates", "keep")
    write(tmp_path / "b.csv", other)
    made = ingest(tmp_path / "b.csv", tmp_path / "b.zarr", append_rows=tmp_path / "a.zarr", **more)
    same(made, joined)
    assert Store.open(tmp_path / "b.zarr").verify().nbytes > 0


def uneven(n, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    made = {f"f{i}": rng.normal(scale=scale, size=n) for i in range(5)}
    made |= {"few": rng.integers(0, 9, n).astype(float), "many": rng.integers(0, 250, n) / 1.0}
    for column in made.values():
        column[rng.random(n) < 0.1] = np.nan
    return made


@pytest.mark.few(1)
@pytest.mark.parametrize("n_more", [1, 40, 900])
def test_without_values_features_of_many_keep_their_cuts(tmp_path, n_more):
    one, other = (pandas.DataFrame(uneven(n, n, 3 if n == n_more else 1)) for n in (600, n_more))
    y = np.arange(600) % 2
    ingest(one, tmp_path / "a.zarr", target=y, keep_values=False)
    made = ingest(
        other[::-1] if n_more == 1 else other,
        tmp_path / "b.zarr",
        target=y[:n_more] if n_more < 600 else np.arange(n_more) % 2,
        append_rows=tmp_path / "a.zarr",
    )
    old, store = Store.open(tmp_path / "a.zarr"), Store.open(tmp_path / "b.zarr")
    store.verify()
    assert made.n_rows == 600 + n_more
    stored = np.argsort(old.array("positions"))
    ranges = [list(one.code_ranges(np.arange(7))) for one in (old, store)]
    n_outside = 0
    with old.columns(mapped=False) as before, store.columns(mapped=False) as after:
        codes = [one.codes(np.arange(7)) for one in (before, after)]
    for position, name in enumerate(one):
        feature = stored[position]
        mine, others = codes[1][feature], np.concatenate([one[name], other[name]])
        there = ~np.isnan(others)
        assert (mine[~there] == 255).all()
        lows, highs = (ranges[1][feature][i] for i in (1, 2))
        assert (lows[mine[there]] <= others[there]).all()
        assert (highs[mine[there]] >= others[there]).all()
        if old.array("exact")[feature]:
            continue
        assert (mine[:600] == codes[0][feature]).all()
        assert not store.array("exact")[feature]
        assert NAMES[store.kinds()[feature]] == NAMES[old.kinds()[feature]]
        n = store.array("n_codes")[feature]
        assert (highs[: n - 1] < lows[1:n]).all()
        low, high = np.nanmin(one[name]), np.nanmax(one[name])
        n_outside += int(((other[name] < low) | (other[name] > high)).sum())
    said = re.findall(r"(\d+) cells? of \d+ features? outside", " ".join(made.inferred["appended"]))
    assert said == ([str(n_outside)] if n_outside else [])
    assert ("outside" in made.inferred) == (n_more > 1)


def test_values_are_wide_where_a_row_that_is_left_out_was(tmp_path):
    one, more = "0.5,a\n1.5,b\n0.1,NA\n", "0.25,a\n"
    for name, text in {"a": one, "b": more, "ab": one + more}.items():
        (tmp_path / f"{name}.csv").write_text(f"x,y\n{text}")
    ingest(tmp_path / "a.csv", tmp_path / "a.zarr")
    made = ingest(tmp_path / "b.csv", tmp_path / "b.zarr", append_rows=tmp_path / "a.zarr")
    same(made, ingest(tmp_path / "ab.csv", tmp_path / "ab.zarr"))
    assert made.values_dtype == "float64"


def test_few_values_become_many_as_in_the_joined_table(tmp_path):
    """250 values each, of which 400 differ: recoded as one ingest codes them."""
    values = [np.arange(250.0), np.arange(150, 400) / 1.0]
    for keep in (True, False):
        at = tmp_path / str(keep)
        at.mkdir()
        y = np.arange(250) % 2
        ingest(values[0][:, None], at / "a.zarr", target=y, keep_values=keep)
        made = ingest(values[1][:, None], at / "b.zarr", target=y, append_rows=at / "a.zarr")
        both = np.concatenate(values)[:, None]
        same(made, ingest(both, at / "ab.zarr", target=np.r_[y, y], keep_values=keep))


@pytest.fixture
def tables(tmp_path):
    """A table, its store, and a second one that can be appended to it by rows."""
    n = 30
    one = {f"f{i}": [str(v) for v in np.random.default_rng(i).normal(size=n)] for i in range(6)}
    one |= {
        "c": ["u", "v"] * (n // 2),
        "id": [f"r{i}" for i in range(n)],
        "y": ["a", "b"] * (n // 2),
    }
    other = one | {"id": [f"s{i}" for i in range(n)]}
    ingest(write(tmp_path / "a.csv", one), tmp_path / "a.zarr", target="y", row_ids="id")
    return one, other


def renamed(table, **names):
    return {names.get(name, name): cells for name, cells in table.items()}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        (lambda t: renamed(t, f1="g"), {}, r"found 1 missing \('f1'\) and 1 more \('g'\)"),
        (lambda t: t | {"h": t["f1"]}, {}, r"found 1 more \('h'\)"),
        (lambda t: t | {"id": ["r3", *t["id"][1:]]}, {}, "distinct row ids, found 'r3'"),
        (lambda t: t | {"c": ["1"] * 30}, {}, None),
        (lambda t: t | {"f1": ["u", "v"] * 15}, {}, "feature 'f1': expected categories, or"),
        (lambda t: renamed(t, y="z"), {}, r"no such column 'y' \(--target\)"),
        (lambda t: t | {"y": ["a", "c"] + ["b"] * 28}, {}, "classes has fewer: 'c'"),
        (lambda t: t, {"code_dtype": "uint16"}, "--code-dtype: expected 'uint8'"),
        (lambda t: t, {"target": "c"}, "--target: expected 'y'"),
        (lambda t: t, {"strata": "c"}, "--strata: expected nothing"),
        (lambda t: t, {"kinds": {"c": "categorical"}}, "--kind"),
        (lambda t: t, {"keep_values": False}, ": expected True"),
        (lambda t: t, {"target": None, "time": "f0", "event": "c"}, "--time: expected 'y'"),
        (lambda t: t, {"overwrite": True}, "--overwrite"),
        (lambda t: t, {"append_features": "a.zarr"}, "both of them"),
        (lambda t: t, {"memory_mb": 50}, "smallest cap"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_name(tmp_path, tables, change, more, said):
    write(tmp_path / "b.csv", change(tables[1]))
    call = {"append_rows": tmp_path / "a.zarr"} | more
    if said is None:
        assert (
            ingest(tmp_path / "b.csv", tmp_path / "b.zarr", **call).kind_counts["categorical"] == 1
        )
        return
    with pytest.raises((InputError, UsageError, BudgetError)) as found:
        ingest(tmp_path / "b.csv", tmp_path / "b.zarr", **call)
    words = str(found.value).replace("code_dtype", "--code-dtype")
    plain = re.sub(r"--", "", said)
    assert re.search(plain.replace("-", "[-_]"), words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.zarr", "b.csv"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: renamed(t, g1="f1"), "expected other features than .*found 'f1'"),
        (lambda t: t | {"y": t["g1"]}, "neither its target.*found 'y'"),
        (lambda t: t | {"id": ["x", *t["id"][1:]]}, r"1 missing \('r0'\) and 1 more \('x'\)"),
        (lambda t: {name: cells[1:] for name, cells in t.items()}, r"1 missing \('r0'\)\. Give"),
    ],
)
def test_features_that_do_not_fit_are_refused_by_name(tmp_path, tables, change, said):
    other = {f"g{i}": tables[0][f"f{i}"] for i in range(4)} | {"id": tables[0]["id"]}
    write(tmp_path / "b.csv", change(other))
    with pytest.raises(InputError, match=said):
        ingest(tmp_path / "b.csv", tmp_path / "b.zarr", append_features=tmp_path / "a.zarr")
    assert not (tmp_path / "b.zarr").exists()


def test_rows_by_group_and_two_or_more_tables_are_refused(tmp_path, tables):
    ingest(tmp_path / "a.csv", tmp_path / "g.zarr", target="y", groups="id")
    write(tmp_path / "b.csv", tables[1])
    table = tmp_path / "b.csv"
    for source, new, old, error, message in (
        (table, "b", "g", UsageError, "a store without groups"),
        ([table], "b", "a", UsageError, "one table"),
        (table, "a", "a", StoreError, "found one in use"),
        (table, "b", "none", StoreError, "nothing there"),
    ):
        with pytest.raises(error, match=message):
            ingest(source, tmp_path / f"{new}.zarr", append_rows=tmp_path / f"{old}.zarr")


def test_texts_where_all_cells_were_missing_and_a_third_version(tmp_path, tables):
    one, other = tables
    write(tmp_path / "a.csv", one | {"late": [""] * 30})
    first = ingest(tmp_path / "a.csv", tmp_path / "1.zarr", target="y", row_ids="id")
    write(tmp_path / "b.csv", other | {"late": ["q", "p", ""] * 10})
    call = {"append_rows": tmp_path / "1.zarr"}
    second = ingest(tmp_path / "b.csv", tmp_path / "2.zarr", **call)
    ids = [f"t{i}" for i in range(30)]
    write(tmp_path / "c.csv", other | {"late": ["r"] * 30, "id": ids, "y": ["b"] * 30})
    call = {"append_rows": tmp_path / "2.zarr"}
    third = ingest(tmp_path / "c.csv", tmp_path / "3.zarr", **call)
    assert [one.kind_counts["categorical"] for one in (first, second, third)] == [1, 2, 2]
    assert [*third.inferred["appended"]] == [
        "30 rows after the 30 of 1.zarr",
        "30 rows after the 60 of 2.zarr",
    ]
    store = Store.open(tmp_path / "3.zarr")
    store.verify()
    feature = int(np.argsort(store.array("positions"))[store.names.find(["late"])[0]])
    assert store.categories().of(feature) == ["p", "q", "r"]


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["rows", "features"])
@pytest.mark.parametrize("keep_values", [True, False])
def test_the_old_store_may_be_at_a_url(tmp_path, tables, monkeypatch, axis, keep_values):
    pytest.importorskip("obstore")
    monkeypatch.setenv("SRS_OOC_CACHE_DIR", str(tmp_path / "cache"))
    old = tmp_path / "old.zarr"
    ingest(tmp_path / "a.csv", old, target="y", row_ids="id", keep_values=keep_values)
    features = {f"g{i}": tables[0][f"f{i}"] for i in range(4)} | {"id": tables[0]["id"]}
    table = write(tmp_path / "b.csv", tables[1] if axis == "rows" else features)
    here = ingest(table, tmp_path / "b.zarr", **{f"append_{axis}": old})
    with serving(tmp_path) as server:
        call = {f"append_{axis}": f"{server.url}/old.zarr"}
        there = ingest(table, tmp_path / "c.zarr", **call)
    assert there.fingerprint == here.fingerprint


def test_the_command_says_what_was_appended(tmp_path, tables):
    table, old = write(tmp_path / "b.csv", tables[1]), tmp_path / "a.zarr"
    done = run_command("ingest", table, tmp_path / "b.zarr", "--append-rows", old)
    assert "appended: 30 rows after the 30 of a.zarr\n" in done.stdout
    assert "60 rows x 7 features" in done.stdout
    said = error_of("ingest", table, tmp_path / "c.zarr", "--append-rows", old, "--dry-run")
    assert "expected a table by itself" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("axis", "module", "name"),
    [
        ("rows", "appending", "release"),
        ("rows", "writer", "write_texts"),
        ("rows", "appending", "make_group"),
        ("rows", "stages", "shutil.rmtree"),
        ("features", "shards", "Merging.positions"),
    ],
)
def test_a_kill_leaves_the_old_store_and_no_new_one(tmp_path, tables, axis, module, name):
    one, other = tables
    features = {f"g{i}": one[f"f{i}"] for i in range(4)} | {"id": one["id"]}
    table = write(tmp_path / "b.csv", other if axis == "rows" else features)
    place, new = tmp_path / "a.zarr", tmp_path / "b.zarr"
    before = Store.open(place).fingerprint
    call = ["ingest", table, new, f"--append-{axis}", place]
    killed_in(module, name, *call)
    assert not new.exists()
    old = Store.open(place)
    old.verify()
    assert old.fingerprint == before
    run_command(*call)
    again = ingest(table, tmp_path / "c.zarr", **{f"append_{axis}": place})
    assert Store.open(new).fingerprint == again.fingerprint
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"a.csv", "a.zarr", "b.csv", "b.zarr", "c.zarr"}


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["rows", "features"])
@pytest.mark.parametrize("more", [(), pytest.param(("--no-values",), marks=pytest.mark.campaign)])
def test_the_peak_stays_under_the_cap_that_is_named(tmp_path, axis, more):
    rng = np.random.default_rng(3)
    for name, first in (("a", "f"), ("b", "f" if axis == "rows" else "g")):
        cells = np.round(rng.normal(size=(700, 3000)), 4)
        columns = {f"{first}{i}": cells[:, i].tolist() for i in rng.permutation(3000)}
        target = {"y": [0, 1] * 350} if first == "f" else {}
        write(tmp_path / f"{name}.csv", columns | target)
    ingest(tmp_path / "a.csv", tmp_path / "a.zarr", target="y", keep_values=not more)
    call = ("ingest", tmp_path / "b.csv", tmp_path / "b.zarr", f"--append-{axis}")
    call = (*call, tmp_path / "a.zarr")
    least = least_cap(*call, too_small=40)
    assert least_cap(*call, too_small=least - 1) == least
    assert check_least_cap(*call, too_small=40) == least
    assert Store.open(tmp_path / "b.zarr").verify().nbytes > 0
