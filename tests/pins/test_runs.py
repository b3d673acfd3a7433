import book
import pytest
from run_cases import CASES, ON_TWO_THREADS, pin_of_run

PINS = book.read()["runs"]


@pytest.mark.few(3)
@pytest.mark.parametrize("name", CASES)
def test_a_run_has_the_results_that_are_pinned(name, tmp_path):
    assert pin_of_run(name, tmp_path) == PINS[name]


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ON_TWO_THREADS)
def test_two_workers_have_the_results_of_one(name, tmp_path):
    assert pin_of_run(name, tmp_path, threads=2) == PINS[name]


def test_every_option_changes_something():
    results = [str({k: v for k, v in pin.items() if k != "status"}) for pin in PINS.values()]
    assert len(set(results)) == len(results)
