"""``srs-ooc verify``: read a store, or a run, and find damage."""

import json
from pathlib import Path

import click

from srs_ooc.base.sizes import counted, describe_nbytes
from srs_ooc.cli.output import say
from srs_ooc.compaction.records import verify_compactions
from srs_ooc.runs.ledger.records import FILE
from srs_ooc.runs.ledger.verify import verify_run
from srs_ooc.store.store import Store
from srs_ooc.store.verify import Verified


@click.command("verify")
@click.argument("path", metavar="STORE|RUN", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object; keys as listed below.")
def verify_command(path: Path, as_json: bool) -> None:
    """Read every byte of a store or a run that any command could use, and compare.

    Says what was read; the first damage ends it, with the file named and exit status 2.

    \b
    Keys of --json:
      files                     what was read, by what it is, and how many
      nbytes                    bytes read
      knows_places              of a store; false in format 2: its chunks of values were
                                checked, but two that have traded places are not found
    """
    if (path / FILE).is_file():
        _verify_run(path, as_json=as_json)
        return
    found = Store.open(path).verify()
    say(json.dumps(vars(found), indent=2) if as_json else _described(path, found))


def _verify_run(run: Path, *, as_json: bool) -> None:
    checked = [*verify_run(run), *verify_compactions(run)]
    nbytes = sum(part.nbytes for part in checked)
    if as_json:
        files = {part.what: part.count for part in checked}
        say(json.dumps({"files": files, "nbytes": nbytes}, indent=2))
        return
    parts = ", ".join(f"{part.count:,} {part.what}" for part in checked)
    say(f"{run}: {describe_nbytes(nbytes)} read, all as written ({parts})")


def _described(store: Path, found: Verified) -> str:
    files = ", ".join(f"{counted(n, 'file')} of {what}" for what, n in found.files.items() if n)
    lines = [f"{store}: {describe_nbytes(found.nbytes)} read, all as written ({files})"]
    if not found.knows_places:
        lines.append(
            "A store of format 2: chunks of values that have traded places are not found. "
            "Ingest the table again for a store that knows them."
        )
    return "\n".join(lines)
