"""What the ingest of a table takes that is read by columns or by rows."""

from srs_ooc.base.budget import Lease
from srs_ooc.ingestion.formats import Table
from srs_ooc.ingestion.needs import Needs
from srs_ooc.ingestion.options import IngestOptions


def beside_nbytes(table: Table) -> int:
    """Return the memory of reading beside what is read: lines on their way, and the format's."""
    return line_nbytes(table.shape, by_rows=table.by_rows) + table.work_nbytes


def line_nbytes(shape: tuple[int, int], *, by_rows: bool) -> int:
    """Return the memory of a line on its way, three times."""
    return 3 * 8 * (shape[1] if by_rows else shape[0])


def with_needs(
    table: Table,
    options: IngestOptions,
    held: tuple[Lease, ...] = (),
    opening: tuple[Lease, ...] = (),
) -> tuple[Table, Needs]:
    """Return a table with what its ingest takes; ``held``, ``opening``: of its format."""
    lines = Lease("lines on their way", beside_nbytes(table))
    n_rows, n_columns = table.shape
    return table, Needs.of(options, n_columns, n_rows, (*held, lines), opening)
