"""Batches of iterations: what is sent when, what comes back, what is given up."""

import gc
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.errors import StoreError
from srs_ooc.base.records import Iteration, Outcome, Subspace
from srs_ooc.runs.batches import LEAST_SECONDS, TASK_SECONDS, BatchExecutor, pack, unpack
from srs_ooc.runs.engine import Speculation
from srs_ooc.runs.jobs import Batch
from srs_ooc.testing import check_executor, fit_by_hash


class Sent:
    def __init__(self, line, iterations):
        self.line, self.iterations, self.is_cancelled = line, list(iterations), False

    def result(self):
        self.line.waited.append(self.iterations[0].number)
        if self.line.error is not None:
            raise self.line.error
        outcomes = {one.number: pack(self.line.fit(one)) for one in self.iterations}
        return Batch(outcomes, self.line.seconds * len(outcomes))

    def cancel(self):
        self.is_cancelled = True


class Line:
    """Stands for workers that grow a batch once its reply is asked for."""

    def __init__(self, fit=fit_by_hash, threads=2, seconds=TASK_SECONDS / 10, error=None):
        self.fit, self.threads, self.seconds, self.error = fit, threads, seconds, error
        self.sent, self.waited = [], []

    def send(self, batch):
        self.sent.append(Sent(self, batch.parts.values()))
        return self.sent[-1]

    def n_threads(self):
        return self.threads

    def close(self):
        pass

    def sizes(self):
        return [len(sent.iterations) for sent in self.sent]


def iteration_of(number, state=0):
    return Iteration(number, Subspace(np.array([number, number + 1], np.uint32)), state)


@pytest.mark.parametrize("threads", [0, 1, 3])
@pytest.mark.parametrize("seconds", [0.0, 1e-4, 0.05, 10.0])
def test_the_executor_keeps_to_the_contract(threads, seconds):
    check_executor(lambda fit: BatchExecutor(Line(fit, threads, seconds), 5))


@pytest.mark.parametrize(("seconds", "size"), [(TASK_SECONDS / 10, 10), (3 * TASK_SECONDS, 1)])
def test_batches_come_to_take_the_time_that_was_set(seconds, size):
    line = Line(seconds=seconds)
    speculation = Speculation(BatchExecutor(line, 2), iteration_of, lambda _: 0, 10**6)
    for number in range(300):
        assert speculation.outcome(number, 300).features[0] == number
    assert max(line.sizes()) == size
    assert line.sizes()[-5] == size
    assert sum(line.sizes()) == 300


