"""The plans that docs/plan.md shows are what the program says; times are the machine's."""

import re
import shlex
from pathlib import Path

import pytest

from srs_ooc.cli import main

pytestmark = pytest.mark.documents

TEXT = (Path(__file__).parents[2] / "docs" / "plan.md").read_text()
EXAMPLES = re.findall(r"^    \$ srs-ooc (.*)\n((?:    .+\n)+)", TEXT, re.MULTILINE)
TIMED = re.compile(r"^(time: | +[\d,]+ iterations: | +from a cold disk)")


NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


def numbers(lines):
    return [float(n.replace(",", "")) for line in lines for n in NUMBER.findall(line)]


def words(line):
    return NUMBER.sub("#", line).split()


def untimed(text):
    return [line.strip() for line in text.splitlines() if not TIMED.match(line)]


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_the_plans_shown_are_true(capsys, command, shown):
    with pytest.raises(SystemExit):
        main(shlex.split(command))
    said = capsys.readouterr().out
    lines = re.sub(r"^    ", "", shown, flags=re.MULTILINE)
    told, page = untimed(said), untimed(lines)
    assert len(told) > 30
    if "..." in page:  # some of its lines
        page.remove("...")
        told = [line for line in told if words(line) in map(words, page)]
    assert [*map(words, told)] == [*map(words, page)]
    # Published allowances of memory may move a little without the page being wrong.
    assert numbers(told) == pytest.approx(numbers(page), rel=0.1, abs=1.0)


def test_both_plans_are_there():
    assert len(EXAMPLES) == 2
