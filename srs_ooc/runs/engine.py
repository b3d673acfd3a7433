"""The one loop: propose, grow, learn, commit.

Subspaces are grown in the calling thread, or by workers that run ahead of it.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Protocol

import numpy as np

from srs_ooc.base.arrays import Ints32, Uints32
from srs_ooc.base.records import Iteration, Outcome, Part
from srs_ooc.base.seeds import Purpose, derive, key_of
from srs_ooc.evidence.judges import Judge
from srs_ooc.evidence.tally import Tally
from srs_ooc.learners.tree_learner import PROBE_FEATURE, Columns, Learner
from srs_ooc.runs.ledger import START, Ledger, StageBook
from srs_ooc.samplers.base import Sampler
from srs_ooc.store.store import ColumnStore, ReadAhead, Store
from srs_ooc.store.values import ValueTables
from srs_ooc.trees.block import Block

# Growing subspaces: in the calling thread, or by workers that run ahead of it.


@dataclass(frozen=True)
class ColumnSource:
    """Where the columns of features come from.

    Attributes
    ----------
    columns : ColumnStore
        The features.
    rows : int32 (n_kept,) or None
        Rows to train on; None for all.
    values : ValueTables or None
        The values of codes, where thresholds are drawn between them.
    """

    columns: ColumnStore
    rows: Ints32 | None = None
    values: ValueTables | None = None

    @classmethod
    @contextmanager
    def of(
        cls, store: Store, rows: Ints32 | None, *, mapped: bool, valued: bool
    ) -> "Iterator[ColumnSource]":
        """Yield that of a store, which is ``mapped``; ``valued``: with the values of codes."""
        tables = store.value_tables() if valued else nullcontext()
        with tables as values, store.columns(mapped=mapped) as columns:
            yield cls(columns, rows, values)

    def gather(self, features: Uints32, block: Block, some: Ints32 | None = None) -> None:
        """Page the codes of ``features`` into the first columns of ``block``.

        The values of codes too, where there are some and the block has room for them. ``some``:
        only of these, of the rows to train on.
        """
        rows = self.rows if some is None or self.rows is None else self.rows[some]
        self.columns.gather(features, block, some if rows is None else rows)
        if self.values is not None and block.values is not None:
            self.values.gather(features, block)


def fit_iteration(
    source: ColumnSource, learner: Learner, block: Block, iteration: Iteration
) -> Outcome:
    """Page a subspace into ``block``, add its probe, and have ``learner`` fit it."""
    features = iteration.features
    learner, rows = learner.drawn(iteration.tree_key)
    source.gather(features, block, rows)
    columns = Columns(features, features)
    if iteration.probe is not None:
        place = iteration.probe.source
        block.shuffle_column(place, len(features), iteration.probe.key)
        columns = Columns(
            np.append(features, np.uint32(PROBE_FEATURE)),
            np.append(columns.sources, columns.sources[place]),
        )
    return learner.fit(block, columns, iteration)


Fit = Callable[[Block, Iteration], Outcome]


class Executor(Protocol):
    """Has subspaces grown, here or elsewhere, in any order."""

    @property
    def max_ahead(self) -> int:
        """Iterations that may be under way at once."""

    @property
    def n_read_ahead(self) -> int:
        """Iterations beyond those whose columns may be asked for; none unless said."""
        return 0

    def announce(self, iteration: Iteration) -> None:
        """Say that ``iteration`` will be submitted soon."""

    def submit(self, iteration: Iteration) -> "Future[Outcome]":
        """Start growing ``iteration``."""

    def close(self) -> None:
        """Wait for what is under way and stop."""


def pool_of(blocks: list[Block]) -> SimpleQueue[Block]:
    """Return blocks as they are shared by threads: each is :func:`taken` by one at a time."""
    pool: SimpleQueue[Block] = SimpleQueue()
    for block in blocks:
        pool.put(block)
    return pool


@contextmanager
def taken(pool: SimpleQueue[Block]) -> Iterator[Block]:
    """Yield a block that no other thread has; wait for one before."""
    block = pool.get()
    try:
        yield block
    finally:
        pool.put(block)


class ThreadExecutor:
    """Grows subspaces with one block per worker; with a single block, in the calling thread.

    Parameters
    ----------
    fit : callable
        ``fit(block, iteration) -> Outcome``; releases the GIL where it works.
    blocks : list of Block
        One per worker.
    ahead : ReadAhead
        Told which subspaces will be grown soon.
    """

    def __init__(self, fit: Fit, blocks: list[Block], ahead: ReadAhead) -> None:
        self._fit, self._blocks, self._read_ahead = fit, pool_of(blocks), ahead
        self._pool = ThreadPoolExecutor(len(blocks), "grow") if len(blocks) > 1 else None
        self.max_ahead = len(blocks) + 1 if self._pool else 1
        self.n_read_ahead = ahead.depth

    def announce(self, iteration: Iteration) -> None:
        """Have the columns of ``iteration``, which will be grown soon, read ahead of need."""
        self._read_ahead.ask(iteration.features)

    def submit(self, iteration: Iteration) -> "Future[Outcome]":
        """Start growing ``iteration``, or grow it now where there are no workers."""
        if self._pool is not None:
            return self._pool.submit(self._work, iteration)
        future: Future[Outcome] = Future()
        future.set_result(self._work(iteration))
        return future

    def _work(self, iteration: Iteration) -> Outcome:
        with taken(self._blocks) as block:
            return self._fit(block, iteration)

    def close(self) -> None:
        """Wait for what is under way and stop the workers."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def executor_of(
    source: ColumnSource, learner: Learner, blocks: list[Block]
) -> Iterator[ThreadExecutor]:
    """Yield what has ``learner`` work in blocks, which are laid out for it from then on."""
    for block in blocks:
        block.tiled = learner.tiled  # what it holds is lost
    with ReadAhead(source.columns) as ahead:
        fit = partial(fit_iteration, source, learner)
        with closing(ThreadExecutor(fit, blocks, ahead)) as executor:
            yield executor


