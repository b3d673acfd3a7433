import book
import pytest
from fixture_cases import NAMES, pin_of_fixture

PINS = book.read()["fixtures"]


@pytest.mark.parametrize("name", NAMES)
def test_a_store_of_format_3_holds_what_was_pinned(name, tmp_path):
    assert pin_of_fixture(name, tmp_path) == PINS[name]
