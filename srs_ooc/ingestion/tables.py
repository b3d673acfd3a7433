"""From arrays, frames, sparse matrices and binary files to a published store."""

import contextlib
import shutil
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from srs_ooc.base.atomic import published_folder
from srs_ooc.base.budget import growth_counted
from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.base.sizes import MB
from srs_ooc.base.spelling import python_spelling
from srs_ooc.ingestion.forced_kinds import ForcedKinds
from srs_ooc.ingestion.formats.arrow_files import ArrowFile
from srs_ooc.ingestion.formats.dialect import TextForm
from srs_ooc.ingestion.formats.opening import is_other, open_file, open_object
from srs_ooc.ingestion.formats.source import check_unchanged, stamp_of
from srs_ooc.ingestion.formats.svmlight import SvmlightTable
from srs_ooc.ingestion.publishing import IngestOptions, load_libraries, words_for_the_disk
from srs_ooc.ingestion.table import Progress
from srs_ooc.ingestion.table_stages import Apart, TableIngest
from srs_ooc.ingestion.text_tables import ingest_csv
from srs_ooc.store.manifest import Manifest

_N_TEXTS = 1 << 14


@python_spelling()
@growth_counted()
def ingest(
    table: Any,
    store: str | Path,
    *,
    target: Any = None,
    names: Any = None,
    row_ids: Any = None,
    ignore: Sequence[str] = (),
    task: str = "auto",
    missing_target: str = "drop",
    kinds: Mapping[str, str] | None = None,
    weights: Any = None,
    strata: Any = None,
    groups: Any = None,
    memory_mb: float = 512,
    code_dtype: str = "uint8",
    keep_values: bool = True,
    progress: Progress | None = None,
) -> Manifest:
    """Turn a table into a store.

    Parameters
    ----------
    table : path, ndarray, DataFrame, pyarrow.Table, or sparse matrix, (n_rows, n_columns)
        A file of any format ``srs-ooc ingest`` reads, or an object of NumPy, pandas, polars,
        PyArrow or SciPy. NaN and nulls are missing values. Sparse matrices stay sparse.
    store : path
        The store to make; it appears complete or not at all.
    target : str or sequence (n_rows,), optional
        Name of the column of class labels or numbers, or those; the last column if not given.
    names : path or sequence of str (n_columns,), optional
        Names of the columns where the table has none; f0, f1, ... if not given.
    row_ids : str or sequence (n_rows,), optional
        Name of the column of row ids, or the ids; rows are numbered from 1 if not given.
    ignore : sequence of str
        Columns to leave out.
    task : {'auto', 'classification', 'regression'}
        What the target is; found out if ``auto``.
    missing_target : {'drop', 'refuse'}
        Whether rows without a target are left out, or refused.
    kinds : mapping of str to str, optional
        Kinds (``numeric``, ``integer``, ``boolean``, ``categorical``) of columns by name; the
        others are found out.
    weights : str or sequence (n_rows,), optional
        Name of the column of weights, positive finite numbers, or those.
    strata : str, tuple of str, or sequence (n_rows,), optional
        Names of the columns whose tuples are the strata, or the strata.
    groups : str or sequence (n_rows,), optional
        Name of the column of groups, or the groups.
    memory_mb : float
        Cap in megabytes (10^6 bytes) on growth of the process: what it held when the call began,
        such as the table, does not count.
    code_dtype : {'uint8', 'uint16'}
        Dtype of the codes.
    keep_values : bool
        Keep the values beside the codes.
    progress : callable, optional
        Told what is being done, how many bytes of it are done, and how many there are.

    Returns
    -------
    Manifest
        What the store says of itself; ``inferred`` holds what was found rather than said.

    Raises
    ------
    InputError
        If the table cannot be ingested as asked.
    StoreError
        If the store exists, or cannot be written.
    BudgetError
        If the memory cap cannot hold the work.
    """
    names_of_strata = (strata,) if isinstance(strata, str) else strata
    by_name = isinstance(names_of_strata, tuple)
    options = IngestOptions(
        target=target if isinstance(target, str) else None,
        row_ids=row_ids if isinstance(row_ids, str) else None,
        ignore=ignore,
        task=task,
        missing_target=missing_target,
        kinds=ForcedKinds(tuple((kinds or {}).items())),
        weights=weights if isinstance(weights, str) else None,
        strata=names_of_strata if by_name else (),
        groups=groups if isinstance(groups, str) else None,
        memory_nbytes=int(memory_mb * MB),
        code_dtype=code_dtype,
        keep_values=keep_values,
    )
    given = {"target": target, "row_ids": row_ids, "weights": weights, "groups": groups}
    given["strata"] = None if by_name else strata
    apart = Apart(
        names=Path(names) if isinstance(names, str) else names,
        columns={
            what: [(what.replace("_", " "), item)]
            for what, item in given.items()
            if item is not None and not isinstance(item, str)
        },
    )
    return ingest_any(table, Path(store), options, progress, apart=apart)


