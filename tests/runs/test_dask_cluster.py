"""Work on Dask workers has the bits of one core; what goes wrong there is one clear error."""

import json
import logging
import shutil
import time
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import replace
from threading import Event
from types import SimpleNamespace
from unittest.mock import Mock

import book
import numpy as np
import pytest
from command import srs_ooc as command
from genes import expression, write_genes
from run_cases import CASES, pin_of_run, results_of
from stores import make_store, noise_table

import srs_ooc
from srs_ooc.base.errors import BudgetError, RunError, StoreError, UsageError
from srs_ooc.base.records import Iteration, Subspace
from srs_ooc.runs import batches, dask_cluster, halves
from srs_ooc.runs.batches import BatchExecutor, pack, parallel_map
from srs_ooc.runs.dask_cluster import DaskCluster, DaskLine
from srs_ooc.runs.halves import HalfJob
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.jobs import PREPARED, Batch, WorkerStore
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import GrowJob
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.whole_runs import fits_workers
from srs_ooc.store.store import Store
from srs_ooc.testing import check_executor, fit_by_hash

# Runs whose trees are grown on Dask workers have the bits of one core.

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
    "tests, excluded features and some rows",
]
"""Cases that are run each time; all others are slow, since so small runs are not worth it."""


def cases():
    return [pytest.param(n, marks=[] if n in FEW else [pytest.mark.campaign]) for n in CASES]


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_a_run_on_workers_has_the_results_that_are_pinned(name, tmp_path, scheduler):
    before = n_transitions(scheduler)
    assert pin_of_run(name, tmp_path, more=("--dask", scheduler)) == PINS[name]
    assert n_transitions(scheduler) > before, "workers did some of it"


def n_transitions(scheduler):
    """Changes of state of tasks that a scheduler has seen."""
    with distributed.Client(scheduler, set_as_default=False) as client:
        return client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)


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
        super().__init__(lambda: client, memory_mb)
        self.place = place

    def line(self, job):
        there = replace(job.store, place=str(self.place))
        return super().line(replace(job, store=there))


def work(store, run, cluster):
    opened = Store.open(store)
    request = Request(options={"judge": "probe"}, iterations=30, memory_mb=4000, cluster=cluster)
    with closing(open_or_create(opened, run, request)) as ledger:
        work_on(ledger, opened, request)


def test_a_worker_without_the_store_or_with_another_is_one_clear_error(store, tmp_path, client):
    other = make_store(tmp_path / "other.zarr", *noise_table(60, 300, seed=1))
    run = tmp_path / "a.run"
    with pytest.raises(StoreError, match=r"worker on .*nowhere"):
        work(store, run, Elsewhere(client, tmp_path / "nowhere"))
    with pytest.raises(StoreError, match=r"worker on .*expected the store with fingerprint"):
        work(store, run, Elsewhere(client, other))
    work(store, run, DaskCluster(lambda: client, 500))  # the run is as it was, and goes on
    assert srs_ooc.open_run(run).n_iterations == 30


def test_a_worker_of_another_version_is_one_clear_error(store, tmp_path, client, monkeypatch):
    monkeypatch.setattr(dask_cluster, "__version__", "0.0.7")
    with pytest.raises(RunError, match=r"worker on .*expected srs-ooc 0\.0\.7"):
        work(store, tmp_path / "a.run", DaskCluster(lambda: client, 500))


def test_workers_too_small_for_a_block_are_refused_with_the_size_that_would_do(
    store, tmp_path, client
):
    with pytest.raises(BudgetError, match=r"--worker-memory-mb \d+"):
        work(store, tmp_path / "a.run", DaskCluster(lambda: client, 20))


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
        if not PREPARED:
            break
        time.sleep(0.01)
    assert not PREPARED


# Targets, halves and folds spread over Dask workers have the bits of one core.

CAP = {"memory_mb": 4000}


@pytest.fixture(scope="module")
def genes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("genes")
    write_genes(folder, expression(24, 6, 60, seed=0, noise=0.3)[0], 6, 0)
    return folder / "t.zarr"


