"""Parts of the benchmark of small sets."""
