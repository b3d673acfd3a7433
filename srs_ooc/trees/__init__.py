"""Growing randomized trees on ordinal codes, natively, and its readable Python twin."""
