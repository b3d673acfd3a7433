"""The public function ``srs_ooc.ingest``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from srs_ooc.base.budget import growth_counted
from srs_ooc.base.sizes import MB
from srs_ooc.base.spelling import python_spelling
from srs_ooc.ingestion.contents import ByteProgress
from srs_ooc.ingestion.forced_kinds import ForcedKinds
from srs_ooc.ingestion.options import IngestOptions, SideColumns
from srs_ooc.ingestion.pipeline import ingest_table
from srs_ooc.store.manifest import Manifest


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
    progress: ByteProgress | None = None,
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
    side = SideColumns(
        names=Path(names) if isinstance(names, str) else names,
        columns={
            what: [(what.replace("_", " "), item)]
            for what, item in given.items()
            if item is not None and not isinstance(item, str)
        },
    )
    return ingest_table(table, Path(store), options, progress, side=side)
