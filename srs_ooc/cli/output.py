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
    writer.writerows(list(vars(record).values()) for record in records)


def stream_table(kind: type, records: Iterable[Any], widths: dict[str, int]) -> None:
    """Write dataclass records as aligned columns; a name longer than its column pushes on."""
    names = [field.name for field in dataclasses.fields(kind)]
    click.echo("  ".join(f"{name:>{widths.get(name, 10)}}" for name in names))
    for record in records:
        cells = (f"{_cell(getattr(record, name)):>{widths.get(name, 10)}}" for name in names)
        click.echo("  ".join(cells))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
