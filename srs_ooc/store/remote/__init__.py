"""Stores at a URL: their objects, what is kept of them on a local disk, their columns."""
