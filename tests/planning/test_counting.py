"""What counting lets through is said before a run."""

import numpy as np
import pytest
from command import json_of, srs_ooc
from stores import noise_table

import srs_ooc as package


def planned(tmp_path, n_pairs, *options):
    values, labels = noise_table(2 * n_pairs, 50)
    strata = np.repeat(np.arange(n_pairs), 2)
    target = np.tile([0, 1], n_pairs)
    del labels
    store = tmp_path / "t.zarr"
    package.ingest(values.T, store, target=target, strata=strata)
    return store, json_of("plan", store, "--json", *options)["counting"]


@pytest.mark.slow
def test_the_fewest_features_are_told_by_the_clusters_of_noise(tmp_path):
    store, counting = planned(tmp_path, 40)
    assert counting["families"] == 7
    assert counting["fewest"] == {"1": 2, "5": 8, "20": 29}
    assert abs(counting["log_arrangements"] - 40 * np.log(2)) < 1e-9
    assert "2, if decoys near the cut are not correlated" in srs_ooc("plan", store).stdout


@pytest.mark.slow
def test_too_few_arrangements_for_any_test_are_told(tmp_path):
    store, _ = planned(tmp_path, 7)
    said = " ".join(srs_ooc("plan", store).stdout.split())
    assert "rows trade places in 128 ways" in said
    assert "too few for any of 50 features" in said


def test_a_run_that_does_not_count_is_told_nothing_of_it(tmp_path):
    assert planned(tmp_path, 40, "--permutations", 9)[1] is None
