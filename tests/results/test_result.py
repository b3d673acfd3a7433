"""A run as programs and notebooks read it: features, reasons, exports, predictions."""

import sys

import numpy as np
import pytest
from command import srs_ooc as command
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import BudgetError, InputError, RunError, UsageError
from srs_ooc.ensemble import prediction
from srs_ooc.runs.verdict import FeatureRecord
from srs_ooc.store.store import Store

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "&amp;", "a\x1b[2Jb"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((150, 40))
    return values, (values[:, :3].sum(axis=1) > 0).astype(int)


@pytest.fixture(scope="module")
def concluded(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("concluded")
    names = [*HOSTILE, *(f"f{i}" for i in range(4, 40))]
    srs_ooc.ingest(table[0], folder / "t.zarr", target=table[1], names=names)
    return srs_ooc.run(folder / "t.zarr", iterations=400, q=15)


@pytest.fixture
def judged(table, tmp_path):
    srs_ooc.ingest(table[0], tmp_path / "t.zarr", target=table[1])
    return srs_ooc.run(tmp_path / "t.zarr", judge="probe", iterations=100, q=15)


def test_features_are_the_same_in_every_kind(concluded, judged):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for result in (concluded, judged):
        records = result.features("records")
        assert list(records[0]) == list(FeatureRecord.__annotations__)
        assert result.features("polars").to_dicts() == records
        frame = result.features()
        assert list(frame.columns) == list(records[0])
        for i, record in enumerate(records):
            for name, value in record.items():
                cell = frame[name].iloc[i]
                assert pandas.isna(cell) if value is None else cell == value
    assert isinstance(concluded.features(), pandas.DataFrame)
    assert isinstance(concluded.features("polars"), polars.DataFrame)


def test_features_are_typed_where_all_values_are_missing(judged):
    pytest.importorskip("pandas")
    kinds = judged.features().dtypes
    assert [str(kinds[n]) for n in ("q_value", "cluster", "passes_alone")] == [
        "float64", "Int64", "boolean",
    ]  # fmt: skip


def test_features_are_those_of_the_command_line(concluded):
    pytest.importorskip("pandas")
    said = command("features", concluded.run, "--csv").stdout
    assert said.splitlines()[0].split(",") == list(concluded.features().columns)
    assert len(said.splitlines()) == 41


def test_a_line_end_in_a_name_breaks_no_table(table, tmp_path):
    names = ["a\nb", *(f"f{i}" for i in range(1, 40))]
    srs_ooc.ingest(table[0], tmp_path / "t.zarr", target=table[1], names=names)
    result = srs_ooc.run(tmp_path / "t.zarr", judge="probe", iterations=100)
    said = command("features", result.run).stdout
    assert len(said.splitlines()) == 42
    assert r"  a\nb  " in said


def test_some_features_are_asked_for(concluded):
    assert len(concluded.features("records", top=3)) == 3
    selected = concluded.features("records", only_selected=True)
    assert [record["name"] for record in selected] == concluded.selected
    assert concluded.selected


def test_a_kind_that_is_not_there_is_refused(concluded, monkeypatch):
    with pytest.raises(UsageError, match="expected one of pandas, polars, records"):
        concluded.features("arrow")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="expected polars to be installed"):
        concluded.features("polars")


def test_selected_and_why_agree(concluded):
    assert " is in" in concluded.why(concluded.selected[0])
    with pytest.raises(UsageError, match=r"^why: expected"):
        concluded.why("no such feature")


def test_names_of_features_are_escaped_in_a_notebook(concluded):
    page = concluded._repr_html_()
    shown = {record["name"] for record in concluded.features("records", top=10)}
    assert set(HOSTILE[:2]) & shown
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page or "&lt;img" in page


def test_a_notebook_shows_a_run_without_a_verdict(judged):
    assert "judge probe" in judged._repr_html_()
    assert "100 of 100 iterations" in repr(judged)


@pytest.mark.slow
def test_an_export_is_that_of_the_command_line(concluded, tmp_path):
    for flags, options in (([], {}), (["--top", 2], {"top": 2})):
        command("export", concluded.store.path, concluded.run, tmp_path / "a.csv", *flags)
        made = concluded.export(tmp_path / "b.csv", **options)
        assert made.read_bytes() == (tmp_path / "a.csv").read_bytes()
        made.unlink(), (tmp_path / "a.csv").unlink()


def test_an_export_of_nothing_is_refused(table, tmp_path):
    labels = np.random.default_rng(1).integers(0, 2, 150)
    srs_ooc.ingest(table[0], tmp_path / "t.zarr", target=labels)
    none = srs_ooc.run(tmp_path / "t.zarr", judge="probe", iterations=5)
    with pytest.raises(RunError, match="found none after 5 iterations"):
        none.export(tmp_path / "a.csv")
    with pytest.raises(UsageError, match="top"):
        none.export(tmp_path / "a.csv", top=0)


def test_a_store_that_was_moved_is_named(judged, tmp_path):
    moved = judged.store.path.rename(tmp_path / "moved.zarr")
    with pytest.raises(RunError, match="no longer at"):
        judged.selected  # noqa: B018
    assert srs_ooc.open_run(judged.run).status.iterations == 100
    again = srs_ooc.open_run(judged.run, store=moved)
    assert len(again.features("records")) == 40
    assert srs_ooc.resume(again, store=moved, iterations=110).n_iterations == 110


@pytest.fixture(params=["probe", "tests"])
def ensemble(tmp_path, request):
    values, labels = noise_table(80, 30, seed=1)
    store = make_store(tmp_path / "t.zarr", values, labels)
    return srs_ooc.run(store, iterations=20, judge=request.param, save_trees=True), values


def test_predictions_are_the_same_at_the_smallest_cap_that_is_named(ensemble, tmp_path):
    result, values = ensemble
    lines = [",".join(f"f{i}" for i in range(30)), *(",".join(map(str, row)) for row in values.T)]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    for data in (result.store, values.T, tmp_path / "new.csv"):
        with pytest.raises(BudgetError, match="smallest cap") as refused:
            result.predict(data, memory_mb=1)
        cap = int(str(refused.value).rpartition("memory_mb=")[2].rstrip("."))
        with pytest.raises(InputError, match="all 30 columns of training"):
            result.predict(values.T[:, :9])
        assert (result.run / "splits.bin").exists() != isinstance(data, Store)
        roomy = result.predict(data, "records")
        assert len(roomy) == 80
        assert result.predict(data, "records", memory_mb=cap) == roomy


def test_an_array_of_other_columns_than_in_training_is_refused(ensemble):
    result, values = ensemble
    table = values.T
    for wrong in (
        table[:, :3],
        np.hstack([np.ones((80, 5)), table]),
        table[0],
        table.tolist(),
        None,
    ):
        with pytest.raises(InputError, match=r"^data: expected rows of all 30 columns of training"):
            result.predict(wrong)
    assert len(result.predict(table, "records")) == 80


def test_more_predictions_than_the_cap_holds_are_refused(ensemble, tmp_path, monkeypatch):
    result, values = ensemble
    with pytest.raises(BudgetError, match="predictions of 1000000 rows 492"):
        result.predict(np.broadcast_to(values.T[:1], (1_000_000, 30)), memory_mb=400)
    lines = [",".join(f"f{i}" for i in range(30)), *(",".join(map(str, row)) for row in values.T)]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(prediction, "OUTPUT_NBYTES", 3_000_000)
    with pytest.raises(BudgetError, match="predictions of 80 rows and more"):
        result.predict(tmp_path / "new.csv")