class Speculation:
    """Iterations grown ahead on the guess that what they depend on does not change.

    What an iteration depends on is a number, its version. A guess is right if its version, when its
    turn comes, is still what it was when the iteration was proposed. Once one is wrong, all that
    are wrong by then are thrown away and proposed again; those that still hold are kept. Guessing
    only changes speed. Iterations of a round are proposed from one state, so that all of them hold.
    After a wrong guess it goes no further than the round, or than there are guesses that hold; then
    two rounds further with each round that begins with the version that was expected, so that a
    state that always changes wastes little. Columns are read further ahead than trees are grown,
    once for each iteration: most of what a wrong guess had read serves the right one too, since C
    is the same.

    Parameters
    ----------
    executor : Executor
        Grows the subspaces.
    propose : callable
        ``propose(number) -> Iteration`` from the state as it is now.
    version : callable
        ``version(number) -> int``, equal whenever ``propose(number)`` would be.
    round_size : int
        Iterations proposed from one state.
    """

    def __init__(
        self,
        executor: Executor,
        propose: Callable[[int], Iteration],
        version: Callable[[int], int],
        round_size: int = 1,
    ) -> None:
        self._executor, self._propose, self._version = executor, propose, version
        self._round_size = round_size
        self._guesses: dict[int, tuple[int, Iteration]] = {}
        """By number, the version that an iteration was proposed at, and the iteration."""
        self._growing: dict[int, Future[Outcome]] = {}
        self._next_proposed = self._next_grown = self._announced = 0
        self._n_beyond = executor.max_ahead  # the end of the round
        self._expected: tuple[int, int] | None = None

    def outcome(self, iteration: int, end: int) -> Outcome:
        """Return the outcome of ``iteration``, the next in turn; guess at none from ``end`` on."""
        most = self._executor.max_ahead
        in_round = self._round_size - iteration % self._round_size
        self._check(iteration, in_round)
        if in_round == self._round_size:
            # A round begins: guess further if it has the version that was expected of it.
            if self._expected == (iteration, self._version(iteration)):
                self._n_beyond = min(self._n_beyond + 2 * self._round_size, most)
            following = iteration + self._round_size
            self._expected = following, self._version(following)
        grown = iteration + min(in_round + self._n_beyond, most)
        proposed, grown = min(grown + self._executor.n_read_ahead, end), min(grown, end)
        for number in range(self._next_proposed, proposed):
            if number not in self._guesses:
                self._guesses[number] = self._version(number), self._propose(number)
                if number >= self._announced:
                    self._executor.announce(self._guesses[number][1])
                    self._announced = number + 1
        self._next_proposed = max(self._next_proposed, proposed)
        for number in range(self._next_grown, grown):
            if number not in self._growing:
                self._growing[number] = self._executor.submit(self._guesses[number][1])
        self._next_grown = max(self._next_grown, grown)
        del self._guesses[iteration]
        return self._growing.pop(iteration).result()

    def _check(self, iteration: int, in_round: int) -> None:
        """Throw away wrong guesses if that at ``iteration`` is one."""
        self._next_proposed = max(self._next_proposed, iteration)
        self._next_grown = max(self._next_grown, iteration)
        guess = self._guesses.get(iteration)
        if guess is not None and guess[0] != self._version(iteration):
            self._next_proposed = self._next_grown = iteration
            wrong = [n for n, (version, _) in self._guesses.items() if version != self._version(n)]
            self._throw_away(wrong)
            self._n_beyond = max(0, len(self._guesses) - in_round)

    def drop(self) -> None:
        """Throw away what was proposed and grown ahead."""
        self._throw_away(list(self._guesses))
        self._next_proposed = self._next_grown = 0

    def _throw_away(self, numbers: list[int]) -> None:
        for number in numbers:
            del self._guesses[number]
            if number in self._growing:
                self._growing.pop(number).cancel()