NETWORKS = {
    "genie3": {"trees": 20},
    "srs": {"method": "srs", "trees": 30},
    "prs": {"method": "prs", "epochs": 2, "models": 4},
    "thresholds": {"trees": 5, "thresholds": "value", "ensemble": "extra-trees"},
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_the_bytes_of_one_core(name, genes, tmp_path, client):
    one, many = tmp_path / "one.csv", tmp_path / "many.csv"
    srs_ooc.network(genes, one, threads=1, **NETWORKS[name], **CAP)
    done = srs_ooc.network(genes, many, client=client, **NETWORKS[name], **CAP)
    assert done.is_done
    assert many.read_bytes() == one.read_bytes()


@pytest.mark.slow
def test_status_says_where_a_network_on_a_cluster_stands(genes, tmp_path, client):
    out = tmp_path / "e.csv"
    srs_ooc.network(genes, out, client=client, **NETWORKS["genie3"], **CAP)
    shown = json.loads(command("status", f"{out}.network", "--json").stdout)
    assert (shown["state"], shown["targets"], shown["targets_asked"]) == ("finished", 24, 24)
    assert "24 of 24" in command("status", f"{out}.network").stdout


class Stop(Exception):
    """What a caller raises to stop."""


def test_a_network_stopped_on_a_cluster_goes_on_here_and_back(genes, tmp_path, client, monkeypatch):
    monkeypatch.setattr(batches, "TASK_SECONDS", 1e-9)  # a target a task
    options = {"trees": 20} | CAP
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    srs_ooc.network(genes, whole, threads=1, **options)

    def stop_at(n):
        def progress(step):
            if step.done >= n:
                raise Stop

        return progress

    with pytest.raises(Stop):
        srs_ooc.network(genes, parts, client=client, progress=stop_at(5), **options)
    with pytest.raises(Stop):
        srs_ooc.network(genes, parts, threads=2, progress=stop_at(15), **options)
    srs_ooc.network(genes, parts, client=client, **options)
    assert parts.read_bytes() == whole.read_bytes()
    assert not PREPARED


def test_a_joint_network_is_refused_by_name(genes, tmp_path, client):
    with pytest.raises(UsageError, match="joint"):
        srs_ooc.network(genes, tmp_path / "e.csv", method="prs", joint="0.1", client=client, **CAP)


def test_a_worker_too_small_for_a_network_names_the_size_that_would_do(genes, tmp_path, client):
    with pytest.raises(BudgetError, match=r"worker.memory.mb"):
        srs_ooc.network(genes, tmp_path / "e.csv", client=client, worker_memory_mb=20, **CAP)


BEGUN, GIVEN_UP = Event(), Event()


def until_unwanted(version, job, batch):
    wanted = dask_cluster.teller(distributed.get_worker(), job)
    BEGUN.set()
    for _ in range(60 * 20):
        if not wanted(0, 0):
            GIVEN_UP.set()
            break
        time.sleep(0.05)
    return batch


def test_a_part_that_nobody_waits_for_any_more_learns_of_it(client):
    job = HalfJob(NOWHERE, {}, Inputs(), 1)
    line = DaskLine(client, job, until_unwanted)
    sent = line.send(Batch({0: None}))
    assert BEGUN.wait(60)
    sent.cancel()
    assert GIVEN_UP.wait(60)
    line.close()


class Backwards:
    """A line whose last batch is always the first that is done."""

    def __init__(self):
        self.out, self.most, self.n_cancelled = [], 0, 0

    def send(self, batch):
        sent = Mock()
        self.out.append(sent)
        self.most = max(self.most, *batch.parts)

        def result():
            self.out.remove(sent)
            return Batch({number: number**2 for number in batch.parts}, 1.0)

        def cancel():
            self.n_cancelled += 1

        sent.result, sent.cancel = result, cancel
        sent.done = lambda: sent is self.out[-1]
        return sent

    def map(self, goes_on):
        parts = ((number, None) for number in range(50))
        return parallel_map(self.send, lambda: 3, parts, goes_on, 4)


def test_parts_are_begun_only_so_far_ahead_of_the_first_that_is_not_done():
    assert dict(Backwards().map(lambda: True)) == {n: n**2 for n in range(50)}
    line, found = Backwards(), {}
    for number, outcome in line.map(lambda: len(found) < 3):
        found[number] = outcome
        assert line.most < 4 + min(set(range(50)) - set(found) | {number})
    assert len(found) == 3
    assert line.n_cancelled > 0


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("runs") / "t.zarr", *noise_table(40, 120))


