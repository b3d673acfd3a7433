"""What docs/research/theory.md shows is what the program says."""

import re
import shlex
from pathlib import Path

import pytest
import theory_over_time
from paper_table1 import rows, table_lines

from srs_ooc.cli import main
from srs_ooc.methods.theory.paper_theory import Setting, expected_time

pytestmark = pytest.mark.documents

DOCS = Path(__file__).parents[2] / "docs"
THEORY = (DOCS / "research" / "theory.md").read_text()
NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


def examples_of(page):
    return re.findall(r"^    \$ srs-ooc (.*)\n((?:    .+\n)+)", page, re.MULTILINE)


def said_by(capsys, command):
    with pytest.raises(SystemExit):
        main(shlex.split(command))
    return capsys.readouterr().out


def numbers(text):
    return [float(n.replace(",", "")) for n in NUMBER.findall(text)]


def words(text):
    return NUMBER.sub("#", text).split()


@pytest.mark.parametrize(("command", "shown"), examples_of(THEORY))
def test_commands_print_what_the_page_shows(capsys, command, shown):
    said = said_by(capsys, command)
    assert words(said) == words(shown)
    assert numbers(said) == pytest.approx(numbers(shown), rel=1e-7)


def test_every_example_is_there():
    assert len(examples_of(THEORY)) == 3


def test_table_1_is_what_the_page_shows():
    table = "".join(f"    {line}".rstrip() + "\n" for line in table_lines(rows()))
    assert f"    $ python benchmarks/research/paper_table1.py\n{table}" in THEORY


def test_the_python_example_is_true():
    setting = Setting("clique", 10**6, 2500, 3, "0.5")
    assert f">>> float(expected_time(setting))\n    {float(expected_time(setting))}\n" in THEORY


def test_what_is_found_over_time_is_what_the_page_shows(capsys):
    ((arguments, shown),) = re.findall(
        r"^    \$ python \S+/theory_over_time.py (.*)\n((?:    .+\n)+)", THEORY, re.MULTILINE
    )
    theory_over_time.main(arguments.split())
    assert capsys.readouterr().out == re.sub(r"^    ", "", shown, flags=re.MULTILINE)
