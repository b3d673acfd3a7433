"""The on-disk column store: its layout, writing and reading."""
