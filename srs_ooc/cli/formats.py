"""``srs-ooc formats``: the kinds of files that are known, and what becomes of each."""

from dataclasses import dataclass

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


def format_records() -> list[FormatRecord]:
    """Return all kinds in the order in which they are looked for."""
    return [
        FormatRecord(
            one.name,
            one.known_by,
            one.named or None,
            bool(one.reader),
            one.needs or None,
            one.remedy or None,
        )
        for one in (*FORMATS, TEXT)
    ]


@click.command("formats")
@output.CSV_OPTION
@click.option("--json", "as_json", is_flag=True, help="A JSON list, every key.")
@output.SAFE_OPTION
def formats_command(**form: bool) -> None:
    """List the kinds of files that ingest knows by their content, in the order it looks for them.

    A file is the first kind that fits. What is not read is refused with the line of `convert`.
    `names` are the usual endings: a file that is something else is remarked on.
    """
    columns = {"format": 22, "known_by": 20, "is_read": 7, "module": 7, "names": 24, "convert": 0}
    records = format_records()
    output.write_records(FormatRecord, records, columns, len(records), **form)
