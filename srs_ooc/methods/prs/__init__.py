"""Parametric Random Subspace: each feature's probability is learnt by descent."""
