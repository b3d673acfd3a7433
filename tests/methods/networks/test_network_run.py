"""Networks: known ones are recovered; stopped and resumed, on any threads, the bytes are equal."""

import json
import shutil

import numpy as np
import pytest
from command import error_of, peak_kb
from command import srs_ooc as command
from genes import METHODS, N_GENES, N_REGULATORS, edges_of, expression, files_of, network
from stores import make_store

import srs_ooc
from srs_ooc.base.errors import BudgetError, RunError, StoreError, UsageError


def learning(method):
    """Options by which a known network is recovered."""
    more = {"learning_rate": 0.03, "epochs": 30} if method in ("prs", "joint") else {}
    return METHODS[method] | more


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("method", "more"),
    [
        *(("genie3", {"ensemble": e, "max_features": k})
          for e in ("forest", "extra-trees") for k in ("sqrt", "all")),
        *((method, {}) for method in ("srs", "prs", "joint")),
    ],
)  # fmt: skip
def test_a_known_network_is_recovered(folder, tmp_path, method, more):
    out = tmp_path / "edges.csv"
    done = network(folder, out, **learning(method) | more | files_of(folder))
    _, known = expression()
    found = edges_of(out)
    to_known = [edge[:2] for edge in found if edge[1] in {target for _, target in known}]
    assert done.n_edges == len(found)
    assert {*to_known[: len(known)]} == known
    assert [edge[2] for edge in found] == sorted((edge[2] for edge in found), reverse=True)
    assert all(regulator != target for regulator, target, _ in found)
    assert {regulator for regulator, _, _ in found} <= {f"f{i}" for i in range(N_REGULATORS)}
    assert {target for _, target, _ in found} <= {f"f{i}" for i in range(4, N_GENES)}


@pytest.mark.few(2)
@pytest.mark.parametrize("method", METHODS)
def test_stopped_and_resumed_the_edges_are_the_same_bytes_on_any_threads(folder, tmp_path, method):
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    options = METHODS[method] | files_of(folder)
    network(folder, whole, threads=1, **options)
    stops, reached = 0, {}
    while True:
        begun = dict(reached)

        def watch(step, begun=begun):  # until something is done
            reached[step.unit] = step.done
            return step.done <= begun.get(step.unit, 0)

        done = network(folder, parts, threads=2, watch=watch, **options)
        if done.is_done:
            break
        stops += 1
        assert not parts.exists()
    assert stops > 1
    assert done.n_epochs == (8 if method == "joint" else 0)
    assert parts.read_bytes() == whole.read_bytes()


def test_top_is_the_beginningof_all(folder, tmp_path):
    out = tmp_path / "edges.csv"
    network(folder, out)
    whole = edges_of(out)
    again = network(folder, out, top=7)  # nothing is grown again
    assert again.n_edges == 7
    assert edges_of(out) == whole[:7]


def test_another_network_is_refused_by_what_differs(folder, tmp_path):
    out = tmp_path / "edges.csv"
    network(folder, out)
    with pytest.raises(RunError, match=r"with trees 40 \(asked for: 41\)"):
        network(folder, out, trees=41)
    (tmp_path / "mine.csv").write_text("precious")
    with pytest.raises(UsageError, match="expected no file there"):
        network(folder, tmp_path / "mine.csv")
    assert (tmp_path / "mine.csv").read_text() == "precious"


def test_names_that_are_none_are_refused_by_name(folder, tmp_path):
    unknown = tmp_path / "unknown.txt"
    unknown.write_text("f1\nG77\n")
    for side in ("regulators", "targets"):
        with pytest.raises(UsageError, match=r"every line to be a feature of the store.*'G77'"):
            network(folder, tmp_path / "edges.csv", **{side: unknown})
    assert not list(tmp_path.glob("edges*"))


def test_a_regulator_that_is_the_target_again_is_said(tmp_path):
    values, _ = expression(24, 6, 150, seed=0, noise=0.3)
    values[1] = 3 * values[0] + 1  # other values, the same order
    make_store(tmp_path / "t.zarr", values, np.arange(values.shape[1]) % 2)
    notes = []
    done = network(tmp_path, tmp_path / "edges.csv", notes=notes, max_features="all")
    assert done.n_duplicates == 2
    assert {*done.duplicates} == {("f0", "f1"), ("f1", "f0")}
    assert "orders the rows exactly as it does, and 1 more such pairs" in notes[0]
    assert edges_of(tmp_path / "edges.csv")[0][:2] in done.duplicates


