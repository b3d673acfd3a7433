"""The benchmark at small sizes: every problem is made and scored, and nothing is done twice."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from selection_methods import (
    METHODS,
    Cache,
    Key,
    Method,
    Result,
    overview,
    passes,
    reach,
    row,
    table,
)
from selection_tables import Problem, Scores, all_problems, open_table

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "selection.py"
KEY = Key("madelon", 500, 0, "ranksum", "scipy-1")
OURS = Key("madelon", 500, 0, "tests", "v")


def run(cache, *arguments, data=None):
    environment = {"PATH": "/usr/bin:/bin"} | ({"SRS_OOC_DATA": str(data)} if data else {})
    command = [sys.executable, str(SCRIPT), "--cache", str(cache), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=3600, env=environment, check=False
    )


def real_tables(folder):
    folder.mkdir()
    random = np.random.default_rng(0)
    values = random.integers(0, 9, (30, 6))
    lines = [",".join(map(str, row)) + f",{'ab'[i % 2]}" for i, row in enumerate(values)]
    text = "\n".join(["f0,f1,f2,f3,f4,f5,target", *lines]) + "\n"
    (folder / "arcene.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder


@pytest.mark.slow
def test_a_run_is_kept_and_not_done_again(tmp_path):
    small = ("--p", 60, "--seeds", 1, "--peer-seeds", 1, "--problems", "marginal", "null-arcene",
             "--methods", "probe", "ranksum")  # fmt: skip
    data = real_tables(tmp_path / "data")
    first = run(tmp_path / "cache", *small, data=data)
    assert first.returncode == 0, first.stderr
    assert "### marginal: n = 1,000, p = 60 (additive)" in first.stdout
    assert "### null-arcene: n = 30, p = 6 (null)" in first.stdout
    assert "| marginal | probe | 0.000 | 0.100 | 1 | holds |" in first.stdout
    assert len(list(Cache(tmp_path / "cache" / "results").results())) == 4
    assert list((tmp_path / "cache" / "tables").iterdir()) == []
    again = run(tmp_path / "cache", *small, data=data)
    assert (again.stdout, again.stderr) == (first.stdout, "")


def test_no_minutes_no_work(tmp_path):
    done = run(tmp_path, "--minutes", 0, "--problems", "noise", "--methods", "probe", "--p", 40)
    assert done.returncode == 0
    assert "the same command goes on" in done.stderr
    assert list(Cache(tmp_path / "results").results()) == []


def test_a_peer_out_of_time_is_a_row(tmp_path):
    done = run(tmp_path, "--problems", "noise", "--methods", "ranksum", "--p", 40, "--peer-seeds",
               1, "--limit-seconds", 0.01)  # fmt: skip
    assert "1 (1 out of time) | - |" in done.stdout


def test_unknown_names_are_refused(tmp_path):
    done = run(tmp_path, "--problems", "nothing")
    assert done.returncode == 1
    assert "--problems: expected madelon, " in done.stderr


@pytest.mark.few(1)
@pytest.mark.parametrize("name", [name for name in all_problems(None) if name != "madelon-1m"])
def test_every_problem_is_made_as_store_and_as_arrays(tmp_path, name):
    problem = all_problems(None)[name]
    n_features = min(problem.n_features, 210)
    with open_table(problem, 1, n_features, tmp_path) as opened:
        values = np.load(opened.arrays() / "values.npy")
        target = np.load(opened.arrays() / "target.npy")
        units = opened.truth().units
        assert opened.store().exists()
    assert values.shape == (problem.n_rows, n_features)
    assert values.dtype == np.float32
    assert target.shape == (problem.n_rows,)
    assert (units == ()) == (problem.kind == "null")
    assert list(tmp_path.iterdir()) == []


def test_a_permuted_target_keeps_its_counts_and_loses_its_order(tmp_path):
    source = real_tables(tmp_path / "data") / "arcene.csv.gz"
    problem = Problem("null-arcene", "null", real=str(source))
    with open_table(problem, 3, 6, tmp_path / "scratch") as opened:
        target = np.load(opened.arrays() / "target.npy")
        text = (opened.folder / "table.csv").read_text().splitlines()
    assert sorted(target) == [0] * 15 + [1] * 15
    assert target.tolist() != [0, 1] * 15
    assert ["ab".index(line[-1]) for line in text[1:]] == target.tolist()


def test_results_are_read_as_they_were_put(tmp_path):
    cache = Cache(tmp_path)
    scores = Scores(3, 0.5, 0.25, 0.6, 0.7)
    results = [Result(KEY, 1.5, 2.5, 20.0, scores), Result(OURS, 1.5, 2.5, 20.0, scores),
               Result(Key("noise", 9, 1, "boruta", "b-1"), 300.0, 590.0, 9.0, None)]  # fmt: skip
    assert not cache.has(KEY)
    for result in results:
        cache.put(result)
    assert cache.has(KEY)
    assert list(cache.results()) == results


def test_means_over_seeds():
    results = [Result(KEY, 1.0, 2.0, 10.0, Scores(4, power, false, 0.5, 0.5))
               for power, false in ((0.5, 0.0), (1.0, 0.25))]  # fmt: skip
    expected = "| x | 2 | 4.0 | 0.75 | 0.125 ± 0.125 | 0.50 | 0.50 | 1.0 | 2.0 | 10 |"
    assert row("x", results) == expected
    late = [Result(KEY, 300.0, 600.0, 10.0, None)]
    assert row("x", late) == "| x | 1 (1 out of time) | - | - | - | - | - | 300.0 | 600.0 | 10 |"
    problem = all_problems(None)["madelon"]
    assert "| rank sum + BH | 2 |" in table(problem, results)
    told = Result(OURS, 1.0, 2.0, 10.0, Scores(4, 1.0, 0.5, 0.5, 0.5))
    assert "| srs-ooc | 1 | 4.0 | 1.00 | 0.500 |" in table(problem, [told])
    everything = overview([problem, all_problems(None)["chain"]], [*results, *late, told])
    assert everything.splitlines()[0] == "| problem | srs-ooc | rank sum + BH |"
    ours, peer = "1.00 / 0.50, 2 s, 10 MB (1)", "0.75 / 0.12, 2 s, 10 MB (2, 1 out of time)"
    assert everything.splitlines()[2:] == [f"| madelon | {ours} | {peer} |"]
    assert "| madelon | out of time, 10 MB |" in overview([problem], late)


@pytest.mark.parametrize(
    ("kind", "shares", "verdict"),
    [
        ("additive", [0.0, 0.1], "holds"),
        ("additive", [0.3, 0.3], "FAILS"),
        ("null", [1.0, 0.0, 0.0, 0.0, 0.0], "holds"),
        ("null", [1.0, 1.0, 0.0, 0.0, 0.0], "FAILS"),
    ],
)
def test_what_was_to_be_reached(kind, shares, verdict):
    key = Key("x", 9, 0, "tests", "v")
    results = [Result(key, 1.0, 2.0, 1.0, Scores(3, None, share, None, None)) for share in shares]
    (line,) = reach(Problem("x", kind), results)
    assert line.endswith(f"| {verdict} |")


def test_ours_come_first_and_the_dear_one_by_one():
    dear = Method("slow", "", "package")
    groups = passes([dear, METHODS["ranksum"], METHODS["probe"], METHODS["ftest"]])
    assert [[m.name for m in group] for group in groups] == [
        ["probe"],
        ["ranksum", "ftest"],
        ["slow"],
    ]
