"""Parts of ``benchmarks/evidence.py``."""
