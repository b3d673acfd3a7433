"""A new version of a store: the rows of another table after its own, or features beside them.

The table is ingested into a store of its own, in scratch. Both stores are then read by columns; the
table that the old store was made of is not needed.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.arrays import Bools, Floats, Indices, Integers, Ints
from srs_ooc.base.budget import Lease
from srs_ooc.base.errors import InputError, UsageError, unfit
from srs_ooc.base.files import published_folder
from srs_ooc.base.text import MB, counted
from srs_ooc.ingestion import ingest_memory, ingest_options
from srs_ooc.ingestion.csv import TextForm
from srs_ooc.ingestion.formats import Table, TextCoder, bounded
from srs_ooc.ingestion.formats.in_memory import memory_of
from srs_ooc.ingestion.ingest_options import ROLES, ForcedKinds, IngestOptions
from srs_ooc.ingestion.reading import TableReading, WorkFolder
from srs_ooc.ingestion.rows import check_counts, class_order, named_by_number
from srs_ooc.ingestion.scratch import disk_errors, numbered, text_blocks
from srs_ooc.ingestion.shards import Merging, check_merging, release, source_of
from srs_ooc.ingestion.stages import ingest_reading, ingest_table
from srs_ooc.store.arrays import Names
from srs_ooc.store.manifest import CATEGORICAL, CONSTANT, NO_TARGET, Manifest, damaged, make_group
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store
from srs_ooc.store.values import CodeFacts, midpoints, whole_columns

_NAMED = 5
MOST_OUTSIDE = 0.01
"""Share of a feature's cells outside the range of the old store's from which on it is remarked."""


def append(
    table: Any,
    store: Path,
    options: IngestOptions,
    progress: ingest_options.ByteProgress | None = None,
) -> Manifest:
    """Make a new version of the store that ``options`` name, which appears complete or not at all.

    Rows: where the old store keeps its values, all that the new one holds of rows and features is
    what one ingest of the two tables gives, one below the other. Where it keeps codes only, that
    holds of features whose codes mean one value each; others keep their cuts. Features: the same,
    of the two tables side by side.

    Parameters
    ----------
    table : path or object
        The rows or features to append; its columns play the roles that they have in the old store.
    store : Path
        The store to make.
    options : IngestOptions
        With ``append_rows`` or ``append_features``; others as the old store was made, or not given.
    progress : callable, optional
        Told of the bytes read and written.

    Raises
    ------
    InputError
        If the table does not fit the old store.
    UsageError
        If options say something else than the old store.
    StoreError
        If the old store is damaged, or the new one exists or cannot be written.
    BudgetError
        If the memory cap cannot hold the work.
    """
    ingest_memory.load_libraries()
    place = options.append_rows or options.append_features
    if place is None or options.overwrite or (options.append_rows and options.append_features):
        raise UsageError(
            "expected --append-rows or --append-features, and a new STORE beside the old, found "
            "both of them, or --overwrite. Leave one out."
        )
    old, what = open_store(place), str(table) if isinstance(table, str | Path) else "the table"
    settled = _settled(old, options)
    published = published_folder(store)
    with disk_errors(store), published as folder, WorkFolder(folder, progress) as work:
        work.enter_context(old.unchanged())
        if options.append_rows:
            _check_memory(old, options)
            kinds = _kinds_of(old, work.scratch / "kinds.csv", with_covariates=True)
            settled = replace(settled, kinds=kinds)
        ingest_table(table, work.scratch / "more.zarr", settled, work.tell)
        release()
        new = Store.open(work.scratch / "more.zarr")
        join = _join_rows if options.append_rows else _join_features
        return join(old, new, what, options, work)


# How the table is ingested: as the old store was.


def _settled(old: Store, options: IngestOptions) -> IngestOptions:
    """Return the options of the table: what the old store says, and what it leaves open.

    Raises
    ------
    UsageError
        Naming an option that says something else, or if the store has groups.
    """
    m, wanted = old.manifest, _said_by(old.manifest)
    columns: dict[str, list[Any]] = {"row_ids": [None if options.samples else m.row_id_name]}
    if options.append_rows:
        if options.kinds:
            raise UsageError(
                f"--kind: expected none, as {old.place} says the kinds, found some. Leave it out."
            )
        if "groups" in m.row_columns:
            raise UsageError(
                f"--append-rows: expected a store without groups, found {old.place}, whose groups "
                "are numbers: no text says which appended rows are of the same. Ingest all rows "
                "together."
            )
        how, no_target = m.inferred.get("aggregate"), m.inferred.get("target") == NO_TARGET
        wanted |= {"no_target": no_target, "aggregate": how and how["how"]}
        wanted["event_value"] = m.inferred.get("events", {}).get("value")
        columns |= m.row_columns | ({} if no_target else {"target": [m.target_name]})
        columns |= {"groups": [m.row_id_name], "row_ids": []} if how else {}
    elif m.n_linked_rows and options.code_dtype in ("auto", "2bit"):
        del wanted["code_dtype"]  # two bits where the table has them, too
    wanted = (roles := ingest_options.roles_of(columns)) | wanted
    free = {name for name, slot in ROLES.items() if slot in options.beside}
    if not options.append_rows:
        free |= {"task", "censored"} | (roles.keys() - {"row_ids"} if options.samples else set())
        wanted |= {} if options.samples else {"no_target": True, "aggregate": None}
    wanted = {name: value for name, value in wanted.items() if name not in free}
    for name, value in wanted.items():
        given = getattr(options, name)
        given = tuple(given) if isinstance(value, tuple) else given
        if given not in (getattr(IngestOptions, name), value):
            expected = "nothing" if value in (None, (), False) else repr(value)
            raise UsageError(
                f"{options.flag_of(name)}: expected {expected}, as is appended to {old.place}, "
                f"found {given!r}. Leave the option out."
            )
    settled = replace(options, **wanted)
    if options.append_rows:  # codes follow from values; classes are counted in all rows
        return replace(settled, keep_values=True, min_class_rows=1)
    return replace(settled, first_feature=old.n_features)


def _said_by(m: Manifest) -> dict[str, Any]:
    """Return the options that say what the target of a store is, and how it keeps values."""
    said = {"code_dtype": m.code_dtype, "keep_values": m.values_dtype is not None, "task": m.task}
    return said | {"censored": "events" in m.row_columns}


def _kinds_of(old: Store, path: Path, *, with_covariates: bool) -> ForcedKinds:
    """Return which columns hold categories, however they look, and which covariates numbers."""
    m, kinds = old.manifest, np.empty(old.n_features, np.uint8)
    kinds[old.array("positions")] = old.kinds()
    named = zip(old.names, kinds, strict=True) if m.kind_counts["categorical"] else ()
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerows((name, "categorical") for name, kind in named if kind == CATEGORICAL)
        covariates = zip(m.row_columns.get("covariates", ()), m.levels, strict=True)
        for name, levels in covariates if with_covariates else ():
            rows.writerow((name, "categorical" if levels else "numeric"))
    return ForcedKinds(file=path, if_there=True) if path.stat().st_size else ForcedKinds()


# Which feature, or row, of one store is which of the other: by name.


def _matched(wanted: Names, found: Names) -> Ints:
    """Return the place of each text among others, -1 where it is none; quick in the same order."""
    out, mine, others = np.empty(len(wanted), np.int64), iter(wanted), iter(found)
    stop = 0
    for texts in bounded(mine):
        start, stop = stop, stop + len(texts)
        is_same = texts == list(islice(others, len(texts)))
        out[start:stop] = np.arange(start, stop) if is_same else found.find(texts)
    return out


def _one_to_one(wanted: Names, found: Names, where: str, remedy: str) -> Ints:
    """Return the place of each text among others, which are the same in any order.

    Raises
    ------
    InputError
        Naming some that one has and the other lacks.
    """
    places, is_more = _matched(wanted, found), np.ones(len(found), np.bool_)
    is_more[places[places >= 0]] = False
    sides = (("missing", wanted, places < 0), ("more", found, is_more))
    said = [f"{at.sum()} {what} ({_first(names, at)})" for what, names, at in sides if at.any()]
    if said:
        raise InputError(f"{where}, in any order, found {' and '.join(said)}. {remedy}")
    return places


def _first(names: Names, chosen: Bools) -> str:
    """Return the first of the chosen texts, quoted."""
    places = np.flatnonzero(chosen).tolist()
    return ", ".join(repr(names[i]) for i in places[:_NAMED]) + ", ..." * (len(places) > _NAMED)


def _noted(old: Store, new: Store, *said: str) -> dict[str, Any]:
    """Return where a version came from and what was appended, as its manifest says it."""
    m = old.manifest
    names = (one.manifest.source.get("name", one.place.name) for one in (old, new))
    source = source_of(" and ".join(names), [old, new], appended_to=old.fingerprint)
    more = {"appended": [*m.inferred.get("appended", ()), *said]}
    return {"source": source, "inferred": m.inferred | more}


# Features beside those of a store, of the same rows: put together as pieces of a table are.


def _join_features(
    old: Store, new: Store, table: str, options: IngestOptions, work: WorkFolder
) -> Manifest:
    m, is_known = old.manifest, _matched(new.names, old.names) >= 0
    taken = new.names.find([m.target_name, *chain.from_iterable(m.row_columns.values())])
    is_known[taken[taken >= 0]] = True
    if is_known.any():
        raise InputError(
            f"{table}: expected other features than {old.place} has, and neither its target nor "
            f"columns of its rows, found {_first(new.names, is_known)}. Rename features; leave "
            "columns out with --ignore."
        )
    remedy = "Give the same rows, and --row-ids where neither names it by itself."
    expected = f"{table}: expected the row ids of {old.place}"
    rows = _one_to_one(old.row_ids, new.row_ids, expected, remedy).astype(np.int32)
    is_same = (rows == np.arange(len(rows))).all()
    merging = Merging([old, new], rows=[rows[:0], rows[:0] if is_same else rows])
    said = f"{counted(new.n_features, 'feature')} beside the {m.n_features} of {old.place.name}"
    noted, names = _noted(old, new, said), text_blocks(chain(old.names, new.names))
    room = check_merging(merging.shape, merging.form, options.memory_mb)
    return merging.write(work.folder, names, room, work.tell, **noted)


# Rows below those of a store: the values of both are a table, coded as any is.


class JoinedRows(Table):
    """The features of a store, each with the rows of another below its own: by columns.

    Where the old store keeps its values, or codes that mean one value each, these are the values.
    Other features of it keep their cuts: their values are the codes, and those of new rows follow
    from the cuts.

    Parameters
    ----------
    old, new : Store
        The stores, of the same features in the same order; the new one keeps its values.
    work : WorkFolder
        Closes what is opened.

    Attributes
    ----------
    n_outside : uint32 (n_features,)
        New cells outside the range of the old ones, of features that keep their cuts, by position.
    """

    format = "store"

    def __init__(self, old: Store, new: Store, work: WorkFolder) -> None:
        self._stores, self._keeps = (old, new), old.manifest.values_dtype is not None
        self.shape = (old.n_rows + new.n_rows, p := old.n_features)
        dtypes = {store.manifest.values_dtype for store in self._stores}
        self.narrow = not self._keeps or dtypes == {"float32"}
        self._stored = np.argsort(old.array("positions"))
        kinds = np.array([store.kinds() for store in self._stores])
        self._kinds = kinds.min(axis=0)
        self._is_text = self.text_columns = (kinds == CATEGORICAL).any(axis=0)[self._stored]
        self._categories = [store.categories() for store in self._stores]
        self.feature_columns = dict.fromkeys(old.manifest.feature_columns, ())
        self.n_outside, self._is_cut = np.zeros(p, np.uint32), np.zeros(p, np.bool_)
        if not self._keeps:
            self._is_cut[:] = ~np.asarray(old.array("exact"), np.bool_)
            self._columns = work.enter_context(old.columns(mapped=False))
        self.held, self.work_nbytes = _leases(old, self.shape[0])

    def read(self, positions: Indices, pool: TextCoder) -> Floats:
        """Return columns by position, each a row of the result."""
        stored, out = self._stored[positions], np.empty((len(positions), self.shape[0]))
        places, (old, new) = np.argsort(stored), self._stores
        ordered, halves = stored[places], np.split(out, [old.n_rows], axis=1)
        for store, half in zip(self._stores, halves, strict=True):
            if self._keeps or store is new:
                half[places] = store.numbers_of(ordered)
        if not self._keeps:
            codes = self._columns.codes(ordered).astype(np.float64)
            codes[codes == old.manifest.missing_code] = np.nan
            for i, lows, highs in old.code_ranges(ordered):
                if not (n := int(np.nanmax(codes[i], initial=-1)) + 1) <= np.isfinite(lows).sum():
                    raise damaged(old.place, f"expected ranges of {n} codes, found fewer")
                first, second = (half[places[i]] for half in halves)
                if self._is_cut[ordered[i]]:
                    first[:], second[:] = codes[i], _cut(second, lows, highs)
                else:
                    first[:] = _renumbered(codes[i], lows)
        for i in np.flatnonzero(self._is_text[positions]).tolist():
            for which, half in enumerate(halves):
                half[i] = self._numbered(which, int(stored[i]), half[i], pool)
        return out

    def feature_cells(self) -> Iterator[Sequence[str]]:
        """Yield what is said of each feature, in the order of the source."""
        return self._stores[0].feature_cells()

    def _numbered(self, which: int, feature: int, codes: Floats, pool: TextCoder) -> Floats:
        """Return the numbers of texts in a pool in the place of codes of categories."""
        known, store = self._categories[which], self._stores[which]
        if (texts := known.of(feature)) is None and not np.isnan(codes).all():
            name = store.names[int(store.array("positions")[feature])]
            expected, found = "categories, or numbers, in both tables", "numbers in one of them"
            remedy = "Mend the column, or name its texts with --missing."
            raise unfit(f"feature {name!r}", expected, found, remedy)
        if (wrong := known.wrong_code(feature, codes)) is not None:
            raise damaged(store.place, wrong[1])
        encoded = [text.encode() for text in texts or ()]
        return _renumbered(codes, numbered(pool, encoded, lambda _: str(store.place)))

    def amend(self, positions: Integers, facts: CodeFacts) -> None:
        """Have what coding found be that of values, where these were codes; kinds be kept."""
        stored, (old, new) = self._stored[positions], self._stores
        cut = np.flatnonzero(self._is_cut[stored])
        facts.kinds[cut], facts.exact[cut] = CONSTANT, False
        facts.kinds[:] = np.minimum(facts.kinds, self._kinds[stored])
        cut = cut[np.argsort(stored[cut])]
        ranges, columns = old.code_ranges(stored[cut]), whole_columns(new.values(), stored[cut])
        for (i, lows, highs), (_, cells) in zip(ranges, columns, strict=True):
            place, n = cut[i], facts.n_codes[cut[i]]
            values = np.asarray(cells[~np.isnan(cells)], np.float64)
            codes = _cut(values, lows, highs).astype(np.intp)
            facts.lows[place, :n], facts.highs[place, :n] = lows[:n], highs[:n]
            np.minimum.at(facts.lows[place], codes, values)
            np.maximum.at(facts.highs[place], codes, values)
            outside = (values < lows[0]) | (values > highs[n - 1])
            self.n_outside[positions[place]] = np.count_nonzero(outside)


def _cut(values: Floats, lows: Floats, highs: Floats) -> Floats:
    """Return the codes that values get by the ranges of codes (NaN beyond the last); NaN stays."""
    n = np.count_nonzero(~np.isnan(lows))
    codes = np.searchsorted(midpoints(highs[: n - 1], lows[1:n]), values)
    return np.where(np.isnan(values), np.nan, codes)


def _renumbered(codes: Floats, numbers: NDArray[Any]) -> Floats:
    """Return numbers in the place of codes; NaN stays."""
    out, is_there = np.full(codes.shape, np.nan), ~np.isnan(codes)
    out[is_there] = numbers[codes[is_there].astype(np.intp)]
    return out


def _plain(old: Store, options: IngestOptions) -> IngestOptions:
    """Return how the rows of both are ingested, which are numbers and all have a target."""
    how = {"memory_mb": options.memory_mb, "missing_target": "refuse", "min_class_rows": 1}
    return IngestOptions(**(_said_by(old.manifest) | how))


def _leases(old: Store, n_rows: int) -> tuple[tuple[Lease, ...], int]:
    """Return what is held of two stores as they are read, and what reading takes besides."""
    n_rows, n_covariates = max(n_rows, ingest_memory.FEW_ROWS), len(old.manifest.levels)
    places = Lease("places of features", 40 * old.n_features)
    held = (places, Lease("covariates", 24 * n_covariates * n_rows))
    return held, 20 * MB + old.reading_nbytes + 24 * n_rows  # chunks of two threads; a feature


def _check_memory(old: Store, options: IngestOptions) -> None:
    """Refuse a cap that cannot hold joining, before a table of at most as many rows is read.

    Raises
    ------
    BudgetError
        With the smallest cap that works.
    """
    both = Table()
    both.shape = (2 * old.n_rows, old.n_features)
    both.held, both.work_nbytes = _leases(old, 2 * old.n_rows)
    both.text_columns = np.array([old.manifest.kind_counts["categorical"] > 0])
    memory_of(both, _plain(old, options)).check(f"rows after {old.place}")


def _join_rows(
    old: Store, new: Store, table: str, options: IngestOptions, work: WorkFolder
) -> Manifest:
    remedy = "Leave others out with --ignore; give missing ones as columns of empty cells."
    expected = f"{table}: expected the features of {old.place}"
    places = _one_to_one(old.names, new.names, expected, remedy)
    order = np.arange(len(places))
    first = _ordered(old, order, old.names, options, work) if old.manifest.is_linked else old
    is_same = not new.manifest.is_linked and (places == order).all()
    second = new if is_same else _ordered(new, places, old.names, options, work)
    del places, order
    if (first.array("positions") != second.array("positions")).any():
        raise damaged(old.place, "expected features in the order in which stores have them")
    columns, found = _rows_of(old, new, table, options)
    kinds = _kinds_of(old, work.scratch / "categories.csv", with_covariates=False)
    plain = replace(_plain(old, options), kinds=kinds, names=iter(old.names), beside=columns)
    reading = TableReading(both := JoinedRows(first, second, work), table, plain, work, dict)
    reading.fits_float32 = bool(both.narrow)  # or cells of rows that are left out may have decided
    reading.amend = both.amend
    made = ingest_reading(reading, work)
    if both.n_outside.any():
        n_cells, n_features = int(both.n_outside.sum()), int(np.count_nonzero(both.n_outside))
        found["inferred"]["appended"].append(
            f"{counted(n_cells, 'cell')} of {counted(n_features, 'feature')} outside the range of "
            f"{old.place.name}, by whose cuts they are coded"
        )
        if (is_most := both.n_outside > MOST_OUTSIDE * made.n_rows).any():
            found["inferred"]["outside"] = _first(old.names, is_most)
    made = replace(made, **found)
    make_group(work.folder, made)
    return made


def _ordered(
    store: Store, places: Ints, names: Names, options: IngestOptions, work: WorkFolder
) -> Store:
    """Return a store with some features of another, by their places there, in stored order."""
    merging = Merging([store], np.argsort(store.array("positions"))[places])
    (folder := work.scratch / f"{store.fingerprint}.zarr").mkdir()
    room = check_merging(merging.shape, merging.form, options.memory_mb)
    merging.write(folder, text_blocks(names), room, work.tell)
    return Store.open(folder)


def _rows_of(
    old: Store, new: Store, table: str, options: IngestOptions
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of the rows of both, as numbers, and what a manifest says of them.

    Raises
    ------
    InputError
        If the rows of one have columns that those of the other lack, or a class has too few rows.
    """
    m, n = old.manifest, new.manifest
    has, others = (sorted({"row ids": one.row_id_name} | one.row_columns) for one in (m, n))
    if has != others or (m.row_id_name is None) != (n.row_id_name is None):
        raise InputError(
            f"{table}: expected row ids and other columns of its rows as {old.place} has them "
            f"({m.row_id_name}, {m.row_columns}), found {n.row_id_name}, {n.row_columns}. Give the "
            "same ones."
        )
    classes, (places, more), joined = _merged(m.classes, n.classes)
    n_rows = np.bincount([*places, *more], [*m.class_counts, *n.class_counts]).astype(int)
    counts = dict(zip(classes, n_rows.tolist(), strict=True))
    check_counts(f"{table}, column {m.target_name!r}", counts, options.min_class_rows)
    n_source = int(m.inferred.get("aggregate", {"n_rows": m.n_rows})["n_rows"]) + m.n_dropped_rows
    said = [f"{counted(new.n_rows, 'row')} after the {m.n_rows} of {old.place.name}"]
    if fresh := [repr(label) for i, label in enumerate(classes) if i not in places]:
        said.append(f"new classes: {', '.join(fresh)}")
    said += [*filter(None, [joined]), *n.inferred.get("joined", ())]
    steps = {"target_values": n_source} if m.inferred.get("target") == NO_TARGET else {}
    if "strata" in m.row_columns:
        steps["strata"] = 1 + max(int(items.max()) for _, items in old.pieces("strata"))
        said.append("strata of the appended rows are taken for others than those there were")

    def items_of(name: str) -> Iterator[str]:
        for which, store in enumerate((old, new)):
            for _, items in store.pieces(name):
                numbers: Any = (places, more)[which][items] if name == "target" else items
                numbers = numbers + steps[name] if which and name in steps else numbers
                yield from map(repr, numbers.tolist())  # "nan" where one is missing

    # without a column of ids the numbers of rows go on
    ids = (str(int(text) + n_source) if m.row_id_name is None else text for text in new.row_ids)
    target = items_of("target_values" if m.task == "regression" else "target")
    row_ids = chain(old.row_ids, ids)
    columns: dict[str, Any] = {"target": [("target", target)], "row_ids": [("row ids", row_ids)]}
    columns |= {name: [(name, items_of(name))] for name in m.row_columns}
    levels = []
    if "covariates" in columns:
        columns["covariates"] = []
        for pair in zip(old.each_covariate(), new.each_covariate(), strict=True):
            labels, numbers, joined = _merged(pair[0].levels, pair[1].levels)
            said += [f"covariate {pair[0].name!r}: {joined}"] if joined else []
            levels.append(labels)
            both = zip(pair, numbers, strict=True)
            cells = (_renumbered(one.values, at) if one.levels else one.values for one, at in both)
            texts = (map(repr, some.tolist()) for some in cells)  # "nan" where one is missing
            columns["covariates"].append((pair[0].name, chain.from_iterable(texts)))
    noted = _noted(old, new, *said)
    noted["inferred"] = _added(noted["inferred"], n.inferred)
    noted["inferred"].pop("labels_without_sample", None)  # of one table they are the other's
    same = {name: getattr(m, name) for name in ("target_name", "row_id_name", "row_columns")}
    dropped = m.n_dropped_rows + n.n_dropped_rows
    about = {"classes": classes, "levels": tuple(levels), "n_dropped_rows": dropped}
    return columns, noted | same | about


