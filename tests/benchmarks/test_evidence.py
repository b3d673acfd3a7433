"""The tables of many kinds: what is planted is there, and the campaign can be stopped."""

import json

import numpy as np
import pytest
from evidence import main, report, table_of
from evidence_designs import DESIGNS, selected_by_test


@pytest.mark.few(4)
@pytest.mark.parametrize("design", DESIGNS)
def test_tables_are_of_their_seed_and_name_who_is_relevant(design):
    table = table_of(design, 3)
    n, p = table.values.shape
    assert table.target.shape == (n,)
    assert all(0 <= feature < p for feature in table.relevant)
    assert bool(table.relevant) != design.startswith("noise")
    again = table_of(design, 3)
    np.testing.assert_array_equal(table.values, again.values)
    np.testing.assert_array_equal(table.target, again.target)


@pytest.mark.few(1)
@pytest.mark.parametrize("design", ["pairs", "missing", "rare"])
def test_the_simple_test_that_is_told_the_design_finds_most(design):
    table = table_of(design, 1)
    found = selected_by_test(table, 0.1)
    assert len(np.intersect1d(found, table.relevant)) >= 14
    assert len(np.setdiff1d(found, table.relevant)) <= 8


@pytest.mark.slow
def test_what_is_done_is_not_done_again(tmp_path, monkeypatch, capsys):
    results = tmp_path / "results.jsonl"
    asked = ["evidence.py", "--results", str(results), "--designs", "noise, counts"]
    monkeypatch.setattr("sys.argv", [*asked, "--seeds", "0", "1"])
    main()
    first = results.read_text()
    assert json.loads(first)["found"]["ours"]["power"] is None
    main()
    assert results.read_text() == first
    assert "| noise, counts | srs-ooc | 1 |" in capsys.readouterr().out


def test_means_and_standard_errors_are_told():
    found = {"selected": 2, "power": 0.5, "false": 0.0, "cpu": 1.0}
    lines = [
        {"design": "d", "label": "", "found": {"ours": found}},
        {"design": "d", "label": "", "found": {"ours": found | {"power": 1.0, "false": 0.5}}},
    ]
    assert (
        report(lines).splitlines()[-1] == "| d | srs-ooc | 2 | 2.0 | 0.75 | 0.250 ± 0.250 | 1.0 |"
    )
