"""A text table with features as rows, and a sample table: labels are joined by sample id."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

import numpy as np

from srs_ooc.base.errors import InputError, UsageError
from srs_ooc.ingestion.disk import check_disk
from srs_ooc.ingestion.feature_needs import asked_of, feature_needs
from srs_ooc.ingestion.formats import Table
from srs_ooc.ingestion.formats.covariates import CovariateTable
from srs_ooc.ingestion.formats.csv_looks import estimate
from srs_ooc.ingestion.formats.feature_rows import (
    FeatureRows,
    SpooledNames,
    open_stream,
)
from srs_ooc.ingestion.formats.samples import Samples, read_samples, unmatched
from srs_ooc.ingestion.formats.source import SourceFile
from srs_ooc.ingestion.memory import CATEGORY_NBYTES
from srs_ooc.ingestion.options import IngestOptions, SampleTable, SideColumns
from srs_ooc.ingestion.reading import Workplace
from srs_ooc.ingestion.roles import check_distinct
from srs_ooc.ingestion.row_columns import Wording
from srs_ooc.ingestion.row_facts import wording_of
from srs_ooc.ingestion.scratch import TextSpool
from srs_ooc.ingestion.table_reading import TableReading


def open_feature_rows(
    source: SourceFile, samples: SampleTable, options: IngestOptions, work: Workplace
) -> TableReading:
    """Read a table with a feature a row into scratch, and return it as a table of columns.

    Samples without a label, and labels without a sample, are left out; the manifest's ``inferred``
    counts them and lists the first.

    Raises
    ------
    UsageError
        If options are given that such a table leaves no room for.
    InputError
        If a table cannot be read as asked, or no sample has a label.
    StoreError
        If the disk has no room for the scratch.
    BudgetError
        If the memory cap cannot hold the work.
    """
    if not options.text.header or options.ignore or options.row_ids:
        raise UsageError(
            "expected no --no-header, --ignore or --row-ids with --orient features: the header "
            "holds the sample ids, the first column the names. Leave the option out."
        )
    asked = asked_of(samples, options)
    labels = SourceFile.file(samples.path)
    header, names = (
        work.stack.enter_context(TextSpool(work.scratch, name)) for name in ("samples", "rows")
    )
    stream = open_stream(source, options.text, header)
    needs = feature_needs(source, header, samples, options)
    needs.check(options.memory_nbytes, source)
    known = read_samples(labels, options.text, samples.id_name, asked)
    check_distinct(source, header, "sample ids", "Rename them in the header.")
    ids = list(SpooledNames(header))[1:]
    matched = [sample for sample in ids if sample in known.cells]
    if not matched:
        raise InputError(
            f"{source}: expected sample ids as in column {samples.id_name!r} of {samples.path} "
            f"({', '.join(map(repr, list(known.cells)[:3]))}, ...), found none of them among "
            f"{', '.join(map(repr, ids[:3]))}, ... Name the column that holds them with --id."
        )
    kinds = options.kinds.by_name()
    n_rows = estimate(source, options.text, len(header)).n_rows
    check_disk(work.folder, 8 * len(ids) * n_rows, 0)
    category_nbytes = min(CATEGORY_NBYTES, needs.spare_nbytes(options.memory_nbytes) // 2)
    kept = np.array([sample in known.cells for sample in ids])
    features = FeatureRows(
        stream, header, kept, work.scratch, names, work.tell, category_nbytes, kinds
    )
    wording = wording_of(options.text, lambda row: f"{labels}, line {known.lines[matched[row]]}")
    table = _with_covariates(features, known, asked, matched, wording, kinds)

    def locate(column: int, row: int) -> str:
        name = next(islice(iter(table.names or ()), column, None))
        if column >= features.shape[1]:
            return f"{wording.where(row)}: column {name!r} (--covariates)"
        line = features.line_of(column)
        return f"{source}, line {line}: sample {matched[row]!r} of {name!r}"

    side = _side_columns(known, asked, samples, ids, matched)
    settled = replace(options, target=None, weights=None, strata=(), groups=None)
    return TableReading(table, source, settled, side, work, stream.origin(), needs, wording, locate)


def _side_columns(
    known: Samples,
    asked: list[tuple[str, str]],
    samples: SampleTable,
    ids: list[str],
    matched: list[str],
) -> SideColumns:
    """Return what the sample table says of the rows, in the order of the matrix."""
    columns: dict[str, list[tuple[str, list[str]]]] = {"row_ids": [(samples.id_name, matched)]}
    for place, (option, name) in enumerate(asked):
        if option != "--covariates":
            cells = [known.cells[sample][place] for sample in matched]
            columns.setdefault(option.removeprefix("--"), []).append((name, cells))
    return SideColumns(columns=columns, inferred=unmatched(known, ids))


def _with_covariates(
    features: FeatureRows,
    known: Samples,
    asked: list[tuple[str, str]],
    matched: list[str],
    wording: Wording,
    kinds: Mapping[bytes, int],
) -> Table:
    """Return the features and, after them, the covariates of the sample table."""
    places = [i for i, (option, _) in enumerate(asked) if option == "--covariates"]
    if not places:
        return features
    columns = [[known.cells[sample][place].encode() for sample in matched] for place in places]
    return CovariateTable(features, [asked[place][1] for place in places], columns, wording, kinds)
