"""Learnt probabilities: all targets under one penalty, and what they depend on."""

import numpy as np
import pytest
from genes import (
    METHODS,
    N_GENES,
    N_REGULATORS,
    edges_of,
    expression,
    files_of,
    network,
    write_genes,
)

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import BudgetError
from srs_ooc.methods.networks.network_run import settle_network
from srs_ooc.methods.networks.prs_edges import JointDescent, ProbabilityParams
from srs_ooc.methods.prs.prs import Standing


@growth_counted()  # the tests before have made the process larger than the cap
def joint_refused(folder, out, **options):
    with pytest.raises(BudgetError) as refused:
        network(folder, out, memory_mb=130, **options, **files_of(folder))
    return str(refused.value), int(str(refused.value).rsplit("--memory-mb ", 1)[1].rstrip("."))


def test_the_joint_state_is_counted_and_refused_with_its_number(folder, tmp_path):
    options = METHODS["joint"] | {"models": 100_000}
    text, cap = joint_refused(folder, tmp_path / "edges.csv", **options)
    assert "6 regulators for 8 targets together" in text
    _, alone = joint_refused(folder, tmp_path / "edges.csv", **options | {"joint": 0})
    assert cap > 2 * alone


def test_what_all_targets_keep_is_said_before_the_work(folder, tmp_path):
    notes = []
    options = METHODS["joint"] | files_of(folder) | {"epochs": 1}
    network(folder, tmp_path / "edges.csv", notes=notes, **options)
    assert "for what all targets keep" in notes[0]


class Fixed:
    """A target whose probabilities stay; it keeps the penalty it was given."""

    at, sparsity, penalty = Standing(fold=1), 0.0, None

    def __init__(self, places, beta):
        self.places, self.beta = np.array(places), np.array(beta)

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
                assert target.penalty[j] == 0  # the least of its subgradients
                continue
            higher, lower = ([beta.copy() for beta in start] for _ in range(2))
            higher[g][j] += small
            lower[g][j] -= small
            slope = (penalty(*higher) - penalty(*lower)) / (2 * small)
            assert target.penalty[j] == pytest.approx(2 * slope, rel=1e-6)  # times 2 targets


def test_joint_steps_are_taken_by_one_thread():
    measured = 2, 0.001, 0.01, 0.5
    options = {"method": "prs", "models": 10, "folds": 3, "epochs": 5}
    alone = ProbabilityParams.settle(options, None)
    joint = ProbabilityParams.settle(options | {"joint": 0.1}, None)
    growing = (1 + 0.5 * 4) * 3 * 10 * 0.001
    stepping = 5 * 3 * 0.01
    assert alone.seconds(8, *measured) == pytest.approx(4 * (growing + stepping))
    assert joint.seconds(8, *measured) == pytest.approx(4 * growing + 8 * stepping)


def test_probabilities_depend_on_values_unless_thresholds_are_between_ranks(tmp_path):
    """Regulators that are not targets are stretched: ranks stay, what is midway does not."""
    values, _ = expression(n_rows=40)
    options = METHODS["prs"] | {"learning_rate": 0.03}
    stretched = values.copy()
    stretched[:N_REGULATORS] = np.exp(3 * values[:N_REGULATORS])
    found = {}
    for name, table in (("as they are", values), ("stretched", stretched)):
        (tmp_path / name).mkdir()
        place = write_genes(tmp_path / name, table, N_REGULATORS, N_GENES - 1)
        for thresholds in ("rank", "value"):
            out = tmp_path / f"{name}-{thresholds}.csv"
            network(place, out, **options, **files_of(place), thresholds=thresholds)
            found[name, thresholds] = edges_of(out)
    assert found["as they are", "rank"] == found["stretched", "rank"]
    assert found["as they are", "value"] != found["stretched", "value"]
    network(place, tmp_path / "again.csv", **options, **files_of(place))
    assert edges_of(tmp_path / "again.csv") == found["stretched", "value"]
