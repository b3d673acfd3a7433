"""Choosers of subspaces."""
