"""The kernel: growing a randomized tree on a block of ordinal codes, natively and in reference."""
