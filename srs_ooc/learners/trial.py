"""One subspace of a model, tried in a process of its own: what it takes of memory and time.

What an estimator takes is known to nobody before it runs. So it is run once, on made-up columns of
the run's shape, before a run is made or gone on with; and what it refuses is heard of then.
"""

import json
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import peak_resident_nbytes, resident_nbytes
from srs_ooc.base.errors import SrsOocError, UsageError
from srs_ooc.base.records import Candidates, Criterion, Iteration, RowSplit, Subspace
from srs_ooc.base.seeds import derive_array, scale_below
from srs_ooc.learners.base import Columns
from srs_ooc.learners.estimators import EstimatorLearner
from srs_ooc.learners.fitted import Target
from srs_ooc.learners.import_paths import load, safe_path
from srs_ooc.learners.model_params import DEFAULT_FOLDS, ModelParams
from srs_ooc.learners.pinned import one_thread
from srs_ooc.trees.block import Block

LIBRARY_NBYTES = 200_000_000
"""Published allowance for scikit-learn and what it loads: 171 to 190 MB as measured, where pandas
and pyarrow are installed beside it."""
_LONG_ENOUGH, _MOST_SETS = 0.1, 1024
"""Seconds, and parts of the columns, after which a criterion is timed."""


@dataclass(frozen=True)
class TrialShape:
    """The shape of the subspaces that a model is tried on; ``n_classes`` is 1 for numbers.

    Where a ``criterion`` is named, it is computed for some parts of the columns too.
    """

    n_rows: int
    n_columns: int
    n_classes: int
    code_nbytes: int
    n_values: int
    criterion: str = ""


@dataclass(frozen=True)
class Trial:
    """What one subspace took.

    Attributes
    ----------
    library_nbytes : int
        Of the libraries that were loaded for it.
    work_nbytes : int
        At most, beyond those and the block.
    seconds : float
        Of all folds, once everything is loaded.
    criterion_seconds : float
        Of the criterion of one part of the columns, of any size, as one of many.
    """

    library_nbytes: int
    work_nbytes: int
    seconds: float
    criterion_seconds: float = 0.0


@cache
def tried(params: ModelParams, shape: TrialShape) -> Trial:
    """Try a model on one subspace, in another process; once for each model and shape.

    Raises
    ------
    UsageError
        If there is no such estimator, it cannot be made, fitted or asked, or it ended the process.
    """
    asked = {"path": safe_path(), "params": asdict(params), "shape": astuple(shape)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "srs_ooc.learners.trial"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
        env=None,
    )
    said = done.stdout.strip().rpartition("\n")[2]
    if done.returncode or not said:
        last = done.stderr.strip().rpartition("\n")[2]
        raise UsageError(
            f"--model {params.model}: expected an estimator that can be fitted, found that it "
            f"ended its process with status {done.returncode}: {last[:300]}. Take a smaller "
            "--subspace-size, or choose another model."
        )
    found = json.loads(said)
    if "error" in found:
        raise UsageError(found["error"])
    return Trial(**found)


def _try(params: ModelParams, shape: TrialShape, before_nbytes: int) -> Trial:
    target = Target(_made_up_target(shape), shape.n_classes)
    folds = np.arange(shape.n_rows) % (params.model_folds or DEFAULT_FOLDS)
    learner = EstimatorLearner(params, target, folds)
    # What loads with the first fit counts as library, whatever size that has.
    _fit(learner, shape, min(2, shape.n_columns))
    libraries = resident_nbytes() - before_nbytes
    block = _made_up_block(shape)
    begun, size = time.monotonic(), resident_nbytes()
    _forget_peak()
    _fit(learner, shape, shape.n_columns, block)
    seconds = time.monotonic() - begun
    of_criterion = _criterion_seconds(learner, shape, block) if shape.criterion else 0.0
    taken = max(0, peak_resident_nbytes() - size)
    return Trial(max(0, libraries), taken, seconds, of_criterion)


def _criterion_seconds(learner: EstimatorLearner, shape: TrialShape, block: Block) -> float:
    """Return the seconds of one criterion among as many as take a while, each size as likely."""
    count, seconds = 1, _seconds_of_criteria(learner, shape, block, 1)
    while seconds < _LONG_ENOUGH and count < _MOST_SETS:
        count *= 2
        seconds = _seconds_of_criteria(learner, shape, block, count)
    return seconds / count


def _seconds_of_criteria(
    learner: EstimatorLearner, shape: TrialShape, block: Block, count: int
) -> float:
    rows, sizes = np.arange(shape.n_rows, dtype=np.int32), 1 + np.arange(count) % shape.n_columns
    places = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
    split, criterion = RowSplit(rows, rows[:0]), Criterion(shape.criterion)
    parts = Candidates(places, np.cumsum([0, *sizes]), (split,), criterion)
    begun = time.monotonic()
    _fit(learner, shape, shape.n_columns, block, parts)
    return time.monotonic() - begun


def _fit(
    learner: EstimatorLearner,
    shape: TrialShape,
    n_columns: int,
    block: Block | None = None,
    candidates: Candidates | None = None,
) -> None:
    features = np.arange(n_columns, dtype=np.uint32)
    small = TrialShape(shape.n_rows, n_columns, shape.n_classes, shape.code_nbytes, shape.n_values)
    learner.fit(
        _made_up_block(small) if block is None else block,
        Columns(features, features),
        Iteration(0, Subspace(features, candidates), 1),
    )


def _made_up_target(shape: TrialShape) -> NDArray[Any]:
    """Return classes or numbers at random: noise takes a model as much as anything."""
    hashes = derive_array(1, np.arange(shape.n_rows, dtype=np.uint64))
    if shape.n_classes == 1:
        return hashes / float(1 << 64)
    return scale_below(hashes, shape.n_classes).astype(np.int32)


def _made_up_block(shape: TrialShape) -> Block:
    block = Block(
        shape.n_columns, shape.n_rows, shape.code_nbytes, tiled=False, n_values=shape.n_values
    )
    codes = block.codes.view(f"u{shape.code_nbytes}").reshape(-1, shape.n_rows)
    for j, column in enumerate(codes):
        hashes = derive_array(2 + j, np.arange(shape.n_rows, dtype=np.uint64))
        column[:] = scale_below(hashes, max(2, shape.n_values))
    if block.values is not None:
        block.values[:] = np.linspace(-1.0, 1.0, shape.n_values)
    return block


def _forget_peak() -> None:
    """Let the largest size count from now on, where the system can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def main() -> None:
    """Try what standard input asks for, and print what it took as JSON."""
    asked = json.loads(sys.stdin.read())
    sys.path[:] = asked["path"]
    params, shape = ModelParams(**asked["params"]), TrialShape(*asked["shape"])
    before = resident_nbytes()
    try:
        load(params, is_regression=shape.n_classes == 1)
        with one_thread():
            found = asdict(_try(params, shape, before))
    except SrsOocError as error:
        found = {"error": str(error)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
