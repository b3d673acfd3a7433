"""A smaller store is a store like any other: same columns, same rows, opens, verifies, runs."""

from dataclasses import replace

import numpy as np
import pytest
from command import error_of, peak_kb
from command import srs_ooc as command
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import BudgetError, RunError, UsageError
from srs_ooc.results import exporting as module
from srs_ooc.results.exporting import export_columns
from srs_ooc.store.store import Store

WANTED = [7, 0, 3, 11, 9, 5]
CAP = 2_000_000_000
"""Roomy: of a process that has loaded whatever other tests need."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A store with columns of every kind, missing cells, and all that rows can have."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = {f"f{i}": rng.standard_normal(300) for i in range(12)}
    table["f3"] = np.where(rng.random(300) < 0.2, None, rng.choice(["b", "a, c", "ä"], 300))
    table["f5"] = rng.integers(0, 5, 300)
    table["f7"][rng.random(300) < 0.1] = np.nan
    table["f9"] = np.ones(300)
    table["f11"] = np.array([f"{i % 2}" for i in range(300)])
    table["y"] = np.where(rng.random(300) < 0.02, None, rng.choice(["ill", "well"], 300))
    for name, items in (("id", [f"r{i}" for i in range(300)]), ("w", rng.random(300) + 0.1)):
        table[name] = items
    table["plate"], table["person"] = rng.integers(0, 3, 300), rng.integers(0, 90, 300)
    path = tmp_path_factory.mktemp("mixed") / "t.zarr"
    srs_ooc.ingest(
        pandas.DataFrame(table), path, target="y", row_ids="id", weights="w",
        strata="plate", groups="person", kinds={"f5": "numeric", "f11": "categorical"},
    )  # fmt: skip
    return Store.open(path)


def by_name(store, array):
    """What a store holds of each feature: of codes, all of its line."""
    if array == "codes":
        flat = np.fromfile(store.path / "codes" / "c" / "0" / "0", store.manifest.code_dtype)
        items = flat.reshape(-1, store.n_rows).tolist()
    elif array == "categories":
        items = [store.categories().of(i) for i in range(store.n_features)]
    else:
        items = store.array(array).tolist()
    positions = np.asarray(store.array("positions")).tolist()
    return {store.names[source]: items[i] for i, source in enumerate(positions)}


def test_columns_and_rows_are_as_they_were(mixed, tmp_path):
    export_columns(mixed, np.array(WANTED), tmp_path / "s.zarr", cap_nbytes=CAP)
    small = Store.open(tmp_path / "s.zarr")
    small.verify()
    assert list(small.names) == [f"f{i}" for i in WANTED]
    assert list(small.row_ids) == list(mixed.row_ids)
    for name in ("target", "weights", "strata", "groups"):
        np.testing.assert_array_equal(getattr(small, name)(), getattr(mixed, name)())
    for array in ("kinds", "n_missing", "n_codes", "exact", "codes", "categories"):
        before = by_name(mixed, array)
        assert by_name(small, array) == {name: before[name] for name in small.names}
    read, before = (srs_ooc.read(store, list(small.names)) for store in (small, mixed))
    assert read.equals(before)
    assert small.manifest.source["fingerprint"] == mixed.fingerprint


def test_of_all_columns_every_file_is_the_same_but_where_it_came_from(mixed, tmp_path):
    out = tmp_path / "s.zarr"
    export_columns(mixed, np.arange(mixed.n_features), out, cap_nbytes=CAP)
    files = {path.relative_to(mixed.path) for path in mixed.path.rglob("*") if path.is_file()}
    assert {path.relative_to(out) for path in out.rglob("*") if path.is_file()} == files
    for file in files:
        if "zarr.json" not in file.name:
            assert (mixed.path / file).read_bytes() == (out / file).read_bytes(), file
    assert replace(Store.open(out).manifest, source={}) == replace(mixed.manifest, source={})


@pytest.mark.slow
def test_a_smaller_store_runs_and_the_command_and_the_call_make_the_same(tmp_path):
    values, labels = noise_table(150, 60, seed=3)
    store = make_store(tmp_path / "t.zarr", values, labels)
    result = srs_ooc.run(store, iterations=50, q=20, judge="probe")
    made = result.export(tmp_path / "a.zarr", top=9)
    command("export", result.run, tmp_path / "b.zarr", "--top", 9)
    (tmp_path / "names.txt").write_text("f3\nf1\n")
    command("export", store, result.run, tmp_path / "c.zarr", "--names", tmp_path / "names.txt")
    named = result.export(tmp_path / "d.zarr", names=["f3", "f1"])
    a, b, c, d = (Store.open(tmp_path / f"{name}.zarr").fingerprint for name in "abcd")
    assert a == b != c == d
    ranked = result.features("records", top=9)
    assert list(Store.open(made).names) == [record["name"] for record in ranked]
    assert list(Store.open(named).names) == ["f3", "f1"]
    assert srs_ooc.run(made, iterations=20, judge="probe").n_iterations == 20


def test_what_cannot_be_made_leaves_nothing(mixed, tmp_path, monkeypatch):
    out = tmp_path / "s.zarr"
    with pytest.raises(BudgetError, match=r"The smallest cap that works.* --memory-mb \d+\.$"):
        export_columns(mixed, np.array(WANTED), out, cap_nbytes=1_000_000)
    with monkeypatch.context() as patch:
        patch.setattr(module, "CATEGORY_NBYTES", 0)
        with pytest.raises(BudgetError, match="texts of the categories"):
            export_columns(mixed, np.array(WANTED), out, cap_nbytes=CAP)
    monkeypatch.setattr(module, "write_store", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_columns(mixed, np.array([0]), out)
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    with pytest.raises(UsageError, match="free"):
        export_columns(mixed, np.array([0]), out)


def test_names_that_are_none_or_come_twice_are_refused(tmp_path):
    values, labels = noise_table(40, 8)
    store = make_store(tmp_path / "t.zarr", values, labels)
    result = srs_ooc.run(store, iterations=3, method="rase")
    for names, message in ((["f1", "g"], "1 that are not"), (["f1", "f1"], "each feature once")):
        with pytest.raises(UsageError, match=message):
            result.export(tmp_path / "o.zarr", names=names)
    with pytest.raises(UsageError, match="found both"):
        result.export(tmp_path / "o.zarr", names=["f1"], top=1)
    with pytest.raises(RunError, match="only ranks features"):
        result.export(tmp_path / "o.zarr")
    assert "expected RUN and OUT" in error_of("export", result.run)


@pytest.mark.slow
def test_it_works_at_the_smallest_cap_named(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((20_000, 60))
    store = make_store(tmp_path / "t.zarr", values, (values[0] > 0).astype(int))
    result = srs_ooc.run(store, iterations=2, judge="probe")
    export = ("export", result.run, tmp_path / "s.zarr", "--top", 15_000)
    cap = int(error_of(*export, "--memory-mb", 9).rsplit("--memory-mb ", 1)[1].rstrip("."))
    assert peak_kb(*export, "--memory-mb", cap) * 1024 / 1e6 < cap
    assert Store.open(tmp_path / "s.zarr").n_features == 15_000
