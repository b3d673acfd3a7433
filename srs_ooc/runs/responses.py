"""What the training rows of a store say: classes or targets, with their weights."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.learners.tree_learner import UNWEIGHTED
from srs_ooc.runs.task import Task
from srs_ooc.store.manifest import Manifest
from srs_ooc.trees.response import Response

BALANCED = "balanced"


def n_channels_of(manifest: Manifest, class_weight: str) -> int:
    """Return how many numbers of a row are summed beside rows; see :class:`Response`."""
    weighted = "weights" in manifest.row_columns or class_weight != UNWEIGHTED
    return int(weighted) + int(manifest.task == "regression")


def training_response(task: Task) -> Response:
    """Return what the training rows say.

    A row's weight is that of the store's column of weights, if it has one, times that of its class.
    ``task.class_weight`` is ``none``; ``balanced``, for n / (classes x rows of the class); or
    ``NAME=w,NAME=w``, where a class that is not named weighs 1.

    Raises
    ------
    UsageError
        If there is nothing to learn from them, or a weight is none.
    """
    target, weights, class_weight = task.target, task.weights, task.class_weight
    if task.is_regression:
        if class_weight != UNWEIGHTED:
            raise UsageError("--class-weight: expected a store of classes, found one of numbers.")
        if bool((target == target[0]).all()):
            raise UsageError(
                f"expected training rows whose targets differ, found {len(target)} rows of "
                f"{float(target[0])}. Check the file given with --rows."
            )
        return Response.targets(target.astype(np.float64), weights)
    labels = target.astype(np.int32, copy=False)
    if len(np.unique(labels)) < 2:
        raise UsageError(
            f"expected training rows of at least two classes, found {len(labels)} rows of one. "
            "Check the file given with --rows."
        )
    if class_weight != UNWEIGHTED:
        by_class = class_weights(class_weight, labels, task.classes)
        weights = _products(by_class[labels], weights)
    return Response.classes(labels, len(task.classes), weights)


def _products(
    by_class: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    if weights is None:
        return by_class
    with np.errstate(over="ignore", under="ignore"):
        products = by_class * weights
    wrong = ~(np.isfinite(products) & (products > 0))
    if wrong.any():
        raise UsageError(
            "--class-weight: expected weights that times those of the rows are finite numbers "
            f"above 0, found {by_class[wrong][0]:g} times {weights[wrong][0]:g}. "
            "Choose weights nearer to 1."
        )
    return products


def class_weights(
    text: str, labels: NDArray[np.int32], classes: tuple[str, ...]
) -> NDArray[np.float64]:
    """Return the weight of each class; float64 (n_classes,).

    Raises
    ------
    UsageError
        If the text names no class, or one twice, or no number above 0.
    """
    if text == BALANCED:
        counts = np.bincount(labels, minlength=len(classes))
        present = np.count_nonzero(counts)
        return np.asarray(len(labels) / (present * np.maximum(counts, 1)), dtype=np.float64)
    weights = np.ones(len(classes))
    named: set[str] = set()
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        if name not in classes:
            raise UsageError(
                f"--class-weight: expected none, balanced or CLASS=WEIGHT,..., found {part!r}. "
                f"Classes of the store: {', '.join(classes[:5])}{', ...' * (len(classes) > 5)}."
            )
        if name in named:
            raise UsageError(
                f"--class-weight: expected each class once, found {name!r} again. Leave one out."
            )
        named.add(name)
        weights[classes.index(name)] = _positive(part, number)
    return weights


def _positive(part: str, number: str) -> float:
    try:
        weight = float(Fraction(number))
    except (ValueError, ZeroDivisionError, OverflowError):
        weight = 0.0
    if not weight > 0:
        raise UsageError(
            f"--class-weight: expected a number above 0, found {part!r}. "
            "To train without a class, name the other rows with --rows."
        )
    return weight
