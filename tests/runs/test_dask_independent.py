"""Targets, permutation runs and folds spread over Dask workers have the bits of one core."""

import json
import shutil
import time
from threading import Event
from unittest.mock import Mock

import pytest
from command import srs_ooc as command
from run_cases import results_of
from stores import expression, make_store, noise_table, write_genes

import srs_ooc
from srs_ooc.base.errors import BudgetError, UsageError
from srs_ooc.runs import batches, dask_cluster, resources
from srs_ooc.runs.batches import parallel_map
from srs_ooc.runs.dask_cluster import DaskCluster, DaskLine
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.jobs import PREPARED, Batch, WorkerStore
from srs_ooc.runs.resources import RunContext
from srs_ooc.runs.session import RunDraft
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options
from srs_ooc.runs.survey import PermutationJob, fits_workers
from srs_ooc.runs.task import Task
from srs_ooc.store.store import Store

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.dask
QUIET = {
    "processes": False,
    "dashboard_address": "127.0.0.1:0",
    "worker_dashboard_address": "127.0.0.1:0",
    "scheduler_kwargs": {"dashboard": False},
}
CAP = {"memory_mb": 4000}


@pytest.fixture(scope="module")
def client():
    """Of two workers of two threads in this process."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=2, **QUIET) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def genes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("genes")
    write_genes(folder, expression(24, 6, 60, seed=0, noise=0.3)[0], 6, 0)
    return folder / "t.zarr"


METHODS = {
    "genie3": {"trees": 20},
    "srs": {"method": "srs", "trees": 30},
    "prs": {"method": "prs", "epochs": 2, "models": 4},
    "thresholds": {"trees": 5, "thresholds": "value", "ensemble": "extra-trees"},
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", METHODS)
def test_a_network_has_the_bytes_of_one_core(name, genes, tmp_path, client):
    one, many = tmp_path / "one.csv", tmp_path / "many.csv"
    srs_ooc.network(genes, one, threads=1, **METHODS[name], **CAP)
    done = srs_ooc.network(genes, many, client=client, **METHODS[name], **CAP)
    assert done.is_done
    assert many.read_bytes() == one.read_bytes()


@pytest.mark.slow
def test_status_says_where_a_network_stands_and_how_its_cluster_stood(genes, tmp_path, client):
    out = tmp_path / "e.csv"
    srs_ooc.network(genes, out, client=client, **METHODS["genie3"], **CAP)
    shown = json.loads(command("status", f"{out}.network", "--json").stdout)
    assert (shown["state"], shown["targets"], shown["targets_asked"]) == ("finished", 24, 24)
    assert shown["cluster"]["threads"] == 4
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
    assert not PREPARED._jobs


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
    job = PermutationJob(WorkerStore("", "", 100), {}, Inputs(), 1)
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
def store(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("runs") / "t.zarr", *noise_table(40, 120))


PERMUTED = {"permutations": 4, "fdr": "0.3", "iterations": 60, "q": 20} | CAP


def bits(run, store):
    found = results_of(run.run, store)
    del found["status"]
    return found


@pytest.fixture(scope="module")
def permuted(store):
    return bits(srs_ooc.run(store, out=store.with_name("one.run"), threads=1, **PERMUTED), store)


@pytest.mark.slow
def test_permutation_runs_side_by_side_have_the_bits_of_one_core(store, permuted, tmp_path, client):
    steps = []
    many = srs_ooc.run(
        store, out=tmp_path / "many", client=client, progress=steps.append, **PERMUTED
    )
    assert bits(many, store) == permuted
    together = [step for step in steps if step.stage == "permutation runs"]
    assert {step.total for step in together} == {4 * 60}
    assert [step.done for step in together] == sorted(step.done for step in together)


@pytest.mark.slow
def test_permutation_runs_done_elsewhere_and_here_are_taken_up(
    store, permuted, tmp_path, client, monkeypatch
):
    monkeypatch.setattr(dask_cluster, "TELL_SECONDS", 1e9)  # so that only whole runs count

    def stop(step):
        if step.stage == "permutation runs" and step.done >= 60:
            raise Stop

    run = tmp_path / "run"
    with pytest.raises(Stop):
        srs_ooc.run(store, out=run, client=client, progress=stop, **PERMUTED)
    done = []
    result = srs_ooc.resume(run, threads=1, memory_mb=4000, progress=done.append)
    assert len({s.stage for s in done if s.stage.endswith(", closing")}) < 4
    assert bits(result, store) == permuted


def test_workers_too_small_for_whole_runs_are_told_of_and_grow_trees(store, client, caplog):
    opened = Store.open(store)
    request = Request(Options(permutations=4, fdr="0.3", subspace_size=20))
    spec = RunDraft.of(opened, request).spec
    task = Task.of_run(spec, opened, Inputs())
    for megabytes, fits in ((66, False), (500, True)):
        context = RunContext(spec, opened, task, 0, 1, DaskCluster(client, megabytes))
        assert fits_workers(context) == fits
    assert "--worker-memory-mb" in caplog.text


@pytest.mark.slow
def test_a_run_on_a_cluster_notes_how_that_stands(store, tmp_path, client, monkeypatch):
    monkeypatch.setattr(resources, "NOTE_SECONDS", 0.0)
    options = {"judge": "probe", "iterations": 80, "q": 20} | CAP
    run = srs_ooc.run(store, out=tmp_path / "run", client=client, **options)
    note = run.status.cluster
    assert (note.workers, note.threads) == (2, 4)
    assert (note.done, note.total, note.unit) == (80, 80, "iterations")
    assert note.a_second > 0
    shown = command("status", run.run).stdout
    assert "2 workers with 4 threads" in shown
    elsewhere = srs_ooc.run(store, out=tmp_path / "here", threads=1, **options)
    assert elsewhere.status.cluster is None


@pytest.mark.slow
def test_folds_side_by_side_have_the_bits_of_one_core(store, tmp_path, client):
    options = {"judge": "probe", "probe_min_draws": 2, "probe_min_wins": 0.4, "alpha": "0.2"}
    options |= {"iterations": 150, "q": 20} | CAP
    one = srs_ooc.run(store, out=tmp_path / "one", threads=1, **options)
    many = shutil.copytree(one.run, tmp_path / "many")
    folds = {"folds": 2, "repeats": 1, "max_features": 1}

    def stop(step):
        if step.stage == "folds" and step.done >= 150:
            raise Stop

    with pytest.raises(Stop):
        srs_ooc.compact(many, client=client, progress=stop, **folds)
    here = srs_ooc.compact(many, threads=1, **folds)
    assert here == srs_ooc.compact(one, client=client, **folds)
