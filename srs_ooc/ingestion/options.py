"""What is said of an ingest: its options, the sample table, what stands beside a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srs_ooc.base.text import MB
from srs_ooc.ingestion.contents import StoreForm
from srs_ooc.ingestion.forced_kinds import ForcedKinds
from srs_ooc.ingestion.formats.dialect import TextForm


@dataclass(frozen=True)
class SampleTable:
    """A file that says what samples are, beside a table with a feature a row.

    Target, weights, strata and groups are named by the options of the ingest.

    Attributes
    ----------
    path : Path
        A text table with a line for each sample.
    id_name : str
        Its column of sample ids.
    covariates : tuple of str
        Its columns that become features, too.
    """

    path: Path
    id_name: str
    covariates: tuple[str, ...] = ()


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
        A class of fewer rows is refused; None as :func:`class_checks.check_counts` has it.
    kinds : ForcedKinds
        Kinds of feature that are not to be found out.
    weights, groups : str or None
        Columns of weights and of groups of rows.
    strata : sequence of str
        Columns whose tuples are the strata.
    row_ids : str or None
        Column of row ids; rows are numbered from 1 if None.
    ignore : sequence of str
        Columns to leave out.
    memory_nbytes : int
        Cap on the resident memory of the whole process.
    code_dtype : {'uint8', 'uint16'}
        Dtype of the codes.
    keep_values : bool
        Keep the values, in the narrowest float that loses nothing.
    text : TextForm
        How a text table is written.
    samples : SampleTable or None
        Says what samples are where a row of a text table is a feature.
    overwrite : bool
        Replace a store that is there, once the new one is complete.
    first_feature : int
        Place of the first feature in the table that this one is a piece of.
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
    memory_nbytes: int = 512 * MB
    code_dtype: str = "uint8"
    keep_values: bool = True
    text: TextForm = field(default_factory=TextForm)
    samples: SampleTable | None = None
    overwrite: bool = False
    no_target: bool = False
    first_feature: int = 0

    def form(self, values_dtype: str = "float64") -> StoreForm:
        """Return how the store keeps values of a dtype."""
        return StoreForm(self.code_dtype, values_dtype if self.keep_values else None)

    def columns(self) -> list[tuple[str, str]]:
        """Return (what it is, name) of each column that is named for a role of the rows."""
        named = [("target", self.target), ("row_ids", self.row_ids), ("weights", self.weights)]
        named += [("groups", self.groups), *(("strata", name) for name in self.strata)]
        return [(what, name) for what, name in named if name is not None]


@dataclass(frozen=True)
class SideColumns:
    """Names and row columns that stand beside a table, not in it.

    Attributes
    ----------
    names : sequence of str or path, or None
        Names of the columns.
    columns : dict
        By what they are (target, row_ids, weights, strata, groups), the names and the items of
        columns; items in a file by its path.
    inferred : dict
        For the manifest.
    """

    names: Any = None
    columns: Mapping[str, Sequence[tuple[str, Any]]] = field(default_factory=dict)
    inferred: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.names is not None or bool(self.columns)
