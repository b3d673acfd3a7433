"""Networks: one regression per target over one store, its regulators ranked as edges."""
