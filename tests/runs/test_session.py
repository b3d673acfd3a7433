"""Law 1: a run resumed is a run never stopped, bit for bit, wherever it was killed."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest
from command import committing_often, environment, error_of, finished, json_of, srs_ooc, wait_for
from stores import make_store, noise_table

from srs_ooc.evidence.tally import Tally
from srs_ooc.runs.run import Run
from srs_ooc.samplers.srs import KeptSet

N_FEATURES = 40_000
ENDLESS = 10**7
"""Iterations that no machine has done when a test kills the run; `resume` then ends it sooner."""
AFTER = 500
"""Iterations of the last command, beyond what the killed ones have committed."""
OPTIONS = ("--q", 600, "--alpha", "0.5", "--probe-min-draws", 2, "--probe-min-wins", 0.6)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(120, N_FEATURES, n_relevant=6)
    return make_store(tmp_path_factory.mktemp("resume") / "t.zarr", values, labels)


def whole(store, n_iterations):
    """The state of a run never stopped."""
    run = store.with_name(f"whole-{n_iterations}.run")
    srs_ooc("run", store, "--out", run, "--iterations", n_iterations, "--memory-mb", 128, *OPTIONS)
    return state_of(run)


def state_of(run):
    ledger = Run(run, writable=False)
    tally, kept = Tally(N_FEATURES), KeptSet(N_FEATURES)
    iteration = ledger.load({"tally": tally, "kept": kept}).iteration
    ledger.close()
    arrays = [pages.array.tobytes() for pages in tally.state().pages.values()]
    return iteration, arrays, kept.features.tobytes(), kept.entered.tobytes()


def start(store, run, threads):
    arguments = ("run", store, "--out", run, "--iterations", ENDLESS, "--memory-mb", 128)
    return subprocess.Popen(
        committing_often(*arguments, "--threads", threads, *OPTIONS),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
def test_a_run_killed_at_many_random_moments_ends_with_the_same_result(store, tmp_path):
    """SIGKILL, from before the ledger exists to the last commit, with other numbers of workers."""
    random.seed(2)
    run = tmp_path / "killed.run"
    seen = set()
    for attempt in range(7):
        process = start(store, run, threads=1 + attempt % 3)
        if attempt > 2:  # before that at any moment, from then on past a commit
            wait_for(process, run, max(seen, default=0))
        time.sleep(random.uniform(0.05, 0.4))
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if run.exists():
            seen.add(state_of(run)[0])
    assert len(seen) >= 3, "some kills must fall between commits"
    done = max(seen) + AFTER
    srs_ooc("resume", run, "--iterations", done)
    assert state_of(run) == whole(store, done)
    assert not run.with_name(run.name + ".partial").exists()


@pytest.mark.slow
def test_an_interrupted_run_says_how_to_go_on_and_does(store, tmp_path):
    run, done = tmp_path / "interrupted.run", 0
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process = start(store, run, threads=2)
        wait_for(process, run, done)
        process.send_signal(number)
        _, errors = process.communicate(timeout=3600)
        assert process.returncode == status
        assert f"srs-ooc resume {run}" in errors.decode()
        before, done = done, json_of("status", run, "--json")["iterations"]
        assert before < done
    srs_ooc("resume", run, "--iterations", done + AFTER)
    assert state_of(run) == whole(store, done + AFTER)


INTERRUPTED_IN_TESTS = """
import os, signal
from srs_ooc.__main__ import main
from srs_ooc.results.live import RunProgress

show = RunProgress.show

def show_and_interrupt(self, step):
    show(self, step)
    if step.stage == "tests":
        os.kill(os.getpid(), signal.SIGINT)

