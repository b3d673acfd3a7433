"""The problems and the methods that are compared."""

PAPERS = {
    "checkerboard": range(50, 201, 50),
    "friedman": range(50, 251, 50),
    "hypercube": range(50, 251, 50),
    "linear": range(10),
}
"""Problems of the PRS paper, 400 rows to learn from and 500 features: who is relevant."""

SYNTH = {
    "madelon, p = 5,000": ("madelon", "--rows", "2000", "--features", "5000", "--relevant", "20"),
    "chain of 3, p = 5,000": ("chain", "--rows", "2000", "--features", "5000", "--relevant", "3"),
    "clique of 2, p = 500": ("clique", "--rows", "4000", "--features", "500", "--relevant", "2"),
    "linear, p = 5,000": ("linear", "--rows", "2000", "--features", "5000", "--relevant", "15"),
    "shift, n = 72": ("shift", "--rows", "144", "--features", "5000", "--relevant", "20"),
}
"""Problems of ``srs-ooc synth`` and its arguments; the first half of the rows is learnt from."""

METHODS = {
    "srs": (),
    "srs, closing by sensitivity": ("--closing", "sensitivity"),
    "srs, judge probe": ("--judge", "probe"),
    "rs": ("--method", "rs"),
    "less": ("--method", "less"),
    "less by norms": ("--method", "less", "--scores", "norm"),
    "prs": ("--method", "prs"),
    "prs, screen of 500": ("--method", "prs", "--screen", "500", "--patience", "300"),
    "rase": ("--method", "rase"),
    "rase, screen of 500": ("--method", "rase", "--screen", "500"),
    "rase, lda by ric": ("--method", "rase", "--model", "lda", "--criterion", "ric"),
    "rs, nearest neighbours": ("--method", "rs", "--model", "knn"),
    "rs, support vectors": ("--method", "rs", "--model", "svm"),
    "rs, linear": ("--method", "rs", "--model", "linear"),
}
"""Options of ``srs-ooc run``; else its defaults."""

PEERS = ("forest (scikit-learn)", "F-test (scikit-learn)")
