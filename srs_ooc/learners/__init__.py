"""What grows trees on a block."""
