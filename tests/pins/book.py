"""All pins: what there is to pin, by section and name, and what is pinned."""

import json
from pathlib import Path

from old_files import RUNS, pin_of_old_file
from plan_cases import NEEDS, PLANS, pin_of_needs, pin_of_plan
from run_cases import CASES, pin_of_run
from store_cases import MAKERS, pin_of_store

FILE = Path(__file__).with_name("pins.json")
SECTIONS = {
    "stores": (list(MAKERS), pin_of_store),
    "runs": (list(CASES), pin_of_run),
    "needs": (NEEDS, pin_of_needs),
    "plans": (list(PLANS), pin_of_plan),
    "old_files": (list(RUNS), pin_of_old_file),
}
"""Section: names of its pins, and what finds the value of one: ``find(name, empty folder)``."""


def read():
    return json.loads(FILE.read_text(encoding="utf-8"))


def write(pins):
    FILE.write_text(json.dumps(pins, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
