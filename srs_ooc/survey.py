"""What is read of the table once a ranking is closed: groups of its items, and the marginal tests.

Neither has a part in the ranking.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.elimination import Elimination
from srs_ooc.evidence.groups import MOST_ROWS, group_items, largest_groups
from srs_ooc.evidence.marginal import (
    class_p_values,
    largest_passing,
    rank_correlation_p_values,
    target_ranks,
)
from srs_ooc.fitting import EngineParts
from srs_ooc.kernel.block import Block
from srs_ooc.shares import exact_share
from srs_ooc.store.manifest import Manifest, read_manifest
from srs_ooc.store.reading import read_target

GROUPED = 250
"""Places of the ranking that are grouped."""
_CELLS = 1 << 20
"""Codes looked at together by the marginal tests."""
_COLUMNS = 64


@dataclass(frozen=True)
class Survey:
    """What is known of the places of a ranking besides it.

    Attributes
    ----------
    is_decoy : bool (n,)
        By place.
    group_numbers : int32 (n,)
        Group of correlated items, from 0 in the order of their best places; -1 beyond the places
        that are grouped.
    largest_groups : int64 (n,)
        By place k: the most decoys of one group in the first 2 k places.
    p_values : float64 (n,)
        Of the marginal test of the place's feature.
    marginal_cutoff : float
        The p-value up to which features pass Benjamini and Hochberg at the run's level.
    n_marginal : int
        Features that do.
    """

    is_decoy: NDArray[np.bool_]
    group_numbers: NDArray[np.int32]
    largest_groups: NDArray[np.int64]
    p_values: NDArray[np.float64]
    marginal_cutoff: float
    n_marginal: int


def survey(parts: EngineParts, state: Elimination, store: Path) -> Survey:
    """Look at the items of a closed ranking, and at every feature by itself."""
    manifest = read_manifest(store)
    is_decoy = state.items >= manifest.n_features
    groups = _groups(parts, state.items[:GROUPED], manifest)
    numbers = np.full(len(state.items), -1, np.int32)
    numbers[: len(groups)] = np.unique(groups, return_inverse=True)[1]
    p_values = _marginal(parts, store, manifest)
    candidates = parts.sampler.candidates
    n_features = manifest.n_features
    tested = p_values if candidates is None else p_values[candidates[candidates < n_features]]
    cutoff = largest_passing(tested, float(exact_share(parts.spec.fdr)))
    return Survey(
        is_decoy,
        numbers,
        largest_groups(groups, is_decoy[: len(groups)], len(is_decoy)),
        p_values[state.items % n_features].astype(np.float64),
        cutoff,
        int(np.count_nonzero(tested <= cutoff)) if cutoff > 0 else 0,
    )


def _groups(parts: EngineParts, items: NDArray[np.uint32], manifest: Manifest) -> NDArray[np.intp]:
    n_rows = parts.n_rows
    rows = np.linspace(0, n_rows - 1, min(n_rows, MOST_ROWS)).astype(np.intp)
    codes = np.concatenate([columns[:, rows] for columns in _columns(parts, items, manifest)])
    return group_items(codes, manifest.missing_code)


def _marginal(parts: EngineParts, store: Path, manifest: Manifest) -> NDArray[np.float32]:
    target = read_target(store, manifest)
    if parts.source.rows is not None:
        target = target[parts.source.rows]
    ranks = target_ranks(target.astype(np.float64)) if manifest.task == "regression" else None
    p_values = np.ones(manifest.n_features, np.float32)
    features = np.arange(manifest.n_features, dtype=np.uint32)
    done = 0
    for some in _columns(parts, features, manifest):
        columns, n_codes = some, manifest.missing_code
        if manifest.code_nbytes > 1:
            columns, n_codes = _dense(some, manifest.missing_code)
        if ranks is None:
            found = class_p_values(columns, target.astype(np.int64), len(manifest.classes), n_codes)
        else:
            found = rank_correlation_p_values(columns, ranks, n_codes)
        p_values[done : done + len(columns)] = found
        done += len(columns)
    return p_values


def _dense(columns: NDArray[Any], missing_code: int) -> tuple[NDArray[np.int64], int]:
    """Return the codes numbered from 0 as they are in use, missing ones last, and how many."""
    codes, inverse = np.unique(columns, return_inverse=True)
    return inverse.reshape(columns.shape), int(np.count_nonzero(codes != missing_code))


def _columns(
    parts: EngineParts, items: NDArray[np.uint32], manifest: Manifest
) -> Iterator[NDArray[Any]]:
    n_rows = parts.n_rows
    size = max(1, min(_COLUMNS, _CELLS // n_rows, len(items)))
    block = Block(size, n_rows, manifest.code_nbytes, tiled=False)
    for start in range(0, len(items), size):
        some = np.ascontiguousarray(items[start : start + size])
        parts.source.gather(some, block)
        yield block.as_columns(len(some))
