"""Parts of the campaign of attacks (``benchmarks/attacks.py``)."""
