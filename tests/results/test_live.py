"""What ``progress=True`` shows on a terminal, in a notebook and elsewhere."""

import io
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import srs_ooc
from srs_ooc.base.records import Step
from srs_ooc.results import live

STEPS = [*(Step("", n, 4) for n in (1, 3, 4)), *(Step("round [1]", n, 2) for n in (1, 2))]


class Stream(io.StringIO):
    def __init__(self, *, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal


def shown(monkeypatch, *, is_terminal, steps=STEPS):
    stream = Stream(is_terminal=is_terminal)
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", stream)
    with live.shown(True) as show:
        for step in steps:
            show(step)
    return stream.getvalue()


def test_elsewhere_a_stage_is_one_plain_line_at_its_end(monkeypatch):
    first, second = shown(monkeypatch, is_terminal=False).splitlines()
    assert "4 of 4 iterations" in first
    assert "round [1]: 2 of 2" in second
    assert "\x1b" not in first + second


def test_elsewhere_a_long_stage_is_a_line_now_and_then(monkeypatch):
    monkeypatch.setattr(live, "LINE_SECONDS", 0.0)
    lines = shown(monkeypatch, is_terminal=False).splitlines()
    told = ("3 of 4", "4 of 4", "1 of 2", "2 of 2")
    assert all(text in line for text, line in zip(told, lines, strict=True))
    assert "a second" in lines[1]


def test_on_a_terminal_a_bar_moves_and_the_cursor_is_given_back(monkeypatch):
    monkeypatch.setattr(live, "BAR_SECONDS", 0.0)
    said = shown(monkeypatch, is_terminal=True)
    assert all(text in said for text in ("3 of 4", "4 of 4", "round [1]: 2 of 2"))
    assert said.count("\x1b[?25l") == said.count("\x1b[?25h") == 1


def test_in_a_notebook_one_output_is_drawn_anew(monkeypatch):
    drawn = []

    def display(bar, *, display_id):
        assert display_id
        return SimpleNamespace(update=lambda bar: drawn.append(bar.tasks[0].completed))

    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(live, "BAR_SECONDS", 0.0)
    assert shown(monkeypatch, is_terminal=False) == ""
    assert drawn == [1, 3, 4, 1, 2, 2]
    monkeypatch.setattr(live, "BAR_SECONDS", 60.0)
    drawn.clear()
    shown(monkeypatch, is_terminal=False, steps=[Step("", n, 9) for n in (1, 2, 3)])
    assert drawn == [1, 3]  # the last one at the end


def test_the_last_that_a_run_shows_is_that_it_is_done(tmp_path):
    rng = np.random.default_rng(0)
    values, steps = rng.standard_normal((120, 60)), []
    target = (values[:, 0] > 0).astype(int)
    srs_ooc.ingest(values, str(tmp_path / "t.zarr"), target=target)
    srs_ooc.run(str(tmp_path / "t.zarr"), iterations=40, progress=steps.append)
    assert steps[-1].stage == "effects"
    ends = {step.stage: step for step in steps}.values()
    assert [step for step in ends if step.done != step.total] == []


def test_work_that_tells_no_step_shows_nothing(monkeypatch):
    assert shown(monkeypatch, is_terminal=True, steps=[]) == ""


def test_a_bar_ends_with_an_error_too(monkeypatch):
    with pytest.raises(AttributeError):
        shown(monkeypatch, is_terminal=True, steps=[STEPS[0], None])
