"""Command lines run one after another in a folder, and what they say, without what varies.

Times, sizes of memory and places are masked; floats count to nine significant digits.
"""

import csv
import functools
import io
import json
import os
import re
import shlex

from digests import digest_of_json, rounded
from forked import Forks

_HANGS = 3600
_MOST_LINES, _MOST_ITEMS = 90, 12
_MACHINE = re.compile(r"seconds|peak|rss|resident|growth|memory_mb$|nbytes$|noted|usage")
"""Keys of JSON whose values are of the machine or the moment."""
_MASKS = (
    (re.compile(r"\d[\d.,]*( to \d[\d.,]*)? (ms|us|s|min|h|seconds?|minutes?|hours?)\b"), "# s"),
    (re.compile(r"\d[\d.,]*( (to|of) \d[\d.,]*)? (kB|MB|GB)\b"), "# MB"),
    (re.compile(r"--memory-mb \d+"), "--memory-mb #"),
    (re.compile(r"\(measured: [^)]*\)"), "(measured: #)"),
)
_PROGRESS = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d .*\n", re.MULTILINE)
"""Lines that come once a second: how many there are is of the moment."""
_FLOAT = re.compile(r"(?<![\w.])-?\d+\.\d+(e[+-]?\d+)?(?![\w.])")


@functools.cache
def _forks():
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SRS_OOC")}
    return Forks(clean | {"COLUMNS": "80", "PYTHONWARNINGS": "error"}, _HANGS)


def raw(folder, line):
    """Run a command line in ``folder``; return its exit status and what it wrote."""
    return _forks().run(shlex.split(line), folder)


def said(folder, line):
    """Run a command line in ``folder``; return its exit status and what it wrote, masked."""
    status, out, err = raw(folder, line)
    found = {"status": status}
    for name, text in (("stdout", out), ("stderr", err)):
        if text := _PROGRESS.sub("", text):
            found[name] = _shown(text, folder)
    return found


def played(folder, lines):
    """Run command lines in a folder; return what each said, in their order."""
    return [{"line": line} | said(folder, line) for line in lines]


def masked(text, folder):
    """Return a text without times, sizes of memory, places, and digits of floats beyond nine."""
    text = text.replace(str(folder), "FOLDER")
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return _FLOAT.sub(lambda found: _digits(found.group()), text)


def _digits(text):
    return text if len(text) < 11 else f"{float(text):.9g}"


def _shown(text, folder):
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict | list):
        return stable(value, folder)
    lines = [_row(line) for line in masked(text, folder).splitlines()]
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[:_MOST_ITEMS], f"... {len(lines)} lines {digest_of_json(lines)}"]


def _row(line):
    """A row of figures after the heading of a table, wherever masks have moved its columns."""
    return re.sub(r"(# (s|MB)) +", r"\1 ", re.sub(r" +(?=# (s|MB))", " ", line)).rstrip()


def stable(value, folder):
    """Return JSON with what varies masked, and long lists as their first items and a digest."""
    if isinstance(value, dict):
        return {
            key: "#" if _MACHINE.search(key) and item is not None else stable(item, folder)
            for key, item in value.items()
        }
    if isinstance(value, list):
        items = [stable(item, folder) for item in value]
        if len(items) <= _MOST_ITEMS:
            return items
        return [items[0], items[1], f"... {len(items)} items {digest_of_json(items)}"]
    return masked(value, folder) if isinstance(value, str) else rounded(value)


def cells_of(text):
    """Of CSV its columns, and a digest of all cells; floats to nine digits."""
    rows = [[_cell(cell) for cell in row] for row in csv.reader(io.StringIO(text))]
    return {"columns": rows[0], "rows": len(rows) - 1, "sha256": digest_of_json(rows)}


def _cell(text):
    try:
        return rounded(float(text))
    except ValueError:
        return text
