"""How many iterations to expect."""
