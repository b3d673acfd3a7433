"""What an executor must pass."""

from collections.abc import Callable

import numpy as np

from srs_ooc.base.records import Iteration, Outcome, Subspace
from srs_ooc.base.seeds import key_of
from srs_ooc.runs.engine import Executor, Speculation

Fit = Callable[[Iteration], Outcome]


def fit_by_hash(iteration: Iteration) -> Outcome:
    """Return an outcome that tells which iteration it is of: what executors are checked with."""
    words = [key_of(iteration.tree_key, int(feature)) >> 20 for feature in iteration.features]
    return Outcome(iteration.features, np.array(words, np.int64))


def check_executor(make: Callable[[Fit], Executor], n_iterations: int = 40) -> None:
    """Check that an executor keeps to the contract of :class:`srs_ooc.runs.engine.Executor`.

    Parameters
    ----------
    make : callable
        ``make(fit) -> Executor`` that has ``fit(iteration)`` called for what is submitted; where
        that is in another process, it calls :func:`fit_by_hash`, which ``fit`` is.
    n_iterations : int
        How many are grown.

    Raises
    ------
    AssertionError
        Saying which rule is broken.
    """
    executor = make(fit_by_hash)
    assert executor.max_ahead >= 1, f"max_ahead: expected at least 1, found {executor.max_ahead}"
    assert executor.n_read_ahead >= 0, f"n_read_ahead: found {executor.n_read_ahead}"
    try:
        _check_outcomes(executor, n_iterations)
        _check_speculation(executor, n_iterations)
        dropped = executor.submit(_iteration(10**6, 0))
        dropped.cancel()
    finally:
        executor.close()
    executor.close()


def _iteration(number: int, state: int) -> Iteration:
    features = np.arange(number % 5 + 1, dtype=np.uint32) * 3
    return Iteration(number, Subspace(features), key_of(state, number))


def _check_outcomes(executor: Executor, n_iterations: int) -> None:
    """Check that each future is of its own iteration, in whatever order they are asked."""
    wanted = [_iteration(number, 0) for number in range(n_iterations)]
    for start in range(0, n_iterations, executor.max_ahead):
        some = wanted[start : start + executor.max_ahead]
        for iteration in some:
            executor.announce(iteration)
        futures = [executor.submit(iteration) for iteration in some]
        for future, iteration in reversed(list(zip(futures, some, strict=True))):
            _check_one(future.result(), iteration)


def _check_speculation(executor: Executor, n_iterations: int) -> None:
    """Check that guesses thrown away leave no trace."""
    state = 0
    speculation = Speculation(executor, lambda n: _iteration(n, state), lambda _: state)
    for number in range(n_iterations):
        _check_one(speculation.outcome(number, n_iterations), _iteration(number, state))
        state += number % 3 == 0
    speculation.drop()


def _check_one(outcome: Outcome, iteration: Iteration) -> None:
    expected = fit_by_hash(iteration)
    assert np.array_equal(outcome.features, expected.features), "submit: another's features"
    assert np.array_equal(outcome.importance, expected.importance), "submit: another's importances"
