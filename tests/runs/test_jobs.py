"""What a worker process keeps between batches, without any cluster."""

import shutil
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from stores import make_store, noise_table

from srs_ooc.base.errors import RunError, StoreError
from srs_ooc.base.records import Iteration, RowSplit, Subspace
from srs_ooc.runs import jobs as worker
from srs_ooc.runs.jobs import PREPARED, Batch, WorkerStore
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.resources import GrowJob
from srs_ooc.store.store import Store
from srs_ooc.trees.response import TrainingRows


@pytest.fixture
def store(tmp_path):
    return make_store(tmp_path / "t.zarr", *noise_table(50, 200))


@pytest.fixture(autouse=True)
def _nothing_prepared(monkeypatch):
    monkeypatch.setattr(worker, "_over", deque())
    yield
    for found in list(PREPARED.values()):
        worker.forget(found.job.token)
    assert not PREPARED


def job_of(store, token="a", memory_mb=400, **options):
    opened = Store.open(store)
    request = Request(options={"judge": "positive", "subspace_size": 20, **options})
    plan, there = Plan.of(opened, request), WorkerStore.of(opened, memory_mb)
    return GrowJob(there, plan.spec.to_json(), None, plan.task.target, token=token)


def iteration_of(number, split=None):
    features = np.sort(np.random.default_rng(number).choice(200, 20, replace=False))
    return Iteration(number, Subspace(features.astype(np.uint32), split=split), number)


def grown(job, iterations, n_threads=1):
    batch = Batch({iteration.number: iteration for iteration in iterations})
    return worker.work(job, batch, n_threads)


def importances(reply):
    return [(o.features.tolist(), o.importance.tolist()) for o in reply.parts.values()]


BATCH = [iteration_of(number) for number in range(6)]


def test_a_store_is_opened_once_for_all_batches_of_a_job(store, monkeypatch):
    opened, columns = [], Store.columns

    def counted(self, **how):
        opened.append(how)
        return columns(self, **how)

    monkeypatch.setattr(Store, "columns", counted)
    job = job_of(store)
    parts = [importances(grown(job, [iteration]))[0] for iteration in BATCH]
    assert parts == importances(grown(job, BATCH))
    assert len(opened) == 1


def test_a_store_written_over_between_batches_is_an_error(store, tmp_path):
    job = job_of(store)
    grown(job, BATCH)
    other = make_store(tmp_path / "other.zarr", *noise_table(50, 200, seed=1))
    shutil.copytree(other, store, dirs_exist_ok=True)
    with pytest.raises(StoreError, match=r"worker on .*it was replaced"):
        grown(job, BATCH)


def test_the_next_job_of_a_run_takes_the_place_of_the_last(store):
    first, second = job_of(store, "a"), job_of(store, "b")
    once = importances(grown(first, BATCH))
    assert importances(grown(second, BATCH)) == once
    assert [found.job.token for found in PREPARED.values()] == ["b"]
    assert importances(grown(first, BATCH)) == once  # a late batch of the last


def test_only_so_many_runs_are_kept(store):
    for seed in range(worker.MOST_RUNS + 2):
        grown(job_of(store, seed=seed), BATCH)
    assert len(PREPARED) == worker.MOST_RUNS


def test_a_late_order_of_a_stage_that_is_over_opens_nothing(store):
    job = job_of(store)
    grown(job, BATCH)
    worker.forget(job.token)
    with pytest.raises(RunError, match="one before"):
        grown(job, BATCH)
    assert not PREPARED


def test_threads_of_a_worker_without_room_for_their_blocks_take_turns(store):
    job = job_of(store, memory_mb=70)
    wanted = importances(grown(job, BATCH, 4))
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda _: grown(job, BATCH, 4), range(8)))
    assert [importances(reply) for reply in replies] == [wanted] * 8


def test_threads_at_different_stages_of_a_run_change_nothing(store):
    jobs = [job_of(store, token) for token in "ab"]
    wanted = importances(grown(jobs[0], BATCH))
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda i: grown(jobs[i % 2], BATCH, 4), range(12)))
    assert [importances(reply) for reply in replies] == [wanted] * 12


def test_a_split_that_comes_again_is_known(store, monkeypatch):
    job, made, only = job_of(store), [], TrainingRows.only

    def noted(self, rows):
        made.append(rows)
        return only(self, rows)

    monkeypatch.setattr(TrainingRows, "only", noted)

    def split():
        return RowSplit(np.arange(40, dtype=np.int32), np.arange(40, 50, dtype=np.int32))

    for number in range(5):
        reply = grown(job, [iteration_of(number, split())])
        assert reply.parts[number].predictions.shape == (1, 10, 2)
    assert len(made) == 1
