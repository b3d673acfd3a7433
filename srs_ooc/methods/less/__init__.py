"""LESS: features drawn by scores of their columns, and these scores by themselves."""
