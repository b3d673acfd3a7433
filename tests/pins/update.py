"""Print how today's results differ from the pins, and with --write make them the pins.

    python tests/pins/update.py [--write] [SECTION ...]

A pin changes only in a commit that says why.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "helpers"))

import book
import pytest
from digests import differences


def found_in(sections, pins):
    """Today's values; what cannot be found here, for want of a library, stays as pinned."""
    found = {}
    for section in sections:
        names, find = book.SECTIONS[section]
        held = pins.get(section, {})
        found[section] = {}
        for name in names:
            try:
                with tempfile.TemporaryDirectory() as folder:
                    found[section][name] = find(name, Path(folder))
            except pytest.skip.Exception as skip:
                print(f"kept: {section}: {name}: {skip}", file=sys.stderr)
                found[section][name] = held[name]
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(book.SECTIONS))
    parser.add_argument("--write", action="store_true", help="make today's results the pins")
    given = parser.parse_args()
    unknown = set(given.sections) - set(book.SECTIONS)
    if unknown:
        parser.error(f"expected {', '.join(book.SECTIONS)}, found {', '.join(sorted(unknown))}")
    pins = book.read()
    found = found_in(given.sections or book.SECTIONS, pins)
    held = {section: pins.get(section, {}) for section in found}
    lines = [
        f"{place}: pinned {before!r}, found {now!r}"
        for place, before, now in differences(held, found)
    ]
    print("\n".join(lines) or "as pinned")
    if given.write:
        book.write(pins | found)
    return 1 if lines and not given.write else 0


if __name__ == "__main__":
    sys.exit(main())
