"""What is said of an ingest: its options, forced kinds, and what the store is made of."""

import csv
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import chain, islice
from operator import not_
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from srs_ooc.base import options as checks
from srs_ooc.base.arrays import Bytes, Indices, Ints32, Reals, Uints32
from srs_ooc.base.budget import Lease, n_cores
from srs_ooc.base.errors import InputError, UsageError, unfit
from srs_ooc.base.options import entries_of, names_in, unexpected
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

    def settle(self, source: object, header: TextSpool, beside: Collection[str] = ()) -> Bytes:
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
                if (key := name.strip(" \t").encode()) in out:
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
    with reading(file, "a CSV file of names and kinds", "Check the path.", errors):
        rows = csv.reader(lines_of(file, "a name and a kind", newline=""))
        is_first = True
        for row in rows:
            cells = [cell.strip() for cell in row]
            if cells and not (is_first and cells == ["name", "kind"]):
                where = f"{file}, line {rows.line_num}"
                if len(row) != 2:
                    found, remedy = repr(",".join(row)), "Write for example chromosome,categorical."
                    raise unfit(where, "a name and a kind", found, remedy)
                _check_kind(cells[1], where)
                yield row[0], cells[1]
            is_first = is_first and not row


def _check_kind(kind: str, where: str) -> None:
    if kind not in (allowed := [name for name in KINDS if name != "constant"]):
        raise UsageError(
            f"{where}: expected one of the kinds {', '.join(allowed)}, found {kind!r}. Name one."
        )


CELLS_OF = np.full(256, text_tables.ONLY_NUMBERS, np.uint8)
"""For a ``TableReader``, what the cells of a column, or a row, of a forced kind are."""
CELLS_OF[[FREE, CATEGORICAL]] = text_tables.UNKNOWN, text_tables.CATEGORIES

ORDER_KEY = key_of(Purpose.STORE_ORDER)
"""Key of the random order of features on disk: a constant, so equal tables give equal stores."""

_BLOCK = 1 << 16

ByteProgress = Callable[[str, int, int], None]
"""Called with what is being done, how many bytes of it are done, and how many there are."""


