"""Writing records as a table, CSV or JSON, one at a time."""

import csv
import dataclasses
import json
import sys
from collections.abc import Iterable
from typing import Any

import click


def echo_json(value: Any) -> None:
    """Write one JSON value."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def stream_json(records: Iterable[Any]) -> None:
    """Write dataclass records as a JSON list, one a line, never holding them all."""
    sys.stdout.write("[")
    separator = "\n"
    for record in records:
        sys.stdout.write(separator + json.dumps(vars(record), ensure_ascii=False))
        separator = ",\n"
    sys.stdout.write("\n]\n")


def stream_csv(kind: type, records: Iterable[Any]) -> None:
    """Write dataclass records as CSV with a header; None is an empty cell."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([field.name for field in dataclasses.fields(kind)])
    writer.writerows([_plain(value) for value in vars(record).values()] for record in records)


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def stream_table(columns: dict[str, int], records: Iterable[Any]) -> None:
    """Write some fields of records as columns of given widths; a longer text pushes on."""
    click.echo("  ".join(f"{name:>{width}}" for name, width in columns.items()))
    for record in records:
        cells = (f"{_cell(getattr(record, name)):>{width}}" for name, width in columns.items())
        click.echo("  ".join(cells))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
