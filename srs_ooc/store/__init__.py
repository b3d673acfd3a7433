"""The on-disk column store: its layout, ingest, and reading."""