def test_a_short_round_is_dealt_to_all_threads():
    line = Line(threads=4, seconds=1e-9)
    executor = BatchExecutor(line, 2, round_size=40)
    speculation = Speculation(executor, iteration_of, lambda number: number // 40, 40)
    for number in range(200):
        speculation.outcome(number, 200)
    assert max(line.sizes()) == 5


def test_batches_get_smaller_towards_the_end_of_a_round():
    line = Line(seconds=TASK_SECONDS / 32)
    executor = BatchExecutor(line, 2, round_size=1000)
    speculation = Speculation(executor, iteration_of, lambda number: number // 1000, 1000)
    for number in range(2000):
        speculation.outcome(number, 2000)
    last = line.sizes()[-20:]
    assert last == sorted(last, reverse=True)
    assert (max(line.sizes()), last[-1]) == (32, 2)


@pytest.mark.parametrize(("changes", "most"), [(True, 16), (False, 60)])
def test_what_follows_a_round_is_sent_ahead_only_while_rounds_change_nothing(changes, most):
    line = Line(threads=8, seconds=TASK_SECONDS / 4)
    state = 0
    speculation = Speculation(BatchExecutor(line, 2), iteration_of, lambda _: state, 20)
    for number in range(200):
        speculation.outcome(number, 10**6)
        state += changes and number % 20 == 19
    assert sum(line.sizes()) == 200 + most


def test_many_workers_all_have_a_share_of_what_may_be_under_way():
    line = Line(threads=64, seconds=TASK_SECONDS / 50)
    executor = BatchExecutor(line, 2500)
    for number in range(2000):  # what came of the first says how long an iteration takes
        growing = executor.submit(iteration_of(number))
        if number < 200:
            growing.result()
    assert executor.max_ahead // line.sizes()[-1] >= 64


def test_batches_of_many_workers_are_worth_their_way():
    seconds = 0.004
    line = Line(threads=64, seconds=seconds)
    executor = BatchExecutor(line, 2, round_size=1000)
    speculation = Speculation(executor, iteration_of, lambda number: number // 1000, 1000)
    for number in range(3000):
        speculation.outcome(number, 3000)
    assert min(line.sizes()[-60:-1]) * seconds >= LEAST_SECONDS


def test_what_is_under_way_is_bounded_by_its_bytes():
    line = Line(threads=10**6, seconds=1e-9)
    executor = BatchExecutor(line, 100_000)
    speculation = Speculation(executor, iteration_of, lambda _: 0, 10**6)
    for number in range(200):
        speculation.outcome(number, 10**6)
    assert executor.max_ahead <= 20


def test_a_batch_of_which_nothing_is_wanted_is_cancelled_and_others_are_not():
    line = Line()
    executor = BatchExecutor(line, 2)
    futures = [executor.submit(iteration_of(number)) for number in range(3)]
    assert line.sizes() == [1, 1, 1]
    assert futures[1].cancel()
    assert [sent.is_cancelled for sent in line.sent] == [False, True, False]
    assert futures[2].result().features[0] == 2
    executor.close()
    assert [sent.is_cancelled for sent in line.sent] == [True, True, False]


def test_what_was_given_up_before_it_was_sent_is_not_sent():
    line = Line()
    executor = BatchExecutor(line, 2)
    executor.submit(iteration_of(0)).result()  # batches are of four from now on
    futures = [executor.submit(iteration_of(number)) for number in (1, 2, 3)]
    futures[0].cancel()
    assert futures[2].result().features[0] == 3
    assert [[i.number for i in sent.iterations] for sent in line.sent] == [[0], [2, 3]]


def test_an_outcome_asked_for_twice_is_fetched_once():
    line = Line()
    executor = BatchExecutor(line, 2)
    future = executor.submit(iteration_of(0))
    assert future.result() is future.result()
    assert line.waited == [0]


def test_what_was_taken_is_let_go_at_once():
    line = Line()
    executor = BatchExecutor(line, 2)
    iterations = [iteration_of(number) for number in range(8)]
    kept = [weakref.ref(iteration.features) for iteration in iterations]
    growing = [executor.submit(iteration) for iteration in iterations]
    del iterations
    gc.disable()
    try:
        for one in growing:
            one.result()
        del growing, one
        line.sent.clear()
        assert not any(reference() is not None for reference in kept)
    finally:
        gc.enable()


def test_an_error_of_a_worker_is_that_of_the_outcome():
    executor = BatchExecutor(Line(error=StoreError("worker on b: it is gone")), 2)
    with pytest.raises(StoreError, match="worker on b"):
        executor.submit(iteration_of(0)).result()


def outcomes():
    def outcome(importance, probe, n_trees):
        features = np.arange(len(importance), dtype=np.uint32) * 3
        trees = tuple(bytes([i]) * i for i in range(n_trees))
        return Outcome(features, np.array(importance, np.int64), probe, trees)

    words = st.integers(-(2**62), 2**62)
    return st.builds(outcome, st.lists(st.just(0) | words), st.none() | words, st.integers(0, 3))


@given(outcomes())
def test_an_outcome_that_travelled_is_the_same(outcome):
    iteration = Iteration(0, Subspace(outcome.features), 0)
    back = unpack(pickle.loads(pickle.dumps(pack(outcome))), iteration)
    assert back.importance.dtype == np.int64
    assert np.array_equal(back.importance, outcome.importance)
    assert np.array_equal(back.features, outcome.features)
    assert (back.probe_importance, back.trees) == (outcome.probe_importance, outcome.trees)
