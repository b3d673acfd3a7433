import book
import pytest
from access import MEMORY, command, without_trials
from fixture_cases import (
    NAMES,
    NETWORKS,
    RUNS,
    edges_of,
    ends_of,
    pin_of_fixture,
    unpack,
    words_of,
)

PINS = book.read()["fixtures"]


@pytest.mark.parametrize("name", NAMES)
def test_what_format_3_holds_opens_and_ends_as_pinned(name, tmp_path):
    assert pin_of_fixture(name, tmp_path) == PINS[name]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_was_interrupted_is_pinned_to_what_the_whole_one_finds(name, tmp_path):
    store, options = RUNS[name][:2]
    unpack("store", store, tmp_path)
    run = tmp_path / "whole"
    with without_trials():
        words = words_of(options)
        command("run", tmp_path / store, "--out", run, *MEMORY, "--threads", 1, *words)
    assert PINS[f"run {name}"]["stood"]["state"] == "stopped"
    assert ends_of(run, tmp_path, store, options) == PINS[f"run {name}"]["ends"]


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_was_interrupted_is_pinned_to_what_the_whole_one_finds(name, tmp_path):
    unpack("store", "numbers", tmp_path)
    pinned = PINS[f"network {name}"]
    assert pinned["stood"]["state"] == "stopped"
    whole = edges_of(name, tmp_path)
    assert whole["edges"] == pinned["edges"]
