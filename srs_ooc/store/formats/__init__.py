"""One module per source format."""
