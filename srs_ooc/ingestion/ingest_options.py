"""What is said of an ingest: its options, forced kinds, and what the store is made of."""

import csv
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.budget import Lease, n_cores
from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.base.options import names_in
from srs_ooc.base.seeds import Purpose, derive_array, key_of
from srs_ooc.base.text import MB
from srs_ooc.base.urls import Place
from srs_ooc.ingestion import csv as text_tables
from srs_ooc.ingestion.formats import Names, Table, lines_of, reading
from srs_ooc.ingestion.ingest_memory import IngestMemory, StoreForm
from srs_ooc.ingestion.scratch import TextSpool
from srs_ooc.store.manifest import CATEGORICAL, KINDS

# Kinds of feature that the user forces.

FREE = 255
"""Stands for a kind that is to be found."""

_PAIRS_AT_A_TIME = 1 << 13


@dataclass(frozen=True)
class ForcedKinds:
    """Kinds that the user names.

    Attributes
    ----------
    given : sequence of (str, str)
        Names of columns and of their kinds.
    file : Path or None
        A CSV file of such pairs, without a header, or with the header ``name,kind``.
    if_there : bool
        Names that are no column are passed over.

    Raises
    ------
    UsageError
        If a kind is none that can be forced.
    """

    given: Sequence[tuple[str, str]] = ()
    file: Path | None = None
    if_there: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        for name, kind in self.given:
            _check_kind(kind, f"--kind {name}={kind}")

    def __bool__(self) -> bool:
        return bool(self.given) or self.file is not None

    def settle(
        self, source: object, header: TextSpool, beside: Collection[str] = ()
    ) -> NDArray[np.uint8]:
        """Return the kind forced of each column, :data:`FREE` where none is.

        ``beside`` are names of columns that are not in the header.

        Raises
        ------
        InputError
            If a name is no column, or named twice.
        """
        out = np.full(len(header), FREE, np.uint8)
        for pairs in self._blocks():
            found = {name.encode() for name in beside}
            for column, name in header.places(pairs):
                if out[column] != FREE:
                    raise _twice(name)
                out[column] = pairs[name]
                found.add(name)
            for name in (name for name in pairs if not (self.if_there or name in found)):
                raise InputError(
                    f"{source}: no such column {name.decode()!r} (--kind); expected one of its "
                    f"{len(header)} columns. Check the spelling."
                )
        return out

    def names(self) -> Iterator[bytes]:
        """Return the names one by one, the file being read once."""
        return chain.from_iterable(self._blocks())

    def by_name(self) -> dict[bytes, int]:
        """Return the kind forced of each name, held in memory."""
        return next(self._blocks(None), {})

    def _blocks(self, most: int | None = _PAIRS_AT_A_TIME) -> Iterator[dict[bytes, int]]:
        """Yield kinds by name, at most so many at a time."""
        pairs = chain(self.given, _pairs_of(self.file) if self.file else ())
        while True:
            out: dict[bytes, int] = {}
            for name, kind in islice(pairs, most):
                key = name.strip(" \t").encode()
                if key in out:
                    raise _twice(key)
                out[key] = KINDS[kind]
            if not out:
                return
            yield out


def _twice(name: bytes) -> UsageError:
    return UsageError(
        f"--kind: expected each column once, found {name.decode()!r} twice. Leave one out."
    )


def pair_of(text: str) -> tuple[str, str]:
    """Return the two parts of ``NAME=KIND``.

    Raises
    ------
    UsageError
        If there is no ``=``.
    """
    name, mark, kind = text.rpartition("=")
    if not mark:
        raise UsageError(
            f"--kind: expected NAME=KIND, found {text!r}. Write for example --kind chromosome="
            "categorical."
        )
    return name, kind


def _pairs_of(file: Path) -> Iterator[tuple[str, str]]:
    errors = OSError, UnicodeDecodeError, csv.Error
    could_not = reading(file, "a CSV file of names and kinds", "Check the path.", errors)
    with could_not:
        rows = csv.reader(lines_of(file, "a name and a kind", newline=""))
        is_first = True
        for row in rows:
            cells = [cell.strip() for cell in row]
            if cells and not (is_first and cells == ["name", "kind"]):
                where = f"{file}, line {rows.line_num}"
                if len(row) != 2:
                    raise InputError(
                        f"{where}: expected a name and a kind, found {','.join(row)!r}. Write "
                        "for example chromosome,categorical."
                    )
                _check_kind(cells[1], where)
                yield row[0], cells[1]
            is_first = is_first and not row


