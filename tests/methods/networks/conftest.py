import pytest
from genes import N_REGULATORS, expression, write_genes


@pytest.fixture(scope="package")
def folder(tmp_path_factory):
    """A folder with a store of genes and files of the names of regulators and targets."""
    return write_genes(tmp_path_factory.mktemp("network"), expression()[0], N_REGULATORS, 4)
