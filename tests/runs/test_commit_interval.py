"""A kill costs no more than what was done since the last commit, and those are not far apart."""

from types import SimpleNamespace

import numpy as np
import pytest
from ledgers import work_on_run
from stores import make_store, noise_table

from srs_ooc.runs import engine
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.settling import Request
from srs_ooc.runs.spec import Options

SECONDS_EACH = 0.3
"""Of an iteration, by a clock that the test moves."""


class Killed(BaseException):
    """What nothing catches."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    values, labels = noise_table(20, 60)
    return make_store(tmp_path_factory.mktemp("s") / "t.zarr", values, np.asarray(labels))


def committed_before_kill(store, run, at, clock):
    """Kill a run after ``at`` iterations; return how many are committed."""
    request = Request(
        Options(subspace_size=10, judge="positive"), iterations=1000, memory_mb=2000, threads=1
    )

    def watch(step):
        clock.now = step.done * SECONDS_EACH
        if step.done == at:
            raise Killed
        return True

    with pytest.raises(Killed):
        work_on_run(store, run, request, watch)
    ledger = Ledger(run, writable=False)
    try:
        return ledger.progress().iteration
    finally:
        ledger.close()


@pytest.mark.parametrize("commit_seconds", [0.0, 0.2])
@pytest.mark.parametrize("at", [3, 30, 47])
def test_at_most_one_commit_interval_is_repeated_after_a_kill(
    store, tmp_path, monkeypatch, at, commit_seconds
):
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    commit = engine.Engine.commit

    def takes_so_long(self):
        commit(self)
        return commit_seconds

    monkeypatch.setattr(engine, "time", clock)
    monkeypatch.setattr(engine.Engine, "commit", takes_so_long)
    interval = max(engine.COMMIT_SECONDS, engine.COMMIT_SHARE * commit_seconds)
    repeated = at - committed_before_kill(store, tmp_path / "a.run", at, clock)
    assert 0 <= repeated * SECONDS_EACH <= interval + 2 * SECONDS_EACH
