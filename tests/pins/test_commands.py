import book
import pytest
from command_cases import SCRIPTS, pin_of_script

PINS = book.read()["commands"]


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SCRIPTS)
def test_commands_say_and_write_what_is_pinned(name, tmp_path):
    assert pin_of_script(name, tmp_path) == PINS[name]


def test_every_command_is_among_them():
    lines = [step["line"] for pin in PINS.values() for step in pin["lines"] if not step["status"]]
    done = {line.split()[0] for line in lines if line}  # without one: the first screen
    assert done >= {
        "ingest", "inspect", "verify", "scores", "plan", "run", "resume", "status", "features",
        "compare", "report", "compact", "export", "predict", "sensitivity", "runs", "remove",
        "network", "synth", "theory",
    }  # fmt: skip