RunProgress.show = show_and_interrupt
main()
"""


@pytest.mark.slow
def test_a_run_interrupted_in_its_tests_says_how_to_go_on_and_does(tmp_path):
    """The first piece of the tests is the last: a second signal would end it with a traceback."""
    table = make_store(tmp_path / "t.zarr", *noise_table(60, 200))
    arguments = ("--q", 30, "--iterations", 20, "--memory-mb", 128)
    for run, words in (("whole", []), ("left", ["-c", INTERRUPTED_IN_TESTS])):
        line = [sys.executable, *(words or ["-m", "srs_ooc"]), "run", table]
        done = finished([*map(str, [*line, "--out", tmp_path / f"{run}.run", *arguments])])
        assert done.returncode == (130 if words else 0), done.stderr
    assert "20 of 20 iterations; the verdict is not there yet; nothing is lost" in done.stderr
    assert f"srs-ooc resume {tmp_path / 'left.run'}" in done.stderr
    srs_ooc("resume", tmp_path / "left.run")
    answers = [json_of("features", tmp_path / f"{run}.run", "--json") for run in ("whole", "left")]
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_a_finished_run_asked_again_prints_its_result(store, tmp_path):
    run = tmp_path / "again.run"
    arguments = ("run", store, "--out", run, "--iterations", 50, *OPTIONS)
    first = srs_ooc(*arguments).stdout
    assert srs_ooc(*arguments).stdout == first
    assert srs_ooc("resume", run).stdout == first
    srs_ooc("resume", run, "--iterations", 80)
    assert json_of("status", run, "--json")["iterations"] == 80


@pytest.mark.slow
def test_a_second_process_on_a_run_is_refused_and_readers_are_not(store, tmp_path):
    run = tmp_path / "held.run"
    process = start(store, run, threads=1)
    try:
        while not run.exists() or json_of("status", run, "--json")["state"] != "running":
            assert process.poll() is None
            time.sleep(0.01)
        assert "another process" in error_of("resume", run)
        assert json_of("status", run, "--json")["state"] == "running"
        assert len(json_of("features", run, "--json", "--top", 3)) == 3
    finally:
        process.kill()
        process.communicate()
    assert json_of("status", run, "--json")["state"] == "stopped"
    done = json_of("status", run, "--json")["iterations"]
    message = error_of("resume", run, "--iterations", done - 1)
    assert f"at least the {done} that are done" in message
    srs_ooc("resume", run, "--iterations", done)  # the lock died with its holder
    assert json_of("status", run, "--json")["state"] == "finished"


@pytest.mark.few(1)
@pytest.mark.parametrize("damage", ["page", "truncated", "garbage", "absent"])
def test_a_damaged_ledger_is_an_error_never_a_fresh_start(store, tmp_path, damage):
    run = tmp_path / "damaged.run"
    arguments = ("run", store, "--out", run, "--iterations", 40, *OPTIONS)
    srs_ooc(*arguments)
    file = run / "ledger.sqlite"
    data = bytearray(file.read_bytes())
    if damage == "page":
        tally = Tally(N_FEATURES)
        ledger = Run(run, writable=False)
        ledger.load({"tally": tally})
        ledger.close()
        place = data.index(tally.n_drawn[:64].tobytes())
        data[place] ^= 1
        file.write_bytes(data)
    elif damage == "truncated":
        file.write_bytes(data[: len(data) // 2])
    elif damage == "garbage":
        file.write_bytes(os.urandom(5000))
    else:
        file.unlink()
    for _ in range(2):
        message = error_of("resume", run, "--iterations", 60)
        assert str(run) in message or "ledger" in message


def tampered_run(store, run, script):
    """Make a run, and change its ledger by SQL."""
    srs_ooc("run", store, "--out", run, "--iterations", 30, *OPTIONS)
    with closing(sqlite3.connect(run / "ledger.sqlite")) as database:
        database.executescript(script)
        database.commit()


@pytest.mark.slow
@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE meta SET value = replace(value, ': ', ': 9') WHERE name = 'state'",
        "UPDATE meta SET value = '{}' WHERE name = 'spec'",
        "DELETE FROM meta WHERE name = 'state'",
        "DELETE FROM meta WHERE name = 'iterations'",
        "UPDATE meta SET value = 'no json' WHERE name = 'store'",
        "DROP TABLE meta",
    ],
)
def test_a_ledger_that_was_tampered_with_is_an_error(store, tmp_path, tampering):
    run = tmp_path / "tampered.run"
    tampered_run(store, run, tampering)
    for command in ("status", "resume"):
        assert "ledger" in error_of(command, run)


@pytest.mark.slow
@pytest.mark.parametrize(
    "tampering",
    [
        "DELETE FROM pages WHERE id < 100000",
        "DELETE FROM checksums WHERE id = 0",
        "DELETE FROM pages; DELETE FROM checksums",
    ],
)
def test_pages_that_went_missing_are_not_read_as_zeros(store, tmp_path, tampering):
    run = tmp_path / "pages.run"
    tampered_run(store, run, tampering)
    for command in (("features", run, "--top", 3), ("resume", run, "--iterations", 40)):
        assert "ledger" in error_of(*command)


def test_importance_dtype_is_exact_in_the_ledger(store):
    """The tallies are integers: the total is the sum of the trees', to the unit."""
    _, arrays, _, _ = whole(store, AFTER)
    tally = np.frombuffer(arrays[0], dtype=np.int64)
    drawn = np.frombuffer(arrays[1], dtype=np.uint32)
    assert drawn.sum() == AFTER * 600
    assert tally.sum() > 0
