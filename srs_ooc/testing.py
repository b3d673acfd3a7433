"""What a new part must pass: a format, a sampler, a learner, an executor, a column score.

Each function takes a part, or what makes one, and raises ``AssertionError`` saying which rule is
broken. A part that passes works in a run: stopped, resumed, with any number of workers. See
docs/extending.md.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base import records
from srs_ooc.base.arrays import Floats, Floats32, Uints32
from srs_ooc.base.records import Iteration, Outcome, RowSplit, State, Stateful, Subspace
from srs_ooc.base.seeds import derive, derive_array, key_of, scale_below
from srs_ooc.evidence.judges import PositiveJudge
from srs_ooc.evidence.tally import Tally
from srs_ooc.ingestion.formats import Table, TextCoder
from srs_ooc.ingestion.formats.in_memory import text_of
from srs_ooc.learners.tree_learner import Columns, Learner
from srs_ooc.runs.engine import Executor, Speculation
from srs_ooc.runs.ledger import Progress
from srs_ooc.samplers import base as samplers
from srs_ooc.samplers.base import IMPORTANCE, LOSS, PREDICTIONS, Sampler, SamplerContext
from srs_ooc.samplers.column_scores import ColumnScore, ScoredColumns, score_columns
from srs_ooc.trees.block import Block
from srs_ooc.trees.response import Response

__all__ = [
    "MemoryBook",
    "check_executor",
    "check_learner",
    "check_sampler",
    "check_score",
    "check_table",
]


# A book in memory: what a ledger does, without a file.


@dataclass
class SavedCopy:
    """One part as it was committed; see :class:`srs_ooc.base.records.Saved`."""

    facts: Any = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    pages: dict[str, NDArray[Any]] = field(default_factory=dict)

    def length(self, name: str) -> int:
        """Return how many items the large array ``name`` has."""
        return len(self.pages.get(name, ()))

    def fill(self, name: str, out: NDArray[Any], first_page: int = 0) -> None:
        """Fill ``out`` from a large array, from page ``first_page`` on."""
        if name in self.pages:
            start = first_page * records.PAGE_ITEMS
            out[...] = self.pages[name][start : start + len(out)]

    def take(self, state: State) -> None:
        """Keep what a commit would write: of large arrays the changed pages only."""
        for name, pages in state.pages.items():
            old = self.pages.get(name, np.zeros(0, pages.array.dtype))
            new = np.zeros_like(pages.array)
            new[: min(len(old), len(new))] = old[: len(new)]
            for page in np.flatnonzero(pages.changed[: records.n_pages(len(new))]):
                piece = slice(page * records.PAGE_ITEMS, (page + 1) * records.PAGE_ITEMS)
                new[piece] = pages.array[piece]
            self.pages[name] = new
        for pages in state.pages.values():  # arrays may share one
            pages.changed[:] = False
        if state.arrays:
            self.arrays = {name: np.array(array) for name, array in state.arrays.items()}
        if state.facts is not None:
            self.facts = json.loads(json.dumps(state.facts))


class MemoryBook:
    """Keeps the last commit in memory; :meth:`copy` stands for a run that was killed there."""

    def __init__(self) -> None:
        self.progress = Progress(0, 0, 0.0, 0)
        self.saved: dict[str, SavedCopy] = {}

    def load(self, parts: Mapping[str, Stateful]) -> Progress:
        """Restore parts from the last commit; from an empty one where there was none."""
        for name, part in parts.items():
            part.restore(self.saved.get(name, SavedCopy()))
        return self.progress

    def commit(self, progress: Progress, states: Mapping[str, State]) -> float:
        """Keep the states; return that it took no time."""
        for name, state in states.items():
            self.saved.setdefault(name, SavedCopy()).take(state)
        self.progress = progress
        return 0.0

    def copy(self) -> "MemoryBook":
        """Return a book that holds the same commit."""
        return copy.deepcopy(self)


AHEAD = 4
"""Iterations that are proposed before their turn, as a guess."""
MOST_STEPS = 100_000
N_ROWS = 60
"""Rows, of two classes, where a sampler learns from predictions."""
_SEED = 1


Make = Callable[[SamplerContext], Sampler]


class _Work:
    """A sampler at work without a store: outcomes are hashes of what was proposed."""

    def __init__(self, make: Make, n_features: int, round_size: int, **given: Any) -> None:
        self.tally, self.round_size, self.iteration = Tally(n_features), round_size, 0
        context = SamplerContext(
            n_features=n_features,
            key=key_of(_SEED, 5),
            tally=self.tally,
            judge=PositiveJudge(),
            round_size=round_size,
            response=Response.classes(np.arange(N_ROWS) % 2, 2),
            **given,
        )
        self.sampler = make(context)

    def propose(self, iteration: int) -> Subspace:
        key = key_of(_SEED, iteration // self.round_size, iteration % self.round_size)
        return self.sampler.propose(iteration, key)

    def absorb(self, subspace: Subspace) -> None:
        outcome = _outcome(subspace, self.sampler.needs, key_of(_SEED, 7, self.iteration))
        self.tally.absorb(self.iteration, outcome)
        self.sampler.absorb(self.iteration, outcome)
        self.iteration += 1

    def learn(self) -> None:
        """Take all steps that are left before the next iteration."""
        for _ in range(MOST_STEPS):
            if not self.sampler.step():
                return
        raise AssertionError(f"step: still more to learn after {MOST_STEPS} steps")


def check_sampler(
    make: Make,
    *,
    n_features: int = 400,
    subspace_size: int = 24,
    n_iterations: int = 60,
    round_size: int = 1,
    candidates: Uints32 | None = None,
) -> None:
    """Check that a sampler keeps to the contract of :class:`srs_ooc.samplers.base.Sampler`.

    Parameters
    ----------
    make : callable
        ``make(context) -> Sampler``, as new; called several times.
    n_features : int
        Features.
    subspace_size : int
        q.
    n_iterations : int
        How far it is taken, if it does not end before.
    round_size : int
        Iterations that are proposed from one state.
    candidates : uint32, optional
        Stored positions that may be drawn; all if not given.

    Raises
    ------
    AssertionError
        Saying which rule is broken.
    """

    def begun() -> _Work:
        how = {"subspace_size": subspace_size, "candidates": candidates}
        return _Work(make, n_features, round_size, **how)

    known = {IMPORTANCE, LOSS, PREDICTIONS}
    assert begun().sampler.needs <= known, f"needs: expected some of {sorted(known)}"
    assert begun().sampler.name.isidentifier(), "name: expected a word"
    may_be_drawn = np.arange(n_features, dtype=np.uint32) if candidates is None else candidates
    whole = _check_proposals(begun(), n_iterations, may_be_drawn)
    again = _check_proposals(begun(), n_iterations, may_be_drawn)
    assert _same(whole, again), "propose: another course with the same seed"
    # A new run, of which nothing was committed yet, begins alike.
    new = begun()
    found = type(new.sampler.state())
    assert found is State, f"state: expected a srs_ooc.base.records.State, found {found.__name__}"
    try:
        MemoryBook().load({new.sampler.name: new.sampler})
    except Exception as error:
        raise AssertionError(
            f"restore: expected the sampler as new where nothing was committed, found {error!r}"
        ) from error
    new.learn()
    assert _same([new.propose(0)], whole[:1]), "restore: another course where nothing was there"
    _check_guesses(begun(), whole)
    _check_resumed(begun, whole)


def _check_proposals(work: _Work, n_iterations: int, candidates: Uints32) -> list[Subspace]:
    """Check each proposal; return the course."""
    course = []
    while work.iteration < n_iterations and not work.sampler.done(work.iteration):
        work.learn()
        if work.sampler.done(work.iteration):
            break
        at = f"iteration {work.iteration}"
        subspace = work.propose(work.iteration)
        features = subspace.features
        assert features.dtype == np.uint32, f"{at}: features: expected uint32"
        assert 0 < len(features) <= work.sampler.capacity, f"{at}: more features than the capacity"
        assert (np.diff(features.astype(np.int64)) > 0).all(), f"{at}: expected ascending features"
        assert np.isin(features, candidates).all(), f"{at}: a feature that may not be drawn"
        assert _same([subspace], [work.propose(work.iteration)]), f"{at}: propose is not pure"
        course.append(subspace)
        work.absorb(subspace)
    return course


def _check_guesses(work: _Work, course: list[Subspace]) -> None:
    """Check that an iteration whose version held would be proposed alike when its turn comes."""
    guesses: dict[int, tuple[int, Subspace]] = {}
    for subspace in course:
        work.learn()
        if (now := work.iteration) in guesses:
            version, guess = guesses.pop(now)
            if version == work.sampler.version(now):
                assert _same([guess], [subspace]), f"version: iteration {now} changed under one"
        for ahead in range(now + 1, min(now + AHEAD, len(course))):
            guesses.setdefault(ahead, (work.sampler.version(ahead), work.propose(ahead)))
        work.absorb(subspace)


def _check_resumed(begun: Callable[[], _Work], course: list[Subspace]) -> None:
    """Check that what is restored, wherever it was committed, goes on alike."""
    book, first = MemoryBook(), begun()
    for number, subspace in enumerate(course):
        states = {"tally": first.tally.state(), first.sampler.name: first.sampler.state()}
        book.commit(book.progress, states)
        if number % max(1, len(course) // 6) == 0:
            work = begun()
            work.iteration = number
            book.load({"tally": work.tally, work.sampler.name: work.sampler})
            rest = []
            for _ in course[number:]:
                work.learn()
                rest.append(work.propose(work.iteration))
                work.absorb(rest[-1])
            assert _same(rest, course[number:]), f"restore: another course after iteration {number}"
        first.learn()
        first.absorb(subspace)


def _same(one: Any, other: Any) -> bool:
    """Return whether proposals, outcomes, or lists of them, are equal in all that they hold."""
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if is_dataclass(one):
        return all(_same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return bool(one == other)


def _outcome(subspace: Subspace, needs: frozenset[str], key: int) -> Outcome:
    """Return an outcome that depends on the proposal alone: some features matter more."""
    features = subspace.features
    importance = (derive_array(key, features) >> np.uint64(30)).astype(np.int64)
    importance[features % 7 != 0] >>= 4
    n_candidates = 1 if subspace.candidates is None else len(subspace.candidates.bounds) - 1
    numbers = np.arange(n_candidates, dtype=np.uint32)
    losses = predictions = None
    if LOSS in needs and subspace.candidates is not None:
        losses = derive_array(derive(key, 1), numbers) / 2.0**64
    if needs == {LOSS}:
        assert subspace.candidates is not None, "candidates: expected some to judge"
    if needs == {PREDICTIONS}:
        assert subspace.split is not None, "split: expected rows to predict"
    if PREDICTIONS in needs and subspace.split is not None:
        n_rows = len(subspace.split.predicted)
        cells = np.arange(n_candidates * n_rows, dtype=np.uint32)
        shares = (derive_array(derive(key, 2), cells) / 2.0**64).reshape(n_candidates, n_rows)
        predictions = np.stack([shares, 1 - shares], axis=2).astype(np.float32)
    return Outcome(features, importance, None, (), losses, predictions)


_FIELDS = {
    IMPORTANCE: "importance",
    samplers.SENSITIVITY: "importance",
    LOSS: "losses",
    PREDICTIONS: "predictions",
}


def check_learner(
    learner: Learner,
    n_rows: int,
    *,
    n_columns: int = 12,
    n_codes: int = 16,
    tiled: bool = False,
    n_features: int = 1000,
    criteria: tuple[records.Criterion, ...] = (),
) -> None:
    """Check that a learner keeps to the contract of :class:`srs_ooc.learners.tree_learner.Learner`.

    Parameters
    ----------
    learner : Learner
        Made for ``n_rows`` training rows.
    n_rows : int
        Rows of a block.
    n_columns : int
        Columns of a block.
    n_codes : int
        Different codes of a column; at most 255.
    tiled : bool
        The layout of a block that it takes.
    n_features : int
        Features of the store that the columns are drawn from.
    criteria : tuple of Criterion
        Those by which it judges candidates in place of held-out losses.

    Raises
    ------
    AssertionError
        Saying which rule is broken.
    """
    assert learner.provides <= set(_FIELDS), f"provides: expected some of {sorted(_FIELDS)}"
    step = n_features // n_columns
    features = np.arange(0, step * n_columns, step, dtype=np.uint32)
    subspaces = [Subspace(features)]
    if PREDICTIONS in learner.provides:
        subspaces.append(Subspace(features, split=_split(n_rows)))
    if LOSS in learner.provides:
        subspaces.append(Subspace(features, _candidates(n_rows, n_columns)))
    subspaces += [Subspace(features, _by(criterion, n_rows, n_columns)) for criterion in criteria]
    iterations = [
        Iteration(number, subspaces[number % len(subspaces)], key_of(3, number))
        for number in range(2 * len(subspaces))
    ]

    def fitted(iteration: Iteration) -> Outcome:
        block = _block(n_rows, n_columns, n_codes, tiled=tiled)
        return learner.fit(block, Columns(features, features), iteration)

    first = [fitted(iteration) for iteration in iterations]
    for iteration, outcome in zip(iterations, first, strict=True):
        _check_fields(learner, outcome, iteration.subspace)
    again = [fitted(iteration) for iteration in reversed(iterations)][::-1]
    assert _same(first, again), "fit: it depends on what was fitted before"
    with ThreadPoolExecutor(3) as pool:
        side_by_side = list(pool.map(fitted, iterations))
    assert _same(first, side_by_side), "fit: it depends on the thread"


def _block(n_rows: int, n_columns: int, n_codes: int, *, tiled: bool) -> Block:
    """Return a block of hashes; each column has its own."""
    block = Block(n_columns, n_rows, 1, tiled=tiled)
    hashes = derive_array(11, np.arange(len(block.codes), dtype=np.uint32))
    block.codes[:] = scale_below(hashes, n_codes)
    return block


def _split(n_rows: int) -> RowSplit:
    """Return every third row to be predicted by the others."""
    rows = np.arange(n_rows, dtype=np.int32)
    return RowSplit(rows[rows % 3 != 0], rows[rows % 3 == 0])


def _candidates(n_rows: int, n_columns: int) -> records.Candidates:
    """Return the first column, the first two, and so on, each judged by two splits."""
    sizes = np.arange(1, n_columns + 1)
    places = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
    split = _split(n_rows)
    other = RowSplit(split.predicted, split.fitted)
    return records.Candidates(places, np.concatenate([[0], np.cumsum(sizes)]), (split, other))


def _by(criterion: records.Criterion, n_rows: int, n_columns: int) -> records.Candidates:
    """Return the same columns, judged by a criterion of two thirds of the rows."""
    judged, fitted = _candidates(n_rows, n_columns), _split(n_rows).fitted
    return replace(judged, splits=(RowSplit(fitted, fitted[:0]),), criterion=criterion)


def _check_fields(learner: Learner, outcome: Outcome, subspace: Subspace) -> None:
    features, split = subspace.features, subspace.split
    assert np.array_equal(outcome.features, features), "features: others than were asked for"
    absent = {PREDICTIONS} if split is None else set()
    absent |= {LOSS} if subspace.candidates is None else set()
    is_by_criterion = subspace.candidates is not None and subspace.candidates.criterion is not None
    for what in (learner.provides - absent) | ({LOSS} if is_by_criterion else set()):
        found = getattr(outcome, _FIELDS[what])
        assert found is not None, f"{_FIELDS[what]}: promised by provides, and absent"
    if {IMPORTANCE, samplers.SENSITIVITY} & learner.provides:
        assert outcome.importance.dtype == np.int64, "importance: expected int64"
        assert len(outcome.importance) == len(features), "importance: expected one a feature"
    if split is not None and outcome.predictions is not None:
        n_predicted = outcome.predictions.shape[1]
        assert n_predicted == len(split.predicted), "predictions: expected one a row to predict"
    if subspace.candidates is not None and outcome.losses is not None:
        n_candidates = len(subspace.candidates.bounds) - 1
        assert len(outcome.losses) == n_candidates, "losses: expected one a candidate"
        assert np.isfinite(outcome.losses.min()), "losses: expected the least to be known"


MakeScore = Callable[[int, int], ColumnScore]
_CLOSE = 1e-6


def check_score(
    make: MakeScore, columns: Floats32, *, has_symmetry: bool = True, tolerance: float = _CLOSE
) -> Floats:
    """Check a score against the contract of :class:`srs_ooc.samplers.column_scores.ColumnScore`.

    Parameters
    ----------
    make : callable
        ``make(n_rows, n_columns) -> ColumnScore``, as new; called several times.
    columns : float32 (n_columns, n_rows)
        Whole numbers of at most 254, with no column of zeros.
    has_symmetry : bool
        Whether a column's score is the same wherever it stands, and whichever way rows are
        ordered; False for a score that draws by chance.
    tolerance : float
        Relative to the largest score: by how much equal scores may differ.

    Returns
    -------
    float64 (n_columns,)
        The scores.

    Raises
    ------
    AssertionError
        Saying which rule is broken.
    """
    n_columns, n_rows = columns.shape
    score = make(n_rows, n_columns)
    declared = score.nbytes
    assert score.n_passes >= 1, f"n_passes: expected 1 or more, found {score.n_passes}"
    assert declared >= 8 * n_columns, "nbytes: expected room for the scores"
    scores = _scored(score, columns, 7)
    assert scores.dtype == np.float64, f"scores: dtype {scores.dtype}"
    assert scores.shape == (n_columns,), f"scores: shape {scores.shape}"
    assert np.isfinite(scores).all(), "scores: expected finite numbers"
    assert (scores >= 0).all(), "scores: expected numbers from 0 on"
    assert score.nbytes == declared, "nbytes: changed while it worked"
    again = _scored(make(n_rows, n_columns), columns, 7)
    assert np.array_equal(again, scores), "update: other scores the second time"
    doubles = _scored(make(n_rows, n_columns), columns.astype(np.float64), 7)
    assert np.array_equal(doubles, scores), "update: whole numbers as float64 score otherwise"
    others = _scored(make(n_rows, n_columns), columns, 16)
    assert np.array_equal(others, scores), "update: whole numbers in other blocks score otherwise"
    more = np.vstack([columns, np.zeros((1, n_rows), np.float32)])
    found = _scored(make(n_rows, n_columns + 1), more, 7)
    assert found[-1] == 0, "scores: a column of zeros: expected 0"
    close = np.allclose(found[:-1], scores, rtol=0, atol=tolerance * scores.max())
    assert close, "scores: a column of zeros changed others"
    if has_symmetry:
        _check_symmetry(make, columns, scores, tolerance)
    return scores


def _check_symmetry(make: MakeScore, columns: Floats32, scores: Floats, tolerance: float) -> None:
    """Check that the order of columns and of rows does not matter, as a probe needs."""
    n_columns, n_rows = columns.shape
    by_column = np.random.default_rng(0).permutation(n_columns)
    for what, found, expected in (
        ("columns", columns[by_column], scores[by_column]),
        ("rows", columns[:, np.random.default_rng(1).permutation(n_rows)], scores),
    ):
        other = _scored(make(n_rows, n_columns), np.ascontiguousarray(found), 7)
        close = np.allclose(other, expected, rtol=0, atol=tolerance * scores.max())
        assert close, f"scores: {what} in another order: other scores"


def _scored(score: ColumnScore, columns: ScoredColumns, size: int) -> Floats:
    """Return the scores, from blocks whose memory is used again and must not be changed."""
    block = np.zeros((size, columns.shape[1]), columns.dtype)

    def blocks() -> Iterator[tuple[int, ScoredColumns]]:
        for first in range(0, len(columns), size):
            some = columns[first : first + size]
            block[: len(some)] = some
            yield first, block[: len(some)]
            assert np.array_equal(block[: len(some)], some), "update: changed the columns"
            block[:] = 0

    found = score_columns(score, blocks)
    assert found is not None
    return found


def check_table(
    table: Table,
    columns: Sequence[Sequence[Any]],
    names: Sequence[str] | None = None,
    beside: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Check that a table keeps to the contract of a format.

    Parameters
    ----------
    table : Table
        A table of at least two rows and columns, opened.
    columns : sequence of sequences
        What each of its columns holds: numbers, with NaN where one is missing; or texts, with None.
    names : sequence of str, optional
        The names of its columns; None if the format has none.
    beside : mapping of str to sequence, optional
        What is known of its rows besides, by name, None where a cell is missing; not compared if
        not given.

    Raises
    ------
    AssertionError
        Saying which rule is broken.
    """
    n_rows, n_columns = len(columns[0]), len(columns)
    assert table.shape == (n_rows, n_columns), f"shape: {table.shape}"
    assert table.format, "format: empty"
    assert table.work_nbytes >= 0, f"work_nbytes: {table.work_nbytes}"
    found = None if table.names is None else list(table.names)
    assert found == (None if names is None else list(names)), f"names: {found}"
    is_text = [any(isinstance(cell, str) for cell in column) for column in columns]
    told = [False] * n_columns if table.text_columns is None else table.text_columns.tolist()
    assert told == is_text, f"text_columns: {told}"
    assert not (table.by_rows and any(is_text)), "by_rows: texts are read by columns"
    known = table.annotations
    beside = known if beside is None else beside
    assert known.keys() == beside.keys(), f"annotations: {sorted(known)}"
    for name, cells in known.items():
        texts, wanted = ([text_of(cell) for cell in given] for given in (cells, beside[name]))
        assert texts == wanted, f"annotations: {name}: {texts}"
        assert len(cells) == n_rows, f"annotations: {name}: {len(cells)} cells"
    for what in ("default_ids", "default_target"):
        default = getattr(table, what)
        assert default is None or default in known, f"{what}: none of the annotations: {default}"
    assert {*table.index_names} <= {*(table.names or ())}, f"index_names: {table.index_names}"
    for name, said in table.feature_columns.items():
        n_cells = (len(said), len([text_of(cell) for cell in said]))
        assert n_cells == (n_columns, n_columns), f"feature_columns: {name}: {n_cells}"
    _check_reading(table, columns, is_text)
    for position, column in enumerate(columns):
        cells = [text_of(cell) or None for block in table.items(position) for cell in block]
        assert cells == [text_of(c) for c in column], f"items: column {position}: {cells}"
        levels = table.levels(position)
        assert not levels or {*cells} <= {*levels, None}, f"levels: column {position}: {levels}"


