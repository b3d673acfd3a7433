"""Which column of a source is what: target, row ids, ignored, or a feature."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.errors import InputError, UsageError
from srs_ooc.kernel.parse import IGNORED, ROW_ID, TARGET
from srs_ooc.store.table import stored_positions
from srs_ooc.store.texts import TextSpool

_SHOWN = 5


@dataclass(frozen=True)
class Roles:
    """Columns of a source, by position in its header.

    Attributes
    ----------
    n_columns : int
        Columns of the source.
    target : int or None
        The target; None if it comes from elsewhere.
    row_ids : int or None
        The row ids.
    ignored : frozenset of int
        Columns left out.
    """

    n_columns: int
    target: int | None
    row_ids: int | None
    ignored: frozenset[int]

    @property
    def special(self) -> frozenset[int]:
        """The columns that are no features."""
        return self.ignored | {i for i in (self.target, self.row_ids) if i is not None}

    @property
    def n_features(self) -> int:
        """The columns that are."""
        return self.n_columns - len(self.special)

    def stored_columns(self) -> NDArray[np.intp]:
        """Return the column of each feature, in stored order."""
        is_feature = np.ones(self.n_columns, np.bool_)
        is_feature[list(self.special)] = False
        columns = np.flatnonzero(is_feature)
        return columns[stored_positions(self.n_features)]

    def slots(self) -> NDArray[np.int32]:
        """Return for each column where its cells go, for a ``TableReader``."""
        slots = np.zeros(self.n_columns, np.int32)
        is_feature = np.ones(self.n_columns, np.bool_)
        is_feature[list(self.special)] = False
        place = np.empty(self.n_features, np.int32)
        place[stored_positions(self.n_features)] = np.arange(self.n_features, dtype=np.int32)
        slots[is_feature] = place
        slots[list(self.ignored)] = IGNORED
        if self.target is not None:
            slots[self.target] = TARGET
        if self.row_ids is not None:
            slots[self.row_ids] = ROW_ID
        return slots


def choose_roles(
    source: object,
    header: TextSpool,
    target: str | None,
    row_ids: str | None,
    ignore: Sequence[str],
    *,
    has_target: bool = True,
) -> Roles:
    """Find the columns that were named; without ``has_target`` the target is none of them.

    Raises
    ------
    InputError
        If a name is not in the header, or no feature is left.
    UsageError
        If one column is named for two roles.
    """
    last = len(header) - 1
    default = last if has_target else None
    target_column = default if target is None else _find(source, header, target, "--target")
    id_column = None if row_ids is None else _find(source, header, row_ids, "--row-ids")
    named = {"--target": target_column, "--row-ids": id_column}
    ignored = frozenset(_find(source, header, name, "--ignore") for name in ignore)
    for option, column in named.items():
        others = {o for o, c in named.items() if c == column and o != option}
        if column is not None and (column in ignored or others):
            other = "--ignore" if column in ignored else min(others)
            raise UsageError(
                f"expected each column in one role, found column {header.describe(column)} as "
                f"{option} and {other}. Name the target with --target."
            )
    roles = Roles(len(header), target_column, id_column, ignored)
    if roles.n_features < 1:
        raise InputError(
            f"{source}: expected at least one feature besides the target, found "
            f"{roles.n_columns} columns and no feature among them. Check that the columns are "
            "separated as expected, or name the character with --separator."
        )
    return roles


def _find(source: object, header: TextSpool, name: str, option: str) -> int:
    position = header.find(name.strip(" \t"))
    if position is None:
        shown = [header.describe(i) for i in range(min(_SHOWN, len(header)))]
        more = f", ... {header.describe(len(header) - 1)}" if len(header) > _SHOWN else ""
        raise InputError(
            f"{source}: no such column {name!r} ({option}); expected one of its {len(header)} "
            f"columns: {', '.join(shown)}{more}."
        )
    return position


def check_distinct(source: object, texts: TextSpool, what: str, remedy: str) -> None:
    """Refuse texts that occur twice, naming them.

    Raises
    ------
    InputError
        If two are equal.
    """
    pairs = texts.duplicates()
    if pairs:
        found = "; ".join(
            f"{texts.describe(first)} at {first + 1} and {second + 1}" for first, second in pairs
        )
        raise InputError(f"{source}: expected distinct {what}, found {found}. {remedy}")
