"""Definitions and propositions of the paper on small distributions (docs/research/theory.md)."""
