"""Estimators of scikit-learn: ``SRSSelector``, ``SRSClassifier``, ``SRSRegressor``.

A fit turns the table into a store, in a temporary folder, and runs the search on it: the same as
``srs-ooc ingest`` and ``srs-ooc run``, to the bit. What is kept are arrays of a value a feature
and, of a classifier or regressor, its trees; the folder is removed. Only this package imports
scikit-learn.
"""

from srs_ooc.estimators.ensembles import SRSClassifier, SRSRegressor
from srs_ooc.estimators.selector import SRSSelector

__all__ = ["SRSClassifier", "SRSRegressor", "SRSSelector"]