@pytest.mark.few(2)
@pytest.mark.parametrize("method", METHODS)
def test_constant_targets_have_no_edges_and_missing_values_are_left_out(folder, tmp_path, method):
    values, known = expression()
    values[9] = 1.0
    values[8, ::3] = np.nan
    make_store(tmp_path / "t.zarr", values, np.arange(values.shape[1]) % 2)
    (tmp_path / "targets.txt").write_text("f8\nf9\n")
    named = {"targets": tmp_path / "targets.txt", "regulators": folder / "regulators.txt"}
    done = network(tmp_path, tmp_path / "edges.csv", **learning(method) | named)
    assert done.n_constant == 1
    found = [edge[:2] for edge in edges_of(tmp_path / "edges.csv")]
    assert {*found[:2]} == {edge for edge in known if edge[1] == "f8"}
    assert all(target == "f8" for _, target in found)


@pytest.mark.parametrize("method", METHODS)
def test_the_smallest_cap_that_is_named_works(folder, tmp_path, method):
    options = METHODS[method] | files_of(folder)
    with pytest.raises(BudgetError) as refused:
        network(folder, tmp_path / "edges.csv", memory_mb=1, **options)
    cap = int(str(refused.value).rsplit("--memory-mb ", 1)[1].rstrip("."))
    assert network(folder, tmp_path / "edges.csv", memory_mb=cap, **options).is_done


def test_a_store_that_is_replaced_gives_no_edges(tmp_path):
    values, _ = expression()
    make_store(tmp_path / "t.zarr", values, np.arange(values.shape[1]) % 2)
    (tmp_path / "other").mkdir()
    make_store(tmp_path / "other" / "t.zarr", values[::-1], np.arange(values.shape[1]) % 2)

    def replace(_):
        if not (tmp_path / "gone").exists():
            (tmp_path / "t.zarr").rename(tmp_path / "gone")
            (tmp_path / "other" / "t.zarr").rename(tmp_path / "t.zarr")
        return True

    with pytest.raises(StoreError, match="it was replaced"):
        network(tmp_path, tmp_path / "edges.csv", watch=replace)
    assert not (tmp_path / "edges.csv").exists()


def test_no_weights_of_a_store_written_over_are_committed(tmp_path):
    values, _ = expression()
    store, labels = tmp_path / "t.zarr", np.arange(values.shape[1]) % 2
    make_store(store, values, labels)
    make_store(tmp_path / "other.zarr", values[::-1], labels)
    shutil.copytree(store, tmp_path / "kept.zarr")
    network(tmp_path, tmp_path / "whole.csv")
    told = []

    def replace(_):
        if len(told) == 2:
            shutil.copytree(tmp_path / "other.zarr", store, dirs_exist_ok=True)
        told.append(1)
        return len(told) < 6

    with pytest.raises(StoreError, match="it was replaced"):
        network(tmp_path, tmp_path / "edges.csv", watch=replace)
    shutil.copytree(tmp_path / "kept.zarr", store, dirs_exist_ok=True)
    network(tmp_path, tmp_path / "edges.csv")
    assert edges_of(tmp_path / "edges.csv") == edges_of(tmp_path / "whole.csv")