def ingest_any(
    table: Any,
    store: Path,
    options: IngestOptions,
    progress: Progress | None = None,
    *,
    apart: Apart | None = None,
) -> Manifest:
    """Ingest a file or object; ``apart`` holds labels, names and row ids that are not in it."""
    apart = apart or Apart()
    path = Path(table) if isinstance(table, str | Path) else None
    if path is not None and not is_other(path):
        if apart:
            raise InputError(
                f"{path}: a text table holds its names, target and row ids itself. Name their "
                "columns, or give them apart only for arrays."
            )
        return ingest_csv(path, store, options, progress)
    if options.text != TextForm():
        raise UsageError(
            f"{path or 'the table'}: expected --separator, --comment, --decimal, --missing and "
            "--no-header only for text tables, found one of them. Leave it out."
        )
    load_libraries()
    with words_for_the_disk(store), published_folder(store) as folder:
        scratch = folder / "scratch"
        scratch.mkdir()
        if path is None:
            as_texts = {name for name, kind in options.kinds.given if kind == "categorical"}
            opened, source = open_object(table, as_texts), {}
        else:
            stamp = stamp_of(path)
            opened = open_file(path, scratch, options.memory_nbytes)
            source = {"name": path.name, **_fingerprint(path)}
            if isinstance(opened, SvmlightTable):
                labels = {"target": [("label", opened.labels)]}
                apart = replace(apart, columns=labels | dict(apart.columns))
            if isinstance(opened, ArrowFile):
                options, found = _with_index(opened.index_names, options, apart)
                apart = replace(apart, inferred=apart.inferred | found)
        with contextlib.ExitStack() as stack:
            work = TableIngest(opened, path or "the table", folder, options, progress, stack)
            manifest = work.run(apart, {"format": opened.format} | source)
        if path is not None:
            check_unchanged(path, stamp, path)
        shutil.rmtree(scratch)
    return manifest


def _with_index(
    names: list[str], options: IngestOptions, apart: Apart
) -> tuple[IngestOptions, dict[str, str]]:
    """Take the index that pandas saved with a frame for the row ids; say so.

    An index of several columns is left out, and one where there are row ids.
    """
    named = {options.target, options.row_ids, options.weights, options.groups}
    free = [name for name in names if name not in named.union(options.strata, options.ignore)]
    if not free:
        return options, {}
    if len(names) == 1 and options.row_ids is None and "row_ids" not in apart.columns:
        return replace(options, row_ids=names[0]), {"row_ids": "the index that pandas saved"}
    left_out = ", ".join(map(repr, free))
    ignore = (*options.ignore, *free)
    return replace(options, ignore=ignore), {"index": f"{left_out}, saved by pandas, left out"}


def _fingerprint(path: Path) -> dict[str, int]:
    crc32 = nbytes = 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(1 << 18):
            crc32, nbytes = zlib.crc32(data, crc32), nbytes + len(data)
    return {"nbytes": nbytes, "crc32": crc32}