class StoredColumns(Protocol):
    """A table of so many rows and features that can be read by columns, in stored order.

    That is the order of :func:`stored_positions`.
    """

    n_rows: int
    n_features: int

    def read(self, start: int, stop: int) -> Reals:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``.

        float32 or float64, C-contiguous; NaN where a value is missing. The caller reads each
        feature once, and may change what is returned.
        """


def stored_positions(n_features: int, first: int = 0) -> Uints32:
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


# What an option of an ingest takes: from Python, and from the command line.


_TAKES: dict[str, Any] = {
    "check": lambda value, name: value,  # returns it as it is kept, or raises UsageError
    "metavar": None,  # what the help calls a value
    "read": lambda text: text,  # the value that a text of the command line says
    "several": False,  # texts, each of which says some values
    "slot": None,  # what columns that are named are in a store: "" is the option's name
    "words": (),  # all values there are
    "flag": "",  # on the command line: "" is the option's name
    "default": None,
}
"""What an option takes, as far as it does not say otherwise."""


def said(takes: Mapping[str, Any], default: Any = None, **other: Any) -> Any:
    """Return the field of an option, which takes the same as others but for what is said."""
    return field(default=default, metadata={**_TAKES, **takes, **other, "default": default})


def _names(given: object, name: str) -> Iterable[object]:
    """Return names of columns, given as a list or one alone: texts that UTF-8 can write."""
    names = (given,) if isinstance(given, str) else given
    if isinstance(names, bytes) or not isinstance(names, Iterable):
        raise unexpected(name, "a list of names of columns", names)
    for text in names:
        if not isinstance(text, str) or text.encode(errors="ignore").decode() != text:
            raise unexpected(name, "the name of a column", text)
    return names


def _name_or_items(given: object, name: str) -> object:
    return next(iter(_names(given, name))) if isinstance(given, str) else given


def _names_or_items(given: object, name: str) -> object:
    given = () if given is None else given
    return _names(given, name) if isinstance(given, str | tuple) else given


def _covariates(given: object, name: str) -> object:
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        given = tuple(given)
    if not isinstance(given, str | tuple | Mapping):
        raise unexpected(name, "names of columns, or columns by name", given)
    return _names_or_items(given, name)


def _kinds(given: object, name: str) -> ForcedKinds:
    """Return kinds from a mapping of names of columns to them, or a file."""
    if isinstance(given, Path):
        return ForcedKinds(file=given)
    if not isinstance(given := {} if given is None else given, Mapping):
        raise unexpected(name, "a mapping of names of columns to kinds", given)
    for column in _names(given, name):
        if not isinstance(kind := given[column], str):
            raise UsageError(f"kinds: expected the kind of {column!r} as text, found {kind!r:.60}.")
    return ForcedKinds(tuple(given.items()))


_FILES = {"metavar": "FILE", "several": True, "read": lambda path: [path]}
_YES, _NO = {"check": checks.flag_given}, {"check": checks.flag_given, "read": not_}
_NUMBER = {"check": checks.whole_given, "metavar": "N"}
_OLD = {"check": checks.place_given, "metavar": "OLD"}
_FILE, _NAME, _CHAR = ({"metavar": metavar} for metavar in ("FILE", "NAME", "CHAR"))
_COLUMN = {"check": _name_or_items, "metavar": "NAME", "slot": ""}
_COLUMNS = {"check": _names_or_items, "metavar": "NAMES", "read": names_in, "slot": ""}
_IGNORED = {"check": _names, "metavar": "NAMES", "several": True}
_PARTS: dict[str, dict[str, Any]] = {
    "kind": {"metavar": "NAME=KIND", "read": lambda text: [pair_of(text)], "several": True},
    "time": _NAME,
    "separator": _CHAR,
    "comment": _CHAR,
    "decimal": {"words": ("point", "comma"), "default": "point"},
    "missing": {"metavar": "TEXT", "read": lambda text: [text], "several": True},
    "target_file": _FILE,
    "orient": {"words": ("samples", "features"), "default": "samples"},
    "header": _NO | {"default": True, "flag": "--no-header"},
}
"""Options that become part of others: of kinds, the target, how a text table is written."""


@dataclass(frozen=True)
class IngestOptions:
    """How to ingest a table: each option is declared here, and nowhere else.

    The command line (its help is the entries below, in their order), what Python checks, pieces and
    appended stores follow.

    Attributes
    ----------
    target : str or None
        Column of the target. Of several, separated by commas, the first is the store's own; `run
        --target` takes the others. [default: the last one]
    no_target : bool
        No column is the target: all are features, for `srs-ooc network`.
    task : {'auto', 'classification', 'regression'}
        What the target is; auto: texts and few whole numbers are classes.
    missing_target : {'drop', 'refuse'}
        Leave rows without a target out, or refuse the table.
    min_class_rows : int or None
        Refuse classes of fewer rows, which are often no classes. [default: 2, of a table of 20 rows
        or more]
    row_ids : str or None
        Column of row ids. [default: rows are numbered]
    ignore : sequence of str
        Columns to leave out, separated by commas; repeatable.
    kind : sequence of (str, str)
        A column's kind: numeric, integer, boolean or categorical; repeatable. [default: found]
    kinds : ForcedKinds
        CSV file of names and kinds, for many columns.
    weights : str or None
        Column of weights of the rows, positive numbers.
    strata : sequence of str
        Columns, separated by commas, whose tuples are the strata.
    groups : str or None
        Column of groups of rows that belong together.
    aggregate : {'mean', 'median', 'sum'} or None
        Make one row of each group, of the known values of its rows.
    covariates : sequence of str
        Columns to adjust for, such as age,sex,batch. They are kept beside the features and never
        searched.
    missing_covariates : {'keep', 'drop'}
        Keep rows without a value of a covariate, or leave them out.
    query : str or None
        Of an SQLite or DuckDB file: the select whose result is the table, row id, feature, value;
        or row ids, then a column for each feature.
    time : str or None
        In place of --target: column of the time at which a row was seen last, 0 or more.
    event : str or None
        Column of whether the event was seen then: 0 and 1, false and true, no and yes, alive and
        dead, or any two values, one of which is named.
    separator : str or None
        Between fields: one character, or comma, tab, semicolon, pipe, space. [default: found]
    comment : str or None
        Skip the lines that start with this character.
    decimal : {'point', 'comma'}
        What numbers are written with: 1.5 or 1,5.
    missing : sequence of str or None
        A cell with exactly this text is missing; repeatable. [default: empty, NA and nan]
    rename_repeated : bool
        Of columns of one name all but the first end in -1, -2, ...
    names_from : {'id', 'symbol'} or None
        Of 10x, loom: what features are named by. [default: symbol, or id where there is none]
    feature_type : str or None
        Of 10x: only features of this type, such as 'Gene Expression'. [default: all]
    names : Path, sequence of str or None
        Names of the columns of .npy, .npz: one a line, or a .npy. [default: f0, f1, ...]
    target_file : Path or None
        Target for .npy, .npz: one a line, or a .npy. [default: --target]
    orient : {'samples', 'features'}
        What a row of a text table is. Of a feature the first column is the name, and the header
        holds the sample ids.
    samples : sequence of Path
        Text table of the samples, joined by --id: with --orient features, or of genotypes, HDF5,
        Zarr; repeatable. Together they hold all named columns.
    sample_features : tuple of str
        Columns of --samples that become features, too.
    id_name : str or None
        Column of the sample ids in --samples.
    header : bool, ``--no-header``
        The first row holds data; columns are f0, f1, ...
    memory_mb : float
        Cap on the memory of the process. It is the peak resident size, in MB of 10^6 bytes.
    threads : int or None
        Workers; results do not depend on it.
    code_dtype : {'auto', '2bit', 'uint8', 'uint16'}
        uint8 distinguishes up to 254 values of a feature, uint16 up to 65534; 2bit holds 0, 1, 2
        and missing, and is the default of .bed files.
    keep_values : bool, ``--no-values``
        Keep only the codes: a smaller store, from which columns cannot be exported.
    link : bool
        Leave the genotypes in the .bed file, and make a store of what is known of them. The file
        has to stay as it is.
    overwrite : bool
        Replace STORE, once the new one is complete.
    append_rows : path, URL or None
        Make STORE of the rows of the store OLD and, after them, those of SOURCE, which has the same
        columns. OLD stays as it is.
    append_features : path, URL or None
        The same of the features of OLD and, beside them, those of SOURCE, which has the same rows.
    """

    target: str | None = said(_COLUMN, metavar="NAMES")
    no_target: bool = said(_YES, False)
    task: str = said({"words": ("auto", "classification", "regression")}, "auto")
    missing_target: str = said({"words": ("drop", "refuse")}, "drop")
    min_class_rows: int | None = said(_NUMBER)
    row_ids: str | None = said(_COLUMN)
    ignore: Sequence[str] = said(_IGNORED, (), read=lambda text: names_in(text) if text else [""])
    kinds: ForcedKinds = said(_FILE, ForcedKinds(), check=_kinds)
    weights: str | None = said(_COLUMN)
    strata: Sequence[str] = said(_COLUMNS, ())
    groups: str | None = said(_COLUMN)
    aggregate: str | None = said({"words": ("mean", "median", "sum")})
    covariates: Sequence[str] = said(_COLUMNS, (), check=_covariates)
    missing_covariates: str = said({"words": ("keep", "drop")}, "keep")
    query: str | None = said({"metavar": "SQL"})
    event: str | None = said(_COLUMN, metavar="NAME[=VALUE]", slot="events")
    rename_repeated: bool = said(_YES, False)
    names_from: str | None = said({"words": ("id", "symbol")})
    feature_type: str | None = said(_NAME)
    names: Any = said(_FILE, check=lambda one, _: Path(one) if isinstance(one, str) else one)
    samples: Sequence[Path] = said(_FILES, ())
    sample_features: tuple[str, ...] = said(_COLUMNS, (), slot=None)
    id_name: str | None = said(_NAME, flag="--id")
    memory_mb: float = said({"check": checks.megabytes_given}, 512)
    threads: int | None = said(_NUMBER)
    code_dtype: str = said({"words": ("auto", "2bit", "uint8", "uint16")}, "auto")
    keep_values: bool = said(_NO, True, flag="--no-values")
    link: bool = said(_YES, False)
    overwrite: bool = said(_YES, False)
    append_rows: str | Place | None = said(_OLD)
    append_features: str | Place | None = said(_OLD)
    # What these become, or the table says: column names of further targets, whether the target is
    # the time at which a row was seen last, the value that means the event, how a text table is
    # written, and the place of the first feature in the table that this one is a piece of; and by
    # what they are (target, row_ids, ...) names and items of columns that stand beside the table,
    # items in a file by its path.
    targets: Sequence[str] = ()
    censored: bool = False
    event_value: str | None = None
    text: text_tables.TextForm = text_tables.TextForm()
    first_feature: int = 0
    beside: Mapping[str, Sequence[tuple[str, Any]]] = field(default_factory=dict)

    @property
    def has_items(self) -> bool:
        """Whether names or columns are given beside the table, not in it."""
        return self.names is not None or bool(self.beside)

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
        self, n_columns: int, n_rows: int, held: tuple[Lease, ...], opening: tuple[Lease, ...] = ()
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
        given = [(slot, getattr(self, name)) for name, slot in ROLES.items()]
        lists = [(slot, [some] if isinstance(some, str) else some or ()) for slot, some in given]
        return [(slot, name) for slot, names in lists for name in names]

    def without_columns(self, known: Container[str] | None = None) -> "IngestOptions":
        """Return options that name no column of the rows, or none of those ``known`` beside it."""
        left = [one for one in self.columns() if known is not None and one[1] not in known]
        columns = {what: [name for other, name in left if other == what] for what, _ in left}
        return replace(self, **roles_of(columns))

    def flag_of(self, what: str) -> str:
        """Return the option that names a column, by what the column is, or another option."""
        return "--time" if what == "target" and self.censored else _FLAGS[what]


HELP = entries_of(IngestOptions)
_EVERY = {name: _TAKES | takes for name, takes in _PARTS.items()}
_EVERY |= {one.name: dict(one.metadata) for one in fields(IngestOptions) if one.metadata}
OPTIONS = {name: _EVERY[name] for name in HELP or _EVERY}  # `python -OO` has no docstrings
FLAGS = {name: one["flag"] or f"--{name.replace('_', '-')}" for name, one in OPTIONS.items()}
"""Of each option that can be asked for, in the order of help: what is said of it, what it takes,
and what it is called on the command line."""
_FLAGS = FLAGS | {"events": "--event", "event_value": "--event", "targets": "--target"}
_FLAGS |= {"id": "--id", "censored": "--time"}
ROLES = {name: one["slot"] or name for name, one in OPTIONS.items() if one["slot"] is not None}
ROLES["targets"] = "targets"
"""What the columns are that options name, by the option."""


def roles_of(columns: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the options of roles that name some columns, by what these are, and no others."""
    found = {name: tuple(columns.get(slot, ())) for name, slot in ROLES.items()}
    several = {name for name in ROLES if getattr(IngestOptions, name) == ()}
    return {n: some if n in several else next(iter(some), None) for n, some in found.items()}


def options_of(given: Mapping[str, Any]) -> IngestOptions:
    """Return the options given, by name; items may be given in place of a column's name.

    Raises
    ------
    UsageError
        Naming an option that is given as something else than it takes, or without its other.
    """
    target, time, event = map(given.get, ("target", "time", "event"))
    if (time is None) != (event is None):
        raise UsageError(
            "expected --time and --event, found one of them. Give both; a time of which every "
            "event was seen is a plain target: --target NAME --task regression."
        )
    if time is not None and target is not None:
        raise UsageError("expected --target or --time, found both. Leave one out.")
    given, columns = {**given, "target": target if time is None else time}, dict[str, Any]()
    settled: dict[str, Any] = {"censored": time is not None}
    for one in (one for one in fields(IngestOptions) if one.name in given.keys() & OPTIONS.keys()):
        value, what = given[one.name], ROLES.get(one.name)
        if value is not one.default:
            value = OPTIONS[one.name]["check"](value, one.name)
            words = OPTIONS[one.name]["words"]
            if words and (not isinstance(value, str) or value not in words):
                raise unexpected(one.name, f"one of {', '.join(words)}", value)
        names_of = str | tuple | None if one.default == () else str | None
        if what is None or isinstance(value, names_of):
            settled[one.name] = value
        else:
            items = [(what.replace("_", " "), value)]
            columns[what] = [*value.items()] if what == "covariates" else items
    name, mark, value = (settled.get("event") or "").rpartition("=")
    settled |= {"event": name, "event_value": value} if mark else {}
    if pairs := given.get("kind"):
        settled["kinds"] = replace(settled.get("kinds", ForcedKinds()), given=pairs)
    form = {one.name for one in fields(text_tables.TextForm)} & given.keys()
    text = text_tables.TextForm(**{name: given[name] for name in form})
    return IngestOptions(**settled, text=text, beside=columns)


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
    forced : uint8 (n_columns,)
        The kind forced of each column, as :meth:`ForcedKinds.settle`.
    first_feature : int
        Place of the first feature in the table that the source is a piece of.
    """

    n_columns: int
    named: tuple[tuple[str, int], ...]
    ignored: frozenset[int]
    forced: Bytes
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
        each = enumerate(self.named)  # of which a target is the first
        return [(what, column, text_tables.TARGET - i) for i, (what, column) in each]

    @property
    def n_features(self) -> int:
        """The columns that are."""
        return self.n_columns - len(self.special)

    def stored_columns(self) -> Indices:
        """Return the column of each feature, in stored order."""
        is_feature = np.ones(self.n_columns, np.bool_)
        is_feature[list(self.special)] = False
        return np.flatnonzero(is_feature)[stored_positions(self.n_features, self.first_feature)]

    def slots(self) -> Ints32:
        """Return for each column where its cells go, for a ``TableReader``."""
        columns = self.stored_columns()
        slots = np.full(self.n_columns, text_tables.IGNORED, np.int32)
        slots[columns] = np.arange(self.n_features, dtype=np.int32)
        for _, column, slot in self.texts():
            slots[column] = slot
        return slots


def choose_roles(source: object, header: TextSpool, options: IngestOptions) -> Roles:
    """Find the columns that were named; the last is the target if it is neither named nor beside.

    Raises
    ------
    InputError
        If a name is not in the header, or no feature is left.
    UsageError
        If one column is named for two roles, or a kind is forced on the target.
    """
    options, find = options.with_targets(header), partial(_find, source, header)
    named = [(what, find(name, options.flag_of(what))) for what, name in options.columns()]
    if options.target is None and not (options.no_target or "target" in options.beside):
        named.insert(0, ("target", len(header) - 1))
    ignored = frozenset(find(name, "--ignore") for name in options.ignore)
    taken = dict.fromkeys(ignored, "--ignore")
    for what, column in named:
        option = options.flag_of(what)
        if column in taken:
            is_last = "--target" in (option, taken[column]) and options.target is None
            raise UsageError(
                f"expected each column in one role, found column {header.describe(column)} as "
                f"{option} and {taken[column]}. "
                + ("Name the target with --target." if is_last else "Leave one of them out.")
            )
        taken[column] = option
    beside = [name for name, _ in options.beside.get("covariates", ())]
    forced = options.kinds.settle(source, header, beside)
    roles = Roles(len(header), tuple(named), ignored, forced, options.first_feature)
    if roles.target is not None and forced[roles.target] != FREE:
        raise UsageError(
            f"--kind: expected features, found the target {header.describe(roles.target)}. Leave "
            "it out; --task says what the target is."
        )
    if roles.n_features < 1:
        raise InputError(
            f"{source}: expected at least one feature besides the target, found "
            f"{roles.n_columns} column{'s' * (roles.n_columns != 1)} and no feature among them. "
            "Check that the columns of a text table are separated as expected, or name the "
            "character with --separator."
        )
    return roles


def _find(source: object, header: TextSpool, name: str, option: str) -> int:
    if (position := header.find(name.strip(" \t"))) is None:
        shown = [header.describe(i) for i in range(min(_SHOWN, len(header)))]
        more = f", ... {header.describe(len(header) - 1)}" if len(header) > _SHOWN else ""
        raise InputError(
            f"{source}: no such column {name!r} ({option}); expected one of its {len(header)} "
            f"columns: {', '.join(shown)}{more}."
            + " A file: --target-file."
            * (option == "--target" and Path(name).is_file())
        )
    return position


def check_distinct(source: object, texts: TextSpool, what: str, remedy: str) -> None:
    """Refuse texts that occur twice, naming them.

    Raises
    ------
    InputError
        If two are equal.
    """
    if pairs := texts.duplicates():
        found = "; ".join(f"{texts.describe(i)} at {i + 1} and {j + 1}" for i, j in pairs)
        raise InputError(f"{source}: expected distinct {what}, found {found}. {remedy}")
