"""What single tests see of the tables of many kinds."""

import contrasts
import numpy as np
import pytest


@pytest.mark.slow
def test_each_contrast_sees_its_own_design_and_all_are_joined(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["contrasts.py", "--designs", "missing", "--seeds", "3", "4"])
    contrasts.main()
    cells = capsys.readouterr().out.splitlines()[-1].strip("| ").split(" | ")
    powers = dict(
        zip(contrasts.HEADS[1:], (float(c.split(",")[0]) for c in cells[3:]), strict=True)
    )
    assert powers["location"] == powers["spread"] == 0
    assert powers["absence"] >= powers["joined"] > 0.5


def test_nulls_are_counted(monkeypatch):
    strengths = np.array([0.5, 2.5, 3.5, 0.0])
    monkeypatch.setattr(contrasts, "strengths_of", lambda *_: ({"joined": strengths}, []))
    assert contrasts.nulls("noise", range(2)) == "| noise | 8 | 50.00 | 250.00 | 0.00 |"
