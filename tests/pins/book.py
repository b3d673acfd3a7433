"""All pins: what there is to pin, by section and name, and what is pinned."""

import json
from pathlib import Path

from cap_cases import NAMES as CAPS
from cap_cases import pin_of_caps
from command_cases import SCRIPTS, pin_of_script
from fixture_cases import NAMES as FIXTURES
from fixture_cases import pin_of_fixture
from message_cases import NAMES as MESSAGES
from message_cases import pin_of_messages
from method_cases import CASES as METHODS
from method_cases import pin_of_method
from plan_cases import NEEDS, PLANS, pin_of_needs, pin_of_plan
from run_cases import CASES, pin_of_run
from store_cases import MAKERS, pin_of_store
from surface_cases import NAMES as SURFACE
from surface_cases import pin_of_surface

FILE = Path(__file__).with_name("pins.json")
FOLDER = Path(__file__).with_name("pinned")
"""A file for each of the other sections."""
IN_FILE = {
    "stores": (list(MAKERS), pin_of_store),
    "runs": (list(CASES), pin_of_run),
    "needs": (NEEDS, pin_of_needs),
    "plans": (list(PLANS), pin_of_plan),
}
IN_FOLDER = {
    "methods": (list(METHODS), pin_of_method),
    "commands": (list(SCRIPTS), pin_of_script),
    "caps": (list(CAPS), pin_of_caps),
    "fixtures": (FIXTURES, pin_of_fixture),
    "messages": (list(MESSAGES), pin_of_messages),
    "surface": (list(SURFACE), pin_of_surface),
}
SECTIONS = IN_FILE | IN_FOLDER
"""Section: names of its pins, and what finds the value of one: ``find(name, empty folder)``."""


def read():
    """Return the pins of all sections that have some."""
    files = {section: FOLDER / f"{section}.json" for section in IN_FOLDER}
    found = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return found | {
        section: json.loads(file.read_text(encoding="utf-8"))
        for section, file in files.items()
        if file.exists()
    }


def write(pins):
    """Make these the pins of their sections."""
    FOLDER.mkdir(exist_ok=True)
    _write(FILE, {section: pins[section] for section in IN_FILE if section in pins})
    for section in IN_FOLDER:
        if section in pins:
            _write(FOLDER / f"{section}.json", pins[section])


def _write(file, value):
    file.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