def test_parquet_holds_the_same_edges(folder, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    network(folder, tmp_path / "edges.csv")
    network(folder, tmp_path / "edges.parquet", run=tmp_path / "edges.csv.network")
    table = parquet.read_table(tmp_path / "edges.parquet").to_pydict()
    assert list(zip(*table.values(), strict=True)) == edges_of(tmp_path / "edges.csv")


def test_a_format_that_is_not_written_is_refused(folder, tmp_path):
    with pytest.raises(UsageError, match="expected the name of a CSV or Parquet file"):
        network(folder, tmp_path / "edges.xlsx")


@pytest.mark.slow
def test_the_command_reports_and_holds_its_cap(folder, tmp_path):
    out = tmp_path / "edges.csv"
    asked = ("network", folder / "t.zarr", "--out", out, "--with", "trees=5", "--json")
    report = json.loads(command(*asked).stdout)
    assert report["n_targets"] == report["n_done"] == N_GENES
    assert report["n_edges"] == len(edges_of(out))
    cap = int(error_of(*asked, "--memory-mb", 9).rsplit("--memory-mb ", 1)[1].rstrip("."))
    assert peak_kb(*asked, "--memory-mb", cap) * 1024 <= cap * 10**6
    assert "is a network" in error_of("features", f"{out}.network")


def test_the_call_writes_what_the_command_writes(folder, tmp_path):
    names = [f"f{i}" for i in range(N_REGULATORS)]
    seen = []
    done = srs_ooc.network(
        folder / "t.zarr",
        tmp_path / "a.csv",
        regulators=names,
        k="all",
        trees=7,
        progress=seen.append,
    )
    command("network", folder / "t.zarr", "--out", tmp_path / "b.csv", "--k", "all",
     "--with", "trees=7",
            "--regulators", folder / "regulators.txt")  # fmt: skip
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert done.n_edges == len(edges_of(tmp_path / "a.csv"))
    assert seen[-1].done == seen[-1].total == N_GENES
    with pytest.raises(UsageError, match="tree: expected options of a network"):
        srs_ooc.network(folder / "t.zarr", tmp_path / "c.csv", tree=7)


@pytest.mark.slow
def test_a_table_without_a_target_gives_a_network_and_no_run(tmp_path):
    values, known = expression()
    lines = [",".join(f"f{i}" for i in range(N_GENES))]
    lines += [",".join(map(str, row)) for row in values.T.tolist()]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    said = command("ingest", tmp_path / "t.csv", tmp_path / "t.zarr", "--no-target").stdout
    assert f"{values.shape[1]} rows x {N_GENES} features" in said
    assert "target: none" in said
    regulators = tmp_path / "regulators.txt"
    regulators.write_text("".join(f"f{i}\n" for i in range(N_REGULATORS)))
    network(tmp_path, tmp_path / "edges.csv", regulators=regulators)
    found = [edge[:2] for edge in edges_of(tmp_path / "edges.csv")]
    assert {*found[: len(known)]} == known
    assert "ingested with --no-target" in error_of("run", tmp_path / "t.zarr")
    folder = tmp_path / "edges.csv.network"
    for words in (("report", folder), ("sensitivity", folder), ("predict", folder, "t.csv", "p")):
        assert "found that it is a network" in error_of(*words), words
    assert "range" not in command("inspect", tmp_path / "t.zarr").stdout
    with pytest.raises(UsageError, match=r"^regulators: expected every line.*first: 'G9'"):
        srs_ooc.network(tmp_path / "t.zarr", tmp_path / "c.csv", regulators=["G9"])
    assert "--k: expected all, sqrt" in error_of(
        "network", tmp_path / "t.zarr", "--out", tmp_path / "c.csv", "--k", "foo"
    )
    srs_ooc.ingest(values.T, tmp_path / "a.zarr", no_target=True)
    assert srs_ooc.open_store(tmp_path / "a.zarr").n_features == N_GENES
    with pytest.raises(UsageError, match="no target named"):
        srs_ooc.ingest(values.T, tmp_path / "b.zarr", no_target=True, target=values[0])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "srs", "ensemble": "forest"}, "ensemble: an option of --method genie3"),
        ({"method": "genie3", "joint": 0.1}, "joint: an option of --method prs"),
        ({"method": "prs", "trees": 3}, "trees: an option of --method genie3 or srs"),
        ({"method": "prs", "joint": -1}, "joint: expected a number from 0"),
        ({"method": "prs", "validation_share": 0}, "validation_share: expected a number above 0"),
        ({"method": "srs", "subspace_size": 99}, "--subspace-size: expected at most 6"),
        ({"method": "prs", "folds": 90}, "folds: expected at least two rows"),
    ],
)
def test_options_that_do_not_go_together_are_refused_by_name(folder, tmp_path, options, said):
    with pytest.raises(UsageError, match=said):
        network(folder, tmp_path / "edges.csv", **options | files_of(folder))


def test_another_method_is_another_network(folder, tmp_path):
    network(folder, tmp_path / "edges.csv", **METHODS["srs"] | {"trees": 3})
    with pytest.raises(RunError, match=r"method srs \(asked for: prs\)"):
        network(folder, tmp_path / "edges.csv", **METHODS["prs"])
