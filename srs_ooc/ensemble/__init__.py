"""What a run's trees say of the rows of a table."""
