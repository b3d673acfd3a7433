"""Parts of ``compare_methods.py``."""
