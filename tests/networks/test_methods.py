"""Networks by random subspaces and by learnt probabilities, each target by itself or jointly."""

import csv

import numpy as np
import pytest
import stores
from stores import make_store, write_genes

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import BudgetError, RunError, UsageError
from srs_ooc.networks.network_run import work_on_network
from srs_ooc.networks.network_task import NetworkRequest, settle_network
from srs_ooc.networks.prs_edges import JointDescent
from srs_ooc.store.store import Store

N_GENES, N_REGULATORS = 12, 6
SMALL = {
    "srs": {"method": "srs", "trees": 120, "subspace_size": 4},
    "prs": {"method": "prs", "models": 12, "folds": 3, "epochs": 8, "inclusion": 0.3},
    "joint": {"method": "prs", "models": 12, "folds": 3, "epochs": 8, "inclusion": 0.3,
              "joint": 0.001},
}  # fmt: skip
FAST = {"learning_rate": 0.03}


def expression(n_rows=80):
    return stores.expression(N_GENES, N_REGULATORS, n_rows, seed=1, noise=0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a store of genes and files of the names of regulators and targets."""
    return write_genes(tmp_path_factory.mktemp("network"), expression()[0], N_REGULATORS, 4)


def network(folder, out, *, watch=lambda _: True, notes=None, **options):
    kinds = {"top", "threads", "memory_mb", "regulators", "targets", "rows", "run"}
    asked = {name: options.pop(name) for name in kinds & set(options)}
    files = {name: folder / f"{name}.txt" for name in ("regulators", "targets")}
    note = (lambda _: None) if notes is None else notes.append
    request = NetworkRequest(out, settle_network(options), **files | asked)
    return work_on_network(Store.open(folder / "t.zarr"), request, watch, note)


def rows_of(file):
    with file.open(newline="") as stream:
        return [(r["regulator"], r["target"], float(r["weight"])) for r in csv.DictReader(stream)]


@pytest.mark.few(2)
@pytest.mark.parametrize("method", SMALL)
def test_a_known_network_is_recovered(folder, tmp_path, method):
    out = tmp_path / "edges.csv"
    options = SMALL[method] | ({} if method == "srs" else FAST | {"epochs": 30})
    network(folder, out, **options)
    _, known = expression()
    found = rows_of(out)
    to_known = [edge[:2] for edge in found if edge[1] in {target for _, target in known}]
    assert {*to_known[: len(known)]} == known
    assert all(regulator != target for regulator, target, _ in found)
    assert [edge[2] for edge in found] == sorted((edge[2] for edge in found), reverse=True)


@pytest.mark.few(1)
@pytest.mark.parametrize("method", SMALL)
def test_stopped_and_resumed_the_edges_are_the_same_bytes_on_any_threads(folder, tmp_path, method):
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    network(folder, whole, threads=1, **SMALL[method])
    stops = 0
    while True:
        left = 3  # steps

        def watch(_):
            nonlocal left
            left -= 1
            return left > 0

        done = network(folder, parts, threads=2, watch=watch, **SMALL[method])
        if done.is_done:
            break
        stops += 1
        assert not parts.exists()
    assert stops > 1
    assert done.n_epochs == (8 if method == "joint" else 0)
    assert parts.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("method", SMALL)
def test_the_smallest_cap_that_is_named_works(folder, tmp_path, method):
    with pytest.raises(BudgetError) as refused:
        network(folder, tmp_path / "edges.csv", memory_mb=1, **SMALL[method])
    cap = int(str(refused.value).rsplit("--memory-mb ", 1)[1].rstrip("."))
    assert network(folder, tmp_path / "edges.csv", memory_mb=cap, **SMALL[method]).is_done


@growth_counted()  # the tests before have made the process larger than the cap
def joint_refused(*given, **options):
    with pytest.raises(BudgetError) as refused:
        network(*given, memory_mb=130, **options)
    return str(refused.value), int(str(refused.value).rsplit("--memory-mb ", 1)[1].rstrip("."))


def test_the_joint_state_is_counted_and_refused_with_its_number(folder, tmp_path):
    options = SMALL["joint"] | {"models": 100_000}
    text, cap = joint_refused(folder, tmp_path / "edges.csv", **options)
    assert "6 regulators for 8 targets together" in text
    _, alone = joint_refused(folder, tmp_path / "edges.csv", **options | {"joint": 0})
    assert cap > 2 * alone


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "srs", "ensemble": "forest"}, "--ensemble: an option of --method genie3"),
        ({"method": "genie3", "joint": 0.1}, "--joint: an option of --method prs"),
        ({"method": "prs", "trees": 3}, "--trees: an option of --method genie3 or srs"),
        ({"method": "prs", "joint": -1}, "--joint: expected a number from 0"),
        ({"method": "prs", "validation_share": 0}, "--validation-share: expected a number above 0"),
        ({"method": "srs", "subspace_size": 99}, "--subspace-size: expected at most 6"),
        ({"method": "prs", "folds": 90}, "--folds: expected at least two rows"),
    ],
)
def test_options_that_do_not_go_together_are_refused_by_name(folder, tmp_path, options, said):
    with pytest.raises(UsageError, match=said):
        network(folder, tmp_path / "edges.csv", **options)


def test_another_method_is_another_network(folder, tmp_path):
    network(folder, tmp_path / "edges.csv", **SMALL["srs"] | {"trees": 3})
    with pytest.raises(RunError, match=r"method srs \(asked for: prs\)"):
        network(folder, tmp_path / "edges.csv", **SMALL["prs"])


def test_what_all_targets_keep_is_said_before_the_work(folder, tmp_path):
    notes = []
    network(folder, tmp_path / "edges.csv", notes=notes, **SMALL["joint"] | {"epochs": 1})
    assert "for what all targets keep" in notes[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("method", SMALL)
def test_rows_without_the_target_are_left_out(tmp_path, method):
    values, known = expression()
    values[8, ::3] = np.nan
    values[9] = 1.0
    make_store(tmp_path / "t.zarr", values, np.arange(values.shape[1]) % 2)
    (tmp_path / "regulators.txt").write_text("".join(f"f{i}\n" for i in range(N_REGULATORS)))
    (tmp_path / "targets.txt").write_text("f8\nf9\n")
    options = SMALL[method] | ({} if method == "srs" else FAST | {"epochs": 30})
    done = network(tmp_path, tmp_path / "edges.csv", **options)
    assert done.n_constant == 1
    found = [edge[:2] for edge in rows_of(tmp_path / "edges.csv")]
    assert {*found[:2]} == {edge for edge in known if edge[1] == "f8"}
    assert all(target == "f8" for _, target in found)


class Fixed:
    """A target whose probabilities stay; it remembers the penalties it was given."""

    begins_epoch = False

    def __init__(self, places, beta):
        self.places, self.beta, self.given = np.array(places), np.array(beta), None

    def penalise(self, slopes):
        self.given = slopes

    def step(self):
        return True


def test_the_joint_penalty_has_the_slope_of_equation_21():
    targets = [Fixed([0, 1], [0.3, 0.4]), Fixed([1, 2], [0.2, 0.0])]
    strength = 0.7

    def penalty(first, second):
        rows = np.zeros((3, 2))
        rows[targets[0].places, 0], rows[targets[1].places, 1] = first, second
        return strength * np.sqrt((rows * rows).sum(1)).sum()

    params = settle_network({"method": "prs", "joint": strength, "epochs": 5})
    JointDescent(params, dict(enumerate(targets)), 3).step()
    start, small = [target.beta for target in targets], 1e-6
    for g, target in enumerate(targets):
        for j in range(2):
            if target.beta[j] == 0:
                assert target.given[j] == 0  # the least of its subgradients
                continue
            higher, lower = ([beta.copy() for beta in start] for _ in range(2))
            higher[g][j] += small
            lower[g][j] -= small
            slope = (penalty(*higher) - penalty(*lower)) / (2 * small)
            assert target.given[j] == pytest.approx(2 * slope, rel=1e-6)  # times 2 targets


def test_probabilities_depend_on_values_unless_thresholds_are_between_ranks(tmp_path):
    """Regulators that are not targets are stretched: ranks stay, what is midway does not."""
    values = expression(40)[0]
    stretched = values.copy()
    stretched[:N_REGULATORS] = np.exp(3 * values[:N_REGULATORS])
    found = {}
    for name, table in (("as they are", values), ("stretched", stretched)):
        (tmp_path / name).mkdir()
        place = write_genes(tmp_path / name, table, N_REGULATORS, N_GENES - 1)
        for thresholds in ("rank", "value"):
            out = tmp_path / f"{name}-{thresholds}.csv"
            network(place, out, **SMALL["prs"] | FAST, thresholds=thresholds)
            found[name, thresholds] = rows_of(out)
    assert found["as they are", "rank"] == found["stretched", "rank"]
    assert found["as they are", "value"] != found["stretched", "value"]
    network(place, tmp_path / "again.csv", **SMALL["prs"] | FAST)
    assert rows_of(tmp_path / "again.csv") == found["stretched", "value"]