COMMIT_SECONDS = 1.0
COMMIT_SHARE = 20
"""At least COMMIT_SECONDS, and COMMIT_SHARE times the last commit's time, pass between commits."""


def commit_due(took: float = 0.0) -> float:
    """Return when to commit next, by ``time.monotonic``, after a commit of so many seconds."""
    return time.monotonic() + max(COMMIT_SECONDS, COMMIT_SHARE * took)


TALLY = "tally"
"""Name under which a ledger keeps what was learnt of each feature."""


class Engine:
    """Runs iterations from where the last commit left them.

    Parameters
    ----------
    sampler : Sampler
        Proposes subspaces.
    executor : Executor
        Pages them in and grows on them.
    book : Ledger, StageBook or None
        The states are loaded from it and committed to it; None to keep nothing.
    seed : int
        64-bit key of all iterations.
    round_size : int
        Iterations proposed from one state.
    observers : mapping of Part, optional
        What else learns from outcomes, by name, each before the sampler does.
    judge : Judge, optional
        Asked which probe to grow beside a subspace.

    Attributes
    ----------
    parts : dict of Part
        What learns from outcomes, by the name under which it is committed.
    """

    def __init__(
        self,
        sampler: Sampler,
        executor: Executor,
        book: Ledger | StageBook | None,
        *,
        seed: int,
        round_size: int,
        observers: Mapping[str, Part] | None = None,
        judge: Judge | None = None,
    ) -> None:
        self.sampler, self._executor, self._book = sampler, executor, book
        self._seed, self._round_size, self._judge = seed, round_size, judge
        self.parts: dict[str, Part] = dict(observers or {}) | {sampler.name: sampler}
        self._earlier = START if book is None else book.load(self.parts)
        self.iteration = self._earlier.iteration
        self._started = time.monotonic()

    @property
    def tally(self) -> Tally:
        """What a main loop learnt of each feature."""
        tally = self.parts[TALLY]
        assert isinstance(tally, Tally)
        return tally

    @property
    def is_over(self) -> bool:
        """Whether the method has ended by itself."""
        return self.sampler.done(self.iteration)

    def propose(self, number: int) -> Iteration:
        """Return iteration ``number`` as the sampler would have it now."""
        key = key_of(self._seed, number // self._round_size, number % self._round_size)
        subspace, judge = self.sampler.propose(number, key), self._judge
        probe = None if judge is None else judge.probe(key, len(subspace.features))
        return Iteration(number, subspace, derive(key, Purpose.TREE), probe)

    def advance(self, until: int, keep_going: Callable[[], bool] = lambda: True) -> None:
        """Run to ``until`` iterations in total, or to the method's end, or until told to stop.

        ``keep_going`` is asked after every iteration and every step of learning between them. The
        states are committed now and then, and at the end.
        """
        speculation = Speculation(
            self._executor, self.propose, self.sampler.version, self._round_size
        )
        next_commit = commit_due()
        is_committed, going = True, True
        try:
            while going and self.iteration < until and not self.is_over:
                if not self.sampler.step():
                    outcome = speculation.outcome(self.iteration, until)
                    for part in self.parts.values():
                        part.absorb(self.iteration, outcome)
                    self.iteration += 1
                is_committed = False
                if time.monotonic() >= next_commit:
                    next_commit = commit_due(self.commit())
                    is_committed = True
                going = keep_going()
        finally:
            speculation.drop()
        if not is_committed:
            self.commit()

    def commit(self) -> float:
        """Commit the states as they are; return the seconds it took."""
        start = time.monotonic()
        if self._book is not None:
            states = {name: part.state() for name, part in self.parts.items()}
            now = self._earlier.later(self.iteration, self.sampler.n_kept, self._started)
            self._book.commit(now, states)
        return time.monotonic() - start
