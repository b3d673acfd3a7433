"""Random Subspace Ensemble, and the criteria that judge its subspaces."""
