"""The column store: its layout, and reading and writing it."""
