"""Ledgers as earlier versions wrote them, for the tests."""

import sqlite3

from srs_ooc.runs.ledger_pages import checksum_of


def change(run, *statements):
    """Change the records of a run that is closed, and make its ledger one of format 2.

    Each statement is SQL, or its SQL and its values. Format 2 has no checksum over all records.
    """
    database = sqlite3.connect(run / "ledger.sqlite")
    database.execute("DELETE FROM meta WHERE name = 'records'")
    row = ("format", "2", checksum_of("format", b"2"))
    database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)
    for statement in statements:
        database.execute(*([statement] if isinstance(statement, str) else statement))
    database.commit()
    database.close()
