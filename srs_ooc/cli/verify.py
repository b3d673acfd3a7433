"""``srs-ooc verify``: read a store, or a run, and find damage."""

import click

from srs_ooc.base.text import MB, counted, describe_nbytes
from srs_ooc.base.urls import Place
from srs_ooc.cli.output import MEMORY_OPTION, echo_json, say
from srs_ooc.cli.store_type import STORE
from srs_ooc.runs.verification import Verification, verify


@click.command("verify")
@click.argument("path", metavar="STORE|RUN", type=STORE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object; keys as listed below.")
@MEMORY_OPTION
def verify_command(path: Place, as_json: bool, memory_mb: int) -> None:
    """Read every byte of a store or a run that any command could use, and compare.

    Says what was read; the first damage ends it, with the file named and exit status 2.

    \b
    Keys of --json:
      files                     what was read, by what it is, and how many
      nbytes                    bytes read
      knows_places              of a store; false in format 2: its chunks of values were
                                checked, but two that have traded places are not found
    """
    found = verify(path, memory_mb * MB)
    if as_json:
        places = {} if found.is_run else {"knows_places": found.knows_places}
        echo_json({"files": found.files, "nbytes": found.nbytes} | places)
    else:
        say(_described(found))


def _described(found: Verification) -> str:
    if found.is_run:
        parts = ", ".join(f"{count:,} {what}" for what, count in found.files.items())
    else:
        named = found.files.items()
        parts = ", ".join(f"{counted(count, 'file')} of {what}" for what, count in named if count)
    lines = [f"{found.path}: {describe_nbytes(found.nbytes)} read, all as written ({parts})"]
    if not found.knows_places:
        lines.append(
            "A store of format 2: chunks of values that have traded places are not found. "
            "Ingest the table again for a store that knows them."
        )
    return "\n".join(lines)
