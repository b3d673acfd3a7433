import sys

import paper_table1
import pytest
from paper_table1 import PRINTED, consistent, rows, table_lines


def test_two_printed_figures_disagree_and_only_those():
    wrong = [
        (row.part, row.setting.n_relevant, name)
        for row in rows()
        for name, cell in (("rs", row.rs), ("srs", row.srs))
        if not cell.agrees
    ]
    assert wrong == [("b", 3, "rs"), ("c", 100, "rs")]


def test_the_wrong_marginal_figure_is_that_of_the_row_below():
    last, above = rows()[-1], rows()[-2]
    assert above.rs.printed == last.rs.printed
    assert last.rs.agrees
    assert above.rs.computed == pytest.approx(516.66065594, rel=1e-9)


def test_every_row_of_the_paper_is_there():
    assert [part for part, *_ in PRINTED] == ["a"] * 5 + ["b"] * 5 + ["c"] * 5


@pytest.mark.parametrize(
    ("printed", "computed", "agrees"),
    [
        ("> 10^6", 1.03e6, True),
        ("> 10^6", 0.99e6, False),
        ("5*10^6", 5.4e6, True),
        ("5*10^6", 5.6e6, False),
        ("10^6", 1.4e6, True),
        ("10^6", 1.6e6, False),
        ("10^6", 9.6e5, True),
        ("291", 291.94, True),
        ("292", 291.94, True),
        ("290", 291.94, False),
    ],
)
def test_what_a_printed_figure_says(printed, computed, agrees):
    assert consistent(printed, computed) is agrees


def test_the_table_marks_what_disagrees(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["paper_table1.py"])
    paper_table1.main()
    out = capsys.readouterr().out
    assert out.splitlines() == table_lines(rows())
    assert out.count("*10^") == 2
    marked = [line for line in out.splitlines() if "5*10^6*" in line or "1123*" in line]
    assert len(marked) == 2
    assert "2 printed figures" in out
