"""Scores of columns, computed in streaming passes over a table that does not fit in memory."""
