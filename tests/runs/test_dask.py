"""Runs whose trees are grown on Dask workers have the bits of one core."""

import logging
import time
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import book
import numpy as np
import pytest
from run_cases import CASES, pin_of_run, results_of
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import BudgetError, RunError, StoreError, UsageError
from srs_ooc.base.records import Iteration, Subspace
from srs_ooc.runs import dask_cluster
from srs_ooc.runs.batches import BatchExecutor
from srs_ooc.runs.dask_cluster import DaskCluster, DaskLine
from srs_ooc.runs.jobs import PREPARED, Batch, WorkerStore
from srs_ooc.runs.resources import GrowJob, pack
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.store.store import Store
from srs_ooc.testing import check_executor, fit_by_hash

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.dask
QUIET = {
    "processes": False,
    "dashboard_address": "127.0.0.1:0",
    "worker_dashboard_address": "127.0.0.1:0",
    "scheduler_kwargs": {"dashboard": False},
}
PINS = book.read()["runs"]
NOWHERE = WorkerStore("", "", 100)


@pytest.fixture(scope="module")
def scheduler():
    """The address of two workers of two threads in this process."""
    with distributed.LocalCluster(n_workers=2, threads_per_worker=2, **QUIET) as cluster:
        yield cluster.scheduler_address


FEW = [
    "probe, round size 4",
    "trees, bootstrap",
    "trees, missing and categories",
    "decoy, excluded features and some rows",
]
"""Cases that are run each time; all others are slow, since so small runs are not worth it."""


def cases():
    return [pytest.param(n, marks=[] if n in FEW else [pytest.mark.campaign]) for n in CASES]


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_a_run_on_workers_has_the_results_that_are_pinned(name, tmp_path, scheduler):
    found = pin_of_run(name, tmp_path, more=("--dask", scheduler))
    assert found["status"].pop("cluster")["threads"] == 4
    assert found == PINS[name]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("dask") / "t.zarr", *noise_table(60, 300))


@pytest.fixture(scope="module")
def client(scheduler):
    with distributed.Client(scheduler, set_as_default=False) as client:
        yield client


def results(run, store):
    found = results_of(run.run, store)
    del found["status"]
    return found


METHODS = {
    "prs": {
        "method": "prs", "models": 6, "folds": 2, "epochs": 2, "inclusion": 0.1,
        "learning_rate": 0.01, "iterations": 10**6, "save_trees": True,
    },
    "less": {"method": "less", "iterations": 60, "q": 20, "judge": "probe"},
    "rows": {"judge": "probe", "iterations": 200, "q": 20, "rows": [str(i) for i in range(5, 55)]},
}  # fmt: skip


@pytest.mark.few(1)
@pytest.mark.parametrize("name", METHODS)
def test_methods_that_split_rows_or_score_columns_have_the_bits_of_one_core(
    name, store, tmp_path, client
):
    options = METHODS[name] | {"memory_mb": 4000}
    one = srs_ooc.run(store, out=tmp_path / "one", threads=1, **options)
    many = srs_ooc.run(store, out=tmp_path / "many", client=client, **options)
    assert results(many, store) == results(one, store)
    if "save_trees" in options:
        trees = [(run.run / "trees.bin").read_bytes() for run in (one, many)]
        assert trees[0] == trees[1]


@pytest.mark.slow
def test_a_run_goes_on_elsewhere_and_back_and_elsewhere_again(store, tmp_path, client):
    options = {"judge": "probe", "probe_min_draws": 2, "probe_min_wins": 0.6, "q": 20}
    options |= {"memory_mb": 4000, "save_trees": True}
    whole = srs_ooc.run(store, out=tmp_path / "whole", iterations=400, threads=1, **options)
    run = srs_ooc.run(store, out=tmp_path / "run", iterations=90, client=client, **options)
    srs_ooc.resume(run, iterations=210, threads=2, memory_mb=4000)
    srs_ooc.resume(run, iterations=400, client=client, memory_mb=4000)
    assert results(run, store) == results(whole, store)


def test_a_job_too_large_for_every_batch_is_handed_to_each_worker_once(
    store, tmp_path, client, monkeypatch
):
    monkeypatch.setattr(dask_cluster, "LARGE_JOB_NBYTES", 0)
    options = {"judge": "probe", "iterations": 150, "q": 20, "memory_mb": 4000}
    one = srs_ooc.run(store, out=tmp_path / "one", threads=1, **options)
    many = srs_ooc.run(store, out=tmp_path / "many", client=client, **options)
    assert results(many, store) == results(one, store)


JOB = GrowJob(NOWHERE, {}, None, np.zeros(3))


def by_hash(version, job, batch):
    return Batch(batch.done(lambda _, iteration: pack(fit_by_hash(iteration))).parts, 0.01)


def test_the_executor_keeps_to_the_contract(client):
    check_executor(lambda _: BatchExecutor(DaskLine(client, JOB, by_hash), 5))


def test_tasks_are_named_by_their_iterations(store, tmp_path, client, monkeypatch):
    keys, submit = [], client.submit

    def noted(*arguments, key, **named):
        keys.append(key)
        return submit(*arguments, key=key, **named)

    monkeypatch.setattr(client, "submit", noted)
    options = {"judge": "probe", "iterations": 30, "q": 20, "memory_mb": 4000}
    srs_ooc.run(store, out=tmp_path / "run", client=client, **options)
    assert all(key.startswith("srs_ooc_grow-") for key in keys)
    assert {int(key.split("-")[2]) for key in keys} >= {29}


