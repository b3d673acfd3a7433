"""A run: its identity, its ledger, the loop, and its verdict."""
