"""The main job from the command line: ingest, run, status, features, export, and every refusal."""

import csv
import gzip
import json
import logging
import os
import shutil
import socket
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from command import error_of, json_of, srs_ooc
from stores import make_store, noise_table

from srs_ooc.base.errors import RunError, UsageError
from srs_ooc.cli import cli
from srs_ooc.runs import dask_cluster

PROBE = ("--judge", "probe")
QUICK = ("--iterations", 60, "--q", 25)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, its store, and a finished run."""
    folder = tmp_path_factory.mktemp("main")
    values, labels = noise_table(80, 120)
    with (folder / "table.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *(f"f{i}" for i in range(120)), "group"])
        for row in range(80):
            cells = [repr(float(x)) for x in values[:, row]]
            writer.writerow([f"r{row}", *cells, "ab"[labels[row]]])
    srs_ooc("ingest", "table.csv", "t.zarr", "--row-ids", "id", "--target", "group", cwd=folder)
    options = ("--probe-min-draws", 3, "--probe-min-wins", 0.7, "--iterations", 400, "--q", 25)
    srs_ooc("run", "t.zarr", *options, cwd=folder)
    return folder


@pytest.mark.slow
def test_the_only_store_of_the_folder_is_taken(folder, tmp_path):
    shutil.copytree(folder / "t.zarr", tmp_path / "t.zarr")
    done = srs_ooc("run", "--memory-mb", 512, "--alpha", "0.5", *QUICK, cwd=tmp_path)
    assert "after 60 iterations" in done.stdout
    assert (tmp_path / "t.run").is_dir()


@pytest.mark.slow
def test_status_says_where_the_run_stands(folder):
    status = json_of("status", "t.run", "--json", cwd=folder)
    assert status["state"] == "finished"
    assert status["iterations"] == 400
    assert status["subspace_size"] == 25
    assert status["memory_mb"] == 512
    assert 10 < status["peak_rss_mb"] < 512
    assert status["seconds"] > 0
    assert status["n_selected"] >= 3
    assert "finished" in srs_ooc("status", "t.run", cwd=folder).stdout


@pytest.mark.slow
def test_features_are_ranked_and_counted(folder):
    records = json_of("features", "t.run", "--json", cwd=folder)
    assert list(records[0]) == [
        "name", "rank", "selected", "kept", "importance", "importance_ensemble", "n_drawn",
        "p_better", "entered", "q_value", "score", "tree_agreement", "halves", "cluster", "p_value",
        "differs_in", "passes_alone", "beside", "inflation", "direction", "measure", "effect",
        "low", "high", "censoring_p",
    ]  # fmt: skip
    assert [record["rank"] for record in records] == list(range(1, 121))
    assert {record["name"] for record in records} == {f"f{i}" for i in range(120)}
    assert {"f0", "f1", "f2"} <= {record["name"] for record in records[:8]}
    assert sum(record["n_drawn"] for record in records) == 400 * 25
    importances = [record["importance"] for record in records]
    assert importances == sorted(importances, reverse=True)
    for record in records:
        whole = record["importance"] * record["n_drawn"] / 400
        assert record["importance_ensemble"] == pytest.approx(whole)
        assert record["selected"] == (record["entered"] is not None)
    selected = json_of("features", "t.run", "--json", "--selected", cwd=folder)
    assert selected == [record for record in records if record["selected"]]
    table = srs_ooc("features", "t.run", "--csv", cwd=folder).stdout.splitlines()
    assert table[0].startswith("name,rank,selected")
    assert len(table) == 121


@pytest.mark.slow
def test_importance_is_a_mean_over_trees_and_draws_count_subspaces(folder, tmp_path):
    """With several trees on a subspace: the scale of the means is that of one tree on each."""
    records = {}
    for n_trees in (1, 5):
        run = tmp_path / f"{n_trees}.run"
        options = ("--alpha", "0", "--iterations", 200, "--trees-per-subspace", n_trees)
        srs_ooc("run", folder / "t.zarr", "--out", run, "--q", 25, *options)
        records[n_trees] = json_of("features", run, "--json")
    one, five = ({r["name"]: r for r in records[n]} for n in (1, 5))
    assert {f: r["n_drawn"] for f, r in one.items()} == {f: r["n_drawn"] for f, r in five.items()}
    sums = [sum(r["importance_ensemble"] for r in records[n]) for n in (1, 5)]
    assert sums[0] == pytest.approx(sums[1], rel=0.02)  # a tree explains all there is to explain
    for record in five.values():
        whole = record["importance"] * record["n_drawn"] / 200
        assert record["importance_ensemble"] == pytest.approx(whole)


@pytest.mark.slow
def test_blocks_larger_than_a_subspace_are_refused_and_the_size_is_the_runs_own(folder, tmp_path):
    run, store = tmp_path / "blocks.run", folder / "t.zarr"
    message = error_of("run", store, "--out", run, "--q", 25, "--with", "draw_block=26")
    assert "from 1 to 25" in message
    assert not run.exists()
    srs_ooc("run", store, "--out", run, *QUICK, "--with", "draw_block=10")
    assert json_of("status", run, "--json")["draw_block"] == 10
    assert "draw-block 10" in srs_ooc("status", run).stdout
    assert "draw_block 10 (asked for: 9)" in error_of(
        "run", store, "--out", run, "--with", "draw_block=9"
    )
    for none in (("--with", "draw_block=0"), ("--trees-per-subspace", 0)):
        assert "expected a whole number" in error_of("run", store, "--out", "no.run", *none)


@pytest.mark.slow
def test_features_never_drawn_come_last_with_nulls(folder, tmp_path):
    run = tmp_path / "short.run"
    srs_ooc("run", folder / "t.zarr", "--out", run, "--iterations", 1, "--q", 5, *PROBE)
    records = json_of("features", run, "--json")
    assert [record["n_drawn"] for record in records] == [1] * 5 + [0] * 115
    last = records[5:]
    assert all(record["importance"] is record["p_better"] is None for record in last)
    assert [record["name"] for record in last] == sorted(
        (record["name"] for record in last), key=lambda name: int(name[1:])
    )


@pytest.mark.slow
def test_positive_defines_no_share_of_wins(folder, tmp_path):
    run = tmp_path / "p.run"
    srs_ooc("run", folder / "t.zarr", "--out", run, "--judge", "positive", *QUICK)
    records = json_of("features", run, "--json")
    assert all(record["p_better"] is None for record in records)
    assert any(record["entered"] for record in records)


@pytest.mark.slow
def test_export_writes_the_selected_columns_with_their_values(folder, tmp_path):
    out = tmp_path / "selected.csv"
    srs_ooc("export", "t.zarr", "t.run", out, cwd=folder)
    selected = json_of("features", "t.run", "--json", "--selected", cwd=folder)
    with (folder / "table.csv").open(newline="") as source, out.open(newline="") as made:
        originals, copies = list(csv.DictReader(source)), list(csv.DictReader(made))
    names = [record["name"] for record in selected]
    assert list(copies[0]) == ["id", *names, "group"]
    for original, copy in zip(originals, copies, strict=True):
        assert (copy["id"], copy["group"]) == (original["id"], original["group"])
        assert all(float(copy[name]) == float(original[name]) for name in names)
    assert "expected a path that is free" in error_of("export", "t.zarr", "t.run", out, cwd=folder)
    packed = tmp_path / "selected.csv.gz"
    srs_ooc("export", "t.zarr", "t.run", packed, cwd=folder)
    assert gzip.decompress(packed.read_bytes()) == out.read_bytes()


@pytest.mark.slow
def test_options_from_a_file_are_used_and_flags_win(folder, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text('alpha = 0.25\nq = 30\njudge = "positive"\niterations = 5\nseed = 9\n')
    run = tmp_path / "c.run"
    srs_ooc("run", folder / "t.zarr", "--config", config, "--out", run, "--seed", 4)
    status = json_of("status", run, "--json")
    expected = {"alpha": 0.25, "subspace_size": 30, "judge": "positive", "seed": 4}
    assert status | expected == status
    config.write_text("alfa = 0.25\n")
    assert "alfa" in error_of("run", folder / "t.zarr", "--config", config)
    config.write_text("alpha = = 0.25\n")
    assert "TOML" in error_of("run", folder / "t.zarr", "--config", config)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "line",
    [
        "iterations = 2.9",
        "iterations = true",
        'exclude_missing = "no"',
        "alpha = true",
        "seed = 1.5",
    ],
)
def test_a_value_of_the_wrong_type_is_refused_not_rounded(folder, tmp_path, line):
    config = tmp_path / "c.toml"
    config.write_text(line + "\n")
    run = tmp_path / "c.run"
    message = error_of("run", folder / "t.zarr", "--config", config, "--out", run)
    assert line.split(" = ")[0] in message
    assert not run.exists()


NETWORKS = {
    "genie3": ("--with", "trees=2"),
    "network-srs": ("--with", "trees=2"),
    "network-prs": ("--with", "epochs=1", "--with", "models=2", "--with", "folds=2"),
}
FEWER = {"rase-knn": ("--with", "candidates=3", "--with", "folds=2")}
"""What takes long otherwise."""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "config", sorted(Path(__file__).parents[2].glob("configs/*.toml")), ids=lambda path: path.stem
)
def test_every_config_runs(folder, tmp_path, config):
    if config.stem in NETWORKS:
        edges = tmp_path / "edges.csv"
        few = NETWORKS[config.stem]
        srs_ooc("network", folder / "t.zarr", "--config", config, "--out", edges, *few)
        assert edges.read_text().startswith("regulator,target,weight\n")
        return
    run = tmp_path / "x.run"
    fewer = FEWER.get(config.stem, ())
    srs_ooc("run", folder / "t.zarr", "--config", config, "--out", run, "--iterations", 30, *fewer)
    assert json_of("status", run, "--json")["iterations"] == 30


@pytest.mark.slow
def test_rows_and_excluded_features_are_left_out(folder, tmp_path):
    rows, excluded = tmp_path / "rows.txt", tmp_path / "excluded.txt"
    rows.write_text("\n".join(f"r{i}" for i in range(0, 80, 2)) + "\n")
    excluded.write_text("f0\nf7\n")
    run = tmp_path / "part.run"
    arguments = ("run", folder / "t.zarr", "--out", run, "--exclude", excluded, *QUICK)
    srs_ooc(*arguments, "--rows", rows)
    records = {record["name"]: record for record in json_of("features", run, "--json")}
    assert [name for name in records if records[name]["n_drawn"] == 0] == ["f0", "f7"]
    # Training on half the rows is the same as training on a store of those rows: same ranks.
    values, labels = noise_table(80, 120)
    store = make_store(tmp_path / "half.zarr", values[:, ::2], labels[::2])
    other = tmp_path / "half.run"
    srs_ooc("run", store, "--out", other, "--exclude", excluded, *QUICK)
    halves = {record["name"]: record for record in json_of("features", other, "--json")}
    assert {n: r["n_drawn"] for n, r in halves.items()} == {
        n: r["n_drawn"] for n, r in records.items()
    }
    # Resuming needs neither file; giving another one is another run.
    rows.unlink()
    srs_ooc("resume", run, "--iterations", 70)
    excluded.write_text("f0\n")
    assert "excluded" in error_of(*arguments)


@pytest.mark.slow
def test_features_with_missing_values_can_be_left_out(tmp_path):
    values, labels = noise_table(60, 40)
    values[5, 3] = values[9, :10] = np.nan
    store = make_store(tmp_path / "m.zarr", values, labels)
    srs_ooc("run", store, "--out", tmp_path / "all.run", *QUICK)
    assert all(r["n_drawn"] for r in json_of("features", tmp_path / "all.run", "--json"))
    srs_ooc("run", store, "--exclude-missing", *QUICK)
    records = json_of("features", tmp_path / "m.run", "--json")
    undrawn = {record["name"] for record in records if record["n_drawn"] == 0}
    assert undrawn == {"f5", "f9"}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--alpha", "1.5"), ["alpha", "from 0 to 1", "1.5"]),
        (("--alpha", "nan"), ["alpha", "from 0 to 1"]),
        (("--alpha", "a lot"), ["alpha", "a lot"]),
        (("--q", "0"), ["subspace-size", "from 1 to 120", "0"]),
        (("--q", "121"), ["subspace-size", "from 1 to 120", "121"]),
        (("--q", "many"), ["subspace-size", "max", "many"]),
        (("--q", "10", "--k", "11"), ["max-features", "from 1 to 10", "11"]),
        (("--k", "0"), ["max-features"]),
        (("--probe-min-wins", "2"), ["probe-min-wins", "from 0 to 1"]),
        (("--probe-min-draws", "-1"), ["probe-min-draws"]),
        (("--max-depth", "0"), ["max-depth"]),
        (("--min-samples-leaf", "0"), ["min-samples-leaf"]),
        (("--seed", "-3"), ["seed"]),
        (("--iterations", "0"), ["iterations"]),
        (("--memory-mb", "40"), ["--memory-mb 40", "smallest cap"]),
        (("--judge", "magic"), ["judge"]),
        (("--exclude", "nowhere.txt"), ["nowhere.txt"]),
        (("--rows", "nowhere.txt"), ["nowhere.txt"]),
    ],
)
def test_options_outside_their_range_are_refused(folder, tmp_path, options, words):
    run = tmp_path / "never.run"
    message = error_of("run", folder / "t.zarr", "--out", run, *options)
    for word in words:
        assert word in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_smallest_cap_named_does_work(folder, tmp_path):
    message = error_of("run", folder / "t.zarr", "--out", tmp_path / "a.run", "--memory-mb", 9)
    cap = int(message.split("--memory-mb ")[-1].split(",")[0].split(".")[0])
    srs_ooc("run", folder / "t.zarr", "--out", tmp_path / "b.run", "--memory-mb", cap, *QUICK[:2])


@pytest.mark.slow
def test_a_run_of_another_identity_is_refused_by_name(folder):
    for option, value, name in [
        ("--alpha", "0.7", "alpha"),
        ("--q", "26", "subspace-size"),
        ("--k", "3", "max-features"),
        ("--seed", "1", "seed"),
        ("--judge", "positive", "judge"),
        ("--with", "impurity=entropy", "impurity"),
        ("--max-depth", "4", "max-depth"),
        ("--with", "round_size=2", "round_size"),
    ]:
        message = error_of("run", "t.zarr", option, value, cwd=folder)
        assert f"{name} " in message
        assert value.rpartition("=")[2] in message
    # Not identity: iterations, memory, threads, and the same numbers written otherwise.
    again = ("--alpha", "0.50", "--threads", 1, "--memory-mb", 300, "--iterations", 400)
    srs_ooc("run", "t.zarr", *again, cwd=folder)


@pytest.mark.slow
def test_a_run_on_another_store_is_refused(folder, tmp_path):
    values, labels = noise_table(80, 120, seed=1)
    other = make_store(tmp_path / "other.zarr", values, labels)
    assert "another store" in error_of("run", other, "--out", folder / "t.run")
    assert "another store" in error_of("export", other, folder / "t.run", tmp_path / "x.csv")


@pytest.mark.slow
def test_a_moved_store_is_found_beside_its_run(folder, tmp_path):
    for name in ("t.zarr", "t.run"):
        shutil.copytree(folder / name, tmp_path / "there" / name)
    run = tmp_path / "there" / "t.run"
    assert json_of("features", run, "--json", "--top", 1)[0]["rank"] == 1
    (tmp_path / "there" / "t.zarr").rename(tmp_path / "there" / "u.zarr")
    records = json_of(
        "features", run, "--json", "--top", 2, "--store", tmp_path / "there" / "u.zarr"
    )
    assert len(records) == 2
    srs_ooc("run", tmp_path / "there" / "u.zarr", "--out", run, "--iterations", 410)
    srs_ooc("resume", run, "--iterations", 420)  # the new place was noted
    assert json_of("status", run, "--json")["store"].endswith("u.zarr")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["status", "features", "resume"])
def test_commands_on_no_run_say_so(tmp_path, command):
    assert "expected the folder of a run" in error_of(command, tmp_path / "none.run")
    assert "without ledger.sqlite" in error_of(command, tmp_path)


@pytest.mark.slow
def test_run_without_a_store_says_what_it_looked_for(folder, tmp_path):
    assert "found none" in error_of("run", cwd=tmp_path)
    assert "nothing there" in error_of("run", tmp_path / "none.zarr")
    for name in ("a.zarr", "b.zarr"):
        shutil.copytree(folder / "t.zarr", tmp_path / name)
    assert "a.zarr, b.zarr" in error_of("run", cwd=tmp_path)


@pytest.mark.few(1)
@pytest.mark.parametrize("damage", ["truncated", "missing", "version", "manifest"])
def test_a_damaged_store_is_refused(folder, tmp_path, damage):
    store = tmp_path / "t.zarr"
    shutil.copytree(folder / "t.zarr", store)
    chunk, metadata = store / "codes/c/0/0", store / "zarr.json"
    if damage == "truncated":
        chunk.write_bytes(chunk.read_bytes()[:-1])
    elif damage == "missing":
        chunk.unlink()
    elif damage == "version":
        record = json.loads(metadata.read_text())
        record["attributes"]["srs_ooc"]["format"] = 99
        metadata.write_text(json.dumps(record))
    else:
        metadata.write_text("{")
    message = error_of("run", store, *QUICK)
    expected = {
        "truncated": str(chunk),
        "missing": str(chunk),
        "version": "99",
        "manifest": str(metadata),
    }
    assert expected[damage] in message
    assert not (tmp_path / "t.run").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "array", ["target", "positions", "n_missing", "names_bytes", "names_offsets"]
)
def test_a_damaged_small_array_is_refused_where_it_is_read(folder, tmp_path, array):
    for name in ("t.zarr", "t.run"):
        shutil.copytree(folder / name, tmp_path / name)
    file = tmp_path / "t.zarr" / array / "c" / "0"
    data = bytearray(file.read_bytes())
    data[: min(16, len(data))] = b"\xff" * min(16, len(data))
    file.write_bytes(data)
    run = ("run", tmp_path / "t.zarr", "--out", tmp_path / "new.run", *QUICK)
    features = ("features", tmp_path / "t.run", "--store", tmp_path / "t.zarr", "--top", 3)
    excluding = (*run, "--exclude-missing")
    command = {"target": run, "n_missing": excluding}.get(array, features)
    message = error_of(*command)
    assert str(file) in message
    assert "CRC-32" in message


@pytest.mark.slow
def test_no_leaf_can_hold_more_than_all_rows(folder, tmp_path):
    run = tmp_path / "x.run"
    options = ("--judge", "positive", "--min-samples-leaf", 2**31 - 1, *QUICK)
    srs_ooc("run", folder / "t.zarr", "--out", run, *options)
    assert json_of("status", run, "--json")["n_selected"] == 0
    message = error_of("run", folder / "t.zarr", "--out", run, "--min-samples-leaf", 2**62)
    assert "min-samples-leaf" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error(folder, tmp_path):
    tmp_path.chmod(0o500)
    assert "could not be created" in error_of("run", folder / "t.zarr", "--out", tmp_path / "x.run")


def test_a_path_that_cannot_be_made_is_an_error(folder):
    message = error_of("run", folder / "t.zarr", "--out", "/proc/none/x.run")
    assert "could not be created" in message


@pytest.mark.slow
def test_one_class_among_the_training_rows_is_refused(folder, tmp_path):
    rows = tmp_path / "rows.txt"
    with (folder / "table.csv").open(newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file) if row["group"] == "a"]
    rows.write_text("\n".join(ids))
    run = tmp_path / "x.run"
    assert "two classes" in error_of("run", folder / "t.zarr", "--rows", rows, "--out", run)
    rows.write_text("r1\nnobody\n")
    assert "nobody" in error_of("run", folder / "t.zarr", "--rows", rows, "--out", run)
    assert not run.exists()


@pytest.mark.slow
def test_another_run_is_one_option_away(folder, tmp_path):
    shutil.copytree(folder / "t.zarr", tmp_path / "t.zarr")
    srs_ooc("run", "t.zarr", *QUICK, "--seed", 1, cwd=tmp_path)
    refused = error_of("run", "t.zarr", *QUICK, "--seed", 2, cwd=tmp_path)
    assert "seed 1 (asked for: 2)" in refused
    assert "--fresh" in refused
    for name in ("t-2.run", "t-3.run"):
        done = srs_ooc("run", "t.zarr", *QUICK, "--seed", 2, "--fresh", "-q", cwd=tmp_path)
        assert name in done.stderr
        assert (tmp_path / name).is_dir()
    assert "expected --fresh or --out" in error_of(
        "run", "t.zarr", "--fresh", "--out", "u.run", cwd=tmp_path
    )


N_ROWS, N_NUMBERS = 150, 30


def write_table(path, target_of):
    """Numbers, some missing, and a colour; the target is a function of f0 and the colour."""
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((N_ROWS, N_NUMBERS))
    colours = rng.choice(["red", "green", "blue", "black"], N_ROWS)
    gone = rng.random(numbers.shape) < 0.06
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"f{i}" for i in range(N_NUMBERS)), "colour", "weight", "target"])
        for row, colour, missing in zip(numbers, colours, gone, strict=True):
            cells = ["" if m else f"{x:.4f}" for x, m in zip(row, missing, strict=True)]
            score = row[0] + 2 * (colour in ("red", "blue"))
            writer.writerow([*cells, colour, 1 + int(abs(row[1]) > 1), target_of(score)])
    return path


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    path = tmp_path_factory.mktemp("kinds")
    write_table(path / "numbers.csv", lambda score: f"{score:.4f}")
    write_table(path / "classes.csv", lambda score: "high" if score > 1 else "low")
    for name in ("numbers", "classes"):
        srs_ooc("ingest", f"{name}.csv", f"{name}.zarr", "--target", "target", cwd=path)
        more = ("--target", "target", "--weights", "weight")
        srs_ooc("ingest", f"{name}.csv", f"{name}-weighted.zarr", *more, cwd=path)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numbers", "classes", "numbers-weighted", "classes-weighted"])
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--splitter", "best", "--bootstrap", "--k", "0.5"),
        ("--with", "thresholds=value", "--k", "0.5"),
    ],
)
def test_what_matters_is_found_and_predicted(tables, tmp_path, name, options):
    run = tmp_path / "x.run"
    common = ("--iterations", 300, "--q", 12, "--save-trees", "--out", run)
    srs_ooc("run", f"{name}.zarr", *common, *options, cwd=tables)
    ranked = [record["name"] for record in json_of("features", run, "--json")]
    assert {"f0", "colour"} == set(ranked[:2])
    outs = [tmp_path / "codes.csv", tmp_path / "values.csv"]
    table = f"{name.partition('-')[0]}.csv"
    for data, out in zip((f"{name}.zarr", table), outs, strict=True):
        report = json_of("predict", run, data, out, "--json", cwd=tables)
    assert outs[0].read_bytes() == outs[1].read_bytes()
    if name.startswith("numbers"):
        assert report["r2"] > 0.8
        assert report["accuracy"] is None
    else:
        assert report["accuracy"] > 0.9


@pytest.mark.slow
def test_new_rows_may_miss_values_and_have_new_categories(tables, tmp_path):
    run, out = tmp_path / "x.run", tmp_path / "out.csv"
    common = ("--iterations", 60, "--q", 12, "--save-trees", "--out", run)
    srs_ooc("run", "classes.zarr", *common, cwd=tables)
    with (tables / "classes.csv").open() as file:
        header, *rows = csv.reader(file)
    rows[0][:5], rows[1][header.index("colour")] = [""] * 5, "purple"
    rows[2][header.index("colour")] = ""
    edited = tmp_path / "edited.csv"
    with edited.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    assert json_of("predict", run, edited, out, "--json", cwd=tables)["n_rows"] == N_ROWS


@pytest.mark.slow
def test_class_weights_are_part_of_a_run(tables, tmp_path):
    def importances(*options):
        run = tmp_path / f"{len(list(tmp_path.iterdir()))}.run"
        common = ("--iterations", 30, "--q", 12, "--out", run, *options)
        srs_ooc("run", "classes.zarr", *common, cwd=tables)
        return [record["importance"] for record in json_of("features", run, "--json")]

    plain = importances()
    assert importances("--class-weight", "low=2,high=2") == pytest.approx(plain)
    assert importances("--class-weight", "low=5") != pytest.approx(plain)
    assert importances("--class-weight", "balanced") != pytest.approx(plain)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["numbers", "numbers-weighted", "classes-weighted"])
def test_every_store_can_be_planned_for(tables, tmp_path, store):
    planned = srs_ooc("plan", f"{store}.zarr", "--splitter", "best", cwd=tables).stdout
    assert ("lower half of the targets (75 rows)" in planned) == store.startswith("numbers")
    run = tmp_path / "x.run"
    srs_ooc("run", f"{store}.zarr", "--out", run, "--q", 3, "--max-depth", 2, cwd=tables)
    assert json_of("status", run, "--json")["iterations"] >= 1000


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("store", "options", "words"),
    [
        ("numbers", ("--with", "impurity=gini"), ["impurity", "variance", "gini"]),
        ("classes", ("--with", "impurity=variance"), ["impurity", "gini or entropy"]),
        ("classes-weighted", ("--with", "impurity=entropy"), ["impurity", "gini", "entropy"]),
        ("numbers", ("--class-weight", "balanced"), ["class-weight", "numbers"]),
        ("classes", ("--class-weight", "middle=2"), ["class-weight", "middle", "high"]),
        ("classes", ("--class-weight", "low=-1"), ["class-weight", "above 0"]),
        ("classes", ("--k", "2.5"), ["max-features", "2.5"]),
        ("classes", ("--with", "min_impurity_decrease=2"), ["min_impurity_decrease", "2"]),
    ],
)
def test_what_cannot_be_learnt_is_refused(tables, tmp_path, store, options, words):
    message = error_of("run", f"{store}.zarr", "--out", tmp_path / "x.run", *options, cwd=tables)
    assert all(word in message for word in words), message


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("cluster") / "t.zarr", *noise_table(60, 80))


def refusal_of(*arguments, kind=UsageError):
    error = CliRunner().invoke(cli, [str(argument) for argument in arguments]).exception
    assert isinstance(error, kind), error
    return str(error)


@pytest.mark.dask
def test_where_dask_is_absent_the_extra_is_named_and_nothing_is_made(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    for address in ("local:2", "tcp://127.0.0.1:8786"):
        message = refusal_of("run", store, "--out", tmp_path / "a.run", "--dask", address)
        assert "pip install 'srs-ooc[dask]'" in message
    assert not (tmp_path / "a.run").exists()


@pytest.mark.parametrize("command", ["run", "resume"])
def test_a_size_of_workers_goes_with_workers(store, command):
    assert "--worker-memory-mb" in refusal_of(command, store, "--worker-memory-mb", 100)


@pytest.mark.dask
@pytest.mark.parametrize("address", ["local:0", "local:x", "local:99999", "host:8786"])
def test_an_address_of_no_known_form_is_refused(store, address):
    pytest.importorskip("distributed")
    assert "tcp://HOST:PORT" in refusal_of("run", store, "--dask", address)


@pytest.mark.dask
def test_no_workers_are_started_for_a_run_that_is_refused(store, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    asked = ("run", store, "--out", tmp_path / "a.run", "--iterations", 1, "--judge", "probe")
    assert CliRunner().invoke(cli, [str(x) for x in asked]).exit_code == 0

    @contextmanager
    def started(n_workers):
        raise AssertionError("workers were started")
        yield

    monkeypatch.setattr(dask_cluster, "_local_client", started)
    error = refusal_of(*asked, "--alpha", "0.25", "--dask", "local:2", kind=RunError)
    assert "alpha 0.5 (asked for: 0.25)" in error


@pytest.mark.dask
def test_a_scheduler_that_does_not_answer_is_told_of_soon(store, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "CONNECT_SECONDS", 0.1)
    with socket.socket() as taken:  # a port at which nobody listens
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        error = refusal_of("run", store, "--out", tmp_path / "b.run", "--dask", address)
    assert f"expected a Dask scheduler at {address}, found none that answers within 0.1 s" in error
    assert not (tmp_path / "b.run").exists()


@pytest.mark.dask
def test_what_dask_says_of_workers_that_take_long_to_end_is_not_shown(monkeypatch, caplog):
    distributed = pytest.importorskip("distributed")
    log = logging.getLogger("distributed.nanny")
    level = log.level

    @contextmanager
    def slow(*arguments, **options):
        yield
        log.warning("Worker process still alive after 4 seconds, killing")

    monkeypatch.setattr(distributed, "LocalCluster", slow)
    monkeypatch.setattr(distributed, "Client", slow)
    with dask_cluster._local_client(1):
        pass
    assert caplog.records == []
    log.warning("another's")
    assert [record.message for record in caplog.records] == ["another's"]
    assert log.level == level
