"""The store of a run: where it is, and whether what lies there is the one the run was made on."""

import os
from pathlib import Path
from shlex import quote

from srs_ooc.base.errors import RunError, StoreError
from srs_ooc.base.urls import Place, Url, place_of
from srs_ooc.runs.ledger import Ledger
from srs_ooc.runs.spec import RunSpec
from srs_ooc.store.opening import open_store
from srs_ooc.store.remote_cache import CacheOptions
from srs_ooc.store.store import Store

PLACES = "store"
"""Record of the ledger with the places of the store: absolute, and from the run's folder."""

NETWORK = "network"
"""Fact that says that a ledger is a network's, and which."""
N_TARGETS = "n_targets"
"""Fact that says how many targets a network is of."""


def spec_of(ledger: Ledger) -> RunSpec:
    """Return the identity of the run of an open ledger.

    Raises
    ------
    RunError
        If it is damaged, or a network's.
    """
    if ledger.has_meta(NETWORK):
        raise RunError(
            f"{ledger.run}: expected a run of `srs-ooc run`, found that it is a network. Its edges "
            "are written by the same `srs-ooc network` command once more."
        )
    return RunSpec.from_json(ledger.meta("spec"))


def places_of(store: Place, run: Path) -> list[str]:
    """Return what a ledger keeps of where a store is."""
    if isinstance(store, Url):
        return [str(store), str(store)]
    return [str(store.absolute()), os.path.relpath(store.absolute(), run.absolute())]


def find_store(
    ledger: Ledger, given: Place | None = None, cache: CacheOptions | None = None
) -> Store:
    """Open the store a run was made on: ``given``, or where it was, or at its place by the run.

    ``cache`` is what is kept here of one at a URL.

    Raises
    ------
    RunError
        If it is at none of these places, or another store is.
    StoreError
        If what is there cannot be read.
    """
    if given is not None:
        return _opened(ledger, given, cache)
    spec_of(ledger)  # a network's ledger is no damaged one
    absolute, relative = ledger.meta(PLACES)
    noted = place_of(absolute)
    if isinstance(noted, Url):
        return _opened(ledger, noted, cache)
    places = [Path(absolute), Path(os.path.normpath(ledger.run.absolute() / relative))]
    there = [place for place in places if _is_there(place)]
    for place in there:
        found = _store_of(ledger, place)
        if found is not None:
            return found
    if there:
        return _opened(ledger, there[0])  # says what is wrong with it
    raise RunError(
        f"{ledger.run}: the run's store is no longer at {places[0]}. Put it back, name its new "
        f"place with --store where there is that option, or go on once with "
        f"`srs-ooc run STORE --out {quote(str(ledger.run))}`, which notes the new place."
    )


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:  # in a folder that may not be looked into
        return False


def _store_of(ledger: Ledger, place: Path) -> Store | None:
    try:
        return open_store(place, spec_of(ledger).store)
    except StoreError:
        return None


def _opened(ledger: Ledger, place: Place, cache: CacheOptions | None = None) -> Store:
    store = open_store(place, cache=cache)
    check_store(ledger, store)
    return store


def check_store(ledger: Ledger, store: Store) -> None:
    """Check that a run was made on this very store.

    Raises
    ------
    RunError
        If the fingerprints differ.
    """
    expected = spec_of(ledger).store
    if expected != store.fingerprint:
        raise RunError(
            f"{ledger.run} is a run on another store than {store.place}: expected fingerprint "
            f"{expected[:16]}, found {store.fingerprint[:16]}. Put the run's own store back or "
            "name its place, name another run, or begin one with `srs-ooc run STORE --fresh`."
        )
