"""Progress as asked for: a bar on a terminal, lines with the time, or nothing; examples of help."""

import re
import shlex

import click
import pytest

from srs_ooc.base.records import Step
from srs_ooc.cli import COMMANDS, EXAMPLES, cli
from srs_ooc.cli.progress import LINES, NOTHING, RunProgress, byte_progress

LINE = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")


@pytest.fixture
def shown(monkeypatch, capsys):
    """Return what a progress writes, each step half a minute after the one before."""
    clock = iter(range(0, 10_000, 30))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))

    def shown_by(shows):
        progress = RunProgress(512, shows)
        for done in (1, 2, 3, 4):
            progress.show(Step("screening", done, 4))
        progress.close()
        with byte_progress(shows) as tell:
            for done in (10, 20):
                tell("reading", done, 20)
        return capsys.readouterr().err.splitlines()

    return shown_by


@pytest.mark.parametrize("shows", [None, LINES])
def test_without_a_terminal_each_line_bears_the_time(shown, shows):
    lines = shown(shows)
    assert len(lines) >= 4
    assert [line for line in lines if not LINE.match(line)] == []
    assert any("of 4 iterations" in line for line in lines)
    assert any("reading" in line for line in lines)


def test_the_end_of_a_stage_is_said_once(monkeypatch, capsys):
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    progress = RunProgress(512, LINES)
    for done in (1, 2, 2, 2):
        progress.show(Step("round 2", done, 2, unit="models"))
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_quiet_shows_nothing(shown):
    assert shown(NOTHING) == []


def test_every_command_has_examples_that_its_options_allow():
    assert list(EXAMPLES) == list(COMMANDS)
    for lines in EXAMPLES.values():
        for line in lines:
            words = shlex.split(line.partition(" > ")[0])
            assert words.pop(0) == "srs-ooc"
            context = click.Context(cli)
            name, command, rest = cli.resolve_command(context, words)
            while isinstance(command, click.Group):
                name, command, rest = command.resolve_command(context, rest)
            command.make_context(name, rest).close()


def test_the_shell_completes_commands_and_options(monkeypatch, capsys):
    def completions(*words):
        monkeypatch.setenv("_SRS_OOC_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["srs-ooc", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit):
            cli.main([], prog_name="srs-ooc")
        return capsys.readouterr().out.split()

    assert "plain,ingest" in completions("in")
    assert "plain,--memory-mb" in completions("run", "--mem")