HALVED = {"halves": 4, "iterations": 60, "q": 20} | CAP


@pytest.fixture(scope="module")
def halved(small):
    return srs_ooc.run(small, out=small.with_name("one.run"), threads=1, **HALVED)


def assert_same_halves(found, expected, small):
    for name, value in vars(expected.halves).items():
        np.testing.assert_array_equal(getattr(found.halves, name), value)
    one, other = (results_of(run.run, small) | {"status": None} for run in (found, expected))
    assert one == other


@pytest.mark.few(0, 1)
@pytest.mark.parametrize("is_small", [False, True])
def test_halves_have_the_bits_of_one_core_whole_at_a_worker_or_not(
    small, halved, tmp_path, client, monkeypatch, is_small
):
    steps = []
    monkeypatch.setattr(halves, "fits_workers", lambda *_: not is_small)
    many = srs_ooc.run(small, out=tmp_path / "many", client=client, progress=steps.append, **HALVED)
    together = [step for step in steps if step.stage == "halves"]
    assert {step.total for step in together} == (set() if is_small else {4 * 60})
    assert [step.done for step in together] == sorted(step.done for step in together)
    assert not (tmp_path / "many" / "halves").exists()
    assert_same_halves(many, halved, small)


@pytest.mark.slow
def test_halves_done_elsewhere_and_here_are_taken_up(small, halved, tmp_path, client, monkeypatch):
    monkeypatch.setattr(dask_cluster, "TELL_SECONDS", 1e9)  # so that only whole runs count

    def stop(step):
        if step.stage == "halves" and step.done >= 60:
            raise Stop

    run, done = tmp_path / "run", []
    with pytest.raises(Stop):
        srs_ooc.run(small, out=run, client=client, progress=stop, **HALVED)
    result = srs_ooc.resume(run, threads=1, memory_mb=4000, progress=done.append)
    closed = [step.stage for step in done if step.stage.endswith(", last stage")]
    assert 0 < len(set(closed)) < 4
    assert_same_halves(result, halved, small)


def test_workers_too_small_for_whole_runs_are_told_of_and_grow_trees(small, client, caplog):
    opened = Store.open(small)
    request = Request(options={"subspace_size": 20})
    plan = Plan.of(opened, request)
    for megabytes, fits in ((66, False), (500, True)):
        cluster = DaskCluster(lambda: client, megabytes)
        assert fits_workers(cluster, plan, "halves") == fits
    assert "halves come one after another" in caplog.text
    assert "--worker-memory-mb" in caplog.text


@pytest.mark.slow
def test_folds_side_by_side_have_the_bits_of_one_core(small, tmp_path, client):
    options = {"judge": "probe", "probe_min_draws": 2, "probe_min_wins": 0.4, "alpha": "0.2"}
    options |= {"iterations": 150, "q": 20} | CAP
    one = srs_ooc.run(small, out=tmp_path / "one", threads=1, **options)
    many = shutil.copytree(one.run, tmp_path / "many")
    folds = {"folds": 2, "repeats": 1, "max_features": 1}

    def stop(step):
        if step.stage == "folds" and step.done >= 150:
            raise Stop

    with pytest.raises(Stop):
        srs_ooc.compact(many, client=client, progress=stop, **folds)
    found = [srs_ooc.compact(many, threads=1, **folds)]
    found.append(srs_ooc.compact(one, client=client, **folds))
    here, there = (
        (small.order, small.members, small.n_selected_within, small.held_out.scores.tolist())
        for small in found
    )
    assert here == there


def test_arrays_of_a_message_are_aligned_before_work(monkeypatch):
    """Native code refuses others; where a message puts them is chance."""
    features = np.zeros(41, np.uint8)[1:].view(np.uint32)
    assert not features.flags.aligned
    worker = SimpleNamespace(state=SimpleNamespace(nthreads=1))
    monkeypatch.setattr(distributed, "get_worker", lambda: worker)
    monkeypatch.setattr(dask_cluster, "teller", lambda *_: None)
    monkeypatch.setattr(dask_cluster, "work", lambda job, batch, n_threads, tell: batch)
    done = dask_cluster.work_on_dask(srs_ooc.__version__, None, Batch({0: features}))
    assert done.parts[0].flags.aligned
    np.testing.assert_array_equal(done.parts[0], features)
