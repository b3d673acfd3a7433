"""Advice before a run: what fits, what it costs, how many iterations, and what can be found."""