def _check_reading(table: Table, columns: Sequence[Sequence[Any]], is_text: list[bool]) -> None:
    pool = table.pool or TextCoder(1_000_000)
    n_lines = table.shape[0] if table.by_rows else table.shape[1]
    everything = table.read(np.arange(n_lines), pool)
    dtypes = (np.float64, np.float32) if np.all(table.narrow) else (np.float64,)
    assert everything.dtype in dtypes, f"read: dtype {everything.dtype}"
    assert everything.itemsize <= table.cell_nbytes, f"cell_nbytes: {table.cell_nbytes}"
    assert everything.flags.c_contiguous, "read: not C-contiguous"
    whole = everything.T if table.by_rows else everything
    assert whole.shape == (len(columns), len(columns[0])), f"read: shape {everything.shape}"
    with np.errstate(over="ignore"):
        kept = np.isnan(whole) | (whole.astype(np.float32) == whole)
    promised = np.broadcast_to(table.narrow, len(columns))
    assert kept[promised].all(), "narrow: float32 does not hold every value"
    texts = pool.texts()
    for position, (values, column) in enumerate(zip(whole, columns, strict=True)):
        if is_text[position]:
            cells = [None if np.isnan(value) else texts[int(value)].decode() for value in values]
            assert cells == list(column), f"read: column {position}: {cells}"
        else:
            right = np.array_equal(values, np.array(column, np.float64), equal_nan=True)
            assert right, f"read: column {position}: {values.tolist()}"
    wanted = [[0], [n_lines - 1], list(range(1, n_lines))]
    if not table.by_rows:  # rows are read from first to last, columns in any order
        wanted += [list(range(n_lines))[::-1], list(range(0, n_lines, 2))]
    for positions in wanted:
        part = table.read(np.array(positions, np.intp), pool)
        same = np.array_equal(part, everything[positions], equal_nan=True)
        assert same, f"read: {positions} differ from what reading all gave"
    assert pool.texts() == texts, "read: reading again numbered other texts"


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
        wanted = [_iteration(number, 0) for number in range(n_iterations)]
        for start in range(0, n_iterations, executor.max_ahead):
            some = wanted[start : start + executor.max_ahead]
            for iteration in some:
                executor.announce(iteration)
            futures = [executor.submit(iteration) for iteration in some]
            # Each future is of its own iteration, in whatever order they are asked.
            for future, iteration in reversed(list(zip(futures, some, strict=True))):
                _check_one(future.result(), iteration)
        # Guesses thrown away leave no trace.
        state = 0
        speculation = Speculation(executor, lambda n: _iteration(n, state), lambda _: state)
        for number in range(n_iterations):
            _check_one(speculation.outcome(number, n_iterations), _iteration(number, state))
            state += number % 3 == 0
        speculation.drop()
        executor.submit(_iteration(10**6, 0)).cancel()
    finally:
        executor.close()
    executor.close()


def _iteration(number: int, state: int) -> Iteration:
    features = np.arange(number % 5 + 1, dtype=np.uint32) * 3
    return Iteration(number, Subspace(features), key_of(state, number))


def _check_one(outcome: Outcome, iteration: Iteration) -> None:
    expected = fit_by_hash(iteration)
    assert np.array_equal(outcome.features, expected.features), "submit: another's features"
    assert np.array_equal(outcome.importance, expected.importance), "submit: another's importances"
