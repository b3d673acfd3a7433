"""Definitions and propositions of the paper on small distributions (docs/theory.md)."""
