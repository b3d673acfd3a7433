import book
import pytest
from store_cases import MAKERS, pin_of_store

PINS = book.read()["stores"]


@pytest.mark.parametrize("name", MAKERS)
def test_a_table_becomes_the_store_that_is_pinned(name, tmp_path):
    assert pin_of_store(name, tmp_path) == PINS[name]


def test_the_same_cells_have_the_same_codes_whatever_they_come_in():
    same = ("parquet", "feather", "pandas object", "polars object")
    assert len({PINS[name]["codes"] for name in same}) == 1
    assert PINS["csv, classes"]["codes"] == PINS["csv.gz"]["codes"] == PINS["tsv"]["codes"]
    assert PINS["sparse npz"]["codes"] == PINS["scipy object"]["codes"]
