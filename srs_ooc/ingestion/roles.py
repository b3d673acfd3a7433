"""Which column of a source is what: target, row ids, weights, ..., ignored, or a feature."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.ingestion.contents import stored_positions
from srs_ooc.ingestion.forced_kinds import FREE
from srs_ooc.ingestion.options import IngestOptions
from srs_ooc.ingestion.parse import IGNORED, ROW_ID, TARGET
from srs_ooc.ingestion.scratch import TextSpool
from srs_ooc.store.manifest import ROW_COLUMNS

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
    others : tuple of (str, int)
        Columns of weights, strata and groups, each with what it is.
    first_feature : int
        Place of the first feature in the table that the source is a piece of.
    """

    n_columns: int
    target: int | None
    row_ids: int | None
    ignored: frozenset[int]
    others: tuple[tuple[str, int], ...] = ()
    first_feature: int = 0

    @property
    def special(self) -> frozenset[int]:
        """The columns that are no features."""
        return self.ignored | {column for _, column, _ in self.texts()}

    def texts(self) -> list[tuple[str, int, int]]:
        """Return (what it is, column, slot) of each column that is read as text."""
        named = [("target", self.target, TARGET), ("row_ids", self.row_ids, ROW_ID)]
        found = [(what, column, slot) for what, column, slot in named if column is not None]
        return found + [
            (what, column, ROW_ID - 1 - i) for i, (what, column) in enumerate(self.others)
        ]

    @property
    def n_features(self) -> int:
        """The columns that are."""
        return self.n_columns - len(self.special)

    def stored_columns(self) -> NDArray[np.intp]:
        """Return the column of each feature, in stored order."""
        is_feature = np.ones(self.n_columns, np.bool_)
        is_feature[list(self.special)] = False
        columns = np.flatnonzero(is_feature)
        return columns[stored_positions(self.n_features, self.first_feature)]

    def slots(self) -> NDArray[np.int32]:
        """Return for each column where its cells go, for a ``TableReader``."""
        slots = np.zeros(self.n_columns, np.int32)
        is_feature = np.ones(self.n_columns, np.bool_)
        is_feature[list(self.special)] = False
        place = np.empty(self.n_features, np.int32)
        place[stored_positions(self.n_features, self.first_feature)] = np.arange(
            self.n_features, dtype=np.int32
        )
        slots[is_feature] = place
        slots[list(self.ignored)] = IGNORED
        for _, column, slot in self.texts():
            slots[column] = slot
        return slots


def choose_roles(
    source: object, header: TextSpool, options: IngestOptions, *, has_target: bool = True
) -> Roles:
    """Find the columns that were named; without ``has_target`` the target is none of them.

    Raises
    ------
    InputError
        If a name is not in the header, or no feature is left.
    UsageError
        If one column is named for two roles.
    """
    named = []
    for what, name in options.columns():
        option = f"--{what.replace('_', '-')}"
        named.append((option, what, _find(source, header, name, option)))
    if has_target and options.target is None:
        named.insert(0, ("--target", "target", len(header) - 1))
    ignored = frozenset(_find(source, header, name, "--ignore") for name in options.ignore)
    taken = dict.fromkeys(ignored, "--ignore")
    for option, _, column in named:
        if column in taken:
            is_last = "--target" in (option, taken[column]) and options.target is None
            raise UsageError(
                f"expected each column in one role, found column {header.describe(column)} as "
                f"{option} and {taken[column]}. "
                + ("Name the target with --target." if is_last else "Leave one of them out.")
            )
        taken[column] = option
    single = {what: column for _, what, column in named}
    others = tuple((what, column) for _, what, column in named if what in ROW_COLUMNS)
    target, row_ids = single.get("target"), single.get("row_ids")
    roles = Roles(len(header), target, row_ids, ignored, others, options.first_feature)
    if roles.n_features < 1:
        raise InputError(
            f"{source}: expected at least one feature besides the target, found "
            f"{roles.n_columns} column{'s' * (roles.n_columns != 1)} and no feature among them. "
            "Check that the columns of a text table are separated as expected, or name the "
            "character with --separator."
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


def check_kinds(header: TextSpool, roles: Roles, forced: NDArray[np.uint8]) -> None:
    """Refuse a kind of feature that is forced on the target.

    Raises
    ------
    UsageError
        Naming the target.
    """
    if roles.target is not None and forced[roles.target] != FREE:
        raise UsageError(
            f"--kind: expected features, found the target {header.describe(roles.target)}. Leave "
            "it out; --task says what the target is."
        )


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
