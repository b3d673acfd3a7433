"""A run to look at: one page that needs no network, single figures, and the same as text."""