def _check_kind(kind: str, where: str) -> None:
    allowed = [name for name in KINDS if name != "constant"]
    if kind not in allowed:
        raise UsageError(
            f"{where}: expected one of the kinds {', '.join(allowed)}, found {kind!r}. Name one."
        )


def cells_of(forced: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return for a ``TableReader`` what the cells of columns of these forced kinds are."""
    cells = np.full(len(forced), text_tables.ONLY_NUMBERS, np.uint8)
    cells[forced == FREE] = text_tables.UNKNOWN
    cells[forced == CATEGORICAL] = text_tables.CATEGORIES
    return cells


def row_cells_of(forced: Mapping[bytes, int]) -> dict[bytes, int]:
    """Return the same for rows by their names."""
    return {
        name: text_tables.CATEGORIES if kind == CATEGORICAL else text_tables.ONLY_NUMBERS
        for name, kind in forced.items()
    }


ORDER_KEY = key_of(Purpose.STORE_ORDER)
"""Key of the random order of features on disk: a constant, so equal tables give equal stores."""

_BLOCK = 1 << 16

ByteProgress = Callable[[str, int, int], None]
"""Called with what is being done, how many bytes of it are done, and how many there are."""


class StoredColumns(Protocol):
    """A table that can be read by columns, in stored order (see :func:`stored_positions`)."""

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        ...

    @property
    def n_features(self) -> int:
        """Features of the table."""
        ...

    def read(self, start: int, stop: int) -> NDArray[np.floating[Any]]:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``.

        float32 or float64, C-contiguous; NaN where a value is missing. The caller reads each
        feature once, and may change what is returned.
        """
        ...


def stored_positions(n_features: int, first: int = 0) -> NDArray[np.uint32]:
    """Return the source position of each stored feature: a fixed keyed permutation.

    Of a piece of a table, whose features begin at position ``first`` there, they are counted from
    the piece's own first one. Its order is that of the whole table, with the others left out.
    """
    keys = np.empty(n_features, np.uint64)
    for start in range(0, n_features, _BLOCK):
        stop = min(start + _BLOCK, n_features)
        keys[start:stop] = derive_array(ORDER_KEY, np.arange(first + start, first + stop))
    order = np.argsort(keys, kind="stable")
    del keys
    return order.astype(np.uint32)


@dataclass(frozen=True)
class IngestOptions:
    """How to ingest a table.

    Attributes
    ----------
    target : str or None
        Column of the target; the last one if None.
    no_target : bool
        No column is the target: all are features, and rows are numbered in its place.
    task : {'auto', 'classification', 'regression'}
        What the target is; found out if auto.
    missing_target : {'drop', 'refuse'}
        What becomes of rows without a target.
    min_class_rows : int or None
        A class of fewer rows is refused; None as :mod:`srs_ooc.ingestion.rows` has it.
    kinds : ForcedKinds
        Kinds of feature that are not to be found out.
    weights, groups : str or None
        Columns of weights and of groups of rows.
    strata : sequence of str
        Columns whose tuples are the strata.
    covariates : sequence of str
        Columns that are kept beside the features and never searched.
    missing_covariates : {'keep', 'drop'}
        What becomes of rows without one of them.
    censored : bool
        The target is a time, at which rows were seen last, or their event was seen.
    event, event_value : str or None
        Column that says which, and its value that means the event; found out if None.
    aggregate : {'mean', 'median', 'sum'} or None
        What the known values of a group's rows become, of which one row is made.
    targets : sequence of str
        Columns of further targets, beside that of the store's own.
    row_ids : str or None
        Column of row ids; rows are numbered from 1 if None.
    ignore : sequence of str
        Columns to leave out.
    memory_mb : float
        Cap on the resident memory of the whole process, in MB of 10**6 bytes.
    code_dtype : {'auto', '2bit', 'uint8', 'uint16'}
        Dtype of the codes; those of values 0, 1, 2 may take two bits each. ``auto`` is '2bit' for a
        ``.bed`` file, and else 'uint8'.
    keep_values : bool
        Keep the values, in the narrowest float that loses nothing.
    text : TextForm
        How a text table is written.
    samples : Path or None
        Says what samples are where a row of a text table is a feature: a text table with a line for
        each, which holds the target, weights, strata and groups.
    id_name, sample_features : str or None, tuple of str
        Its column of sample ids, and those that become features, too.
    overwrite : bool
        Replace a store that is there, once the new one is complete.
    first_feature : int
        Place of the first feature in the table that this one is a piece of.
    link : bool
        Leave codes and values in the ``.bed`` file that is ingested, and keep the rest.
    query : str or None
        What of a database is the table.
    append_rows, append_features : path, URL or None
        The store of which the new one is a version with more rows, or features: those of the table.
    threads : int or None
        Threads that code at most, as far as the cap has room for them; the cores there are if None.
    rename_repeated : bool
        Columns whose names were there before get -1, -2, ... after them, instead of a refusal.
    """

    target: str | None = None
    task: str = "auto"
    missing_target: str = "drop"
    min_class_rows: int | None = None
    kinds: ForcedKinds = field(default_factory=ForcedKinds)
    weights: str | None = None
    strata: Sequence[str] = ()
    groups: str | None = None
    row_ids: str | None = None
    ignore: Sequence[str] = ()
    memory_mb: float = 512
    code_dtype: str = "auto"
    keep_values: bool = True
    text: text_tables.TextForm = field(default_factory=text_tables.TextForm)
    samples: Path | None = None
    id_name: str | None = None
    sample_features: tuple[str, ...] = ()
    overwrite: bool = False
    no_target: bool = False
    first_feature: int = 0
    covariates: Sequence[str] = ()
    missing_covariates: str = "keep"
    censored: bool = False
    event: str | None = None
    event_value: str | None = None
    aggregate: str | None = None
    link: bool = False
    query: str | None = None
    targets: Sequence[str] = ()
    append_rows: str | Place | None = None
    append_features: str | Place | None = None
    threads: int | None = None
    rename_repeated: bool = False

    def with_targets(self, names: Container[str]) -> "IngestOptions":
        """Return options whose ``target`` is one of ``names``, or else the first of several.

        They are separated by commas, and quoted where one holds a comma; a time is one alone.
        """
        if self.target is None or self.censored or "," not in self.target or self.target in names:
            return self
        first, *others = names_in(self.target)
        return replace(self, target=first, targets=others)

    @property
    def most_threads(self) -> int:
        """Threads that code at most."""
        return self.threads or n_cores()

    @property
    def drops_more(self) -> bool:
        """Whether rows with a target may be left out: for want of an event or a covariate."""
        return self.censored or self.missing_covariates == "drop"

    def form(self, values_dtype: str = "float64") -> StoreForm:
        """Return how the store keeps values of a dtype."""
        if self.code_dtype == "2bit":
            return StoreForm("uint8", "float32", is_packed=True)
        dtype = "uint16" if self.code_dtype == "uint16" else "uint8"
        return StoreForm(dtype, values_dtype if self.keep_values else None)

    def settled(self, table: Table | None = None) -> "IngestOptions":
        """Return options that say the dtype of codes, that of a ``.bed`` file if that is it."""
        if self.code_dtype != "auto":
            return self
        is_plain = self.keep_values and not (self.link or self.kinds or self.aggregate)
        is_bed = table is not None and table.genotypes is not None
        return replace(self, code_dtype="2bit" if is_bed and is_plain else "uint8")

    def memory(
        self,
        n_columns: int,
        n_rows: int,
        held: tuple[Lease, ...] = (),
        opening: tuple[Lease, ...] = (),
    ) -> IngestMemory:
        """Return what the ingest of a table of so many columns and rows takes."""
        drops = self.drops_more or (self.missing_target == "drop" and not self.no_target)
        if self.rename_repeated:
            opening = (*(opening or held), Lease("which names repeat", Names.NUMBERED * n_columns))
        cap, n_columns, n_rows = int(self.memory_mb * MB), max(1, n_columns), max(1, n_rows)
        memory = IngestMemory(cap, n_columns, n_rows, self.form(), drops, held, opening)
        return replace(memory, aggregates=self.aggregate is not None)

    def columns(self) -> list[tuple[str, str]]:
        """Return (what it is, name) of each column that is named for a role of the rows."""
        named = [("target", self.target), ("row_ids", self.row_ids), ("weights", self.weights)]
        named += [("groups", self.groups), *(("strata", name) for name in self.strata)]
        named += [("events", self.event), *(("covariates", name) for name in self.covariates)]
        named += [("targets", name) for name in self.targets]
        return [(what, name) for what, name in named if name is not None]

    def without_columns(self, known: Container[str] | None = None) -> "IngestOptions":
        """Return options that name no column of the rows, or none of those ``known`` beside it."""

        def left(name: str | None) -> str | None:
            return None if known is None or name in known else name

        single = ("target", "row_ids", "weights", "groups", "event")
        rest: dict[str, Any] = {one: left(getattr(self, one)) for one in single}
        several = ("strata", "covariates", "targets")
        rest |= {one: tuple(filter(left, getattr(self, one))) for one in several}
        return replace(self, **rest)

    def flag_of(self, what: str) -> str:
        """Return the option that names a column, by what the column is."""
        flags = {"events": "--event", "targets": "--target", "event_value": "--event"}
        flags |= {"censored": "--time", "keep_values": "--no-values"}
        flags["target"] = "--time" if self.censored else "--target"
        return flags.get(what, f"--{what.replace('_', '-')}")


@dataclass(frozen=True)
class SideColumns:
    """Names and row columns that stand beside a table, not in it.

    Attributes
    ----------
    names : sequence of str or path, or None
        Names of the columns.
    columns : dict
        By what they are (target, row_ids, weights, strata, groups, covariates, events), the names
        and the items of columns; items in a file by its path.
    inferred : dict
        For the manifest.
    """

    names: Any = None
    columns: Mapping[str, Sequence[tuple[str, Any]]] = field(default_factory=dict)
    inferred: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.names is not None or bool(self.columns)


# Which column of a source is what: target, row ids, weights, ..., ignored, or a feature.

_SHOWN = 5


@dataclass(frozen=True)
class Roles:
    """Columns of a source, by position in its header.

    Attributes
    ----------
    n_columns : int
        Columns of the source.
    named : tuple of (str, int)
        What a column is (target, row_ids, weights, strata, groups, covariates, events), and the
        column.
    ignored : frozenset of int
        Columns left out.
    first_feature : int
        Place of the first feature in the table that the source is a piece of.
    """

    n_columns: int
    named: tuple[tuple[str, int], ...]
    ignored: frozenset[int]
    first_feature: int = 0

    @property
    def target(self) -> int | None:
        """The target; None if it comes from elsewhere."""
        return dict(self.named).get("target")

    @property
    def special(self) -> frozenset[int]:
        """The columns that are no features."""
        return self.ignored | {column for _, column in self.named}

    def texts(self) -> list[tuple[str, int, int]]:
        """Return (what it is, column, slot) of each column that is read as text."""
        slots = {"target": text_tables.TARGET, "row_ids": text_tables.ROW_ID}
        return [
            (what, column, slots.get(what, text_tables.ROW_ID - 1 - i))
            for i, (what, column) in enumerate(self.named)
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
        columns = self.stored_columns()
        slots = np.full(self.n_columns, text_tables.IGNORED, np.int32)
        slots[columns] = np.arange(self.n_features, dtype=np.int32)
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
    named, options = [], options.with_targets(header)
    for what, name in options.columns():
        option = options.flag_of(what)
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
    columns = tuple((what, column) for _, what, column in named)
    roles = Roles(len(header), columns, ignored, options.first_feature)
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
            + " A file: --target-file."
            * (option == "--target" and Path(name).is_file())
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


WORDS = {
    "task": ("auto", "classification", "regression"),
    "missing_target": ("drop", "refuse"),
    "missing_covariates": ("keep", "drop"),
    "aggregate": ("mean", "median", "sum"),
    "code_dtype": ("auto", "2bit", "uint8", "uint16"),
}
"""Parameters that are one of a few words."""
