"""Workers and schedulers as processes, killed while a run is at work."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from command import HANGS, command_line, environment, error_of, srs_ooc
from run_cases import results_of
from stores import make_store, noise_table

import srs_ooc as python
from srs_ooc.base.errors import BudgetError, RunError

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.dask

BRIEFLY = 1
"""Seconds for which a client looks for a scheduler that was killed."""
FLAGS = {"judge": "probe", "probe_min_draws": 2, "probe_min_wins": 0.6, "q": 200}
FLAGS |= {"iterations": 3000, "memory_mb": 4000}
OPTIONS = FLAGS | {"round_size": 250}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("workers") / "t.zarr"
    return make_store(path, *noise_table(400, 2000))


def results(run, store):
    found = results_of(run, store)
    del found["status"]
    return found


@pytest.fixture(scope="module")
def whole(store):
    run = store.with_name("whole.run")
    python.run(store, out=run, threads=1, **OPTIONS)
    return results(run, store)


@pytest.fixture
def processes():
    """Start commands, and end them after the test."""
    started = []

    def start(*arguments):
        log = subprocess.DEVNULL
        process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=log, stderr=log)
        started.append(process)
        return process

    yield start
    for process in started:
        for one in [*psutil.Process(process.pid).children(recursive=True), process]:
            one.kill()
        process.wait()


@pytest.fixture
def by_hand(processes, tmp_path):
    """A scheduler and two workers started by hand, as docs/cluster.md says."""
    file = tmp_path / "scheduler.json"
    loopback = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")
    quiet = (*loopback, "--no-dashboard")
    scheduler = processes("distributed.cli.dask_scheduler", "--scheduler-file", str(file),
                          "--port", "0", *quiet)  # fmt: skip
    while not file.exists():
        assert scheduler.poll() is None
        time.sleep(0.02)

    def worker():
        return processes("distributed.cli.dask_worker", "--scheduler-file", str(file),
                         "--nthreads", "1", "--no-nanny", *quiet)  # fmt: skip

    return file, scheduler, [worker(), worker()], worker


class At:
    """Does something once, when a run has come so far."""

    def __init__(self, iteration, act):
        self.iteration, self.act, self.is_done = iteration, act, False

    def __call__(self, step):
        if not self.is_done and step.done >= self.iteration:
            self.is_done = True
            self.act()


@pytest.mark.slow
def test_a_worker_killed_during_a_run_changes_nothing(store, whole, tmp_path, by_hand):
    file, _, workers, start = by_hand

    def act():
        workers[0].kill()
        start()

    with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
        client.wait_for_workers(2)
        progress = At(800, act)
        python.run(store, out=tmp_path / "run", client=client, progress=progress, **OPTIONS)
    assert progress.is_done
    assert results(tmp_path / "run", store) == whole


@pytest.mark.slow
def test_a_scheduler_that_is_gone_is_an_error_and_the_run_goes_on_without(
    store, whole, tmp_path, by_hand
):
    file, scheduler, _, _ = by_hand
    run = tmp_path / "run"
    client = distributed.Client(scheduler_file=str(file), set_as_default=False, timeout=BRIEFLY)
    try:
        client.wait_for_workers(1)
        with pytest.raises(RunError, match=r"scheduler.*gone.*srs-ooc resume"):
            python.run(store, out=run, client=client, progress=At(800, scheduler.kill), **OPTIONS)
    finally:
        client.close(timeout=BRIEFLY)
    python.resume(run, threads=2, memory_mb=4000)
    assert results(run, store) == whole


def listening(process):
    every = [process, *process.children(recursive=True)]
    return [
        connection.laddr.ip
        for one in every
        for connection in one.net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]


@pytest.mark.slow
def test_local_workers_listen_on_the_loopback_address_alone(store, tmp_path):
    run = tmp_path / "run"
    words = [f"--{name.replace('_', '-')}={value}" for name, value in FLAGS.items()]
    words += ["--with", "round_size=250"]
    process = subprocess.Popen(
        command_line("run", store, "--out", run, "--dask", "local:2", *words),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    found = []
    while process.poll() is None and len(found) < 3:  # the scheduler and the workers
        time.sleep(0.02)
        with suppress(psutil.NoSuchProcess):
            found = listening(psutil.Process(process.pid))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=HANGS)
    assert process.returncode in (0, 130), errors
    assert "Traceback" not in errors
    assert set(found) == {"127.0.0.1"}


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(100))
def test_a_campaign_of_kills_of_workers_and_coordinators(store, whole, tmp_path, by_hand, seed):
    """Three kills a campaign run: workers, and the process that holds the run."""
    import random

    file, _, workers, start = by_hand
    chance = random.Random(seed)
    run = tmp_path / "run"
    words = [f"--{name.replace('_', '-')}={value}" for name, value in FLAGS.items()]
    words += ["--with", "round_size=250"]
    command = command_line("run", store, "--out", run, "--dask", file, *words)
    for _ in range(3):
        process = subprocess.Popen(command, env=environment(), stdout=-3, stderr=-3)
        time.sleep(chance.uniform(0.5, 4.0))
        victim = chance.choice([process, workers.pop(0)])
        os.kill(victim.pid, signal.SIGKILL)
        workers.append(start())
        if victim is not process:
            assert process.wait(HANGS) == 0
        process.wait(HANGS)
    srs_ooc("run", store, "--out", run, "--dask", file, *words)
    assert results(run, store) == whole


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_one_message(store, tmp_path):
    run = ("run", store, "--out", tmp_path / "run", "--iterations", 10)
    message = error_of(*run, "--dask", tmp_path / "none.json")
    assert "--dask: expected " in message
    assert "or the file that `dask scheduler --scheduler-file` writes" in message
    assert not (tmp_path / "run").exists()


def peak_mb(process):
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's record of peaks")
def test_a_worker_grows_by_no_more_than_it_may(tmp_path, by_hand):
    store = make_store(tmp_path / "t.zarr", *noise_table(3000, 4000))  # 12 MB of codes
    file, _, workers, _ = by_hand
    run, options = tmp_path / "run", OPTIONS | {"q": 2500, "iterations": 60}
    with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
        client.wait_for_workers(2)
        before = [psutil.Process(worker.pid).memory_info().rss / 1e6 for worker in workers]
        with pytest.raises(BudgetError) as refused:
            python.run(store, out=run, client=client, worker_memory_mb=20, **options)
        smallest = int(str(refused.value).rsplit("worker_memory_mb=", 1)[1].rstrip("."))
        python.resume(run, client=client, worker_memory_mb=smallest, memory_mb=4000)
        grown = [peak_mb(worker) - was for worker, was in zip(workers, before, strict=True)]
    assert 10 < max(grown) < smallest, grown


@pytest.mark.campaign
def test_the_smallest_cap_accepted_holds_a_run_of_many_iterations(tmp_path, by_hand):
    store = make_store(tmp_path / "t.zarr", *noise_table(60, 50_000))
    run, ways = tmp_path / "run", {"--iterations": 3000, "--with": "round_size=3000", "--q": 2500}
    words = ["run", store, "--out", run, "--judge", "probe", "--dask", by_hand[0]]
    words += [word for pair in ways.items() for word in pair]
    refused = error_of(*words, "--memory-mb", 64)
    smallest = int(re.search(r"--memory-mb (\d+)", refused)[1])
    srs_ooc(*words, "--memory-mb", smallest)
    assert python.open_run(run).status.peak_rss_mb <= smallest
