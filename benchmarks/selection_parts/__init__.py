"""Parts of the selection benchmark (``benchmarks/selection.py``)."""