def _merged(*several: tuple[str, ...]) -> tuple[tuple[str, ...], list[Indices], str]:
    """Return labels of several lists in their order, and the places of each list's own there.

    An order that is not that of classes was declared, and is kept. Labels of one number are one,
    and it is said which; but a list with two of one number was declared so, and all stay.
    """
    texts, said = [[label.encode() for label in some] for some in several], ""
    if not any(named_by_number(some, TextForm())[1] for some in texts):
        named, said = named_by_number([*chain(*texts)], TextForm())
        names = map(bytes.decode, named)
        several = tuple(tuple(islice(names, len(some))) for some in several)
    declared = (some for some in several if class_order(some) != [*range(len(some))])
    order = max(declared, key=len, default=())
    labels = list(dict.fromkeys(chain(order, *several)))
    place = {labels[at]: i for i, at in enumerate(class_order(labels, order and labels))}
    return tuple(place), [np.array([place[one] for one in some], np.intp) for some in several], said


def _added(one: Any, other: Any) -> Any:
    """Return facts with their counts added, as far as both have such."""
    if isinstance(one, dict) and isinstance(other, dict):
        shared = {key: _added(one[key], other[key]) for key in one.keys() & other.keys()}
        return {key: n for key, n in other.items() if isinstance(n, int)} | one | shared
    return one + other if isinstance(one, int) and isinstance(other, int) else one
