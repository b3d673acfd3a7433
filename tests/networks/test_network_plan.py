"""Plans of networks: memory by the network's own leases, time by a few of its own targets."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command import error_of
from command import srs_ooc as command
from genes import METHODS, N_GENES, files_of
from hypothesis import given
from hypothesis import strategies as st
from stores import make_store

import srs_ooc
from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import BudgetError, UsageError
from srs_ooc.networks import network_run as planning
from srs_ooc.networks.network_run import NetworkRequest, settle_network, work_on_network
from srs_ooc.networks.weighing import FEW_TREES, of_all
from srs_ooc.store.store import Store

PAGE = Path(__file__).parents[2] / "docs" / "methods" / "networks.md"
EXAMPLE = re.compile(r"^    \$ srs-ooc network (.*)\n((?:    .+\n)+)", re.MULTILINE)


@pytest.fixture(autouse=True)
def short_trial(monkeypatch):
    monkeypatch.setattr(planning, "TRIAL_SECONDS", 0.01)


def test_every_method_is_among_those_planned_here():
    assert {settle_network(options).method for options in METHODS.values()} == {*planning.METHODS}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_plan_that_accounts_for_every_byte(folder, tmp_path, name):
    files = files_of(folder)
    plan = srs_ooc.plan_network(folder / "t.zarr", memory_mb=500, **files, **METHODS[name])
    assert sum(lease["mb"] for lease in plan["leases"]) + plan["free_mb"] == pytest.approx(500)
    assert (plan["n_regulators"], plan["n_targets"], plan["n_rows"]) == (6, 8, 80)
    assert plan["n_edges_at_most"] == 6 * 8 - 2  # two regulators are targets as well
    assert plan["total_seconds"] >= plan["targets_seconds"] > 0
    assert plan["disk_mb"] >= 8 * 6 * 8 / 1e6
    cap = plan["smallest_memory_mb"]
    with pytest.raises(BudgetError, match=rf"memory_mb={cap}\.$"):
        srs_ooc.plan_network(folder / "t.zarr", memory_mb=1, **files, **METHODS[name])
    out = tmp_path / "edges.csv"
    done = srs_ooc.network(folder / "t.zarr", out, memory_mb=cap, **files, **METHODS[name])
    assert done.is_done


@pytest.mark.slow
def test_a_plan_writes_nothing_and_is_the_command_s(folder, tmp_path):
    command("ingest", write_table(tmp_path), tmp_path / "t.zarr", "--no-target")
    before = sorted(tmp_path.iterdir())
    asked = "network", tmp_path / "t.zarr", "--trees", 3, "--plan"
    said = json.loads(command(*asked, "--json").stdout)
    with growth_counted():
        plan = srs_ooc.plan_network(tmp_path / "t.zarr", trees=3)
    assert said.keys() == plan.keys()
    timed = {"total_seconds", "targets_seconds", "measured"}
    same = set(plan) - timed - {"leases", "free_mb", "smallest_memory_mb", "notes"}
    assert {name: said[name] for name in same} == {name: plan[name] for name in same}
    assert sorted(tmp_path.iterdir()) == before
    assert "--out: expected the name of the file of edges" in error_of(*asked[:-1])
    assert "found --method genie3" in error_of(*asked, "--joint", "0.1")


def write_table(folder):
    lines = ["a,b,c", *(f"{i},{i * i % 7},{i % 3}" for i in range(12))]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    return folder / "t.csv"


def test_workers_elsewhere_are_refused_by_name(folder):
    request = NetworkRequest(planning.PLANNED_OUT, settle_network({}), cluster=object())
    with pytest.raises(UsageError, match="--dask: expected a plan for this machine"):
        planning.plan_of_network(Store.open(folder / "t.zarr"), request)


@pytest.mark.parametrize("name", METHODS)
def test_a_network_says_what_it_will_take_before_it_begins(folder, tmp_path, name):
    params = settle_network(METHODS[name])
    request = NetworkRequest(tmp_path / "edges.csv", params)
    notes, begun = [], []

    def watch(step):
        begun.append(len(notes))
        return True

    work_on_network(Store.open(folder / "t.zarr"), request, watch, notes.append, 0.01)
    assert f"for {N_GENES} targets on" in notes[-1]
    assert "an ESTIMATE (measured: " in notes[-1]
    assert begun[0] == len(notes)


def test_targets_whose_values_do_not_differ_take_no_time(tmp_path):
    values = np.ones((3, 20))
    values[0] = np.arange(20)
    make_store(tmp_path / "t.zarr", values, np.arange(20) % 2)
    plan = srs_ooc.plan_network(tmp_path / "t.zarr", trees=3, targets=["f1", "f2"])
    assert (plan["n_constant"], plan["n_edges_at_most"], plan["targets_seconds"]) == (2, 0, 0)


@given(
    st.floats(0, 1),
    st.floats(1e-6, 1),
    st.integers(FEW_TREES, 1000),
    st.integers(1, 10**6),
)
def test_a_cost_of_so_much_and_so_much_a_tree_is_extrapolated_exactly(own, tree, n_trees, more):
    most = n_trees + more
    found = of_all(own + tree, own + n_trees * tree, n_trees, most)
    assert found == pytest.approx(own + most * tree)


@given(own=st.floats(0, 1), tree=st.floats(1e-6, 1), n_trees=st.integers(1, FEW_TREES - 1))
def test_few_trees_never_promise_less_than_all_take(own, tree, n_trees):
    found = of_all(own + tree, own + n_trees * tree, n_trees, 1000)
    assert found >= (own + 1000 * tree) * (1 - 1e-9)


@pytest.mark.slow
def test_the_plan_on_the_page_is_the_program_s(tmp_path, monkeypatch):
    ((words, shown),) = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    srs_ooc.synth("noise", "genes.zarr", rows=100, features=300)
    said = command("network", *words.split()).stdout.splitlines()
    page = [line.removeprefix("    ") for line in shown.splitlines()]
    number = re.compile(r"\d[\d,.]*")
    timed = re.compile(r"time:| .*(for the targets|for the edges)")
    told, expected = ([x for x in some if not timed.match(x)] for some in (said, page))
    assert [number.sub("#", x).split() for x in told] == [
        number.sub("#", x).split() for x in expected
    ]
    numbers = [
        [float(n.rstrip(".,").replace(",", "")) for x in some for n in number.findall(x)]
        for some in (told, expected)
    ]
    # Published allowances of memory may move a little without the page being wrong.
    assert numbers[0] == pytest.approx(numbers[1], rel=0.1, abs=1.0)
