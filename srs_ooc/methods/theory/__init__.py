"""Section 4 of the paper, computable: how many iterations Random Subspace and SRS need."""
