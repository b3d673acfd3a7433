"""What a new store may not be meant to hold: an index, words for what is missing, dates."""

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from srs_ooc.base.options import spelled
from srs_ooc.base.urls import Place
from srs_ooc.ingestion.class_checks import said_of_missing, texts_among_numbers, words_for_missing
from srs_ooc.store.manifest import CATEGORICAL, INTEGER, NO_TARGET
from srs_ooc.store.store import Store

MOST_FEATURES = 200_000
"""Of more features no texts are looked at, which takes a pass over their kinds."""
MOST_LOOKED_AT = 100
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})")
_BLANK = re.compile(r"(unnamed: \d+)?|__index_level_0__|_0", re.IGNORECASE)


_log = logging.getLogger("srs_ooc")


def log_remarks(place: Place) -> None:
    """Log remarks on a new store, as warnings with the names that Python has; none at a URL."""
    if not isinstance(place, Path):
        return
    for remark in remarks_of(Store.open(place)):
        _log.warning("%s: %s", place, spelled(remark))


def remarks_of(store: Store) -> Iterator[str]:
    """Yield sentences on what of a store, new and on this disk, may be a mistake.

    Parameters
    ----------
    store : Store
        The store.

    Yields
    ------
    str
        What was found, and what to do if it is not meant.
    """
    manifest = store.manifest
    yield from _classes(list(manifest.classes))
    task = manifest.inferred.get("task", "")
    is_guess = manifest.inferred.get("target") not in (None, NO_TARGET)
    if is_guess and task.startswith("regression"):
        yield (
            f"{manifest.target_name!r}, the last column, was taken for the target, and for a "
            "number. If it is not, name the target with --target; if each row of the table is a "
            "feature and each column a sample, say --orient features."
        )
    yield from _index(store)
    yield from _texts(store)


def _classes(labels: list[str]) -> Iterator[str]:
    if texts := texts_among_numbers(labels):
        yield (
            f"most class labels are numbers: if the target is a number, {said_of_missing(texts)}."
        )
    elif words := words_for_missing(labels):
        yield f"{said_of_missing(words)}, if they are no classes."


def _index(store: Store) -> Iterator[str]:
    """Look at the first column, which is where data frames write their index."""
    name = store.names[0]
    remedy = f"If it numbers the rows, leave it out: --ignore {name!r}."
    if _BLANK.fullmatch(name.strip()):
        yield f"the first column has no name ({name!r}), as data frames write an index. {remedy}"
    elif _counts_rows(store):
        yield f"the first column, {name!r}, counts up row by row. {remedy}"


def _counts_rows(store: Store) -> bool:
    if store.manifest.values_dtype is None:
        return False
    stored = _first_stored(store)
    if stored is None:
        return False
    last = None
    for _, _, part in store.values().columns(np.array([stored], np.int64)):
        steps = np.diff(part) if last is None else np.diff(part, prepend=last)
        if not np.all(steps >= 1) or np.any(steps > store.manifest.n_dropped_rows + 1):
            return False
        last = part[-1]
    return True


def _first_stored(store: Store) -> int | None:
    """Return where the first column is stored, if its values are whole numbers."""
    for (start, places), (_, kinds) in zip(
        store.pieces("positions"), store.pieces("kinds"), strict=True
    ):
        if len(there := np.flatnonzero(places == 0)):
            return start + int(there[0]) if kinds[there[0]] == INTEGER else None
    return None


def _texts(store: Store) -> Iterator[str]:
    """Look at the first categorical features."""
    if store.n_features > MOST_FEATURES:
        return
    texts = np.flatnonzero(store.kinds() == CATEGORICAL)[:MOST_LOOKED_AT]
    categories, positions = store.categories(), store.array("positions")
    dates, numbers, words = [], [], set[str]()
    for feature in texts.tolist():
        labels = categories.of(feature) or []
        name = store.names[int(positions[feature])]
        if labels and all(_DATE.fullmatch(label.strip()) for label in labels):
            dates.append(name)
        elif among := texts_among_numbers(labels):
            numbers.append(name)
            words.update(among)
    if dates:
        yield (
            f"{_named(dates)} {'holds' if len(dates) == 1 else 'hold'} dates, which were taken for "
            "categories. Leave them out with --ignore, or write them as numbers, such as days."
        )
    if numbers:
        yield (
            f"{_named(numbers)} {'holds' if len(numbers) == 1 else 'hold'} numbers and texts such "
            f"as {_named(list(words))}, all taken for categories. If these stand for missing "
            "values, empty such cells first, as pandas does with `na_values`."
        )


def _named(names: Sequence[str]) -> str:
    return ", ".join(map(repr, sorted(names)[:5])) + (", ..." if len(names) > 5 else "")
