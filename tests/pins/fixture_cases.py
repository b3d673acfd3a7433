"""Stores of format 3: what was made, and what they hold."""

import zipfile
from pathlib import Path

from access import digests_of_store, json_of
from scripts import stable

FOLDER = Path(__file__).parents[1] / "fixtures" / "format-3"
STORES = ("mixed", "numbers", "amounts", "roles", "wide", "codes", "free")
NAMES = [f"store {name}" for name in STORES]


def pin_of_fixture(name, place):
    """What a store holds, and what is said of it."""
    with zipfile.ZipFile(FOLDER / "stores.zip") as packed:
        packed.extractall(place)
    found = place / name.removeprefix("store ")
    about = stable(json_of("inspect", found, "--json"), place)
    return {"holds": digests_of_store(found), "says": about}
