"""A file of scores by feature name, as `srs-ooc scores --csv` writes it, read in bounded memory."""

import csv
from _csv import Reader as Lines
from collections.abc import Iterator
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.runs.side_files import LOOKING_NBYTES, hashed_names, read_lines, together
from srs_ooc.samplers.column_scores import integer_weights
from srs_ooc.store.store import Store

SCORE_NBYTES = 25
"""Memory of a feature while scores are read."""
_COLUMNS = ("name", "score")


def read_weights(file: Path, store: Store, spare_nbytes: int = 0) -> NDArray[np.uint32]:
    """Return the scores in a file as weights by stored position; uint32 (n_features,).

    Features that the file does not name weigh 0. With more ``spare_nbytes`` of memory the file is
    read fewer times; what is found is the same.

    Raises
    ------
    UsageError
        If the file has no columns ``name`` and ``score``, names a feature twice or one that is not
        in the store, or a score is no number from 0 on.
    """
    n_features = store.n_features
    scores, n_found = np.full(n_features, np.nan), 0
    for hashed in hashed_names(store.names, LOOKING_NBYTES + spare_nbytes):
        for block in together(_rows(file), lambda row: len(row[0])):
            places = hashed.places([name for name, _ in block])
            for (name, score), place in zip(block, places.tolist(), strict=True):
                if place >= 0:
                    if not np.isnan(scores[place]):
                        raise UsageError(
                            f"{file}: expected each feature once, found {name.decode()[:80]!r} "
                            "again. Leave one out."
                        )
                    scores[place], n_found = score, n_found + 1
    n_rows = sum(1 for _ in _rows(file))
    if n_found < n_rows:
        raise UsageError(
            f"{file}: expected every name to be a feature of the store, found {n_rows - n_found} "
            "that are not. `srs-ooc inspect STORE --names` lists them."
        )
    np.nan_to_num(scores, copy=False, nan=0.0)
    by_source = integer_weights(scores)
    del scores
    weights = np.zeros(n_features, np.uint32)
    for start, positions in store.pieces("positions"):
        weights[start : start + len(positions)] = by_source[positions]
    return weights


def _rows(file: Path) -> Iterator[tuple[bytes, float]]:
    """Yield name and score of each row."""
    lines = csv.reader(line.decode() for line in read_lines(file, "feature"))
    try:
        yield from _named(file, lines)
    except csv.Error as error:
        raise UsageError(
            f"{file}, line {lines.line_num}: expected a CSV file with the columns name and score, "
            f"found one that cannot be read: {error}."
        ) from error


def _named(file: Path, lines: "Lines") -> Iterator[tuple[bytes, float]]:
    header = next(lines, [])
    if any(header.count(column) != 1 for column in _COLUMNS):
        raise UsageError(
            f"{file}: expected a CSV file with the columns name and score, found the header "
            f"{','.join(header)[:80]!r}. `srs-ooc scores STORE --csv` writes such a file."
        )
    name, score = (header.index(column) for column in _COLUMNS)
    for row in lines:
        if len(row) != len(header):
            raise UsageError(
                f"{file}, line {lines.line_num}: expected {len(header)} cells, found {len(row)}."
            )
        yield row[name].encode(), _score_of(file, lines.line_num, row[score])


def _score_of(file: Path, line: int, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = -1.0
    if not (isfinite(score) and score >= 0):
        raise UsageError(
            f"{file}, line {line}: expected a score from 0 on, found {text[:40]!r}. Leave features "
            "out that shall not be drawn, or give them 0."
        )
    return score