class Elsewhere(DaskCluster):
    """Workers that find something else at the place of the store."""

    def __init__(self, client, place, memory_mb=500):
        super().__init__(client, memory_mb)
        self.place = place

    def executor(self, job, n_columns):
        there = replace(job.store, place=str(self.place))
        return super().executor(replace(job, store=there), n_columns)


def work(store, run, cluster):
    opened = Store.open(store)
    request = Request(Options(judge="probe"), iterations=30, memory_mb=4000, cluster=cluster)
    with closing(open_or_create(opened, run, request)) as ledger:
        work_on(ledger, opened, request)


def test_a_worker_without_the_store_or_with_another_is_one_clear_error(store, tmp_path, client):
    other = make_store(tmp_path / "other.zarr", *noise_table(60, 300, seed=1))
    run = tmp_path / "a.run"
    with pytest.raises(StoreError, match=r"worker on .*nowhere"):
        work(store, run, Elsewhere(client, tmp_path / "nowhere"))
    with pytest.raises(StoreError, match=r"worker on .*expected the store with fingerprint"):
        work(store, run, Elsewhere(client, other))
    work(store, run, DaskCluster(client, 500))  # the run is as it was, and goes on
    assert srs_ooc.open_run(run).n_iterations == 30


def test_a_worker_of_another_version_is_one_clear_error(store, tmp_path, client, monkeypatch):
    monkeypatch.setattr(dask_cluster, "__version__", "0.0.7")
    with pytest.raises(RunError, match=r"worker on .*expected srs-ooc 0\.0\.7"):
        work(store, tmp_path / "a.run", DaskCluster(client, 500))


def test_workers_too_small_for_a_block_are_refused_with_the_size_that_would_do(
    store, tmp_path, client
):
    with pytest.raises(BudgetError, match=r"--worker-memory-mb \d+"):
        work(store, tmp_path / "a.run", DaskCluster(client, 20))


def fails(version, job, batch):
    raise ValueError("no such thing")


def test_a_task_that_fails_for_a_reason_of_its_own_says_where_to_look(client):
    executor = BatchExecutor(DaskLine(client, JOB, fails), 5)
    with pytest.raises(RunError, match=r"no such thing.*logs of the workers"):
        executor.submit(Iteration(0, Subspace(np.zeros(1, np.uint32)), 0)).result()


def test_a_time_limit_that_ends_as_a_result_is_fetched_loses_nothing(client, monkeypatch):
    """Dask's event loop is busy a few of its turns after it hears of a result."""
    monkeypatch.setattr(dask_cluster, "LOOK_SECONDS", 0.05)
    handlers, turns = client._stream_handlers, iter(range(10))

    def stall(n_turns):
        if n_turns:
            client.loop.add_callback(stall, n_turns - 1)
        else:
            time.sleep(0.08)

    def hear(heard=handlers["key-in-memory"], **message):
        heard(**message)
        stall(next(turns))

    monkeypatch.setitem(handlers, "key-in-memory", hear)
    line = DaskLine(client, JOB, lambda *_: Batch({0: 1}, 0.01))
    for number in range(10):
        assert line.send(Batch({number: None})).result().parts == {0: 1}


def test_workers_that_die_again_and_again_are_one_clear_error():
    class KilledWorker(Exception):
        """As Dask's, which only its scheduler makes."""

    error = dask_cluster.failed(KilledWorker("on 4 different workers,\n but all died"))
    assert isinstance(error, RunError)
    assert "on 4 different workers, but all died" in str(error)
    assert "--worker-memory-mb" in str(error)


def test_without_workers_it_waits_and_then_says_so(monkeypatch):
    monkeypatch.setattr(dask_cluster, "WAIT_SECONDS", 0.2)
    monkeypatch.setattr(dask_cluster, "LOOK_SECONDS", 0.1)
    with (
        distributed.LocalCluster(n_workers=0, **QUIET) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        executor = BatchExecutor(DaskLine(client, JOB, by_hash), 5)
        with pytest.raises(RunError, match="expected workers, found none"):
            executor.submit(Iteration(0, Subspace(np.zeros(1, np.uint32)), 0)).result()


@pytest.mark.parametrize(("status", "is_said"), [("connecting", False), ("running", True)])
def test_dask_says_nothing_of_a_scheduler_that_is_gone_beside_our_message(caplog, status, is_said):
    log = logging.getLogger("distributed.client")
    level = log.level
    with dask_cluster.quiet(SimpleNamespace(status=status)):
        log.error("Traceback of a connection refused")
    assert ("refused" in caplog.text) == is_said
    assert log.level == level


def test_a_scheduler_that_is_gone_is_told_of_without_a_task(store):
    class Gone:
        status = "running"

        def submit(self, *_, key, **__):
            raise CancelledError(key)

    line = DaskLine(Gone(), JOB)
    with pytest.raises(RunError, match="expected a scheduler that answers") as refused:
        line.send(Batch({0: None}))
    assert "srs_ooc_grow" not in str(refused.value)


def test_what_is_no_client_is_refused(store, tmp_path):
    with pytest.raises(UsageError, match=r"client: expected a distributed\.Client"):
        srs_ooc.run(store, out=tmp_path / "a.run", client="tcp://127.0.0.1:1")


def test_workers_let_go_of_what_they_prepared_once_a_run_is_over(store, tmp_path, client):
    options = {"judge": "probe", "iterations": 30, "q": 20, "memory_mb": 4000}
    srs_ooc.run(store, out=tmp_path / "run", client=client, **options)
    for _ in range(1000):
        if not PREPARED._jobs:
            break
        time.sleep(0.01)
    assert not PREPARED._jobs
