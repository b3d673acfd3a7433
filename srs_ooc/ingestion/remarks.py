"""What of a table may be a mistake, in sentences: an index, words for what is missing, dates."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from shlex import quote
from typing import Any

import numpy as np

from srs_ooc.base.arrays import Reals
from srs_ooc.base.records import Covariate
from srs_ooc.base.text import counted
from srs_ooc.evidence.exchangeability import strata_instead
from srs_ooc.ingestion.csv import is_date, parse_decimal
from srs_ooc.ingestion.formats import TO_DAYS
from srs_ooc.ingestion.rows import NINES, said_of_missing, texts_among_numbers, words_for_missing
from srs_ooc.native import _native
from srs_ooc.store import manifest
from srs_ooc.store.manifest import CATEGORICAL, INTEGER, LAST_COLUMN, NO_TARGET
from srs_ooc.store.store import Store
from srs_ooc.store.values import whole_columns

MOST_FEATURES = 200_000
"""Of more features no texts are looked at, which takes a pass over their kinds."""
MOST_LOOKED_AT = 100
MOST_GROUPS = 1 << 18
"""Of more groups the target within them is not looked at, which takes 16 bytes each."""
MOST_CODES = 12
"""Different whole numbers of a covariate that may be names of groups."""
MOST_CELLS = 1 << 24
"""Of numbers no more cells are looked at, and a thousand more for each column."""
_BLANK = re.compile(r"(unnamed: \d+)?|__index_level_0__|_0", re.IGNORECASE)

_WAYS = {
    "npy": "`numpy.where(x == VALUE, numpy.nan, x)`",
    "SQLite": "`nullif(x, VALUE)` in the query",
    "DuckDB": "`nullif(x, VALUE)` in the query",
    "hdf5": "an attribute `missing_value` of the array",
    "zarr": "an attribute `missing_value` of the array",
}
"""What makes cells of some formats missing; of others pandas does."""

Said = Callable[[list[str]], str]
"""Says of some labels that they stand for missing values, and what to do then."""


def remarks_of(store: Store, known: Sequence[str] | None = None) -> Iterator[str]:
    """Yield sentences on what of a store, new and on this disk, may be a mistake.

    Parameters
    ----------
    store : Store
        The store.
    known : sequence of str, optional
        Texts that ``--missing`` named when it was made.

    Yields
    ------
    str
        What was found, and what to do if it is not meant.
    """
    m = store.manifest
    yield from filter(None, [manifest.hopeless(m)])
    if most := m.inferred.get("outside"):
        yield (
            f"more than 1% of the cells of {most} are new ones outside the range that there was: "
            "were they measured alike? For cuts by all rows, ingest the tables together."
        )
    yield from m.inferred.get("joined", ())
    yield from filter(None, [m.inferred.get("named")])
    said = partial(_said, store, known)
    if texts := texts_among_numbers(m.classes):
        yield f"most class labels are numbers: if the target is a number, {said(texts)}."
    elif words := words_for_missing(m.classes):
        yield f"{said(words)}, if they are no classes."
    task = m.inferred.get("task", "")
    if m.inferred.get("target") == LAST_COLUMN and task.startswith("regression"):
        yield (
            f"{m.target_name!r}, the last column, was taken for the target, and for a "
            "number. If it is not, name the target with --target; if each row of the table is a "
            "feature and each column a sample, say --orient features."
        )
    if task.startswith("classification") and "whole numbers" in task:
        yield (
            f"the {len(m.classes)} whole numbers of the target were taken for classes. If "
            "they are steps of a score or a dose, say --task regression."
        )
    yield from _groups(store)
    yield from _index(store)
    yield from _of_rows(store)
    names = store.names.between(0, min(MOST_LOOKED_AT, store.n_features))
    steps = np.diff(np.array([parse_decimal(name) for name in names], np.float64))
    is_plain = re.fullmatch(r"csv(\.\w+)?", str(m.source.get("format", "csv")))
    if is_plain and steps.min(initial=0) < 0 < steps.max(initial=0):  # wavelengths are in order
        yield "the names of columns are numbers: if the first line holds data, say --no-header."
    if store.n_features <= MOST_FEATURES:
        yield from _texts(store, said)
    yield from far_out(store, said, features=store.n_features <= MOST_FEATURES)


def _said(store: Store, known: Sequence[str] | None, labels: list[str]) -> str:
    """Say that some labels stand for missing values, and what to do with such a table then."""
    kind = str(store.manifest.source.get("format", "csv"))
    if kind.startswith(("csv", "arff")):
        return said_of_missing(labels, known)
    numbers = [number for one in labels if (number := parse_decimal(one.encode())) is not None]
    in_pandas = f"`frame.replace({[*numbers, *labels]}, float('nan'))` in pandas"
    how = next((how for start, how in _WAYS.items() if kind.startswith(start)), in_pandas)
    return said_of_missing(labels, known, f"make such cells missing, as by {how}")


def _groups(store: Store) -> Iterator[str]:
    """Look at the target within groups of rows, of which whole ones trade places."""
    if (groups := store.groups()) is None or store.manifest.target_name == NO_TARGET:
        return
    if (n_groups := 1 + int(groups.max())) > MOST_GROUPS:
        return
    low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
    np.minimum.at(low, groups, store.target())
    np.maximum.at(high, groups, store.target())
    if n_mixed := int(np.count_nonzero(low < high)):
        yield (
            f"the target differs within {n_mixed:,} of {n_groups:,} groups. "
            f"{strata_instead(store.manifest.row_columns)}."
        )


def _index(store: Store) -> Iterator[str]:
    """Look at the first column, which is where data frames write their index."""
    name = store.names[0]
    remedy = f"If it numbers the rows, leave it out: --ignore {name!r}."
    if _BLANK.fullmatch(name.strip()):
        yield f"the first column has no name ({name!r}), as data frames write an index. {remedy}"
    elif _counts_rows(store):
        yield f"the first column, {name!r}, counts up row by row. {remedy}"


def _of_rows(store: Store) -> Iterator[str]:
    """Look at covariates and events."""
    for name, values, levels in store.each_covariate():
        found = np.unique(values[~np.isnan(values)])
        if not levels and 2 < len(found) <= MOST_CODES and (found == np.floor(found)).all():
            yield (
                f"covariate {name!r} has {len(found)} different whole numbers: if they are names "
                f"(of batches, sites), say --kind {quote(name)}=categorical."
            )
        if np.nanmin(values) == np.nanmax(values):
            yield f"covariate {name!r} is the same in all rows that have one: it explains nothing."
    events = store.manifest.inferred.get("events")
    if events and (few := manifest.too_few_events(events["n"], store.n_rows)):
        yield f"{few} Wait for more, or take an end point that is reached more often."


@np.errstate(over="ignore")
def _counts_rows(store: Store) -> bool:
    pieces = zip(store.pieces("positions"), store.pieces("kinds"), strict=True)
    found = (
        start + int((places == 0).argmax())
        for (start, places), (_, kinds) in pieces
        if (kinds[places == 0] == INTEGER).any()
    )
    if store.manifest.values_dtype is None or (stored := next(found, None)) is None:
        return False
    ((_, cells),) = whole_columns(store.values(), np.array([stored], np.int64))
    steps = np.diff(cells)
    return bool(np.all(steps >= 1) and np.all(steps <= store.manifest.n_dropped_rows + 1))


def _texts(store: Store, said: Said) -> Iterator[str]:
    """Look at the first categorical features."""
    texts = np.flatnonzero(store.kinds() == CATEGORICAL)[:MOST_LOOKED_AT]
    categories, positions = store.categories(), store.array("positions")
    dates, others, words = [], [], set[str]()
    for feature in texts.tolist():
        labels = categories.of(feature) or []
        name = store.names[int(positions[feature])]
        if labels and all(map(is_date, labels)):
            dates.append(name)
        elif among := texts_among_numbers(labels) or words_for_missing(labels):
            others.append(name)
            words.update(among)
    if dates:
        yield (
            f"{_named(dates)} {'holds' if len(dates) == 1 else 'hold'} dates, which were taken for "
            f"categories. Leave them out with --ignore, or {TO_DAYS}."
        )
    if others:
        yield f"{_named(others)}: {said(sorted(words))}, if they are no categories."


def far_out(store: Store, said: Said, *, features: bool) -> Iterator[str]:
    """Look for a number such as -999 that is repeated, far from all others of its column.

    Parameters
    ----------
    store : Store
        The store, of which targets, times and covariates are looked at.
    said : callable
        Says of some labels that they stand for missing values, and what to do then.
    features : bool
        Look at features, too.

    Yields
    ------
    str
        What was found, and what to do if it is not meant.
    """
    found: dict[int | str, float] = {}
    m, target = store.manifest, store.target().astype(np.float64)
    own = Covariate(m.target_name, target, m.classes)
    for name, cells, levels in chain([own], store.added("target"), store.each_covariate()):
        if levels:  # of texts that are no numbers 0
            labels = np.array([*(parse_decimal(one.encode()) or 0 for one in levels), np.nan])
        lines = labels[np.nan_to_num(cells, nan=-1).astype(np.intp)] if levels else cells
        found.update((name, end) for _, end in _ends(lines[None], [0]))
    for code in m.inferred.get("events", {}).get("nines", ()):
        found[m.row_columns["events"][0]] = float(code)
    if features and m.values_dtype is not None:
        numbers = np.flatnonzero(store.kinds() <= INTEGER)[: MOST_CELLS // (1000 + store.n_rows)]
        _native.reuse_blocks()
        for start, at, _, chunk in store.values().chunks(numbers):
            found.update((int(numbers[start + i]), end) for i, end in _ends(chunk, at))
        _native.return_large_blocks()
    if found:
        places, first = store.array("positions"), list(found)[:6]
        names = [one if isinstance(one, str) else store.names[int(places[one])] for one in first]
        words = said(sorted({f"{end:.0f}" for end in found.values()}))
        yield (
            f"{counted(len(found), 'column')} ({_named(names)}): far from all other numbers, "
            f"{words}, if nobody measured that; a text table may write -9.0 for -9."
        )


def _ends(chunk: Reals, at: Any) -> Iterator[tuple[int, float]]:
    """Yield which of some lines of a chunk have such a number, and the number."""
    ends = [end.reduce(chunk, axis=1, initial=0)[at] for end in (np.fmin, np.fmax)]
    for i, side in np.argwhere(np.isin(np.transpose(ends), list(NINES))).tolist():
        end, cells = float(ends[side][i]), chunk[at[i]]
        part = cells[~np.isnan(cells)]
        rest = part[part != end]
        gap = np.abs(rest - end).min(initial=np.inf) / (1 if end < 0 else 2)
        is_far = len(rest) and (0 < np.ptp(rest / 2) < gap / 2 or end < 0 <= rest.min())
        if is_far and len(rest) < len(part) - 1:
            yield i, end


def _named(names: Sequence[str]) -> str:
    return ", ".join(map(repr, sorted(names)[:5])) + (", ..." if len(names) > 5 else "")
