"""Runs on times to an event, from ingest to report."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

import srs_ooc
from srs_ooc.base.errors import UsageError
from srs_ooc.cli import cli

N_ROWS, N_FEATURES = 200, 40


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a table, its store and its run: g1 shortens times, g2 loses rows early."""
    folder, rng = tmp_path_factory.mktemp("censored"), np.random.default_rng(3)
    values = rng.standard_normal((N_ROWS, N_FEATURES)).round(3)
    times = rng.exponential(np.exp(-1.5 * values[:, 1] + 1.2 * values[:, 2]))
    ends = rng.exponential(2 * np.exp(-1.5 * values[:, 2]))
    write(folder / "t.csv", values, np.minimum(times, ends).round(4), times <= ends)
    said(folder, "ingest", "t.csv", "t.zarr", "--time", "time", "--event", "died")
    options = "--iterations", "200", "--memory-mb", "4000", "--judge", "tests", "--save-trees"
    said(folder, "run", "t.zarr", *options)
    return folder


def write(path, values, times, events):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "died", *(f"g{i}" for i in range(values.shape[1]))])
        for row, time, event in zip(values.tolist(), times.tolist(), events.tolist(), strict=True):
            writer.writerow([time, int(event), *row])


def said(folder, *args, code=0):
    """What a command says, run in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        found = CliRunner().invoke(cli, args)
    assert found.exit_code == code, found.output
    return found.output


def column(path, name):
    with path.open() as file:
        return [float(row[name]) for row in csv.DictReader(file)]


def first_json(text):
    return json.JSONDecoder().raw_decode(text)[0]


def test_features_say_what_shortens_times_and_whether_censoring_differs(made):
    records = {one["name"]: one for one in json.loads(said(made, "features", "t.run", "--json"))}
    first, lost = records["g1"], records["g2"]
    assert first["selected"]
    assert (first["direction"], first["measure"]) == ("shorter when higher", "concordance")
    assert 0.5 < first["low"] < first["effect"] < first["high"]
    assert first["censoring_p"] is None
    assert lost["direction"] == "longer when higher"
    assert lost["censoring_p"] < 1e-6
    assert "Censoring differs, too (p = " in said(made, "features", "t.run", "--why", "g2")
    assert "censoring_p" in said(made, "features", "t.run")


def test_a_risk_is_predicted_and_nothing_is_said_of_squared_errors(made):
    text = said(made, "predict", "t.run", "t.csv", "out.csv")
    assert "a higher one means a sooner event" in text
    assert "squared" not in text
    risks, times = column(made / "out.csv", "risk"), column(made / "t.csv", "time")
    assert np.corrcoef(np.argsort(np.argsort(risks)), np.argsort(np.argsort(times)))[0, 1] < -0.5
    made_json = json.loads(said(made, "predict", "t.run", "t.csv", "again.csv", "--json"))
    assert made_json["is_risk"]
    assert made_json["rmse"] is None


@pytest.mark.slow
def test_compact_gives_the_c_index_and_the_report_says_so(made):
    folds = "--folds", "3", "--repeats", "1"
    found = first_json(said(made, "compact", "t.run", *folds, "--json"))
    scores = {size["features"]: size["score"] for size in found["curve"]}
    assert 0.6 < max(scores.values()) <= 1
    assert "C-indices are of the rows held out." in said(made, "compact", "t.run", *folds)
    text = said(made, "report", "t.run", "--format", "md", "-o", "-")
    assert "time (time to an event)" in text
    assert "in the order of their events (C-index)" in text
    assert "variance of held-out" not in text


def test_curves_are_drawn_with_numbers_at_risk(made):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    ax = srs_ooc.open_run(made / "t.run").plot_feature("g1")
    assert ax.get_legend_handles_labels()[1] == ["lower half", "upper half"]
    at_risk = [text.get_text() for text in ax.texts]
    assert at_risk[0] == at_risk[5] == str(N_ROWS // 2)
    assert [int(n) for n in at_risk[:5]] == sorted(map(int, at_risk[:5]), reverse=True)
    said(made, "report", "t.run", "--figure", "survival", "-o", "s.svg")
    assert "without event" in (made / "s.svg").read_text()


def test_inspect_says_what_the_target_is(made):
    assert "time to an event" in said(made, "inspect", "t.zarr")


def test_too_few_events_are_said_before_a_run_and_none_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    events = np.arange(60) < 7
    write(tmp_path / "t.csv", rng.standard_normal((60, 20)), rng.exponential(1, 60), events)
    said(tmp_path, "ingest", "t.csv", "t.zarr", "--time", "time", "--event", "died")
    assert "7 events in 60 rows: too few to find much." in said(
        tmp_path, "run", "t.zarr", "--iterations", "20", "--judge", "tests", "--memory-mb", "4000"
    )
    (tmp_path / "rows.txt").write_text("\n".join(str(i) for i in range(11, 61)))
    with pytest.raises(UsageError, match="expected an event in some of the rows trained on, found"):
        srs_ooc.run(tmp_path / "t.zarr", rows=tmp_path / "rows.txt", fresh=True)
