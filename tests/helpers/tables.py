"""Tables for the tests: written as texts, opened as an ingest opens them, and ingested here."""

import csv
import os
from pathlib import Path

import pytest

from srs_ooc.cli import main
from srs_ooc.ingestion.formats.files import opener_of
from srs_ooc.ingestion.ingest_options import IngestOptions

DATA = Path(os.environ.get("SRS_OOC_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def data_file(*parts):
    """Return the place of a file that others wrote; skip the test where it is not here."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return path


def write_lines(path, rows, separator=","):
    """Write rows as lines of cells; return the path."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)
    return path


def write_columns(path, columns, separator=","):
    """Write columns by name as a text table; return its path."""
    return write_lines(path, [columns, *zip(*columns.values(), strict=True)], separator)


def opened(place, *, scratch=None, **options):
    """Return the table at a place, ``FILE::NAME`` too, as an ingest opens it."""
    scratch = scratch or Path(str(place).partition("::")[0]).parent / "scratch"
    scratch.mkdir(exist_ok=True)
    opener = opener_of(Path(place), options.get("query"))
    assert opener is not None
    return opener(scratch, IngestOptions(**{"memory_mb": 4000} | options))


def here(*words, expect=0):
    """Run a command in this process, where libraries are loaded already."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, words)])
    assert (ended.value.code or 0) == expect


def said_here(capsys, *words, expect=0):
    """Run a command in this process; return what it says, or the error that it ends with."""
    capsys.readouterr()
    here(*words, expect=expect)
    out, err = capsys.readouterr()
    return err if expect else out
