import book
import pytest
from surface_cases import NAMES, pin_of_surface

PINS = book.read()["surface"]


@pytest.mark.parametrize("name", NAMES)
def test_what_others_rely_on_is_as_pinned(name, tmp_path):
    assert pin_of_surface(name, tmp_path) == PINS[name]
