"""The store of a run: where it is, and whether what lies there is the one the run was made on."""

import os
from pathlib import Path

from srs_ooc.base.errors import RunError, StoreError
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.spec import RunSpec
from srs_ooc.store.manifest import Manifest, read_manifest

PLACES = "store"
"""Record of the ledger with the places of the store: absolute, and from the run's folder."""


def spec_of(ledger: Ledger) -> RunSpec:
    """Return the identity of the run of an open ledger."""
    return RunSpec.from_json(ledger.meta("spec"))


def places_of(store: Path, run: Path) -> list[str]:
    """Return what a ledger keeps of where a store is."""
    return [str(store.absolute()), os.path.relpath(store.absolute(), run.absolute())]


def find_store(ledger: Ledger, given: Path | None = None) -> Path:
    """Return the store a run was made on: ``given``, or where it was, or at its place by the run.

    Raises
    ------
    RunError
        If it is at none of these places, or another store is.
    StoreError
        If what is there cannot be read.
    """
    if given is not None:
        check_store(ledger, read_manifest(given), given)
        return given
    absolute, relative = ledger.meta(PLACES)
    places = [Path(absolute), Path(os.path.normpath(ledger.run.absolute() / relative))]
    there = [place for place in places if _is_there(place)]
    for place in there:
        if _is_store_of(ledger, place):
            return place
    if there:
        check_store(ledger, read_manifest(there[0]), there[0])
    raise RunError(
        f"{ledger.run}: the run's store is no longer at {places[0]}. Put it back, name its new "
        f"place with --store where there is that option, or go on once with "
        f"`srs-ooc run STORE --out {ledger.run}`, which notes the new place."
    )


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:  # in a folder that may not be looked into
        return False


def _is_store_of(ledger: Ledger, place: Path) -> bool:
    try:
        return read_manifest(place).fingerprint == spec_of(ledger).store
    except StoreError:
        return False


def check_store(ledger: Ledger, manifest: Manifest, store: Path) -> None:
    """Check that a run was made on this very store.

    Raises
    ------
    RunError
        If the fingerprints differ.
    """
    expected = spec_of(ledger).store
    if expected != manifest.fingerprint:
        raise RunError(
            f"{ledger.run} is a run on another store than {store}: expected fingerprint "
            f"{expected[:16]}, found {manifest.fingerprint[:16]}. Put the run's own store back or "
            "name its place, or name another run."
        )
