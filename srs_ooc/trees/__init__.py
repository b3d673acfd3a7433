"""Growing randomized trees on ordinal codes, natively."""
