"""Definitions and propositions of the paper, on small distributions by enumeration (docs/theory.md)."""
