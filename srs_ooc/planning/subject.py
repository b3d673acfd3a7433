"""What a plan is for: a table, on disk or only in numbers, and how it would be run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from srs_ooc.base.errors import UsageError
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Url
from srs_ooc.learners.models import TREE
from srs_ooc.learners.tree_learner import RANK
from srs_ooc.runs.inputs import Inputs
from srs_ooc.runs.resources import Resources, resources_of
from srs_ooc.runs.session import settle_new
from srs_ooc.runs.settling import DEFAULT_MEMORY_MB, Request, settle
from srs_ooc.runs.spec import Options, RunSpec, TrainingShape, notes_of
from srs_ooc.runs.task import Task
from srs_ooc.store.manifest import max_codes
from srs_ooc.store.store import Store


@dataclass(frozen=True)
class Numbers:
    """A table known only by its numbers; None where none was given."""

    n_rows: int | None = None
    n_features: int | None = None
    n_classes: int | None = None


@dataclass(frozen=True)
class Subject:
    """A new run, before it is.

    Attributes
    ----------
    spec : RunSpec
        Its identity; ``store`` is empty where there is no store.
    shape : TrainingShape
        Rows, features and classes it is trained on.
    class_counts : tuple of int
        Rows of each class; equal shares where only numbers are known.
    cap_nbytes : int
        Cap on the memory of the whole process.
    threads : int or None
        Workers asked for; None for the cores there are.
    store : Store or None
        The table, if there is one.
    inputs : Inputs
        Features left out and rows trained on.
    """

    spec: RunSpec
    shape: TrainingShape
    class_counts: tuple[int, ...]
    cap_nbytes: int
    threads: int | None = None
    store: Store | None = None
    inputs: Inputs = field(default_factory=Inputs)

    @property
    def n_items(self) -> int:
        """Features that may be drawn, and their decoys."""
        return self.spec.n_items(self.shape.n_candidates)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the method has to say of such a run before it starts."""
        return notes_of(self.spec, self.shape.n_rows, self.shape.n_candidates)

    @property
    def codes_nbytes(self) -> int:
        """Bytes of all codes on disk."""
        return self.shape.n_features * self.column_nbytes

    @property
    def reading_nbytes(self) -> int:
        """Memory of requests under way; 0 unless the store is at a URL."""
        return 0 if self.store is None else self.store.reading_nbytes

    @property
    def is_remote(self) -> bool:
        """Whether the store is at a URL."""
        return self.store is not None and isinstance(self.store.place, Url)

    @property
    def column_nbytes(self) -> int:
        """Bytes of one feature's codes on disk."""
        n_rows = self.shape.n_rows if self.store is None else self.store.n_rows
        return n_rows * self.shape.code_nbytes

    @contextmanager
    def resources(self) -> Iterator[Resources]:
        """Yield the resources that the run would have; only where there is a store.

        Raises
        ------
        StoreError, BudgetError
            As :func:`srs_ooc.runs.resources.resources_of`.
        """
        assert self.store is not None
        task = Task.of_run(self.spec, self.store, self.inputs)
        with resources_of(self.spec, self.store, task, self.cap_nbytes, self.threads) as resources:
            yield resources


def subject_asked(store: Callable[[], Store] | None, numbers: Numbers, request: Request) -> Subject:
    """Return the subject that was asked for: a store's, or one of numbers alone.

    Parameters
    ----------
    store : callable or None
        Opens the store; None where none was named, and none can be found.
    numbers : Numbers
        What else is known.
    request : Request
        The run as it would be asked for.

    Raises
    ------
    UsageError
        If there is neither, both, or one number without the other.
    StoreError, BudgetError
        If the run could not be created.
    """
    if numbers.n_rows is None and numbers.n_features is None:
        if numbers.n_classes is not None:
            raise UsageError("--n-classes goes with --n-rows and --n-features; a store knows its.")
        if store is None:
            raise UsageError("expected a store, or --n-rows and --n-features; found neither.")
        return subject_of_store(store(), request)
    named = request.exclude_file or request.rows_file or request.validation_file
    if store is not None or named or request.exclude_missing:
        raise UsageError(
            "expected a store (with --exclude, --rows), or --n-rows and --n-features alone; "
            "found both. Leave one out."
        )
    if numbers.n_rows is None or numbers.n_features is None:
        missing = "--n-rows" if numbers.n_rows is None else "--n-features"
        raise UsageError(f"expected --n-rows and --n-features together, found no {missing}.")
    n_classes = numbers.n_classes or 2
    if numbers.n_rows < n_classes:
        raise UsageError(
            f"--n-classes: expected at most {numbers.n_rows} (--n-rows), found {n_classes}."
        )
    cap = (DEFAULT_MEMORY_MB if request.memory_mb is None else request.memory_mb) * MB
    shape = numbers.n_rows, numbers.n_features, n_classes
    return subject_of_numbers(*shape, request.options, cap, request.threads)


def subject_of_numbers(
    n_rows: int,
    n_features: int,
    n_classes: int,
    options: Options,
    cap_nbytes: int,
    threads: int | None = None,
) -> Subject:
    """Return the subject of a table that is not there: uint8 codes, classes of equal size.

    Raises
    ------
    UsageError
        If an option is outside its range.
    """
    is_decoded = options.get("model", TREE) != TREE
    by_value = options.get("thresholds", RANK) != RANK or is_decoded
    n_values = min(max_codes("uint8"), n_rows) if by_value else 0
    shape = TrainingShape(
        n_rows, n_features, n_features, n_classes, 1, 0, n_values, n_rows, is_decoded=is_decoded
    )
    counts = tuple(n_rows // n_classes + (i < n_rows % n_classes) for i in range(n_classes))
    return Subject(settle(options, shape, "", cap_nbytes), shape, counts, cap_nbytes, threads)


def subject_of_store(store: Store, request: Request) -> Subject:
    """Return the subject of a new run on ``store``.

    Raises
    ------
    StoreError, UsageError, BudgetError
        If the run could not be created.
    """
    spec, shape, inputs, memory_mb = settle_new(store, request)
    counts = class_counts_of(store, inputs)
    return Subject(spec, shape, counts, memory_mb * MB, request.threads, store, inputs)


def class_counts_of(store: Store, inputs: Inputs) -> tuple[int, ...]:
    """Return the training rows of each class that has some; none of a regression."""
    counts = store.manifest.class_counts
    if counts and inputs.rows is not None:
        counts = tuple(np.bincount(store.target()[inputs.rows]).tolist())
    return tuple(count for count in counts if count)
