import book
import pytest
from method_cases import CASES, ON_TWO_THREADS, pin_of_method

PINS = book.read()["methods"]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", CASES)
def test_a_method_has_the_results_that_are_pinned(name, tmp_path):
    assert pin_of_method(name, tmp_path) == PINS[name]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ON_TWO_THREADS)
def test_two_workers_have_the_results_of_one(name, tmp_path):
    assert pin_of_method(name, tmp_path, threads=2) == PINS[name]


def test_every_option_changes_something():
    results = [str({k: v for k, v in pin.items() if k != "status"}) for pin in PINS.values()]
    assert len(set(results)) == len(results)
