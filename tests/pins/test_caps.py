import book
import pytest
from cap_cases import LINES, NAMES, pin_of_caps

PINS = book.read()["caps"]
FROM_MACHINE_TO_MACHINE = 3
"""MB: a process is measured as it stands, with the libraries of this machine."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_caps_that_are_named_are_those_pinned(name, tmp_path):
    found = pin_of_caps(name, tmp_path)
    assert list(found) == list(PINS[name]) == list(LINES)
    far = {
        line: (PINS[name][line], cap)
        for line, cap in found.items()
        if not isinstance(cap, int) or abs(cap - PINS[name][line]) > FROM_MACHINE_TO_MACHINE
    }
    assert far == {}
