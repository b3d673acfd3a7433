"""Accumulated evidence per feature, and the tests that read it."""
