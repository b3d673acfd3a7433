"""Runs that a test works on in its own process, and what their ledgers keep."""

import json
import sqlite3
from contextlib import closing

from srs_ooc.base.records import State
from srs_ooc.runs.ledger import DIGEST, checksum_of, records_digest
from srs_ooc.runs.run import Run
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.store.store import Store


def work_on_run(store, run, request, watch=lambda _: True):
    """Create or open a run, and work on it as far as ``watch`` allows."""
    with closing(open_or_create(Store.open(store), run, request)) as ledger:
        work_on(ledger, Store.open(store), request, watch)


class _Everything:
    """All that a ledger keeps of one part: its facts and what ``bits_of`` makes of the rest."""

    def __init__(self, bits_of):
        self.bits_of = bits_of

    def state(self):
        return State()

    def restore(self, saved):
        self.facts, self.bits = saved.facts, self.bits_of(saved)


def state_of_part(run, name, bits_of):
    """The iteration of a run's last commit, and the facts and bits of a part as of then."""
    ledger, state = Run(run, writable=False), _Everything(bits_of)
    try:
        iteration = ledger.load({name: state}).iteration
    finally:
        ledger.close()
    return iteration, state.facts, state.bits


def change(run, *statements):
    """Change the records of a run that is closed, by SQL, or SQL and its values; seal them anew."""
    database = sqlite3.connect(run / "ledger.sqlite")
    for statement in statements:
        database.execute(*([statement] if isinstance(statement, str) else statement))
    digest = json.dumps(records_digest(database))
    seal = (DIGEST, digest, checksum_of(DIGEST, digest.encode()))
    database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", seal)
    database.commit()
    database.close()


def changed_fact(name, value):
    """Return the statement for :func:`change` that puts another value in a fact's place."""
    text = json.dumps(value)
    sealed = (name, text, checksum_of(name, text.encode()))
    return "INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", sealed
