"""Theorem I.1 of RFEST: what it promises, where it holds, and what refutes it as printed."""

import numpy as np
import pytest
import rfest_theory as simulation
from rfest_theory import margin, sample_size

FLOOR = dict(zip([c.name for c in simulation.CONCEPTS], simulation.CONCEPTS, strict=True))


def test_the_sample_is_that_of_the_supplement():
    assert sample_size(10**6, 0.05, 0.2 + 2 * 0.1, 1, 0.1) == 841
    assert FLOOR["clique of 3"].min_influence() == 1
    assert FLOOR["consensus of 4"].min_influence() == 0.25  # 1 / 2^(k - 2), as the supplement says
    assert FLOOR["clique of 3, P(1) = 3/4"].rho == 3


def test_as_printed_it_is_refuted_by_the_supplement_s_own_last_example():
    """Consensus of 3 bits, and a classifier that always says no: 2 rho eps = I_min, and R = 0."""
    concept = FLOOR["consensus of 3"]
    bits, hidden, chances = concept.cells()
    error = float(chances[concept.label(bits, hidden) == 1].sum())
    assert 2 * concept.rho * error == concept.min_influence()  # what is printed allows it
    assert margin(concept.min_influence(), concept.rho, error) == 0
    with pytest.raises(ValueError, match=r"below I_min / \(2 rho\) = 0.25, found 0.25"):
        sample_size(10, 0.05, concept.min_influence(), concept.rho, error)
    # Altering anything changes nothing that it says: relevant features have R(j) = 0, as others.


def test_the_probabilities_of_the_proof_are_reached_by_a_clique():
    """By enumeration: of a parity of fair bits 1 - eps of relevant ones and eps of others."""
    rng = np.random.default_rng(0)
    cells = np.array([[(i >> j) & 1 for j in range(6)] for i in range(64)])
    truth = cells[:, :3].sum(axis=1) % 2
    said = truth ^ (rng.permutation(64) < 12)  # wrong at 12 of 64 assignments
    for j in range(6):
        other = np.arange(64) ^ (1 << j)
        assert np.mean(said[other] != truth) == ((64 - 12) / 64 if j < 3 else 12 / 64)


@pytest.mark.parametrize("name", ["clique of 2", "clique of 3, P(1) = 3/4", "consensus of 3"])
def test_samples_of_that_size_miss_in_no_more_than_delta(name):
    concept, rng = FLOOR[name], np.random.default_rng(0)
    influence, rho = concept.min_influence(), concept.rho
    error = 0.3 * influence / rho
    t = sample_size(simulation.N_FEATURES, simulation.DELTA, influence, rho, error)
    chances = influence - rho * error, rho * error, concept.n_relevant
    assert simulation.missed(rng, *chances, t, 2000) <= simulation.DELTA
    assert simulation.missed(rng, *chances, t // 30, 2000) > simulation.DELTA


def test_no_chain_meets_the_hypothesis():
    """The target of a chain is noisy: the best classifier errs as often as is allowed, or more."""
    for concept in simulation.GROWN:
        if concept.name.startswith("chain"):
            tau = margin(concept.min_influence(), concept.rho, concept.least_error())
            assert tau <= 0


def test_the_engine_s_trees_tell_a_clique_apart(tmp_path):
    found = simulation.grown(FLOOR["clique of 2"], tmp_path, 0, 8)
    assert found["holds"] == found["accuracy_lost"] == found["score"] == 1
