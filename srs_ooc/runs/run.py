"""A run that is open: its ledger, and what it says of identity, inputs, store and trees."""

import os
from functools import cached_property
from pathlib import Path
from shlex import quote

from srs_ooc.base.errors import RunError, StoreError
from srs_ooc.base.urls import Place, Url, place_of
from srs_ooc.evidence.null_model import NullModel
from srs_ooc.runs.inputs import FILE_DIGITS, NULL_MODEL, WEIGHTS, Inputs
from srs_ooc.runs.ledger import VALID, Ledger, damaged_run
from srs_ooc.runs.run_trees import TreeReader
from srs_ooc.runs.spec import NOT_GIVEN, RunSpec
from srs_ooc.samplers.base import Ensemble
from srs_ooc.store.opening import open_store
from srs_ooc.store.store import Store

PLACES = "store"
"""Record of the ledger with the places of the store: absolute, and from the run's folder."""

HALVES = "halves"
"""Record of the ledger that says how many halves were asked for last; no part of the identity."""
NETWORK = "network"
"""Fact that says that a ledger is a network's, and which."""
N_TARGETS = "n_targets"
"""Fact that says how many targets a network is of."""


def places_of(store: Place, run: Path) -> list[str]:
    """Return what a ledger keeps of where a store is."""
    if isinstance(store, Url):
        return [str(store), str(store)]
    return [str(store.absolute()), os.path.relpath(store.absolute(), run.absolute())]


class Run(Ledger):
    """The ledger of a run, with what it says of the run: each is read once.

    Raises
    ------
    RunError
        As of :class:`Ledger`; from an attribute, if what it is read from is damaged, of another
        version, or a network's.
    """

    @cached_property
    def spec(self) -> RunSpec:
        """Its identity."""
        if self.has_meta(NETWORK):
            raise RunError(
                f"{self.run}: expected a run of `srs-ooc run`, found that it is a network. Its "
                "edges are written by the same `srs-ooc network` command once more."
            )
        try:
            return RunSpec.from_json(self.meta("spec"))
        except RunError as error:
            raise RunError(f"{self.run}: {error}") from error

    @cached_property
    def inputs(self) -> Inputs:
        """What the files of options said when the run was made."""
        basis, bins, scores = (self.input(name, "<i4") for name in NULL_MODEL)
        null = None
        if basis is not None and bins is not None and scores is not None:
            if len(bins) and len(basis) % len(bins) == 0:
                basis = basis.reshape(len(bins), -1)
            null = NullModel(basis, bins, scores)
        inputs = Inputs(
            self.input("excluded", "<u4"),
            self.input("rows", "<i4"),
            self.input(WEIGHTS, "<u4"),
            self.input("validation", "<i4"),
            null,
        )
        held = NOT_GIVEN | self.spec.to_json()
        found = NOT_GIVEN | inputs.digests
        names = ["excluded", "rows", "validation", "null_model"]
        if held.get("scores", "file").startswith(FILE_DIGITS):
            names.append("scores")
        for name in names:
            there, expected = found.get(name, "none"), held[name]
            if there != expected:
                what = f"expected the {name.replace('_', ' ')} that the run was made with"
                raise damaged_run(self.run, f"{what}, {expected}, found {there}")
        return inputs

    @property
    def saves_trees(self) -> bool:
        """Whether it keeps its trees."""
        return self.meta(VALID) is not None

    @property
    def n_halves(self) -> int:
        """How many halves of the rows were asked for; 0 if none."""
        return int(self.meta(HALVES)) if self.has_meta(HALVES) else 0

    def check_store(self, store: Store) -> None:
        """Check that the run was made on this very store.

        Raises
        ------
        RunError
            If the fingerprints differ.
        """
        expected = self.spec.store
        if expected != store.fingerprint:
            raise RunError(
                f"{self.run} is a run on another store than {store.place}: expected fingerprint "
                f"{expected[:16]}, found {store.fingerprint[:16]}. Put the run's own store back or "
                "name its place, name another run, or begin one with `srs-ooc run STORE --fresh`."
            )

    def seen(self, store: Store) -> Store:
        """Return a store as the run sees it: with its target, where that was added later.

        Raises
        ------
        RunError
            As of :meth:`check_store`.
        StoreError, UsageError
            If the target was replaced, or is no longer there.
        """
        self.check_store(store)
        return store.seen_as(self.spec.target)

    def find_store(self, given: Place | None = None) -> Store:
        """Open the store the run was made on: ``given``, or where it was, or at its place by it.

        Raises
        ------
        RunError
            If it is at none of these places, or another store is.
        StoreError
            If what is there cannot be read.
        """
        if given is not None:
            return self.seen(open_store(given))
        fingerprint = self.spec.store  # a network's ledger is no damaged one
        absolute, relative = self.meta(PLACES)
        noted = place_of(absolute)
        if isinstance(noted, Url):
            return self.seen(open_store(noted))
        places = [Path(absolute), Path(os.path.normpath(self.run.absolute() / relative))]
        # False in a folder that may not be looked into, where pathlib raises
        there = [place for place in places if os.path.exists(place)]  # noqa: PTH110
        for place in there:
            try:
                return self.seen(open_store(place, fingerprint))
            except StoreError:
                continue
        if there:
            return self.seen(open_store(there[0]))  # says what is wrong with it
        raise RunError(
            f"{self.run}: the run's store is no longer at {places[0]}. Put it back, name its new "
            f"place with --store where there is that option, or go on once with "
            f"`srs-ooc run STORE --out {quote(str(self.run))}`, which notes the new place."
        )

    def trees(self) -> TreeReader:
        """Return the trees that predict, as of the last commit.

        Raises
        ------
        RunError
            If the run keeps no trees, has none yet that predict, or its file is damaged.
        """
        return TreeReader(self, self.ensemble())

    def ensemble(self) -> Ensemble:
        """Return which of the trees that the run keeps predict, and how.

        Raises
        ------
        RunError
            If its method has not come to any yet.
        """
        spec = self.spec
        if not self.saves_trees:
            return Ensemble()
        part = spec.method.ranks_by
        found = spec.sampler.ensemble(self.meta(part) if self.has_meta(part) else {})
        if found is None:
            raise RunError(
                f"{self.run}: expected trees, found that --method {spec.run.method} has not come "
                "to its ensemble yet. Wait, or go on with the run."
            )
        per_subspace = spec.learner.trees_per_subspace
        count = None if found.count is None else found.count * per_subspace
        return Ensemble(found.first * per_subspace, count, found.votes, found.cutoff)
