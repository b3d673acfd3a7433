"""Runs whose trees are grown on Dask workers have the bits of one core."""

import book
import pytest
from run_cases import pin_of_run

distributed = pytest.importorskip("distributed")
PINS = book.read()["runs"]


@pytest.fixture(scope="module")
def scheduler():
    """The address of two workers of two threads in this process."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize(
    "name",
    [
        "positive",
        "probe, round size 4",
        "probe, 3 trees on each subspace",
        "probe, uint16 codes",
        "probe, thresholds between values",
        "trees, bootstrap",
        "trees, missing and categories",
        "decoy, 3 families",
        "decoy, until stable",
        "decoy, strata",
        "decoy, regression",
        "decoy, excluded features and some rows",
        "9 replays",
    ],
)
def test_a_run_on_workers_has_the_results_that_are_pinned(name, tmp_path, scheduler):
    assert pin_of_run(name, tmp_path, more=("--dask", scheduler)) == PINS[name]
