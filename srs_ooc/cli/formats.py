"""``srs-ooc formats``: the kinds of files that are known, and what becomes of each."""

from dataclasses import dataclass
from typing import Any

import click

from srs_ooc.cli import output
from srs_ooc.ingestion.formats import FORMATS, TEXT


@dataclass(frozen=True)
class FormatRecord:
    """A kind of file: how it is known, whether it is read, what that takes, or what converts it."""

    format: str
    known_by: str
    names: str | None
    is_read: bool
    module: str | None
    convert: str | None


@click.command("formats")
@output.CSV_OPTION
@click.option("--json", "as_json", is_flag=True, help="A JSON list, every key.")
@output.SAFE_OPTION
def formats_command(**form: Any) -> None:
    """List the kinds of files that ingest knows by their content, in the order it looks for them.

    A file is the first kind that fits. What is not read is refused with what converts it.
    Names are the usual endings: of a file with another's a remark is made.

    \b
    Examples:
      srs-ooc formats
      srs-ooc formats --csv > formats.csv
    """
    records = (
        FormatRecord(
            one.name,
            one.known_by,
            one.named or None,
            bool(one.reader),
            one.needs or None,
            one.remedy or None,
        )
        for one in (*FORMATS, TEXT)
    )
    columns = {"format": 18, "known_by": 20, "is_read": 7, "module": 7, "names": 22, "convert": 0}
    output.write_records(FormatRecord, records, columns, len(FORMATS) + 1, **form)
