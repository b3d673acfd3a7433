"""Ledgers with other records than were written, for the tests."""

import json
import sqlite3

from srs_ooc.runs.ledger import DIGEST, checksum_of, records_digest


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
