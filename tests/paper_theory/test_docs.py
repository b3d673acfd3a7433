"""The examples of docs/research/theory.md show what the program says (numbers to seven digits)."""

import re
import shlex
from pathlib import Path

import pytest
from paper_table1 import rows, table_lines

from srs_ooc.cli import main
from srs_ooc.planning.paper_theory import Setting, expected_time, time_quantile

pytestmark = pytest.mark.documents

TEXT = (Path(__file__).parents[2] / "docs" / "research" / "theory.md").read_text()
EXAMPLES = re.findall(r"^    \$ srs-ooc (.*)\n((?:    .+\n)+)", TEXT, re.MULTILINE)
NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


def numbers(text):
    return [float(n.replace(",", "")) for n in NUMBER.findall(text)]


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_commands_print_what_the_page_shows(capsys, command, shown):
    with pytest.raises(SystemExit):
        main(shlex.split(command))
    said = capsys.readouterr().out
    assert NUMBER.sub("#", said).split() == NUMBER.sub("#", shown).split()
    assert numbers(said) == pytest.approx(numbers(shown), rel=1e-7)


def test_every_kind_of_example_is_there():
    assert len(EXAMPLES) == 4


def test_table_1_is_what_the_page_shows():
    table = "".join(f"    {line}".rstrip() + "\n" for line in table_lines(rows()))
    assert f"    $ python benchmarks/research/paper_table1.py\n{table}" in TEXT


def test_the_python_example_is_true():
    setting = Setting("clique", 10**6, 2500, 3, "0.5")
    shown = dict(re.findall(r">>> (\w+)\(setting.*\n    ([\d.]+)", TEXT))
    assert expected_time(setting).value == pytest.approx(float(shown["expected_time"]), rel=1e-9)
    assert time_quantile(setting, 0.9) == pytest.approx(float(shown["time_quantile"]), rel=1e-9)
