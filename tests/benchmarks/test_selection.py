"""Selections at small sizes: every problem is made and scored, and nothing is done twice."""

import json
import sys

import numpy as np
import pytest
from command import finished
from measured import Results
from selection import (
    HERE,
    PROBLEMS,
    average_precision,
    made_table,
    reach,
    row,
    score,
    table,
    truth_of,
)

SINGLE = ((3,), (5,))
BLOCKS = ((0, 1, 2), (10, 11, 12))


def figures(units, selected, ranking):
    found = score(units, selected, ranking)
    return [found[name] for name in ("selected", "power", "false share", "F1")], found


def test_features_each_for_itself():
    first, found = figures(SINGLE, [3, 7], [3, 7, 5, 0])
    assert first == [2, 0.5, 0.5, 0.5]
    assert found["average precision"] == pytest.approx((1 + 2 / 3) / 2)


def test_a_block_counts_once_and_its_members_are_not_false():
    first, found = figures(BLOCKS, [0, 1, 2, 9], [1, 0, 2, 9, 12])
    assert first == [4, 0.5, 0.25, pytest.approx(2 * 0.75 * 0.5 / 1.25)]
    # Places: 1 is the first, 9 the second, 12 the third; 0 and 2 take none.
    assert found["average precision"] == pytest.approx((1 + 2 / 3) / 2)


def test_nothing_selected_is_not_false():
    assert figures(SINGLE, [], [0, 1, 2])[0] == [0, 0, 0, 0]
    assert average_precision({3: 0, 5: 1}, 2, [0, 1, 2]) == 0


def test_on_a_null_every_selection_is_false():
    assert figures((), [4], [4])[0] == [1, None, 1, None]
    assert figures((), [], [4])[0] == [0, None, 0, None]


def test_the_truth_is_read_from_the_record_beside_a_table(tmp_path):
    store, record = tmp_path / "t.zarr", tmp_path / "t.zarr.truth.json"
    record.write_text(json.dumps({"relevant": ["f3", "f5"]}))
    assert truth_of(store) == SINGLE
    record.write_text(json.dumps({"relevant": ["f1", "f2"], "blocks": [["f1", "f2"]]}))
    assert truth_of(store) == ((1, 2),)


def run(cache, *arguments):
    command = [sys.executable, str(HERE / "selection.py"), "--cache", str(cache)]
    return finished([*command, *map(str, arguments)])


@pytest.mark.slow
def test_a_run_is_kept_and_not_done_again(tmp_path):
    small = ("--p", 60, "--seeds", 1, "--peer-seeds", 1, "--problems", "marginal", "noise",
             "--methods", "probe", "ranksum")  # fmt: skip
    first = run(tmp_path, *small)
    assert first.returncode == 0, first.stderr
    assert "### marginal: n = 1,000, p = 60 (additive)" in first.stdout
    assert "### noise: n = 1,000, p = 60 (null)" in first.stdout
    assert "| marginal | probe | 0.000 | 0.100 | 1 | holds |" in first.stdout
    assert len(Results(tmp_path / "results.jsonl").records) == 4
    assert list((tmp_path / "tables").iterdir()) == []
    again = run(tmp_path, *small)
    assert (again.stdout, again.stderr) == (first.stdout, "")


def test_no_minutes_no_work(tmp_path):
    done = run(tmp_path, "--minutes", 0, "--problems", "noise", "--methods", "probe", "--p", 40)
    assert done.returncode == 0
    assert "the same command goes on" in done.stderr
    assert Results(tmp_path / "results.jsonl").records == []


def test_a_peer_out_of_time_is_a_row(tmp_path):
    done = run(tmp_path, "--problems", "noise", "--methods", "ranksum", "--p", 40, "--peer-seeds",
               1, "--limit-seconds", 0.01)  # fmt: skip
    assert "1 (1 out of time) | - |" in done.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_is_made_as_store_and_as_arrays(tmp_path, name):
    problem = PROBLEMS[name]
    n_features = min(problem.n_features, 210)
    with made_table(problem, 1, n_features, tmp_path) as folder:
        values, target = (np.load(folder / f"{kind}.npy") for kind in ("values", "target"))
        units = truth_of(folder / "table.zarr")
        assert (folder / "table.zarr").exists()
    assert values.shape == (problem.n_rows, n_features)
    assert values.dtype == np.float32
    assert target.shape == (problem.n_rows,)
    assert (units == ()) == (problem.kind == "null")
    assert list(tmp_path.iterdir()) == []


def result(method, power, false, problem="madelon", **more):
    costs = {"seconds": 1.0, "CPU s": 2.0, "peak MB": 10.0}
    key = {"problem": problem, "n_features": 500, "method": method, "late": False}
    scores = {"selected": 4, "power": power, "false share": false, "F1": 0.5}
    return key | scores | {"average precision": 0.5} | costs | more


def test_means_over_seeds():
    results = [result("ranksum", 0.5, 0.0), result("ranksum", 1.0, 0.25)]
    expected = "| x | 2 | 4.0 | 0.75 | 0.125 ± 0.125 | 0.50 | 0.50 | 1.0 | 2.0 | 10 |"
    assert row("x", results) == expected
    kept = ("problem", "n_features", "method", "seconds", "CPU s", "peak MB")
    late = [{name: results[0][name] for name in kept} | {"late": True}]
    assert row("x", late) == "| x | 1 (1 out of time) | - | - | - | - | - | 1.0 | 2.0 | 10 |"
    assert "| rank sum + BH | 2 |" in table("madelon", results)
    told = result("tests", 1.0, 0.5)
    assert "| srs-ooc | 1 | 4.0 | 1.00 | 0.500 |" in table("madelon", [told])


@pytest.mark.parametrize(
    ("problem", "shares", "verdict"),
    [
        ("shift", [0.0, 0.1], "holds"),
        ("shift", [0.3, 0.3], "FAILS"),
        ("noise", [1.0, 0.0, 0.0, 0.0, 0.0], "holds"),
        ("noise", [1.0, 1.0, 0.0, 0.0, 0.0], "FAILS"),
    ],
)
def test_what_was_to_be_reached(problem, shares, verdict):
    results = [result("tests", None, share, problem) for share in shares]
    (line,) = reach(problem, results)
    assert line.endswith(f"| {verdict} |")
