"""Models other than trees: estimators of scikit-learn, scored by held-out loss."""
